"""Uploads: what a request of so many bytes took, beside what the model of slow start says.

The probe times from the first byte of the body to the answer that its last one was read, so

    network = set-up + upload            ingress = set-up + upload - one way back

A shot whose set-up failed is an upload that failed.
"""

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pathbudget.analysis.quantiles import Values
from pathbudget.analysis.results import Carriage, Carrier, Mode
from pathbudget.analysis.series import LOST
from pathbudget.analysis.shots import Shot, ShotKey, usable_ns, whole_note
from pathbudget.analysis.track import Track
from pathbudget.analysis.variants import asked_bytes
from pathbudget.probes.record import ConnectionMode, FailureKind, Flag, Measurement, Metric


class UploadKey(NamedTuple):
    """What all uploads of one group have in common."""

    region: str
    site: str
    target: str
    family: str | None
    carrier: Carrier
    mode: Mode
    bytes: int
    version: str
    """Of HTTP."""

    @property
    def carriage(self) -> Carriage:
        """Transport and mode."""
        return self.carrier, self.mode


@dataclass(frozen=True, slots=True)
class Uploads:
    """Parallel arrays, one entry per upload, in order of time."""

    key: UploadKey
    sent_unix_ns: npt.NDArray[np.int64]
    setup_ns: Values
    upload_ns: Values
    """+inf for one that failed, also where its set-up did."""
    acknowledged_ns: Values
    """Until the kernel had the acknowledgement of the last byte; NaN where it does not say."""
    vantages: npt.NDArray[np.int64]
    flow_stalls: int = 0
    retransmitted: int = 0
    flights: tuple[int, ...] = ()
    """Flights that each upload left in, where the probe saw them."""
    refused_status: int = 0
    """Uploads that were answered with a status that is none of success: no sink is there."""

    @property
    def n(self) -> int:
        """Uploads, failed ones included."""
        return len(self.upload_ns)

    @property
    def losses(self) -> int:
        """How many failed."""
        return int(np.count_nonzero(np.isinf(self.upload_ns)))

    @property
    def track(self) -> Track:
        """Uploads alone."""
        return Track(self.sent_unix_ns, self.upload_ns, self.vantages)

    @property
    def with_setup(self) -> Track:
        """Set-up and upload of each request: what the network adds to it, both ways."""
        return Track(self.sent_unix_ns, self.setup_ns + self.upload_ns, self.vantages)


@dataclass(slots=True)
class _Growing:
    sent: "array[int]" = field(default_factory=lambda: array("q"))
    setups: "array[float]" = field(default_factory=lambda: array("d"))
    uploads: "array[float]" = field(default_factory=lambda: array("d"))
    acknowledged: "array[float]" = field(default_factory=lambda: array("d"))
    vantages: list[str] = field(default_factory=list[str])
    counts: Counter[str] = field(default_factory=Counter[str])
    flights: list[int] = field(default_factory=list[int])


class UploadCollector:
    """Takes measurements one at a time and keeps uploads."""

    def __init__(self) -> None:
        self._groups: dict[UploadKey, _Growing] = {}

    def add(self, measurement: Measurement, at: ShotKey, shots: Sequence[Shot]) -> None:
        """Take the uploads of a measurement; those that were not sent are left out."""
        carrier = at.transport or Carrier.TLS
        if measurement.probe != "upload" or carrier not in list(Carrier):  # not over plain TCP
            return
        asked, carrier = asked_bytes(measurement.options), Carrier(carrier)
        version = str(measurement.options.get("version") or "")
        for shot in shots:
            size = whole_note(shot.notes(), "bytes", "body_bytes") or asked
            mode = mode_of(shot, measurement)
            upload = _upload_ns(shot)
            if size and mode is not None and upload is not None:
                key = UploadKey(
                    at.region, at.site, at.target, at.family, carrier, mode, size, version
                )
                group = self._groups.setdefault(key, _Growing())
                _append(group, shot, upload, measurement.vantage.name)

    def finish(self, vantages: Mapping[str, int]) -> tuple[Uploads, ...]:
        """All groups in their order; `vantages` are their numbers by name."""
        order = sorted(self._groups, key=lambda key: tuple(f"{part:>12}" for part in map(str, key)))
        return tuple(_finished(key, self._groups[key], vantages) for key in order)


def mode_of(shot: Shot, measurement: Measurement) -> Mode | None:
    """The mode that the shot proved to be; of a failed one the mode that was asked for."""
    for metric in (Metric.UPLOAD, Metric.SETUP):
        sample = shot.samples.get(metric)
        if sample is not None and sample.mode is not None:
            return Mode(sample.mode)
    asked = measurement.options.get("mode")
    return Mode(str(asked)) if asked in list(ConnectionMode) else None


def _upload_ns(shot: Shot) -> float | None:
    """Time of the upload; a set-up, or another step, that failed is an upload that failed."""
    upload = shot.samples.get(Metric.UPLOAD)
    if upload is not None:
        return usable_ns(upload)
    failed = [sample for sample in shot.samples.values() if sample.failure is not None]
    return usable_ns(failed[0]) if failed else None


def _append(group: _Growing, shot: Shot, upload: float, vantage: str) -> None:
    setup = shot.value_ns(Metric.SETUP)
    group.sent.append(shot.sent_unix_ns)
    group.setups.append(0.0 if setup is None else setup)
    group.uploads.append(LOST if setup == LOST else upload)
    acknowledged = shot.value_ns(Metric.UPLOAD_ACKNOWLEDGED)
    group.acknowledged.append(float("nan") if acknowledged is None else acknowledged)
    group.vantages.append(vantage)
    failures = (sample.failure for sample in shot.samples.values() if sample.failure is not None)
    group.counts["status"] += any(failure.kind is FailureKind.STATUS for failure in failures)
    notes = shot.notes()
    stalled = Flag.FLOW_STALL in shot.flags() or bool(whole_note(notes, "flow_stalls"))
    group.counts["stall"] += stalled
    group.counts["retransmitted"] += bool(whole_note(notes, "retransmits"))
    if (flights := whole_note(notes, "flights")) is not None:
        group.flights.append(flights)


def _finished(key: UploadKey, group: _Growing, vantages: Mapping[str, int]) -> Uploads:
    sent = np.array(group.sent, dtype=np.int64)
    numbers = np.array([vantages[name] for name in group.vantages], dtype=np.int64)
    order = np.lexsort((np.array(group.uploads), numbers, sent))
    return Uploads(
        key=key,
        sent_unix_ns=sent[order],
        setup_ns=np.array(group.setups)[order],
        upload_ns=np.array(group.uploads)[order],
        acknowledged_ns=np.array(group.acknowledged)[order],
        vantages=numbers[order],
        flow_stalls=group.counts["stall"],
        retransmitted=group.counts["retransmitted"],
        flights=tuple(group.flights),
        refused_status=group.counts["status"],
    )


def of_path(
    uploads: Iterable[Uploads], target: str, family: str | None
) -> dict[tuple[Carriage, int], Uploads]:
    """Uploads to one target, by carriage and bytes, of which at least one arrived.

    Of several versions of HTTP over one transport that with the most uploads: a mixture of windows
    would be no number of either.
    """
    found: dict[tuple[Carriage, int], Uploads] = {}
    for one in uploads:
        key = one.key
        if (key.target, key.family) != (target, family) or one.losses == one.n:
            continue
        known = found.get((key.carriage, key.bytes))
        if known is None or one.n > known.n:
            found[key.carriage, key.bytes] = one
    return found
