"""What may stand on the command line of `pathbudget check`."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pathbudget.agents.quick.hosts import CheckedHost, parse_host, parse_place
from pathbudget.probes.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("example.com", "example.com", 443),
        ("example.com:8443", "example.com", 8443),
        ("192.0.2.1", "192.0.2.1", 443),
        ("2001:db8::1", "2001:db8::1", 443),
        ("[2001:db8::1]", "2001:db8::1", 443),
        ("[2001:db8::1]:8443", "2001:db8::1", 8443),
    ],
)
def test_hosts_with_and_without_port(text: str, host: str, port: int) -> None:
    assert parse_host(text, 443) == CheckedHost(text, host, port, None)


def test_a_place_can_follow_and_its_name_is_a_shipped_one() -> None:
    found = parse_host("example.com:8443@dallas", 443)
    assert (found.host, found.port) == ("example.com", 8443)
    assert found.place is not None
    assert found.place.latitude == pytest.approx(32.8, abs=0.2)


def test_a_place_can_be_coordinates() -> None:
    place = parse_place("32.78,-96.8", "--from")
    assert (place.latitude, place.longitude) == (32.78, -96.8)


@pytest.mark.parametrize(
    "text",
    ["", "@dallas", "a b", "https://example.com", "x:0", "x:99999", "x:port", "[::1", "[::1]8443"],
)
def test_what_is_no_host_is_a_fault(text: str) -> None:
    with pytest.raises(ConfigError, match="command line"):
        parse_host(text, 443)


@pytest.mark.parametrize("text", ["nowhere-at-all", "91,0", "0,181", "north,0", "1,2,3", "nan,0"])
def test_what_is_no_place_is_a_fault(text: str) -> None:
    with pytest.raises(ConfigError, match="--from"):
        parse_place(text, "--from")


@given(st.text(max_size=40))
def test_anything_is_a_host_or_a_fault(text: str) -> None:
    try:
        found = parse_host(text, 443)
    except ConfigError:
        return
    assert found.host
    assert 0 < found.port < 65536
