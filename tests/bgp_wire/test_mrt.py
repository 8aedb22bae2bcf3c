"""MRT records that no file at hand has, damage, and files that grow while they are read."""

import bz2
import struct
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from pathbudget.probes.bgp.messages import Channel
from pathbudget.probes.bgp.mrt import MrtReader
from pathbudget.probes.bgp.record import FeedKind, RouteUpdate, UpdateKind

Read = Callable[..., tuple[list[RouteUpdate], MrtReader]]
SECOND = 1_000_000_000


def announced(wire: Any, prefix: str = "203.0.113.0/24", path: tuple[int, ...] = (64500,)) -> bytes:
    body = wire.update(wire.attribute(2, wire.segment(2, path)), wire.nlri(prefix))
    return bytes(wire.bgp4mp_head() + wire.message(2, body))


def withdrawn(wire: Any, prefix: str = "203.0.113.0/24") -> bytes:
    return bytes(wire.bgp4mp_head() + wire.message(2, wire.update(b"", b"", wire.nlri(prefix))))


def test_microseconds_of_extended_records(wire: Any, read: Read) -> None:
    body = struct.pack(">I", 250_000) + announced(wire)
    (update,), _ = read(wire.record(17, 4, body))
    assert update.time_unix_ns == 1_700_000_000_250_000_000


def test_a_message_with_add_path(wire: Any, read: Read) -> None:
    body = wire.update(wire.attribute(2, wire.segment(2, (1,))), wire.nlri("203.0.113.0/24", 7))
    (update,), _ = read(wire.record(16, 9, wire.bgp4mp_head() + wire.message(2, body)))
    assert (update.prefix, update.path_id) == ("203.0.113.0/24", 7)


def test_what_the_collector_sent_is_no_news(wire: Any, read: Read) -> None:
    found, reader = read(wire.record(16, 7, announced(wire)))
    assert (found, reader.quarantine.ignored) == ([], {"sent by the collector": 1})


def test_sessions_come_and_go(wire: Any, read: Read) -> None:
    states = [(5, 6), (6, 1), (1, 2)]
    data = b"".join(
        wire.record(16, 5, wire.bgp4mp_head() + struct.pack(">HH", *state)) for state in states
    )
    shut = wire.record(16, 4, wire.bgp4mp_head() + wire.message(3, b"\x06\x04"))
    found, _ = read(data + shut)
    assert [update.kind for update in found] == [
        UpdateKind.PEER_UP,
        UpdateKind.PEER_DOWN,
        UpdateKind.PEER_DOWN,
    ]
    assert found[2].detail == "notification 6/4 (cease, administrative reset)"


def table_v2(wire: Any, subtype: int, path_id: int | None = None, peer: int = 0) -> bytes:
    index = bytes(4) + struct.pack(">HH", 0, 1) + b"\x02" + bytes(4) + bytes((192, 0, 2, 1))
    index += (64500).to_bytes(4, "big")
    attributes = wire.attribute(2, wire.segment(2, (64500, 64501)))
    number = b"" if path_id is None else path_id.to_bytes(4, "big")
    entry = struct.pack(">HI", peer, 0) + number + struct.pack(">H", len(attributes)) + attributes
    rib = bytes(4) + wire.nlri("203.0.113.0/24") + struct.pack(">H", 1) + entry
    return bytes(wire.record(13, 1, index) + wire.record(13, subtype, rib))


@pytest.mark.parametrize(("subtype", "path_id"), [(2, None), (8, 7)], ids=["plain", "add-path"])
def test_tables_of_version_2(wire: Any, read: Read, subtype: int, path_id: int | None) -> None:
    (update,), _ = read(table_v2(wire, subtype, path_id))
    assert update.kind is UpdateKind.RIB
    assert (update.peer_address, update.peer_asn) == ("192.0.2.1", 64500)
    assert (update.as_path, update.path_id) == ("64500 64501", path_id)


def test_tables_of_version_1_have_two_octet_numbers(wire: Any, read: Read) -> None:
    attributes = wire.attribute(2, wire.segment(2, (64500,), 2))
    body = bytes(4) + bytes((203, 0, 113, 0)) + b"\x18\x01" + bytes(4) + bytes((192, 0, 2, 1))
    body += (64500).to_bytes(2, "big") + struct.pack(">H", len(attributes)) + attributes
    (update,), _ = read(wire.record(12, 1, body))
    assert (update.prefix, update.as_path) == ("203.0.113.0/24", "64500")
    assert (update.kind, update.peer_asn) == (UpdateKind.RIB, 64500)


def test_routes_need_a_table_of_peers(wire: Any, read: Read) -> None:
    whole = table_v2(wire, 2)
    alone = whole[len(whole) - len(wire.record(13, 2, b"")) - 42 :]
    first = wire.record(13, 1, whole[12:][:21])
    _, reader = read(whole[len(first) :] if whole.startswith(first) else alone)
    assert sum(reader.quarantine.reasons.values()) == 1
    _, far = read(table_v2(wire, 2, peer=9))
    assert dict(far.quarantine.reasons) == {
        "a route of a peer that is not in the table of peers": 1
    }


def test_announce_withdraw_announce_within_a_second_stay_three(wire: Any, read: Read) -> None:
    data = b"".join(
        wire.record(16, 4, body) for body in (announced(wire), withdrawn(wire), announced(wire))
    )
    found, _ = read(data)
    ids = [update.id for update in found]
    assert len(set(ids)) == 3
    assert ids == sorted(ids)
    again, _ = read(data, 7)
    assert [update.id for update in again] == ids


def test_a_record_that_is_malformed_costs_only_itself(wire: Any, read: Read) -> None:
    bad = wire.record(16, 4, wire.bgp4mp_head() + wire.message(2, b"\x00\x00\x00\x09"))
    found, reader = read(
        wire.record(16, 4, announced(wire)) + bad + wire.record(16, 4, withdrawn(wire))
    )
    assert len(found) == 2
    assert dict(reader.quarantine.reasons) == {"an UPDATE with attributes that are cut off": 1}
    assert reader.skipped_bytes == 0


def test_reading_goes_on_behind_a_torn_header(wire: Any, read: Read) -> None:
    good = [wire.record(16, 4, announced(wire), 1_700_000_000 + n) for n in range(4)]
    torn = wire.record(16, 4, announced(wire), 1_700_000_001)[:10]
    found, reader = read(good[0] + torn + b"".join(good[1:]))
    assert len(found) == 4
    assert (reader.skipped_bytes, reader.quarantine.count) == (10, 1)


@pytest.mark.parametrize("data", [b"\x7fELF" + bytes(400), b"<html>" * 50], ids=["binary", "text"])
def test_what_is_no_mrt_is_named(read: Read, data: bytes) -> None:
    found, reader = read(data)
    assert (found, reader.broken) == ([], "no MRT file")
    assert reader.quarantine.count == 1


def test_a_file_that_grows_gives_each_record_as_it_is_complete(wire: Any) -> None:
    reader = MrtReader(Channel("live", FeedKind.MRT), live=True)
    data = wire.record(16, 4, announced(wire)) + wire.record(16, 4, withdrawn(wire))
    times = [at * SECOND for at in range(len(data))]
    found = [u for at in times for u in reader.feed(data[at // SECOND :][:1], at)]
    assert [update.arrived_unix_ns // SECOND for update in found] == [
        len(wire.record(16, 4, announced(wire))) - 1,
        len(data) - 1,
    ]
    assert list(reader.end(0)) == []
    assert reader.quarantine.count == 0


def test_a_last_record_that_is_cut_off_is_noted(wire: Any, read: Read) -> None:
    found, reader = read(wire.record(16, 4, announced(wire))[:-1])
    assert (found, reader.quarantine.count) == ([], 1)


def test_an_archive_stamped_in_the_future_arrived_when_it_was_read(wire: Any) -> None:
    reader = MrtReader(Channel("archive", FeedKind.MRT))
    (update,) = [
        *reader.feed(wire.record(16, 4, announced(wire)), 5),
        *reader.end(5),
    ]
    assert (update.time_unix_ns, update.arrived_unix_ns) == (1_700_000_000 * SECOND, 5)


def test_compressed_bytes_are_no_mrt_until_they_are_unpacked(wire: Any, read: Read) -> None:
    _, reader = read(bz2.compress(wire.record(16, 4, announced(wire))))
    assert reader.broken


@pytest.mark.parametrize("piece", [1, 7, 64, 100])
def test_what_is_found_behind_damage_does_not_depend_on_the_pieces(
    wire: Any, read: Read, piece: int
) -> None:
    """Found by fuzzing: what looked like a header at the end of a piece was taken for one."""
    good = [wire.record(16, 4, announced(wire), 1_700_000_000 + n) for n in range(4)]
    lure = struct.pack(">IHHI", 1_700_000_001, 16, 4, 300)
    data = good[0] + good[1][:10] + lure + good[1] + good[2] + good[3]
    whole, known = read(data)
    found, reader = read(data, piece)
    assert [update.id for update in found] == [update.id for update in whole]
    assert (len(found), reader.skipped_bytes) == (4, known.skipped_bytes)


def _damaged(data: bytes, rng: Random) -> bytes:
    """With octets changed, left out, put in and repeated."""
    for _ in range(rng.randrange(4)):
        at = rng.randrange(len(data) + 1)
        size = rng.randrange(1, 40)
        data = rng.choice(
            [
                data[:at] + data[at + size :],
                data[:at] + rng.randbytes(size) + data[at:],
                data[:at] + bytes(size) + data[at:],
                data[:at] + data[:size] + data[at:],
                data[:at] + rng.randbytes(1) + data[at + 1 :],
            ]
        )
    return data


def _account(found: list[RouteUpdate], reader: MrtReader) -> tuple[object, ...]:
    quarantine = reader.quarantine
    return (
        [update.id for update in found],
        *(reader.records, reader.skipped_bytes, reader.broken, quarantine.count),
        *(quarantine.reasons, quarantine.ignored, list(quarantine.latest)),
    )


@pytest.mark.parametrize("seed", range(60))
def test_no_count_depends_on_the_pieces(wire: Any, read: Read, seed: int) -> None:
    """What waits for more bytes is neither read twice nor left out of what was skipped."""
    rng = Random(seed)
    records = [
        wire.record(16, 4, announced(wire), 1_700_000_000),
        wire.record(16, 7, announced(wire), 1_700_000_001),
        wire.record(16, 5, wire.bgp4mp_head() + struct.pack(">HH", 5, 6), 1_700_000_002),
        wire.record(48, 1, b"unknown", 1_700_000_003),
        wire.record(16, 4, withdrawn(wire), 1_700_000_004),
        wire.record(16, 4, announced(wire)[:-9], 1_700_000_005),
    ]
    data = _damaged(b"".join(rng.choices(records, k=9)), rng)
    whole = _account(*read(data))
    for piece in (1, 7, 12, rng.randrange(13, 300)):
        assert _account(*read(data, piece)) == whole
