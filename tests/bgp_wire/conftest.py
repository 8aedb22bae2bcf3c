"""Files of BGP news that others made, and bytes of BGP messages to take apart."""

import bz2
import gzip
import ipaddress
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pathbudget.probes.bgp.messages import Channel
from pathbudget.probes.bgp.mrt import MrtReader
from pathbudget.probes.bgp.record import FeedKind, RouteUpdate

LATER = 2_000_000_000_000_000_000
CHANNEL = Channel("feed", FeedKind.MRT)
MARKER = b"\xff" * 16


def unpacked(path: Path) -> bytes:
    data = path.read_bytes()
    if data.startswith(b"\x1f\x8b"):
        return gzip.decompress(data)
    return bz2.decompress(data) if data.startswith(b"BZh") else data


def read_mrt(data: bytes, piece: int = 1 << 16) -> tuple[list[RouteUpdate], MrtReader]:
    reader = MrtReader(CHANNEL)
    found: list[RouteUpdate] = []
    for at in range(0, len(data), piece):
        found += reader.feed(data[at : at + piece], LATER)
    found += reader.end(LATER)
    return found, reader


@pytest.fixture
def read() -> Callable[..., tuple[list[RouteUpdate], MrtReader]]:
    return read_mrt


@pytest.fixture
def wire() -> type["Wire"]:
    return Wire


@pytest.fixture
def packets() -> Callable[[Path], Iterator[tuple[int, bytes]]]:
    return frames


@pytest.fixture
def mrt(shared_data: Path) -> Callable[[str], bytes]:
    def load(name: str) -> bytes:
        return unpacked(shared_data / "bgp" / "mrt" / name)

    return load


class Wire:
    """Bytes of BGP and MRT."""

    @staticmethod
    def message(kind: int, body: bytes = b"") -> bytes:
        return MARKER + struct.pack(">HB", 19 + len(body), kind) + body

    @staticmethod
    def attribute(kind: int, value: bytes, flags: int = 0x40) -> bytes:
        if len(value) > 255:
            return struct.pack(">BBH", flags | 0x10, kind, len(value)) + value
        return struct.pack(">BBB", flags, kind, len(value)) + value

    @staticmethod
    def update(attributes: bytes = b"", announced: bytes = b"", withdrawn: bytes = b"") -> bytes:
        sizes = struct.pack(">H", len(withdrawn)), struct.pack(">H", len(attributes))
        return sizes[0] + withdrawn + sizes[1] + attributes + announced

    @staticmethod
    def segment(kind: int, numbers: tuple[int, ...], size: int = 4) -> bytes:
        return bytes((kind, len(numbers))) + b"".join(n.to_bytes(size, "big") for n in numbers)

    @staticmethod
    def nlri(prefix: str, path_id: int | None = None) -> bytes:
        network = ipaddress.ip_network(prefix)
        octets = network.network_address.packed[: (network.prefixlen + 7) // 8]
        number = b"" if path_id is None else path_id.to_bytes(4, "big")
        return number + bytes((network.prefixlen,)) + octets

    @staticmethod
    def record(kind: int, subtype: int, body: bytes, seconds: int = 1_700_000_000) -> bytes:
        return struct.pack(">IHHI", seconds, kind, subtype, len(body)) + body

    @staticmethod
    def bgp4mp_head(asn: int = 64500, size: int = 4) -> bytes:
        numbers = asn.to_bytes(size, "big") + (65000).to_bytes(size, "big")
        return numbers + struct.pack(">HH", 0, 1) + bytes((192, 0, 2, 1, 192, 0, 2, 9))


def frames(path: Path) -> Iterator[tuple[int, bytes]]:
    """Time and TCP payload of each packet of a capture of one connection."""
    data = path.read_bytes()
    order = "<" if data[0] != 0xA1 else ">"
    at = 24
    while at < len(data):
        seconds, micros, size, _ = struct.unpack(f"{order}IIII", data[at : at + 16])
        packet = data[at + 16 : at + 16 + size][14:]
        total, head = int.from_bytes(packet[2:4], "big"), (packet[0] & 15) * 4
        segment_bytes = packet[head:total]
        yield (seconds * 1_000_000 + micros) * 1000, segment_bytes[(segment_bytes[12] >> 4) * 4 :]
        at += 16 + size
