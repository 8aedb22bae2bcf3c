"""BGP news out of files: MRT, and messages of RIS Live or exabgp, told apart by what is in them."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from pathbudget.agents.bgp.mrt_feed import collector_of
from pathbudget.agents.importers.byte_stream import DamagedError, read_chunks
from pathbudget.agents.store.disk import explain_os_error
from pathbudget.probes.bgp.exabgp_json import ExabgpReader
from pathbudget.probes.bgp.messages import Channel
from pathbudget.probes.bgp.mrt import MrtReader
from pathbudget.probes.bgp.quarantine import Quarantine
from pathbudget.probes.bgp.record import FeedKind, RouteUpdate
from pathbudget.probes.bgp.ris_live import RisLiveReader

LONGEST_LINE = 1 << 24


@dataclass(slots=True)
class FileCounts:
    """What one file gave. `problem` is why it was not read to its end."""

    path: Path
    kind: str = ""
    updates: int = 0
    left_out: int = 0
    """About prefixes that nobody asked for."""
    set_aside: int = 0
    reasons: dict[str, int] = field(default_factory=dict[str, int])
    problem: str = ""


def read_files(
    paths: Sequence[Path],
    wanted: Callable[[str], bool],
    counts: list[FileCounts],
    *,
    feed: str | None = None,
) -> Iterator[RouteUpdate]:
    """Updates of all files about `wanted` prefixes and about sessions; `counts` grows per file.

    A file that cannot be read does not keep the others from being read.
    """
    now = time.time_ns()
    for path in paths:
        one = FileCounts(path)
        counts.append(one)
        try:
            for update in _updates(path, feed or path.name, one):
                if not update.prefix or wanted(update.prefix):
                    one.updates += 1
                    yield _not_after(update, now)
                else:
                    one.left_out += 1
        except OSError as error:
            one.problem = f"cannot be read: {explain_os_error(error)}"
        except DamagedError as error:
            one.problem = str(error)


def _not_after(update: RouteUpdate, now_unix_ns: int) -> RouteUpdate:
    """A file whose clock was ahead still arrived now."""
    if update.arrived_unix_ns <= now_unix_ns:
        return update
    return msgspec.structs.replace(update, arrived_unix_ns=now_unix_ns)


def _updates(path: Path, feed: str, counts: FileCounts) -> Iterator[RouteUpdate]:
    chunks = read_chunks(path, lambda _size: None)
    first = next(chunks, b"")
    if first.lstrip()[:1] == b"{":
        quarantine, updates = _json(feed, first, chunks, counts)
    else:
        channel = Channel(feed, FeedKind.MRT, collector_of(path))
        reader = MrtReader(channel)
        counts.kind, quarantine = "MRT", reader.quarantine
        updates = _mrt(reader, first, chunks)
    try:
        yield from updates
    finally:
        counts.set_aside = quarantine.count
        counts.reasons = dict(quarantine.reasons.most_common(5))


def _mrt(reader: MrtReader, first: bytes, chunks: Iterable[bytes]) -> Iterator[RouteUpdate]:
    yield from reader.feed(first, time.time_ns())
    try:
        for chunk in chunks:
            yield from reader.feed(chunk, time.time_ns())
    finally:
        rest = list(reader.end(time.time_ns()))
    yield from rest


def _json(
    feed: str, first: bytes, chunks: Iterable[bytes], counts: FileCounts
) -> tuple[Quarantine, Iterator[RouteUpdate]]:
    if b'"exabgp"' in first[:4096]:
        session = ExabgpReader(Channel(feed, FeedKind.SESSION))
        counts.kind = "exabgp"
        lines = _lines(first, chunks)
        return session.quarantine, (update for line in lines for update in session.read(line))
    ris = RisLiveReader(Channel(feed, FeedKind.RIS_LIVE))
    counts.kind = "RIS Live"
    lines = _lines(first, chunks)
    return ris.quarantine, (update for line in lines for update in ris.read(line))


def _lines(first: bytes, chunks: Iterable[bytes]) -> Iterator[bytes]:
    *lines, rest = first.split(b"\n")
    for chunk in chunks:
        yield from (line for line in lines if line.strip())
        *lines, rest = (rest + chunk).split(b"\n")
        rest = rest[:LONGEST_LINE]
    yield from (line for line in (*lines, rest) if line.strip())
