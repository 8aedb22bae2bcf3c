"""Import of scamper's JSON: ``trace`` and ``tracelb`` as the product's own records.

    for measurement in read_scamper([Path("traces.jsonl")], report=report):
        ...

Lines as ``scamper -O json`` and ``sc_warts2json`` write them, M-Lab's archives with their lines of
metadata included; plain, gzip or bzip2. Reading never raises for what stands in a file: what cannot
be read is counted and named, and the rest is read (docs/import-scamper.md).
"""

import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from pathbudget.agents.importers.addresses import canonical
from pathbudget.agents.importers.atlas_labels import targets_by_host
from pathbudget.agents.importers.byte_stream import DamagedError, read_chunks
from pathbudget.agents.importers.import_report import ImportReport, Problem
from pathbudget.agents.importers.json_blocks import LONGEST, split
from pathbudget.agents.importers.scamper_traces import (
    ContradictionError,
    protocol_of,
    trace_samples,
    tracelb_samples,
)
from pathbudget.agents.importers.scamper_wire import Envelope, Trace, TraceLb
from pathbudget.probes.record import AddressFamily, Measurement, Sample, Target, Vantage
from pathbudget.sites.catalogue import Catalogue

PROBE = "trace"
CYCLES = ("cycle-start", "cycle-def", "cycle-stop")
NOT_IMPORTED = (
    "ping",
    "dealias",
    "sting",
    "tbit",
    "neighbourdisc",
    "sniff",
    "host",
    "http",
    "udpprobe",
)
"""Other measurements of scamper."""

_decode_envelope = msgspec.json.Decoder(Envelope, strict=False).decode
_decode_trace = msgspec.json.Decoder(Trace, strict=False).decode
_decode_tracelb = msgspec.json.Decoder(TraceLb, strict=False).decode
_UNDECODABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ContradictionError)


def read_scamper(
    paths: Iterable[Path],
    *,
    report: ImportReport | None = None,
    catalogue: Catalogue | None = None,
    vantage: str = "",
    region: str = "",
) -> Iterator[Measurement]:
    """Measurements of all traces in `paths`, in the order of the files.

    `vantage` is who measured; without it, the host that the file names, or the source address.
    `catalogue` says which site a target belongs to. `report` is filled on the way.
    """
    counts = ImportReport() if report is None else report
    for path in paths:
        yield from _File(path, counts, catalogue, vantage, region).measurements()


class _File:
    """One file on its way in."""

    def __init__(
        self,
        path: Path,
        report: ImportReport,
        catalogue: Catalogue | None,
        vantage: str,
        region: str,
    ) -> None:
        self._path = path
        self._report = report
        self._known = targets_by_host(catalogue)
        self._vantage, self._region = vantage, region
        self._host = ""
        """Host of the cycle, as the file says it."""

    def measurements(self) -> Iterator[Measurement]:
        """As they come."""
        self._report.files += 1
        try:
            for block in split(read_chunks(self._path, self._count_bytes), self._damaged):
                for piece in block.pieces():
                    measurement = self._piece(piece.where, piece.offset, piece.raw)
                    if measurement is not None:
                        yield measurement
        except OSError as error:
            self._damaged(error.strerror or str(error))
        except DamagedError as error:
            self._damaged(str(error))

    def _count_bytes(self, count: int) -> None:
        self._report.bytes_read += count

    def _damaged(self, reason: str) -> None:
        self._report.damaged_files += 1
        self._report.note(Problem(self._path.name, "", None, reason))

    def _piece(self, where: str, offset: int, raw: bytes) -> Measurement | None:
        self._report.results += 1
        try:
            return self._read(raw)
        except _UNDECODABLE as error:
            self._report.malformed += 1
            self._report.note(Problem(self._path.name, where, offset, _reason(error, raw)))
            return None

    def _read(self, raw: bytes) -> Measurement | None:
        envelope = _decode_envelope(raw)
        kind = envelope.type
        if kind == "trace":
            return self._of_trace(_decode_trace(raw))
        if kind == "tracelb":
            return self._of_tracelb(_decode_tracelb(raw))
        if kind in CYCLES:
            self._host = envelope.hostname or self._host
            self._report.left_out["line about a cycle of scamper"] += 1
        elif not kind and envelope.uuid is not None:
            self._report.left_out["line of M-Lab's metadata"] += 1
        elif kind in NOT_IMPORTED:
            self._report.skipped[kind] += 1
        else:
            raise ContradictionError(f"unknown type of result {kind[:40]!r}")
        return None

    def _of_trace(self, trace: Trace) -> Measurement:
        counters: Counter[str] = Counter()
        return self._measurement(trace, trace_samples(trace, counters), counters)

    def _of_tracelb(self, trace: TraceLb) -> Measurement | None:
        counters: Counter[str] = Counter()
        samples = tracelb_samples(trace, counters)
        if not trace.probec:
            self._report.left_out["tracelb that sent nothing"] += 1
            return None
        return self._measurement(trace, samples, counters)

    def _measurement(
        self, trace: Trace | TraceLb, samples: list[Sample], counters: Counter[str]
    ) -> Measurement:
        source, address = canonical(trace.src), canonical(trace.dst)
        if not address:
            raise ContradictionError(f"destination {trace.dst[:45]!r} is no address")
        self._report.duplicates += counters["duplicate"]
        self._report.count(trace.type, tuple(samples))
        start = trace.start.unix_ns
        ended = max((one.sent_unix_ns + (one.value_ns or 0) for one in samples), default=start)
        name = self._vantage or self._host or source or "scamper"
        return Measurement(
            id=f"scamper-{start}-{_digest(trace, source, address, samples)}",
            vantage=Vantage(name, self._region, host=self._host, source_address=source),
            target=self._target(address),
            probe=PROBE,
            started_unix_ns=start,
            samples=tuple(samples),
            campaign="scamper",
            address=address,
            family=AddressFamily.IPV6 if ":" in address else AddressFamily.IPV4,
            duration_ns=max(0, ended - start),
            options=_options(trace),
            imported_from=self._path.name,
            software="scamper",
            counters={word: count for word, count in counters.items() if count},
        )

    def _target(self, address: str) -> Target:
        known = self._known.get(address)
        if known is not None:
            return known
        return Target(name=address, host=address, site=address)


def _options(trace: Trace | TraceLb) -> dict[str, str | int | float | bool | None]:
    options: dict[str, str | int | float | bool | None] = {"method": trace.method[:40]}
    if protocol := protocol_of(trace.method):
        options["protocol"] = protocol
    if trace.probe_size is not None:
        options["size"] = trace.probe_size
    return options


def _digest(trace: Trace | TraceLb, source: str, address: str, samples: list[Sample]) -> str:
    """Tells apart what began in one microsecond, the same in every file and run."""
    words = [trace.type, trace.method, source, address]
    words += [f"{one.flow} {one.part} {one.responder} {one.value_ns}" for one in samples]
    return f"{zlib.crc32('|'.join(words).encode(errors='replace')):08x}"


def _reason(error: Exception, raw: bytes) -> str:
    if isinstance(error, RecursionError):
        return "brackets nested too deep"
    if len(raw) >= LONGEST:
        return f"no end within {LONGEST >> 20} MiB"
    return str(error)[:300]
