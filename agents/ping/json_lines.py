"""One JSON object a line, for scripts; docs/ping.md has the fields.

Samples are written in the codec's own words. Lines go out through a thread, so that a reader who is
slow does not hold up the measuring; one who has gone ends the run.
"""

import math
import queue
import threading
from collections.abc import Callable
from typing import BinaryIO

import msgspec

from pathbudget.agents.ping.figures import Figures, figures, load_figures
from pathbudget.agents.ping.host_state import HostState
from pathbudget.agents.ping.outages import Outage
from pathbudget.probes.codec import encode_sample
from pathbudget.probes.record import ClockQuality, Measurement, NoiseFloor, Sample

WAITING_LINES = 100_000
"""More than this and the measuring waits for the reader: no line is ever dropped."""

_encoder = msgspec.json.Encoder()


def begin_line(host: str, socket: str, measurement: Measurement, notice: str) -> bytes:
    """A host (or a new address of it) is about to be measured."""
    return _line(
        "begin",
        host=host,
        probe=measurement.probe,
        socket=socket,
        address=measurement.address,
        family=measurement.family,
        started_unix_ns=measurement.started_unix_ns,
        schedule=measurement.schedule,
        options=measurement.options,
        notice=notice or None,
        software=measurement.software,
    )


def sample_line(state: HostState, sample: Sample) -> bytes:
    """One sample: the fields of the record, with host and probe before them."""
    head = _encoder.encode({"type": "sample", "host": state.host, "probe": state.probe})
    return head[:-1] + b"," + encode_sample(sample)[1:] + b"\n"


def outage_line(state: HostState, outage: Outage) -> bytes:
    """An outage was noticed, or is over."""
    return _line(
        "outage",
        host=state.host,
        probe=state.probe,
        state="ended" if outage.over else "began",
        **outage._asdict(),
    )


def summary_line(
    state: HostState, clock: ClockQuality | None, noise: NoiseFloor | None, duration_ns: int
) -> bytes:
    """All that is known at the end."""
    shown = figures(state)
    return _line(
        "summary",
        host=state.host,
        probe=state.probe,
        address=state.address,
        duration_ns=duration_ns,
        sent=state.sent,
        lost=state.lost,
        not_sent=state.not_sent,
        loss_ratio=state.loss_ratio,
        **_figures(state, shown),
        **_parts(state),
        flags=state.flags,
        counters=state.counted,
        failures=state.failures,
        clock_sources=state.clocks,
        outages=state.watch.count,
        clock=clock,
        noise=noise,
    )


def _figures(state: HostState, shown: Figures) -> dict[str, object]:
    """JSON has no infinity: a percentile that is lost is null, and named in `lost_percentiles`."""
    numbers = {name: value for name, value in shown._asdict().items() if name.endswith("_ns")}
    values = {name: _finite(value) for name, value in numbers.items()}
    lost = [name for name, value in numbers.items() if value is not None and math.isinf(value)]
    known = [one for one in (values["p50_ns"], values["p95_ns"]) if one is not None]
    error = max((state.answers.error_ns(one) for one in known), default=0)
    return {**values, "lost_percentiles": lost, "percentile_error_ns": error}


def _parts(state: HostState) -> dict[str, object]:
    """What only some runs have: directions, flows, load."""
    parts: dict[str, object] = {}
    both = state.directions.figures()
    if both is not None:
        parts["forward"], parts["reverse"] = both[0]._asdict(), both[1]._asdict()
    if state.lost_by_direction is not None:
        parts["lost_by_direction"] = state.lost_by_direction
    if state.flows:
        parts["flows"] = {
            str(flow): {"n": one.n, "minimum_ns": one.minimum, "p50_ns": one.quantile(0.5)}
            for flow, one in state.flows.items()
        }
    load = load_figures(state)
    if load is not None:
        parts["load"] = {
            name: {"p50_ns": _finite(pair[0]), "p95_ns": _finite(pair[1])}
            for name, pair in load._asdict().items()
        }
    return parts


def _finite(value: float | None) -> int | None:
    return None if value is None or math.isinf(value) else round(value)


def _line(kind: str, **fields: object) -> bytes:
    return _encoder.encode({"type": kind, **fields}) + b"\n"


class LineWriter:
    """Writes lines in a thread of its own, whole batches at a time."""

    def __init__(self, output: BinaryIO, broken: Callable[[], None]) -> None:
        self.error: OSError | None = None
        """Why nothing more can be written."""
        self._output = output
        self._broken = broken
        self._lines: queue.Queue[bytes | None] = queue.Queue(WAITING_LINES)
        self._thread = threading.Thread(target=self._work, name="json lines", daemon=True)
        self._thread.start()

    def write(self, line: bytes) -> None:
        """Hand one line over."""
        if self.error is None:
            self._lines.put(line)

    def close(self) -> None:
        """Write what is left. Raises OSError (BrokenPipeError) where that was not possible."""
        self._lines.put(None)
        self._thread.join()
        if self.error is not None:
            raise self.error

    def _work(self) -> None:
        while (line := self._lines.get()) is not None:
            if self.error is not None:
                continue  # keep emptying the queue, so that nobody waits for ever
            batch = [line]
            ended = False
            while not self._lines.empty() and len(batch) < 1_000:
                following = self._lines.get()
                if following is None:
                    ended = True
                    break
                batch.append(following)
            self._put_out(b"".join(batch))
            if ended:
                return

    def _put_out(self, data: bytes) -> None:
        try:
            self._output.write(data)
            self._output.flush()
        except OSError as error:
            self.error = error
            self._broken()
