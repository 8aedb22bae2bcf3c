"""The table of probes and the check of their options."""

import importlib.metadata
from collections.abc import Iterator
from typing import Any

import pytest

from pathbudget.probes import table
from pathbudget.probes.contract import OptionSpec, ProbeSpec
from pathbudget.probes.errors import Fault
from pathbudget.probes.icmp import ICMP
from pathbudget.probes.stream.probe import TOKEN_STREAM
from pathbudget.probes.table import BUILTIN, check_options, probe_table
from pathbudget.probes.tcp import TCP
from pathbudget.probes.tls.probe import TLS
from pathbudget.probes.upload.probe import UPLOAD


@pytest.fixture(autouse=True)
def fresh_table() -> Iterator[None]:
    probe_table.cache_clear()
    yield
    probe_table.cache_clear()


def test_the_built_in_probes_stand_under_their_names() -> None:
    assert {name: spec.name for name, spec in BUILTIN.items()} == {
        name: name
        for name in (
            *("icmp", "tcp", "tls", "stamp", "quic", "http"),
            *("dns", "upload", "token_stream", "completion", "trace"),
        )
    }
    assert dict(probe_table()) == dict(BUILTIN)


def test_defaults_fit_their_own_options() -> None:
    for spec in BUILTIN.values():
        given = {name: option.default for name, option in spec.options.items()}
        assert check_options(spec, given, "f", "w") == (given, [])
        assert all(option.help for option in spec.options.values())


def test_every_probe_states_its_cost() -> None:
    for spec in BUILTIN.values():
        cost = spec.cost(check_options(spec, {}, "", "")[0])
        assert cost.packets >= 2
        assert cost.bytes >= 40 * cost.packets


def test_missing_options_get_their_defaults() -> None:
    options, faults = check_options(TLS, {"mode": "resumed"}, "f", "w")
    assert faults == []
    assert options == {name: option.default for name, option in TLS.options.items()} | {
        "mode": "resumed"
    }


def test_every_fault_is_told_at_once() -> None:
    raw = {"mode": "warm", "verify": "yes", "retries": 3, "alpn": "h2"}
    options, faults = check_options(TLS, raw, "campaign.toml", "probe[1].options")
    place = "probe[1].options"
    assert faults == [
        Fault("campaign.toml", f"{place}.mode", "'warm' is none of the choices",
              "one of cold, resumed, early_data"),
        Fault("campaign.toml", f"{place}.verify", "'yes' is a string", "true or false"),
        Fault("campaign.toml", f"{place}.retries", "probe tls has no option 'retries'",
              "one of " + ", ".join(sorted(TLS.options))),
    ]  # fmt: skip
    assert options["alpn"] == "h2"


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (15, "15 is out of range"),
        (8_973, "8973 is out of range"),
        (True, "True is true or false"),
        (56.0, "56.0 is a number"),
        ("56", "'56' is a string"),
        ([56], "[56] is a list"),
    ],
)
def test_wrong_sizes(value: object, problem: str) -> None:
    options, (fault,) = check_options(ICMP, {"payload_bytes": value}, "f", "icmp")
    assert fault == Fault("f", "icmp.payload_bytes", problem, "a whole number from 16 to 8972")
    assert options["payload_bytes"] == 56


def test_bounds_are_written_out() -> None:
    (fault,) = check_options(UPLOAD, {"bytes": -1}, "f", "")[1]
    assert fault.expected == "a whole number from 0 to 16777216"
    (fault,) = check_options(TOKEN_STREAM, {"underrun_rate": 0.0}, "f", "")[1]
    assert fault.expected == "a number from 0.000001 to 0.5"


def test_a_probe_has_its_say_of_options_together_and_of_none_that_is_wrong_already() -> None:
    faults = [Fault("", "gap", "with size", "none"), Fault("", "size", "with gap", "none")]
    options = {"gap": OptionSpec(int, 1, ""), "size": OptionSpec(int, 1, "")}
    spec = ProbeSpec("x", "", 1, TCP.open, TCP.cost, options, check=lambda _: faults)
    told = check_options(spec, {"gap": "wide"}, "f", "w")[1]
    assert [(fault.where, fault.problem) for fault in told] == [
        ("w.gap", "'wide' is a string"),
        ("w.size", "with gap"),
    ]


def test_a_probe_without_options() -> None:
    bare = ProbeSpec("bare", "", 1, TCP.open, TCP.cost)
    assert check_options(bare, {"port": 1}, "f", "")[1] == [
        Fault("f", "port", "probe bare has no option 'port'", "no options")
    ]


def test_a_number_option_takes_whole_numbers_too() -> None:
    spec = ProbeSpec("x", "", 1, TCP.open, TCP.cost, {"gap": OptionSpec(float, 0.5, "", maximum=2)})
    assert check_options(spec, {"gap": 1}, "", "") == ({"gap": 1}, [])
    (fault,) = check_options(spec, {"gap": 3}, "", "")[1]
    assert fault.expected == "a number, 2 or less"
    (fault,) = check_options(spec, {"gap": True}, "", "")[1]
    assert fault.problem == "True is true or false"
    (fault,) = check_options(spec, {"gap": float("nan")}, "", "")[1]
    assert fault.problem == "nan is out of range"


class Point:
    """An entry point as a package registers it."""

    def __init__(self, name: str, loaded: object) -> None:
        self.name = name
        self.value = f"theirs:{name}"
        self._loaded = loaded

    def load(self) -> object:
        if isinstance(self._loaded, Exception):
            raise self._loaded
        return self._loaded


def test_third_parties_add_probes_and_cannot_replace_ours(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    theirs = ProbeSpec("ntp", "", 1, TCP.open, TCP.cost)
    points = [
        Point("ntp", theirs),
        Point("icmp", theirs),
        Point("broken", ImportError("no module named theirs")),
        Point("odd", "not a spec"),
    ]

    def entry_points(**group: str) -> list[Any]:
        assert group == {"group": "pathbudget.probes"}
        return points

    monkeypatch.setattr(importlib.metadata, "entry_points", entry_points)
    found = probe_table()
    assert sorted(found) == sorted([*BUILTIN, "ntp"])
    assert found["icmp"] is ICMP
    assert found["ntp"] is theirs
    told = [record.getMessage() for record in caplog.records]
    assert [line.split("'")[1] for line in told] == ["icmp", "broken", "odd"]


def test_the_table_is_read_once() -> None:
    assert probe_table() is probe_table()
    assert table.ENTRY_POINT_GROUP == "pathbudget.probes"
