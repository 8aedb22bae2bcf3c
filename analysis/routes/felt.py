"""Which samples say how a path is: round trips of packets of usual size, of our own sending.

Hop round trips are none (routers answer when they like), nor what our own traffic loaded, nor
packets so large that their loss may be a matter of size (`black_holes` looks at those).
"""

from array import array
from dataclasses import dataclass, field

import numpy as np

from pathbudget.analysis.routes.black_holes import SizedPacket, SizeFinding, judge_sizes, size_of
from pathbudget.analysis.routes.black_holes import SizeVerdict as Verdict
from pathbudget.analysis.routes.model import PathSeries
from pathbudget.analysis.routes.observations import series_of
from pathbudget.analysis.routes.sweeps import is_lost
from pathbudget.analysis.series import NOT_OF_THE_PATH, WALL_CLOCKS
from pathbudget.analysis.track import Track
from pathbudget.probes.record import Flag, Measurement, Metric, Sample

FELT_METRICS = frozenset({Metric.RTT, Metric.CONNECT})
LARGE_OCTETS = 600
"""Whole packets larger than this may be dropped for their size (RFC 791: 576 always pass)."""

MOST_SIZED = 4096
"""Packets of a path that are kept to tell whether size matters."""

LOST = float("inf")
TOO_BIG = frozenset({(3, 4), (2, 0)})


def is_large(measurement: Measurement) -> bool:
    """Whether its packets are so large that size may stop them."""
    size = size_of(measurement)
    return size is not None and size > LARGE_OCTETS


def is_felt(measurement: Measurement) -> bool:
    """Whether it says how the path is. Traces do where nothing else is sent: see `is_trace`."""
    return measurement.probe not in NOT_OF_THE_PATH and not is_large(measurement)


def is_trace(measurement: Measurement) -> bool:
    """Round trips of traces are few, and stand in where no other probe looks."""
    return measurement.probe == "trace"


def felt_series(measurement: Measurement) -> PathSeries:
    """The series of a probe: its name stands for the protocol."""
    return series_of(measurement, measurement.probe)


def felt_value(sample: Sample, address: str) -> float | None:
    """Round trip in ns, +inf of a lost packet; None of what says nothing of the path."""
    if sample.metric not in FELT_METRICS or Flag.LOADED in sample.flags:
        return None
    lost = is_lost(sample)
    if lost is None or sample.responder not in (None, address):
        return None
    if lost or Flag.SYN_RETRANSMITTED in sample.flags:
        return LOST
    value = sample.value_ns
    if value is None or value < 0:
        return None
    stepped = Flag.CLOCK_STEP in sample.flags and sample.clock_source in WALL_CLOCKS
    return None if stepped else float(value)


def tells_level(sample: Sample) -> bool:
    """Whether its round trip may move a level: not where this host was busy just then."""
    return sample.failure is not None or Flag.HOST_BUSY not in sample.flags


@dataclass(slots=True)
class FeltTrack:
    """Round trips of a series, losses as +inf: 16 octets a sample."""

    metric: str
    floor_ns: float = 0.0
    """The worst noise floor that its measurements state."""
    _times: "array[int]" = field(default_factory=lambda: array("q"))
    _values: "array[float]" = field(default_factory=lambda: array("d"))

    def add(self, sent_unix_ns: int, value_ns: float) -> None:
        """One sample."""
        self._times.append(sent_unix_ns)
        self._values.append(value_ns)

    def __len__(self) -> int:
        return len(self._times)

    def track(self) -> Track:
        """All of them in order of time."""
        times, values = np.array(self._times, dtype=np.int64), np.array(self._values)
        order = np.lexsort((values, times))
        return Track(times[order], values[order], np.zeros(len(times), dtype=np.int64))


@dataclass(slots=True)
class SizeWatch:
    """Packets of several sizes to one address: does size matter? The latest are kept, 13 octets
    each.
    """

    series: PathSeries
    has_large: bool = False
    _times: "array[int]" = field(default_factory=lambda: array("q"))
    _sizes: "array[int]" = field(default_factory=lambda: array("i"))
    _fates: bytearray = field(default_factory=bytearray)

    def see(self, measurement: Measurement) -> None:
        """Take the packets of a measurement, where it says their size."""
        size = size_of(measurement)
        if size is None:
            return
        self.has_large |= size > LARGE_OCTETS
        for sample in measurement.samples:
            lost = is_lost(sample) if sample.metric == Metric.RTT else None
            if lost is not None:
                self._times.append(sample.sent_unix_ns)
                self._sizes.append(size)
                self._fates.append(lost + 2 * _is_too_big(sample))
        for row in (self._times, self._sizes, self._fates):
            del row[: max(0, len(row) - MOST_SIZED)]

    def finding(self) -> SizeFinding | None:
        """A black hole, if there is one."""
        if not self.has_large:
            return None
        rows = sorted(zip(self._times, self._sizes, self._fates, strict=True))
        packets = [SizedPacket(at, size, bool(fate & 1), bool(fate & 2)) for at, size, fate in rows]
        found = judge_sizes(self.series, packets)
        return found if found.verdict is Verdict.BLACK_HOLE else None


def _is_too_big(sample: Sample) -> bool:
    failure = sample.failure
    return failure is not None and (failure.icmp_type, failure.icmp_code) in TOO_BIG
