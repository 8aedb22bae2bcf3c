"""Real MRT files against what bgpdump wrote of them, and against mrtparse, run here.

Nothing is tolerated: every line of bgpdump has its update and the other way round.
"""

import functools
import gzip
import importlib
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from pathbudget.probes.bgp.messages import Channel
from pathbudget.probes.bgp.mrt import MrtReader
from pathbudget.probes.bgp.record import FeedKind, RouteUpdate, UpdateKind

Load = Callable[[str], bytes]
Result = tuple[list[RouteUpdate], MrtReader]
Once = Callable[[str], Result]
LATER = 2_000_000_000_000_000_000

pytestmark = pytest.mark.needs("data")

BGPDUMP = {
    "bgpdump__bview.64k_stream_overflow.gz": 23,
    "bgpdump__updates.20160811.1600.gz": 41_234,
    "bgpdump__updates.long_withdrawal.gz": 4_096,
}
"""File to number of lines that bgpdump made of it."""
ALL = {
    "bgpdump__bview.64k_stream_overflow.gz": (2, 23),
    "bgpdump__updates.20160811.1600.gz": (17_406, 41_234),
    "bgpdump__updates.long_withdrawal.gz": (1, 4_096),
    "mrtparse__bird-mrtdump_bgp": (27, 18),
    "mrtparse__openbgpd_bgp": (87, 101),
    "mrtparse__openbgpd_rib_table-mp": (31, 31),
    "mrtparse__openbgpd_rib_table-v2": (24, 31),
    "mrtparse__quagga_bgp": (67, 32),
    "ripe_rrc00__2000.03__updates.20000325.0345.gz": (2_580, 5_378),
    "ripe_rrc01__2000.11__updates.20001104.0124.gz": (1_286, 530),
    "ripe_rrc15__2010.02__updates.20100227.1600.gz": (6_615, 53_787),
    "ripe_rrc15__2010.02__updates.20100227.1610.gz": (1_953, 7_470),
}
"""File to records and updates."""
ORIGINS = {"igp": "IGP", "egp": "EGP", "incomplete": "INCOMPLETE", "": ""}


def as_bgpdump(update: RouteUpdate) -> tuple[str, ...]:
    """The first fields of a line of ``bgpdump -m``."""
    table = update.kind is UpdateKind.RIB
    words = {UpdateKind.ANNOUNCE: "A", UpdateKind.WITHDRAW: "W", UpdateKind.PEER_DOWN: "STATE"}
    head = (
        "TABLE_DUMP2" if table else "BGP4MP",
        str(update.time_unix_ns // 1_000_000_000),
        "B" if table else words[update.kind],
        update.peer_address,
        str(update.peer_asn),
    )
    if update.kind is UpdateKind.PEER_DOWN:
        return head
    if update.kind is UpdateKind.WITHDRAW:
        return (*head, update.prefix)
    communities = [one for one in update.communities if one.count(":") == 1]
    return (
        *head,
        update.prefix,
        update.as_path,
        ORIGINS[update.origin],
        update.next_hop,
        str(update.local_preference or 0),
        str(update.med or 0),
        " ".join(_shown(one) for one in communities),
    )


def _shown(community: str) -> str:
    """bgpdump writes well-known communities (RFC 1997) by name."""
    names = {"65535:65281": "no-export", "65535:65282": "no-advertise"}
    return names.get(community, community)


def of_line(line: str) -> tuple[str, ...]:
    words = line.split("|")
    if words[2] == "STATE":
        return tuple(words[:5])
    return tuple(words[:6]) if words[2] == "W" else tuple(words[:12])


@pytest.fixture(scope="module")
def once(shared_data: Path) -> Callable[[str], Result]:
    """Each file is read once: some take a second."""

    @functools.cache
    def result(name: str) -> Result:
        data = (shared_data / "bgp" / "mrt" / name).read_bytes()
        reader = MrtReader(Channel("feed", FeedKind.MRT))
        whole = gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
        return [*reader.feed(whole, LATER), *reader.end(LATER)], reader

    return result


@pytest.mark.parametrize("name", sorted(BGPDUMP))
def test_every_line_of_bgpdump_is_an_update(shared_data: Path, once: Once, name: str) -> None:
    text = gzip.decompress((shared_data / "bgp/mrt_expected" / f"{name}.bgp.gz").read_bytes())
    expected = [of_line(line) for line in text.decode().splitlines()]
    updates, reader = once(name)
    assert len(expected) == BGPDUMP[name]
    assert Counter(map(as_bgpdump, updates)) == Counter(expected)
    assert reader.quarantine.count == 0


@pytest.mark.parametrize("name", sorted(ALL))
def test_every_record_is_read(once: Once, name: str) -> None:
    updates, reader = once(name)
    assert (reader.records, len(updates)) == ALL[name]
    damaged = name.startswith("ripe_rrc00")
    assert reader.skipped_bytes == (24 if damaged else 0)
    assert dict(reader.quarantine.reasons) == (
        {"a damaged stretch without a readable record": 2} if damaged else {}
    )
    assert len({update.id for update in updates}) == len(updates)


def test_an_archive_of_2000_is_read_past_its_torn_records(once: Once) -> None:
    """The collector wrote half a header twice; two independent readers count 2,580 records."""
    updates, _ = once("ripe_rrc00__2000.03__updates.20000325.0345.gz")
    assert Counter(update.kind.value for update in updates) == {"announce": 4660, "withdraw": 718}
    times = [update.time_unix_ns for update in updates]
    assert times == sorted(times)


def _mrtparse() -> Any:
    """mrtparse, without what it does to the signals of the whole process."""
    before = signal.getsignal(signal.SIGPIPE)
    try:
        return importlib.import_module("mrtparse")
    finally:
        signal.signal(signal.SIGPIPE, before)


@pytest.mark.parametrize(
    "name",
    [
        "mrtparse__bird-mrtdump_bgp",
        "mrtparse__openbgpd_bgp",
        "mrtparse__openbgpd_rib_table-v2",
        "mrtparse__quagga_bgp",
    ],
)
def test_mrtparse_reads_the_same_routes(mrt: Load, once: Once, name: str) -> None:
    """The files that it can read; it stops at those of 2000 and at OpenBGPD's table-mp."""
    data = mrt(name)
    updates, _ = once(name)
    ours = Counter(
        (update.kind is UpdateKind.WITHDRAW, update.prefix, update.as_path, update.path_id)
        for update in updates
        if update.prefix
    )
    theirs = Counter(
        route for one in _mrtparse().Reader(BytesIO(data)) for route in _routes(dict(one.data))
    )
    assert sum(ours.values()) > 10
    assert ours == theirs


Route = tuple[bool, str, str, int | None]


def _routes(data: dict[str, Any]) -> Iterator[Route]:
    if "rib_entries" in data and "prefix" in data:
        for entry in data["rib_entries"]:
            path = _path(entry["path_attributes"])
            yield False, f"{data['prefix']}/{data['length']}", path, entry.get("path_id")
    message = data.get("bgp_message", {})
    if "UPDATE" not in message.get("type", {}).values():
        return
    attributes = message["path_attributes"]
    path = _path(attributes)
    yield from ((True, *_prefix(one)) for one in message["withdrawn_routes"])
    yield from ((False, *_prefix(one, path)) for one in message["nlri"])
    for one in attributes:
        value = one["value"]
        if "MP_REACH_NLRI" in one["type"].values() and "UNICAST" in value["safi"].values():
            yield from ((False, *_prefix(route, path)) for route in value["nlri"])
        if "MP_UNREACH_NLRI" in one["type"].values() and "UNICAST" in value["safi"].values():
            yield from ((True, *_prefix(route)) for route in value["withdrawn_routes"])


def _prefix(route: dict[str, Any], path: str = "") -> tuple[str, str, int | None]:
    return f"{route['prefix']}/{route['length']}", path, route.get("path_id")


def _path(attributes: list[dict[str, Any]]) -> str:
    """AS_PATH, with the end that AS4_PATH knows; the files have no set in front of one."""
    found: dict[str, list[str]] = {}
    for one in attributes:
        (name,) = one["type"].values()
        if name in {"AS_PATH", "AS4_PATH"}:
            found[name] = [word for part in one["value"] for word in _words(part)]
    path, new = found.get("AS_PATH", []), found.get("AS4_PATH", [])
    if "23456" in path and new:
        path = [*path[: len(path) - len(new)], *new]
    return " ".join(path)


def _words(part: dict[str, Any]) -> list[str]:
    if "AS_SET" in part["type"].values():
        return ["{" + ",".join(part["value"]) + "}"]
    return list(part["value"])
