"""Units of a byte stream: whole, in order, with when they began and ended."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pathbudget.agents.reflector.limits import Rates
from pathbudget.agents.reflector.serving.framing import (
    FRAME_HEADER,
    RECORD_HEADER,
    FramingError,
    Units,
    frame_length,
    record_length,
)
from pathbudget.agents.reflector.serving.limits import Admission, Limits, Patience
from pathbudget.agents.reflector.serving.moments import Came


def came(number: int) -> Came:
    return Came(number, number, kernel=True)


@given(st.lists(st.binary(max_size=40), max_size=6), st.lists(st.integers(1, 9), min_size=1))
def test_units_are_the_same_however_they_are_cut(bodies: list[bytes], cuts: list[int]) -> None:
    units = [len(body).to_bytes(3, "big") + bytes(6) + body for body in bodies]
    stream, reader, place, number = b"".join(units), Units(FRAME_HEADER, frame_length), 0, 0
    ends = {}
    for unit in units:
        ends[place] = place + len(unit)
        place += len(unit)
    found, place = [], 0
    while place < len(stream):
        size = cuts[number % len(cuts)]
        piece = stream[place : place + size]
        for unit, began, ended in reader.feed(piece, came(place), came(place + len(piece))):
            found.append(unit)
            assert ended.unix_ns <= place + len(piece)
            assert began.unix_ns <= ended.unix_ns
        place += len(piece)
        number += 1
    assert found == units
    assert not reader.within


def test_a_record_that_straddles_two_flights_began_with_the_first() -> None:
    reader = Units(RECORD_HEADER, record_length)
    record = b"\x17\x03\x03\x00\x10" + bytes(16)
    assert reader.wanted == 5
    assert list(reader.feed(record[:5], came(1), came(1))) == []
    assert reader.wanted == 16
    assert list(reader.feed(record[5:9], came(2), came(2))) == []
    assert reader.wanted == 12
    assert list(reader.feed(record[9:], came(3), came(3))) == [(record, came(1), came(3))]
    assert reader.wanted == 5


@pytest.mark.parametrize(
    "header", [b"GET /", b"\x16\x02\x00\x00\x10", b"\x17\x03\x03\xff\xff", b"\x80\x2e\x01\x00\x02"]
)
def test_what_is_no_record_is_told_at_its_header(header: bytes) -> None:
    with pytest.raises(FramingError):
        list(Units(RECORD_HEADER, record_length).feed(header, came(0), came(0)))


def test_admission_counts_networks_and_forgets_them() -> None:
    admission = Admission(Limits(connections=3, connections_per_network=2))
    assert admission.enter("192.0.2.1")
    assert admission.enter("192.0.2.200")
    assert not admission.enter("192.0.2.3")
    assert admission.enter("2001:db8::1")
    assert not admission.enter("198.51.100.1")
    admission.leave("192.0.2.1")
    assert admission.enter("198.51.100.1")
    assert admission.open == 3


def test_patience_ends_and_comes_back() -> None:
    patience = Patience(0, most=3, per_second=1)
    assert [patience.ends_with(1, 0) for _ in range(4)] == [False, False, False, True]
    assert not patience.ends_with(1, 3_000_000_000)
    assert Limits().openings == Rates(200, 400)
