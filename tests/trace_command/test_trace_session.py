"""Whole runs on a fake network: rounds, JSON lines, what a command line may not say."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from tests.trace_command.conftest import SECOND, TARGET, Walk, World, plain
from typer.testing import CliRunner

from pathbudget.agents.cli.exits import ExitCode
from pathbudget.agents.cli.main import application
from pathbudget.agents.ping.hosts import parse_ping_host
from pathbudget.agents.trace.known import Knowing, Known, Whose
from pathbudget.agents.trace.names import HopNames
from pathbudget.agents.trace.options import TraceOptions, check
from pathbudget.agents.trace.sink import news_of
from pathbudget.probes.errors import ConfigError
from pathbudget.probes.record import AddressFamily, Sample


def test_rounds_begin_at_once_and_repeat(world: World) -> None:
    world.walks[TARGET] = Walk(plain)
    began = world.clock.monotonic_ns()
    session = world.run([TARGET], count=3)
    (state,) = session.sink.states()
    assert (state.rounds, state.reached) == (3, 3)
    assert world.clock.monotonic_ns() - began < 25 * SECOND
    assert [one["round"] for one in world.objects("round")] == [1, 2, 3]
    assert [one["type"] for one in world.lines[:1] + world.lines[-1:]] == ["begin", "summary"]


def test_samples_are_written_in_the_words_of_the_record(world: World) -> None:
    world.walks[TARGET] = Walk(plain)
    world.run([TARGET], count=1)
    read = [
        msgspec.convert({k: v for k, v in one.items() if k not in ("type", "host")}, Sample)
        for one in world.objects("sample")
    ]
    assert len([one for one in read if one.metric == "hop_rtt"]) == 30
    assert len([one for one in read if one.metric == "rtt"]) == 1


def test_a_round_line_has_the_path_of_every_flow_and_every_hop(world: World) -> None:
    world.walks[TARGET] = Walk(plain)
    origins = {"10.2.0.1": Whose("AS65012", "carrier-b")}
    knowing = Knowing(lambda asked: {k: v for k, v in origins.items() if k in asked})
    world.run([TARGET], count=1, knowing=knowing)
    (line,) = world.objects("round")
    assert [tuple(one["hops"]) for one in line["paths"]] == [plain(0, flow) for flow in range(6)]
    assert [len(hop["addresses"]) for hop in line["hops"]] == [1, 2, 2, 1, 1]
    fourth = line["hops"][3]["addresses"][0]
    assert (fourth["as"], fourth["as_name"]) == ("AS65012", "carrier-b")
    assert fourth["rtt"]["n"] == 6
    assert (line["reached"], line["complete"], line["confidence"]) == (True, True, 0.95)


def test_lines_of_text_say_what_moved_and_what_only_fluttered(world: World) -> None:
    def script(trace: int, flow: int) -> Sequence[str | None]:
        way = "10.9.0.1" if trace > 1 else "10.2.0.1"
        return ("10.0.0.1", f"10.1.0.{(flow + trace) % 2 + 1}", way, TARGET)

    world.walks[TARGET] = Walk(script)
    session = world.run([TARGET], count=2)
    (state,) = session.sink.states()
    assert state.latest is not None
    assert news_of(state, state.latest).endswith("6 flows, 4 hops; flutter at 2")
    session = world.run([TARGET], count=4)
    (state,) = session.sink.states()
    assert state.latest is not None
    assert "; moved at 3; flutter at 2" in news_of(state, state.latest) + "; flutter at 2"
    assert [hop["change"] for hop in world.objects("round")[-1]["hops"]] == [
        None,
        "flutter",
        "moved",
        None,
    ]


def test_a_host_whose_name_does_not_resolve_is_said(world: World) -> None:
    world.walks[TARGET] = Walk(plain)
    session = world.run(["nowhere.invalid", TARGET], count=1)
    assert session.answered
    first = next(iter(session.sink.states()))
    assert first.rounds == 1
    assert not first.reached


def test_options_reach_the_probe(world: World) -> None:
    world.walks[TARGET] = Walk(plain)
    world.run([TARGET], count=1, protocol="tcp", flows=8, confidence=0.99, max_hops=12)
    assert world.opened == [
        {"protocol": "tcp", "flows": 8, "confidence": 0.99, "max_hops": 12},
    ]
    with pytest.raises(ConfigError, match="max_hops"):
        world.run([TARGET], count=1, max_hops=65)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"interval_ns": SECOND // 2}, "--interval"),
        ({"protocol": "icmp", "port": 443}, "--port"),
        ({"family": AddressFamily.IPV6}, "HOST"),
    ],
    ids=["fast", "icmp-port", "family"],
)
def test_what_makes_no_sense_is_refused(options: dict[str, Any], word: str) -> None:
    with pytest.raises(ConfigError, match=word):
        check(TraceOptions(hosts=[parse_ping_host(TARGET)], **options))


@pytest.mark.parametrize(
    "arguments",
    [
        [TARGET, "--once", "--count", "3"],
        [TARGET, "-4", "-6"],
        [TARGET, "--interval", "soon"],
        ["224.0.0.1"],
        [f"{TARGET}:70000"],
        [TARGET, "--prefixes", "/nowhere/prefixes.csv", "--once"],
    ],
    ids=["once", "families", "interval", "multicast", "port", "prefixes"],
)
def test_a_wrong_command_line_is_one_message_and_sends_nothing(arguments: list[str]) -> None:
    done = CliRunner().invoke(application, ["trace", *arguments])
    assert done.exit_code == ExitCode.USAGE, done.output
    assert "Traceback" not in done.output


def test_names_are_asked_once_each_and_never_awaited() -> None:
    asked: list[str] = []

    def look_up(address: str) -> str:
        asked.append(address)
        return "gw.example" if address == "10.0.0.1" else ""

    names = HopNames(look_up)
    for _ in range(3):
        names.ask("10.0.0.1")
        names.ask("10.0.0.2")
    while len(asked) < 2 or not names.names:
        pass
    assert sorted(asked) == ["10.0.0.1", "10.0.0.2"]
    assert names.names == {"10.0.0.1": "gw.example"}
    assert Knowing().about([]) == Known()


def test_one_hop_is_no_hops(world: World) -> None:
    world.walks[TARGET] = Walk(lambda trace, flow: (TARGET,))
    session = world.run([TARGET], count=1)
    (state,) = session.sink.states()
    assert state.first is not None
    assert news_of(state, state.first).endswith(", 6 flows, 1 hop")
