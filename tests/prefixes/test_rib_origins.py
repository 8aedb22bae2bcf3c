"""Origins out of dumped tables: the quick reader against the careful one, and garbage."""

import importlib.util
import struct
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathbudget.sites.prefix_table import Prefix
from pathbudget.sites.rib_origins import RibReader, origins_of

PEERS = 3


def load() -> ModuleType:
    path = Path(__file__).with_name("fuzz_targets.py")
    spec = importlib.util.spec_from_file_location("prefix_fuzz_targets", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TARGETS = load()


def record(subtype: int, body: bytes, kind: int = 13) -> bytes:
    return struct.pack(">IHHI", 1_600_000_000, kind, subtype, len(body)) + body


def index_table() -> bytes:
    peer = b"\x02" + bytes(4) + b"\x0a\0\0\1" + struct.pack(">I", 64500)
    return record(1, bytes(4) + b"\0\0" + struct.pack(">H", PEERS) + peer * PEERS)


def attributes(path: bytes, *, long: bool = False) -> bytes:
    size = struct.pack(">H", len(path)) if long else bytes([len(path)])
    as_path = (b"\x50\x02" if long else b"\x40\x02") + size + path
    return b"\x40\x01\x01\x00" + as_path + b"\x40\x03\x04\x0a\0\0\1"


def sequence(*asns: int, kind: int = 2) -> bytes:
    return bytes([kind, len(asns)]) + struct.pack(f">{len(asns)}I", *asns)


def rib(network: bytes, bits: int, *entries: bytes, subtype: int = 2, lead: bytes = b"") -> bytes:
    body = bytes(4) + bytes([bits]) + network + struct.pack(">H", len(entries))
    for number, entry in enumerate(entries):
        body += struct.pack(">HI", number % PEERS, 1) + lead
        body += struct.pack(">H", len(entry)) + entry
    return record(subtype, body)


def read(*records: bytes, quickly: bool = True) -> list[Prefix]:
    reader = RibReader("dump")
    if not quickly:
        reader._framed = False  # pyright: ignore[reportPrivateUsage]
    reader.feed([index_table(), *records])
    assert not reader.unreadable()
    return list(reader.prefixes())


def test_the_origin_is_the_last_as_of_each_peer_the_commonest_first() -> None:
    entries = [
        attributes(sequence(1, 2, 7)),
        attributes(sequence(3, 9)),
        attributes(sequence(4, 9)),
    ]
    assert read(rib(b"\x08\x08\x08", 24, *entries)) == [Prefix(4, 0x08080800, 24, (9, 7))]


def test_sets_path_identifiers_and_ipv6_are_read_too() -> None:
    with_set = rib(b"\x08", 8, attributes(sequence(1) + sequence(5, 6, kind=1)))
    add_path = rib(b"\x09", 8, attributes(sequence(1, 2)), subtype=8, lead=b"\0\0\0\1")
    six = rib(b"\x2a\x00", 16, attributes(sequence(1, 3), long=True), subtype=4)
    assert sorted(read(with_set, add_path, six)) == [
        Prefix(4, 8 << 24, 8, (5, 6)),
        Prefix(4, 9 << 24, 8, (2,)),
        Prefix(6, 0x2A00 << 112, 16, (3,)),
    ]


def path_of(asns: list[int]) -> bytes:
    return sequence(*asns)


def with_a_set(path: bytes) -> bytes:
    return path + sequence(5, 6, kind=1)


def rib_of(bits: int, entries: list[bytes]) -> bytes:
    return rib(bytes([8, 1, 2, 3])[: (bits + 7) // 8], bits, *entries)


paths = st.lists(st.integers(1, 2**32 - 1), min_size=1, max_size=4).map(path_of)
odd_paths = paths | st.just(b"") | st.builds(with_a_set, paths)
entries_of = st.lists(st.builds(attributes, odd_paths, long=st.booleans()), max_size=4)
ribs = st.builds(rib_of, st.integers(0, 32), entries_of)


@settings(max_examples=25, deadline=None)
@given(st.lists(ribs, max_size=5))
def test_the_quick_reader_reads_what_the_careful_one_reads(records: list[bytes]) -> None:
    quick = read(*records)
    assert sorted(quick) == sorted(read(*records, quickly=False))
    content = b"".join(records)
    assert quick == read(*(content[at : at + 7] for at in range(0, len(content), 7)))


@pytest.mark.parametrize(
    ("path", "origins"),
    [("1 2 3", (3,)), ("1 {5,6}", (5, 6)), ("", ()), ("7", (7,)), ("1 (2 3)", (3,))],
)
def test_origins_of_a_path(path: str, origins: tuple[int, ...]) -> None:
    assert origins_of(path) == origins


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_damaged_dumps(data: st.DataObject) -> None:
    content = bytearray(b"".join([index_table(), *data.draw(st.lists(ribs, max_size=4))]))
    for _ in range(data.draw(st.integers(0, 3))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=2))
    TARGETS.fuzz_one_rib(bytes(content))


@settings(max_examples=25, deadline=None)
@given(st.text(alphabet='0123456789./:,_ \tASx\n#"\r', max_size=60).map(str.encode) | st.binary())
def test_any_text_as_a_table(content: bytes) -> None:
    TARGETS.fuzz_one_prefix_file(content)
