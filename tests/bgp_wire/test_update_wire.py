"""BGP messages byte by byte, each rule with its RFC."""

import ipaddress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathbudget.probes.bgp.as_path_wire import AsPath, merged
from pathbudget.probes.bgp.quarantine import MalformedError
from pathbudget.probes.bgp.record import origin_of, without_prepends
from pathbudget.probes.bgp.update_wire import (
    IPV4,
    IPV6,
    Encoding,
    Nlri,
    parse_attributes,
    parse_nlri,
    parse_notification,
    parse_update,
    split_message,
)

ORIGIN_IGP = b"\x40\x01\x01\x00"


def path(*segments: tuple[int, tuple[int, ...]]) -> AsPath:
    return AsPath(segments)


def test_sets_and_confederations_have_their_brackets(wire: Any) -> None:
    value = wire.segment(3, (65001, 65002)) + wire.segment(2, (1, 2)) + wire.segment(1, (7, 9))
    assert AsPath.parse(value, 4).text == "(65001 65002) 1 2 {7,9}"


def test_an_empty_path_is_an_empty_text() -> None:
    assert AsPath.parse(b"", 4).text == ""
    assert origin_of("") is None


def test_prepends_and_origins() -> None:
    assert without_prepends("1 1 1 2 2 3") == "1 2 3"
    assert origin_of("1 2 {3,4}") is None
    assert origin_of("1 2") == 2


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (path((2, (1, 23456, 23456))), path((2, (70000, 80000))), "1 70000 80000"),
        (path((2, (23456,))), path((2, (70000,))), "70000"),
        (path((2, (1, 23456))), path((2, (5, 6, 7))), "1 23456"),
        (path((2, (1, 2)), (1, (3, 4)), (2, (23456,))), path((2, (70000,))), "1 2 {3,4} 70000"),
        (path((3, (65001,)), (2, (1, 23456))), path((2, (70000,))), "(65001) 1 70000"),
        (path((2, (1, 2))), path(), "1 2"),
    ],
    ids=["end", "all", "longer is not believed", "a set is one", "confederation", "empty"],
)
def test_as4_path_gives_the_end_of_a_two_octet_path(
    old: AsPath, new: AsPath, expected: str
) -> None:
    """RFC 6793, 4.2.3."""
    assert merged(old, new).text == expected


def test_as4_path_is_left_aside_where_an_old_speaker_aggregated(wire: Any) -> None:
    """RFC 6793, 4.2.3: AGGREGATOR that is not AS_TRANS, with an AS4_AGGREGATOR beside it."""
    attributes = (
        wire.attribute(2, wire.segment(2, (1, 23456), 2))
        + wire.attribute(17, wire.segment(2, (70000,)))
        + wire.attribute(7, (300).to_bytes(2, "big") + bytes(4))
        + wire.attribute(18, (70000).to_bytes(4, "big") + bytes(4))
    )
    assert parse_attributes(attributes, Encoding(2)).as_path == "1 23456"
    without = attributes[: -len(wire.attribute(18, bytes(8)))]
    assert parse_attributes(without, Encoding(2)).as_path == "1 70000"


def test_all_attributes_that_a_record_has_a_place_for(wire: Any) -> None:
    attributes = (
        ORIGIN_IGP
        + wire.attribute(2, wire.segment(2, (64500, 64501)))
        + wire.attribute(3, bytes((192, 0, 2, 1)))
        + wire.attribute(4, (30).to_bytes(4, "big"))
        + wire.attribute(5, (200).to_bytes(4, "big"))
        + wire.attribute(8, bytes((0xFD, 0xE8, 0, 120)))
        + wire.attribute(32, (65000).to_bytes(4, "big") + (1).to_bytes(4, "big") + bytes(4))
        + wire.attribute(99, b"unknown", 0xC0)
    )
    message = wire.update(attributes, wire.nlri("203.0.113.0/24"), wire.nlri("198.51.100.0/25"))
    update = parse_update(message, Encoding())
    found = update.attributes
    assert (found.origin, found.as_path, found.next_hop) == ("igp", "64500 64501", "192.0.2.1")
    assert (found.med, found.local_preference) == (30, 200)
    assert found.communities == ("65000:120", "65000:1:0")
    assert update.announced == [Nlri("203.0.113.0/24")]
    assert update.withdrawn == [Nlri("198.51.100.0/25")]


def test_ipv4_routes_by_ipv6_next_hops(wire: Any) -> None:
    """RFC 8950: sixteen octets of next hop in front of IPv4 routes."""
    hop = ipaddress.ip_address("2001:db8::1").packed
    value = b"\x00\x01\x01\x10" + hop + b"\x00" + wire.nlri("203.0.113.0/24")
    found = parse_attributes(wire.attribute(14, value, 0x80), Encoding())
    assert found.announced == [Nlri("203.0.113.0/24")]
    assert found.mp_next_hop == "2001:db8::1"


def test_add_path_is_told_and_never_guessed(wire: Any) -> None:
    """The same bytes: two routes of a session with add-path, or default routes without it."""
    routes = wire.nlri("1.1.1.1/32", 0)
    assert parse_nlri(routes, IPV4, add_path=True) == [Nlri("1.1.1.1/32", 0)]
    plain = parse_nlri(routes, IPV4, add_path=False)
    assert plain == [Nlri("0.0.0.0/0")] * 4 + [Nlri("1.1.1.1/32")]


def test_an_end_of_rib_is_no_route(wire: Any) -> None:
    """RFC 4724, 2."""
    assert parse_update(wire.update(), Encoding()).end_of_rib
    six = wire.update(wire.attribute(15, b"\x00\x02\x01", 0x80))
    update = parse_update(six, Encoding())
    assert (update.end_of_rib, update.family) == (True, "ipv6 unicast")
    assert not parse_update(wire.update(ORIGIN_IGP), Encoding()).end_of_rib


def test_other_families_are_counted_and_not_read(wire: Any) -> None:
    found = parse_attributes(wire.attribute(14, b"\x00\x01\x80" + bytes(9), 0x80), Encoding())
    assert (found.other_families, found.announced) == (1, [])


def test_a_next_hop_of_a_table_stands_alone_or_whole(wire: Any) -> None:
    """RFC 6396, 4.3.4 asks for the next hop alone; some collectors write the whole attribute."""
    hop = ipaddress.ip_address("2001:db8::2").packed
    short = parse_attributes(wire.attribute(14, b"\x10" + hop), Encoding(), IPV6)
    whole = parse_attributes(
        wire.attribute(14, b"\x00\x02\x01\x10" + hop + b"\x00"), Encoding(), IPV6
    )
    assert short.mp_next_hop == whole.mp_next_hop == "2001:db8::2"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"\x06\x02", "notification 6/2 (cease, administrative shutdown)"),
        (b"\x06\x02\x05bye\nx", "notification 6/2 (cease, administrative shutdown): bye?x"),
        (b"\x04\x00", "notification 4/0 (hold timer expired)"),
        (b"\x63\x01", "notification 99/1 (unknown error)"),
    ],
    ids=["shutdown", "with words", "hold timer", "unknown"],
)
def test_a_notification_says_why(body: bytes, words: str) -> None:
    assert parse_notification(body) == words


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\x00", "an UPDATE with withdrawn routes that are cut off"),
        (b"\x00\x00\x00\x09\x40", "an UPDATE with attributes that are cut off"),
        (b"\x00\x00\x00\x03\x40\x02\x09", "an attribute that is cut off"),
        (b"\x00\x00\x00\x04\x40\x01\x01\x07", "an unknown ORIGIN"),
        (b"\x00\x00\x00\x05\x40\x02\x02\x02\x01", "an AS path that is cut off"),
        (b"\x00\x00\x00\x05\x40\x02\x02\x07\x00", "an AS path with an unknown kind of segment"),
        (b"\x00\x00\x00\x05\x40\x08\x02\x00\x00", "COMMUNITIES of a wrong length"),
        (b"\x00\x00\x00\x00\x21\x01\x01\x01\x01", "a prefix that is too long"),
        (b"\x00\x00\x00\x00\x18\x01", "a prefix that is cut off"),
    ],
    ids=[
        "withdrawn",
        "attributes",
        "attribute",
        "origin",
        "path",
        "segment",
        "communities",
        "prefix length",
        "prefix",
    ],
)
def test_what_is_malformed_is_named(data: bytes, reason: str) -> None:
    with pytest.raises(MalformedError, match=f"^{reason}$"):
        parse_update(data, Encoding())


def test_a_message_has_its_marker_and_length(wire: Any) -> None:
    assert split_message(wire.message(4)) == (4, b"")
    for broken in (wire.message(4)[1:], wire.message(2, b"x")[:-1], b"\x00" * 19):
        with pytest.raises(MalformedError):
            split_message(broken)


prefixes = st.one_of(
    st.tuples(st.just(IPV4), st.integers(0, 32), st.integers(0, 2**32 - 1)),
    st.tuples(st.just(IPV6), st.integers(0, 128), st.integers(0, 2**128 - 1)),
)


@settings(max_examples=40)
@given(prefixes, st.none() | st.integers(0, 2**32 - 1))
def test_a_prefix_comes_back_whatever_stands_beyond_its_length(
    what: tuple[int, int, int], path_id: int | None
) -> None:
    """RFC 4271, 4.3: trailing bits are irrelevant."""
    family, bits, number = what
    kind = ipaddress.IPv4Network if family == IPV4 else ipaddress.IPv6Network
    size = 4 if family == IPV4 else 16
    octets = number.to_bytes(size, "big")[: (bits + 7) // 8]
    data = (b"" if path_id is None else path_id.to_bytes(4, "big")) + bytes((bits,)) + octets
    (found,) = parse_nlri(data, family, add_path=path_id is not None)
    expected = kind((octets.ljust(size, b"\0"), bits), strict=False)
    assert ipaddress.ip_network(found.prefix) == expected
    assert found.path_id == path_id
