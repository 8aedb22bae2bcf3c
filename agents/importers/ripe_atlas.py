"""Import of RIPE Atlas result files: ping, traceroute and sslcert as the product's own records.

    for measurement in read_results([Path("results.json.gz")], report=report):
        ...

Files are JSON arrays, JSON lines or single results, plain, gzip or bzip2, of any size: memory stays
flat. Reading never raises for what stands in a file: a malformed result is counted and named, and
the rest is read (docs/import-ripe-atlas.md).
"""

import itertools
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec

from pathbudget.agents.importers.atlas_labels import Labels
from pathbudget.agents.importers.atlas_ping import read_pings
from pathbudget.agents.importers.atlas_ping_totals import UnreadableError, read_totals
from pathbudget.agents.importers.atlas_sslcert import read_sslcert
from pathbudget.agents.importers.atlas_traceroute import read_traceroute
from pathbudget.agents.importers.atlas_wire import (
    Addresses,
    Envelope,
    Ping,
    PingTotals,
    Result,
    SslCert,
    Traceroute,
)
from pathbudget.agents.importers.byte_stream import DamagedError, read_chunks
from pathbudget.agents.importers.import_report import ImportReport, Problem
from pathbudget.agents.importers.json_blocks import LONGEST, Block, split
from pathbudget.agents.importers.probe_places import ProbePlaces
from pathbudget.probes.record import Measurement
from pathbudget.sites.catalogue import Catalogue

__all__ = ["ImportReport", "ProbePlaces", "Problem", "read_results"]

NOT_IMPORTED = ("dns", "http", "ntp", "wifi")
"""Types of result for which there is no probe yet."""

OnProblem = Callable[[Problem], None]

_decode_pings = msgspec.json.Decoder(Ping).decode_lines
_decode_envelope = msgspec.json.Decoder(Envelope, strict=False).decode
_decode_addresses = msgspec.json.Decoder(Addresses, strict=False).decode
_TOTALS = "ping without packets"
_DECODERS: dict[str, Callable[[bytes], Result]] = {
    "ping": msgspec.json.Decoder(Ping, strict=False).decode,
    _TOTALS: msgspec.json.Decoder(PingTotals, strict=False).decode,
    "traceroute": msgspec.json.Decoder(Traceroute, strict=False).decode,
    "sslcert": msgspec.json.Decoder(SslCert, strict=False).decode,
}
_UNDECODABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def read_results(
    paths: Iterable[Path],
    *,
    places: ProbePlaces | None = None,
    on_problem: OnProblem | None = None,
    report: ImportReport | None = None,
    catalogue: Catalogue | None = None,
    keep_addresses: bool = False,
) -> Iterator[Measurement]:
    """Measurements of all results in `paths`, in the order of the files.

    `places` says where probes stand and what is a region; `catalogue` which site a target belongs
    to. `report` is filled on the way; `on_problem` gets everything that could not be read, files
    that cannot be opened included. `keep_addresses` stores the addresses of the probes themselves,
    which are near-personal and left out otherwise.
    """
    counts = ImportReport() if report is None else report
    where = ProbePlaces() if places is None else places
    files = (
        _File(path, Labels(path.name, where, catalogue), counts, on_problem, keep_addresses)
        for path in paths
    )
    return itertools.chain.from_iterable(
        itertools.chain.from_iterable(file.blocks() for file in files)
    )


class _File:
    """One file on its way in."""

    def __init__(
        self,
        path: Path,
        labels: Labels,
        report: ImportReport,
        on_problem: OnProblem | None,
        keep_addresses: bool,
    ) -> None:
        self._path = path
        self._labels = labels
        self._report = report
        self._on_problem = on_problem
        self._keep_addresses = keep_addresses
        self._decode = _DECODERS["ping"]

    def blocks(self) -> Iterator[list[Measurement]]:
        """Measurements as they come, many at a time."""
        self._report.files += 1
        try:
            for block in split(read_chunks(self._path, self._count_bytes), self._damaged):
                yield self._block(block)
        except OSError as error:
            self._damaged(error.strerror or str(error))
        except DamagedError as error:
            self._damaged(str(error))
        self._report.without_place = self._labels.unplaced

    def _count_bytes(self, count: int) -> None:
        self._report.bytes_read += count

    def _damaged(self, reason: str) -> None:
        self._report.damaged_files += 1
        self._tell("", None, reason)

    def _tell(self, where: str, offset: int | None, reason: str) -> None:
        problem = Problem(self._path.name, where, offset, reason)
        self._report.note(problem)
        if self._on_problem is not None:
            self._on_problem(problem)

    def _block(self, block: Block) -> list[Measurement]:
        """All measurements of a block: at once if it is nothing but pings, else one by one."""
        pings = None if self._keep_addresses else _all_pings(block)
        if pings is not None:
            self._report.results += len(pings)
            return read_pings(pings, self._labels, self._report)
        found = (self._piece(piece.where, piece.offset, piece.raw) for piece in block.pieces())
        return [measurement for measurement in found if measurement is not None]

    def _piece(self, where: str, offset: int, raw: bytes) -> Measurement | None:
        self._report.results += 1
        try:
            measurement = self._result(raw)
        except (*_UNDECODABLE, UnreadableError) as error:
            self._report.malformed += 1
            self._tell(where, offset, _reason(error, raw))
            return None
        if measurement is None or not self._keep_addresses:
            return measurement
        return _with_addresses(measurement, raw)

    def _result(self, raw: bytes) -> Measurement | None:
        """Decoded at once if it is of the type of the one before, which nearly all are."""
        try:
            return self._read(self._decode(raw))
        except _UNDECODABLE:
            kind = _type_of(raw)
        if kind in NOT_IMPORTED:
            self._report.skipped[kind] += 1
            return None
        self._decode = _DECODERS[kind]
        return self._read(self._decode(raw))

    def _read(self, result: Result) -> Measurement | None:
        if isinstance(result, Ping):
            return next(iter(read_pings([result], self._labels, self._report)), None)
        if isinstance(result, Traceroute):
            return read_traceroute(
                result, self._labels, self._report, keep_addresses=self._keep_addresses
            )
        if isinstance(result, SslCert):
            return read_sslcert(result, self._labels, self._report)
        return read_totals(result, self._labels, self._report)


def _type_of(raw: bytes) -> str:
    """Type of a result, told from what every result has. Raises UnreadableError for others."""
    envelope = _decode_envelope(raw)
    kind = envelope.type
    if kind == "ping" and bytes(envelope.result) == b"null":
        return _TOTALS
    if kind not in _DECODERS and kind not in NOT_IMPORTED:
        raise UnreadableError(f"unknown type of result {kind[:40]!r}")
    return kind


def _all_pings(block: Block) -> list[Ping] | None:
    """The pings of a block that holds nothing else; None when it does, or something is unusual."""
    try:
        pings = _decode_pings(block.text)
    except _UNDECODABLE:
        return None
    return pings if len(pings) == block.count else None


def _reason(error: Exception, raw: bytes) -> str:
    if isinstance(error, RecursionError):
        return "brackets nested too deep"
    if len(raw) >= LONGEST:
        return f"no end within {LONGEST >> 20} MiB"
    if raw.startswith(b"RESULT "):
        return "a line of a probe's own log; wanted are results as the RIPE Atlas API gives them"
    return str(error)[:300]


def _with_addresses(measurement: Measurement, raw: bytes) -> Measurement:
    addresses = _decode_addresses(raw)
    vantage = msgspec.structs.replace(
        measurement.vantage,
        host=addresses.public or "",
        source_address=addresses.src_addr or addresses.srcaddr or "",
    )
    return msgspec.structs.replace(measurement, vantage=vantage)
