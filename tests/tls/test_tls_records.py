"""Encrypted offsets to plain ones."""

import random

import pytest

from pathbudget.probes.clock import Reading
from pathbudget.probes.tls.records import Offsets, plain_lengths

NOW = Reading(1, 2, 0)
LATER = Reading(9, 10, 0)


def record(length: int, kind: int = 23) -> bytes:
    return bytes([kind, 3, 3]) + (length + 17).to_bytes(2, "big") + bytes(length + 17)


def last(offsets: Offsets, wire: int) -> int | None:
    found = offsets.at(wire)
    return None if found is None else found[0]


def test_a_record_carries_its_bytes_one_to_one() -> None:
    offsets = Offsets()
    offsets.wrote(record(100), 100, 1_000, NOW)
    assert last(offsets, 1_004) is None  # its header only
    assert last(offsets, 1_005) == 0
    assert last(offsets, 1_104) == 99
    assert last(offsets, 1_121) == 99  # the tag


def test_what_is_no_plain_data_carries_none() -> None:
    """A ClientHello before early data, an answer to a key update before a request."""
    offsets = Offsets()
    offsets.wrote(record(300, 22) + record(1, 20) + record(50), 50, 0, NOW)
    assert last(offsets, 321) is None
    assert last(offsets, len(record(300, 22) + record(1, 20)) + 5) == 0
    offsets.wrote(record(5) + record(10), 10, 2_000, LATER)
    assert last(offsets, 2_000 + len(record(5))) == 49
    assert offsets.at(2_000 + len(record(5)) + 5) == (50, LATER)
    assert offsets.plain_bytes == 60


@pytest.mark.parametrize("seed", range(5))
def test_every_plain_byte_is_found_where_it_is(seed: int) -> None:
    rng = random.Random(seed)
    offsets, wire, truth = Offsets(), 0, dict[int, int]()
    plain = 0
    for _ in range(20):
        lengths = [rng.randint(1, 40) for _ in range(rng.randint(1, 3))]
        data = b"".join(record(length) for length in lengths)
        offsets.wrote(data, sum(lengths), wire, NOW)
        at = wire
        for length in lengths:
            truth |= {at + 5 + number: plain + number for number in range(length)}
            at, plain = at + length + 22, plain + length
        wire = at
    assert {place: last(offsets, place) for place in truth} == truth
    assert offsets.plain_bytes == plain


def test_lengths_of_garbage_are_bounded_by_it() -> None:
    rng = random.Random(3)
    for size in range(300):
        data = rng.randbytes(size)
        assert all(at <= size + 5 for at, _ in plain_lengths(data))
