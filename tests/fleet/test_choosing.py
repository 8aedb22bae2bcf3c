"""What a person types about servers, and what is chosen where nothing is typed."""

import socket
from pathlib import Path

import pytest
from tests.fleet.conftest import free_ports

from pathbudget.agents.fleet.choosing import (
    chosen_nodes,
    chosen_port,
    chosen_results,
    chosen_server,
)
from pathbudget.agents.fleet.folder import Node, Settings
from pathbudget.probes.errors import ConfigError


def test_the_first_time_is_loopback_and_later_is_as_before() -> None:
    assert chosen_server(None, None, []) == ("127.0.0.1", 4222, ("127.0.0.1",))
    before = Settings("0.0.0.0", 5000, ("bus.example.org",))
    assert chosen_server(before, None, []) == ("0.0.0.0", 5000, ("bus.example.org",))


@pytest.mark.parametrize(
    ("listen", "names", "chosen"),
    [
        ("192.0.2.1", [], ("192.0.2.1", 4222, ("192.0.2.1",))),
        ("192.0.2.1:99", ["a.b"], ("192.0.2.1", 99, ("a.b",))),
        ("[2001:db8::1]:99", [], ("2001:db8::1", 99, ("2001:db8::1",))),
        ("0.0.0.0:1", ["a", "192.0.2.1", "a"], ("0.0.0.0", 1, ("a", "192.0.2.1"))),
        ("[::]:1", ["a"], ("::", 1, ("a",))),
    ],
)
def test_where_and_by_which_names(
    listen: str, names: list[str], chosen: tuple[str, int, tuple[str, ...]]
) -> None:
    assert chosen_server(None, listen, names) == chosen


def test_names_that_were_given_once_stay_when_the_address_changes() -> None:
    named = Settings("127.0.0.1", 1, ("bus.example.org",))
    assert chosen_server(named, "192.0.2.1:2", [])[2] == ("bus.example.org",)
    unnamed = Settings("127.0.0.1", 1, ("127.0.0.1",))
    assert chosen_server(unnamed, "192.0.2.1:2", [])[2] == ("192.0.2.1",)
    with pytest.raises(ConfigError, match="--name"):
        chosen_server(unnamed, "0.0.0.0:2", [])


def test_addresses_of_servers_are_written_as_they_are_connected_to() -> None:
    one = Settings(port=1, names=("a", "2001:db8::1"))
    assert one.servers == ("tls://a:1", "tls://[2001:db8::1]:1")
    three = chosen_nodes(["a", "b:5", "[2001:db8::1]:6:7"])
    assert three == (Node("a"), Node("b", 5, 2005), Node("2001:db8::1", 6, 7))
    assert Settings(nodes=three).servers[2] == "tls://[2001:db8::1]:6"
    assert len({node.name for node in three}) == 3


def test_a_port_that_is_taken_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = free_ports(1)[0]  # not the real one: another test may be starting a fleet there
    monkeypatch.setattr("pathbudget.agents.fleet.choosing.CLIENT_PORT", usual)
    free = chosen_port("127.0.0.1")
    with socket.create_server(("127.0.0.1", free)):
        assert free < chosen_port("127.0.0.1") < usual + 100


def test_room_for_results_is_bounded_by_what_is_free(tmp_path: Path) -> None:
    assert 1 << 20 <= chosen_results(tmp_path / "not" / "there") <= 10 << 30
