"""Fuzz targets of everything that says what BGP speakers said. See tests/fuzzing.py.

Nothing raises, whatever comes; what comes out can be stored and told again; bytes in pieces mean
what they mean as a whole.
"""

import contextlib
import ipaddress
import struct
from collections.abc import Iterable

import msgspec

from pathbudget.probes.bgp.bmp import BmpReader
from pathbudget.probes.bgp.exabgp_json import ExabgpReader
from pathbudget.probes.bgp.messages import Channel
from pathbudget.probes.bgp.mrt import MrtReader
from pathbudget.probes.bgp.quarantine import MalformedError
from pathbudget.probes.bgp.record import FeedKind, RouteUpdate, origin_of, without_prepends
from pathbudget.probes.bgp.ris_live import RisLiveReader
from pathbudget.probes.bgp.update_wire import Encoding, parse_attributes, parse_update

NOW = 1_800_000_000_000_000_000
CHANNEL = Channel("fuzz", FeedKind.MRT)
MARKER = b"\xff" * 16
HEAD = struct.pack(">IIHH", 64500, 65000, 0, 1) + bytes((192, 0, 2, 1, 192, 0, 2, 9))
PEER = bytes(22) + bytes((192, 0, 2, 1)) + struct.pack(">IIII", 64500, 1, 1_700_000_000, 0)
OPEN = MARKER + b"\x00\x1d\x01\x04\xfb\xf4\x00\xb4\x01\x01\x01\x01\x00"


def check(updates: Iterable[RouteUpdate]) -> list[RouteUpdate]:
    """Every one is a record that holds what it should."""
    found = list(updates)
    assert len({update.id for update in found}) == len(found)
    for update in found:
        assert msgspec.json.decode(msgspec.json.encode(update), type=RouteUpdate) == update
        ipaddress.ip_address(update.peer_address)
        if update.prefix:
            ipaddress.ip_network(update.prefix)
        origin = origin_of(without_prepends(update.as_path))
        assert origin is None or 0 <= origin < 1 << 32
    return found


def fuzz_one_mrt(data: bytes) -> None:
    """Bytes as a file, as the body of each kind of record, and in two pieces."""
    subtype, kind = (data[0] % 12, (12, 13, 16, 17, 5)[data[0] % 5]) if data else (4, 16)
    record = struct.pack(">IHHI", 1_700_000_000, kind, subtype, len(data)) + data
    message = HEAD + MARKER + struct.pack(">HB", 19 + len(data), 2) + data
    update = struct.pack(">IHHI", 1_700_000_000, 16, 4, len(message)) + message
    for stream in (data, record, update + record + update):
        whole, halves = MrtReader(CHANNEL), MrtReader(CHANNEL)
        expected = check([*whole.feed(stream, NOW), *whole.end(NOW)])
        cut = len(stream) // 2
        found = [*halves.feed(stream[:cut], NOW), *halves.feed(stream[cut:], NOW)]
        found += halves.end(NOW)
        assert sorted(u.id for u in found) == sorted(u.id for u in expected)
        assert whole.broken or whole.records or whole.quarantine.count or not stream


def fuzz_one_update(data: bytes) -> None:
    """Bytes as the body of an UPDATE and as attributes of a table."""
    for encoding in (Encoding(), Encoding(2), Encoding(4, add_path=True)):
        with contextlib.suppress(MalformedError):
            update = parse_update(data, encoding)
            assert update.family
        with contextlib.suppress(MalformedError):
            assert not parse_attributes(data, encoding, 2).announced


def fuzz_one_bmp(data: bytes) -> None:
    """Bytes as a stream, behind a peer that is up, and as its routes."""
    up = PEER + bytes(20) + OPEN + OPEN
    route = PEER + MARKER + struct.pack(">HB", 19 + len(data), 2) + data
    kind = data[0] % 7 if data else 0
    begin = framed(3, up)
    for stream in (data, begin + framed(0, route), begin + framed(kind, data) + data):
        whole, pieces = BmpReader(CHANNEL, "router"), BmpReader(CHANNEL, "router")
        expected = check([*whole.feed(stream, NOW), *whole.end(NOW, "over")])
        cut = len(stream) // 3
        found = [*pieces.feed(stream[:cut], NOW), *pieces.feed(stream[cut:], NOW)]
        found += pieces.end(NOW, "over")
        assert [u.id for u in found] == [u.id for u in expected]


def framed(kind: int, body: bytes) -> bytes:
    return b"\x03" + (6 + len(body)).to_bytes(4, "big") + bytes((kind,)) + body


def fuzz_one_ris_live(data: bytes) -> None:
    """Bytes as a message, as its content, and as a value in it."""
    for message in _around(
        data,
        b'{"type":"ris_message","data":%s}',
        b'{"type":"ris_message","data":{"type":"UPDATE","peer":"192.0.2.1","peer_asn":"64500",'
        b'"timestamp":1700000000.5,"path":%s,"announcements":[{"prefixes":["10.0.0.0/8"]}]}}',
        b'{"type":"ris_message","data":{"type":"UPDATE","peer":"192.0.2.1","peer_asn":"64500",'
        b'"timestamp":1700000000.5,"announcements":%s,"withdrawals":["10.0.0.0/8"]}}',
    ):
        reader = RisLiveReader(CHANNEL)
        found = check(reader.read(message, NOW))
        assert found or reader.quarantine.count or reader.quarantine.ignored


def fuzz_one_exabgp_json(data: bytes) -> None:
    """Bytes as a line, as a neighbor, and as a message in it."""
    head = b'{"exabgp":"5.0.0","time":1.5,"type":"update","neighbor":'
    ends = b'"address":{"peer":"192.0.2.1"},"asn":{"peer":64500},"message":'
    for line in _around(
        data,
        head + b"%s}",
        head + b"{" + ends + b"%s}}",
        head + b"{" + ends + b'{"update":{"attribute":%s,"announce":{"ipv4 unicast":'
        b'{"192.0.2.1":[{"nlri":"10.0.0.0/8"}]}}}}}}',
    ):
        reader = ExabgpReader(CHANNEL)
        found = check(reader.read(line, NOW))
        assert len(found) < 100_000


def _around(data: bytes, *frames: bytes) -> Iterable[bytes]:
    yield data
    for frame in frames:
        yield frame.replace(b"%s", data)
