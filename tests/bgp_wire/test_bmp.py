"""BMP captures of real routers against pmacct's and tshark's reading, and what must be refused."""

import json
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pathbudget.probes.bgp.bmp import BmpReader, View
from pathbudget.probes.bgp.messages import Channel
from pathbudget.probes.bgp.record import FeedKind, RouteUpdate, UpdateKind

Packets = Callable[[Path], Iterator[tuple[int, bytes]]]
NOW = 1_700_000_000_000_000_000
HUAWEI = "203-BMP-HUAWEI-dump__traffic-00.pcap"
CISCO = "202-BMP-CISCO-HUAWEI-multiple-sources__traffic-02.pcap"
FRR = "205-BMP-6wind-FRR-peer_down__traffic-00.pcap"


def reader(view: View | None = None) -> BmpReader:
    return BmpReader(Channel("bmp", FeedKind.BMP), "192.0.2.1", view=view)


def read_capture(
    packets: Packets, path: Path, view: View | None = None
) -> tuple[list[RouteUpdate], BmpReader]:
    bmp = reader(view)
    return [u for time, data in packets(path) for u in bmp.feed(data, time)], bmp


@pytest.mark.needs("data")
def test_a_huawei_router_as_pmacct_reads_it(shared_data: Path, packets: Packets) -> None:
    folder = shared_data / "bgp/bmp"
    updates, bmp = read_capture(packets, folder / HUAWEI)
    text = (folder / "203-BMP-HUAWEI-dump__scenario-01__output-bmp-00.json").read_text()
    expected = [json.loads(one) for one in text.splitlines()]
    unicast = [one for one in expected if one.get("safi") == 1]
    assert Counter(map(as_pmacct, (u for u in updates if u.prefix))) == Counter(
        map(of_pmacct, (one for one in unicast if one["log_type"] == "update"))
    )
    ends = [one for one in unicast if one["log_type"] == "end-of-rib"]
    assert sum(u.kind is UpdateKind.END_OF_RIB for u in updates) == len(ends) == 2
    assert bmp.quarantine.ignored["other address family"] == 77
    ups = {(one["peer_ip"], one["rd"]) for one in expected if one.get("bmp_msg_type") == "peer_up"}
    assert sum(u.kind is UpdateKind.PEER_UP for u in updates) == len(ups) == 5
    assert (bmp.messages, bmp.quarantine.count, bmp.broken) == (103, 0, "")
    assert bmp.router == "ipf-zbl1843-r-daisy-61"


def as_pmacct(update: RouteUpdate) -> tuple[Any, ...]:
    _, _, table = update.collector.partition(" ")
    return (
        update.prefix,
        f"0:{table}",
        update.as_path,
        update.next_hop,
        set_of(" ".join(update.communities)),
        update.origin[:1],
        update.med,
        update.peer_asn,
        update.time_unix_ns,
    )


def set_of(communities: str) -> frozenset[str]:
    """pmacct sorts them."""
    return frozenset(communities.split())


def of_pmacct(one: dict[str, Any]) -> tuple[Any, ...]:
    seconds, _, micros = one["timestamp"].partition(".")
    return (
        one["ip_prefix"],
        one["rd"],
        one["as_path"] or "",
        one["bgp_nexthop"],
        set_of(one["comms"] or ""),
        one["origin"],
        one["med"],
        one["peer_asn"],
        int(seconds) * 1_000_000_000 + int(micros) * 1000,
    )


@pytest.mark.needs("data")
@pytest.mark.needs("tshark")
def test_an_frr_router_as_tshark_reads_it(shared_data: Path, packets: Packets) -> None:
    """Each unicast route of the peers with its path; they are shown after the import policy."""
    path = shared_data / "bgp/bmp" / FRR
    updates, bmp = read_capture(packets, path, View.POST_POLICY)
    ours = Counter((u.peer_address, u.peer_asn, u.prefix, u.as_path) for u in updates if u.prefix)
    assert ours == Counter(route for one in tshark(path) for route in routes_of(one))
    assert sum(ours.values()) == 94
    ended = [u.detail for u in updates if u.kind is UpdateKind.PEER_DOWN]
    assert len(ended) == 2
    assert all(detail.startswith("closed by the ") for detail in ended)
    assert dict(bmp.quarantine.reasons) == {
        # FRR shows its Loc-RIB without having said that it comes (RFC 9069, 5.2).
        "routes of a peer that did not come up": 90,
        # A VPN route with two-octet numbers and without the flag that says so (RFC 7854, 4.2).
        "an AS path that is cut off": 1,
    }
    assert bmp.quarantine.ignored["statistics"] == 48
    assert bmp.messages == 509


def tshark(path: Path) -> Iterator[dict[str, Any]]:
    """The BMP messages."""
    command = ["tshark", "-r", str(path), "-d", "tcp.port==20,bmp", "-T", "json",
               "--no-duplicate-keys"]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    for packet in json.loads(done.stdout):
        yield from listed(packet["_source"]["layers"].get("bmp", []))


def routes_of(one: dict[str, Any]) -> Iterator[tuple[str, int, str, str]]:
    """IPv4 unicast routes of a route monitoring message of a peer; the capture has no other."""
    header = one.get("bmp.peer.header", {})
    update = one.get("bgp", {})
    if one["bmp.type"] != "0" or header["bmp.peer.type"] != "0":
        return
    for prefix in update.get("bgp.update.nlri", {}):
        attributes = update["bgp.update.path_attributes"]["bgp.update.path_attribute"]
        words = [
            number
            for attribute in listed(attributes)
            for segment in listed(attribute.get("bgp.update.path_attribute.as_path_segment", []))
            for number in listed(segment["bgp.update.path_attribute.as_path_segment.as4"])
        ]
        peer = header["bmp.peer.ip.addr"], int(header["bmp.peer.asn"])
        yield (*peer, prefix, " ".join(words))


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


@pytest.mark.needs("data")
def test_a_cisco_router_is_read_to_where_the_capture_ends(
    shared_data: Path, packets: Packets
) -> None:
    updates, bmp = read_capture(packets, shared_data / "bgp/bmp" / CISCO)
    assert Counter(u.kind for u in updates) == {UpdateKind.PEER_UP: 12}
    gone = list(bmp.end(NOW, "the connection was lost"))
    assert Counter(u.kind for u in gone) == {UpdateKind.PEER_DOWN: 12}
    assert dict(bmp.quarantine.reasons) == {"a last message that is cut off": 1}
    assert (bmp.messages, bmp.router) == (66, "ipf-zbll1312-r-daisy-44")


def peer_header(flags: int = 0, kind: int = 0, seconds: int = 1_700_000_000) -> bytes:
    address = bytes(12) + bytes((192, 0, 2, 1))
    return (
        bytes((kind, flags))
        + bytes(8)
        + address
        + (64500).to_bytes(4, "big")
        + bytes(4)
        + (seconds.to_bytes(4, "big") + bytes(4))
    )


def bmp_message(kind: int, body: bytes) -> bytes:
    return b"\x03" + (6 + len(body)).to_bytes(4, "big") + bytes((kind,)) + body


def open_message(wire: Any, add_path: int | None = None) -> bytes:
    """An OPEN; `add_path`: send and receive bits for IPv4 unicast (RFC 7911, 4)."""
    capability = b"" if add_path is None else b"\x45\x04\x00\x01\x01" + bytes((add_path,))
    parameters = b"\x02" + bytes((len(capability),)) + capability if capability else b""
    return bytes(wire.message(1, b"\x04\xfb\xf4\x00\xb4" + bytes(4) + bytes((len(parameters),))
                              + parameters))  # fmt: skip


def peer_up(
    wire: Any, sent: int | None = None, received: int | None = None, **header: int
) -> bytes:
    opens = open_message(wire, sent) + open_message(wire, received)
    return bmp_message(3, peer_header(**header) + bytes(20) + opens)


def route(wire: Any, path_id: int | None = None, **header: int) -> bytes:
    body = wire.update(wire.attribute(2, wire.segment(2, (64500,))),
                       wire.nlri("203.0.113.0/24", path_id))  # fmt: skip
    return bmp_message(0, peer_header(**header) + wire.message(2, body))


@pytest.mark.parametrize(
    ("sent", "received", "refused"),
    [(1, 2, True), (3, 3, True), (1, 3, True), (2, 1, False), (1, None, False), (None, 2, False)],
)
def test_a_session_with_add_path_is_refused_not_misread(
    wire: Any, sent: int | None, received: int | None, refused: bool
) -> None:
    bmp = reader()
    data = peer_up(wire, sent, received) + route(wire, 7 if refused else None)
    updates = list(bmp.feed(data, NOW))
    if refused:
        assert updates == []
        assert dict(bmp.quarantine.reasons) == {
            "a peer with add-path: refused, not misread": 1,
            "routes of a peer with add-path: refused, not misread": 1,
        }
        assert bmp.refused_peers == 1
    else:
        assert [u.prefix for u in updates] == ["", "203.0.113.0/24"]


def test_a_peer_may_come_back_without_add_path(wire: Any) -> None:
    bmp = reader()
    data = peer_up(wire, 3, 3) + peer_up(wire) + route(wire)
    assert [u.prefix for u in bmp.feed(data, NOW)] == ["", "203.0.113.0/24"]
    assert bmp.refused_peers == 0


def test_two_views_of_a_peer_are_not_mixed(wire: Any) -> None:
    data = peer_up(wire) + route(wire, flags=0x40) + route(wire)
    first, asked = reader(), reader(View.PRE_POLICY)
    assert sum(bool(u.prefix) for u in first.feed(data, NOW)) == 1
    assert sum(bool(u.prefix) for u in asked.feed(data, NOW)) == 1
    assert first.quarantine.ignored == asked.quarantine.ignored == {"another view of the peer": 1}


def test_a_time_that_the_router_does_not_know_is_the_arrival(wire: Any) -> None:
    updates = list(reader().feed(peer_up(wire) + route(wire, seconds=0), NOW))
    assert [u.time_unix_ns for u in updates] == [1_700_000_000_000_000_000, NOW]


def test_old_as_paths_are_read_by_their_flag(wire: Any) -> None:
    body = wire.update(wire.attribute(2, wire.segment(2, (64500,), 2)), wire.nlri("10.0.0.0/8"))
    data = peer_up(wire) + bmp_message(0, peer_header(0x20) + wire.message(2, body))
    assert [u.as_path for u in reader().feed(data, NOW)] == ["", "64500"]


def test_what_is_no_bmp_ends_the_stream() -> None:
    for data, why in (
        (b"GET / HTTP/1.1", "no BMP message"),
        (b"\x01" + bytes(60), "BMP version 1"),
    ):
        bmp = reader()
        assert list(bmp.feed(data, NOW)) == []
        assert bmp.broken == why
        assert list(bmp.feed(b"\x03\x00\x00\x00\x06\x04", NOW)) == []


def test_pieces_of_any_size_give_the_same(wire: Any) -> None:
    data = bmp_message(4, b"\x00\x02\x00\x04edge") + peer_up(wire) + route(wire)
    whole, pieces = reader(), reader()
    expected = [u.prefix for u in whole.feed(data, NOW)]
    found = [u.prefix for at in range(len(data)) for u in pieces.feed(data[at : at + 1], NOW)]
    assert found == expected
    assert pieces.router == whole.router == "edge"
