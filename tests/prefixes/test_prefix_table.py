"""Longest match: against a search through every prefix."""

import ipaddress
import sys
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathbudget.sites.prefix_table import RESERVED, Origin, Prefix, PrefixTable

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
RESERVED_NETWORKS = [ipaddress.ip_network(text) for text in RESERVED]


def prefix(text: str, *asns: int, name: str = "") -> Prefix:
    network = ipaddress.ip_network(text)
    return Prefix(network.version, int(network.network_address), network.prefixlen, asns, name)


def table(*entries: tuple[str, int]) -> PrefixTable:
    return PrefixTable(prefix(text, asn) for text, asn in entries)


def test_the_longest_match_counts() -> None:
    known = table(("0.0.0.0/0", 1), ("8.0.0.0/8", 2), ("8.8.0.0/16", 3), ("8.8.8.8/32", 4))
    found = {text: known.look_up(text) for text in ("1.1.1.1", "8.1.1.1", "8.8.1.1", "8.8.8.8")}
    assert [one and one.asns for one in found.values()] == [(1,), (2,), (3,), (4,)]
    assert known.look_up("8.8.8.9") == Origin("8.8.0.0/16", (3,))


def test_both_families_and_ipv4_inside_ipv6() -> None:
    known = table(("2a00::/16", 6), ("2a00:1::/32", 7), ("2a00:1::1/128", 8), ("8.0.0.0/8", 4))
    assert known.look_up("2a00:1::1") == Origin("2a00:1::1/128", (8,))
    assert known.look_up("2a00:1::2") == Origin("2a00:1::/32", (7,))
    assert known.look_up("2a00:2::") == Origin("2a00::/16", (6,))
    assert known.look_up("2b00::") is None
    assert known.look_up("::ffff:8.8.8.8") == Origin("8.0.0.0/8", (4,))


def test_reserved_addresses_belong_to_nobody_but_who_names_them() -> None:
    known = table(("0.0.0.0/0", 1), ("10.1.0.0/16", 65011), ("::/0", 6))
    assert known.look_up("10.2.0.1") is None
    assert known.look_up("10.1.0.1") == Origin("10.1.0.0/16", (65011,))
    assert known.look_up("192.168.1.1") is None
    assert known.look_up("fe80::1") is None
    assert known.look_up("2001:db8::1") is None
    assert table(("192.168.0.0/16", 5)).look_up("192.168.1.1") == Origin("192.168.0.0/16", (5,))


@pytest.mark.parametrize("text", ["", "masked", "8.8.8", "8.8.8.8.8", "8.8.8.8/32", "::g", "8\0"])
def test_what_is_no_address_has_no_origin(text: str) -> None:
    known = table(("0.0.0.0/0", 1), ("::/0", 1))
    assert known.look_up(text) is None
    assert known.look_up_all([text, "8.8.8.8"]) == [None, Origin("0.0.0.0/0", (1,))]


def test_an_empty_table_knows_nobody() -> None:
    known = PrefixTable([])
    assert len(known) == 0
    assert known.look_up("8.8.8.8") is None
    assert known.look_up_all(["8.8.8.8", "2a00::1"]) == [None, None]


def test_of_a_prefix_given_twice_the_last_counts() -> None:
    assert table(("8.0.0.0/8", 1), ("8.0.0.0/8", 2)).look_up("8.1.1.1") == Origin("8.0.0.0/8", (2,))


addresses = st.integers(0, 2**32 - 1).map(ipaddress.IPv4Address) | st.integers(0, 2**128 - 1).map(
    ipaddress.IPv6Address
)


@st.composite
def networks(draw: st.DrawFn) -> Network:
    """Some anywhere, most nested in each other or side by side."""
    version = draw(st.sampled_from([4, 6]))
    width = 32 if version == 4 else 128
    base = draw(st.sampled_from([0, 0x0A000000, 0x08080808, 2**32 - 1] if version == 4 else
                                [0, 0x2A00 << 112, (0x2A00 << 112) + 1, 2**128 - 1]))  # fmt: skip
    bits = draw(st.integers(0, width))
    flipped = base ^ draw(st.sampled_from([0, 1 << draw(st.integers(0, width - 1))]))
    return ipaddress.ip_network((flipped >> (width - bits) << (width - bits), bits))


def oracle(entries: Sequence[tuple[Network, int]], text: str) -> Origin | None:
    """Through all prefixes; a reserved one that nobody names is nobody's."""
    address = ipaddress.ip_address(text)
    known: dict[Network, int] = dict(entries)
    around = [network for network in [*known, *RESERVED_NETWORKS] if address in network]
    longest = max(around, key=lambda network: network.prefixlen, default=None)
    if longest is None or longest not in known:
        return None
    return Origin(str(longest), (known[longest],))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(networks(), st.integers(1, 9)), max_size=14), st.lists(addresses))
def test_as_a_search_through_all_prefixes_finds_it(
    entries: list[tuple[Network, int]], anywhere: list[ipaddress.IPv4Address]
) -> None:
    known = PrefixTable(prefix(str(network), asn) for network, asn in entries)
    edges = [
        str(edge)
        for network, _ in entries
        for first, last in [(int(network.network_address), int(network.broadcast_address))]
        for number in (first, last, first - 1, last + 1)
        if 0 <= number < 2**network.max_prefixlen
        for edge in [type(network.network_address)(number)]
    ]
    texts = [one for one in edges + list(map(str, anywhere)) if not one.startswith("::ffff:")]
    expected = [oracle(entries, text) for text in texts]
    assert [known.look_up(text) for text in texts] == expected
    assert known.look_up_all(texts) == expected
    assert known.asns_of_all(texts) == [() if one is None else one.asns for one in expected]


def test_without_numpy_the_answers_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    known = table(("0.0.0.0/0", 1), ("8.0.0.0/8", 2), ("2a00::/16", 6))
    texts = ["8.1.1.1", "1.1.1.1", "2a00::1", "2b00::1", "x"]
    expected = known.look_up_all(texts)
    numbers = known.asns_of_all(texts)
    monkeypatch.setitem(sys.modules, "numpy", None)
    assert known.look_up_all(texts) == expected
    assert known.asns_of_all(texts) == numbers == [(2,), (1,), (6,), (), ()]
    assert known.asns_of_all(texts[:2]) == numbers[:2]
