"""`pathbudget status`: by state folders, and through a real bus."""

import asyncio
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from tests.fleet.conftest import Served, entered, serving
from typer.testing import CliRunner, Result

from pathbudget.agents.bus.subjects import (
    OPERATOR,
    PLANS,
    RESULTS,
    STATUS,
    key_subject,
)
from pathbudget.agents.cli.main import application
from pathbudget.agents.collector import status as collector_status
from pathbudget.agents.collector.status import CollectorStatus
from pathbudget.agents.daemon.status import STATUS as STATUS_FILE
from pathbudget.agents.daemon.status import AgentStatus, write_status
from pathbudget.agents.spool.entry import SpoolState
from pathbudget.agents.watch.fleet_look import NS, FleetLook, look_at_folders
from pathbudget.agents.watch.fleet_table import ago, table
from pathbudget.probes.record import ClockQuality, SyncState

GOOD = ClockQuality(SyncState.SYNCHRONISED, source="chrony", offset_bound_ns=1_000_000)


def status_of(agent: str = "office", age_s: float = 1, **more: object) -> AgentStatus:
    found: dict[str, object] = {
        "agent": agent,
        "software": "pathbudget 1.2.3",
        "at_unix_ns": time.time_ns() - round(age_s * NS),
        "spool": SpoolState(waiting_samples=1_234, dropped_samples={"age": 7, "bytes": 1}),
        "serial": 3,
        "series": 500,
        "clock": GOOD,
    }
    return AgentStatus(**(found | more))  # type: ignore[arg-type]


def folder_of(path: Path, status: AgentStatus) -> Path:
    path.mkdir()
    write_status(path / STATUS_FILE, status)
    return path


def run(*words: object) -> Result:
    return CliRunner().invoke(application, ["status", *map(str, words)])


def shown(path: Path, status: AgentStatus) -> str:
    return table(look_at_folders([folder_of(path, status)]))


def test_a_healthy_agent_is_a_row(tmp_path: Path) -> None:
    lines = shown(tmp_path / "a", status_of()).splitlines()
    assert lines[0].split() == [
        *("agent", "state", "seen", "series", "waiting", "dropped", "clock", "version"),
    ]
    assert lines[1].split()[:2] == ["office", "measuring"]
    assert lines[1].split()[3:] == ["500", "1,234", "8", "ok", "1.2.3"]
    assert len(lines) == 2


@pytest.mark.parametrize(
    ("more", "state"),
    [
        ({"quiet": True}, "quiet"),
        ({"expired": True}, "expired"),
        ({"spent": True}, "no bytes left"),
        ({"serial": None}, "no plan"),
        ({"trouble": "no space left"}, "in trouble"),
        ({"age_s": 29}, "measuring"),
        ({"age_s": 31}, "silent"),
    ],
)
def test_the_state_is_the_worst_that_is_so(
    tmp_path: Path, more: dict[str, object], state: str
) -> None:
    (one,) = look_at_folders([folder_of(tmp_path / "a", status_of(**more))]).agents  # type: ignore[arg-type]
    assert one.state == state


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"age_s": 7_300}, "office: silent since 2h, 1,234 samples waited there"),
        ({"trouble": "no space"}, "office: nothing is handed on: no space"),
        ({"problems": ("a\nb\x1b[31m",)}, "office: a; b\\x1b[31m"),
    ],
)
def test_what_is_wrong_is_a_sentence(tmp_path: Path, more: dict[str, object], said: str) -> None:
    assert said in shown(tmp_path / "a", status_of(**more))  # type: ignore[arg-type]


def test_clocks_that_nobody_sets_and_those_of_the_future_are_told(tmp_path: Path) -> None:
    free = status_of(clock=ClockQuality(SyncState.UNSYNCHRONISED))
    assert " unsynchronised " in shown(tmp_path / "a", free)
    assert " unknown " in shown(tmp_path / "b", status_of(clock=None))
    assert "5.0 s ahead" in shown(tmp_path / "c", status_of(age_s=-5.04))


def test_eighty_columns_hold_the_longest_words(tmp_path: Path) -> None:
    spool = SpoolState(waiting_samples=10**12, dropped_samples={"age": 10**12})
    long = status_of("a" * 63, spool=spool, series=10**6, clock=None, expired=True,
                     software="pathbudget 100.200.300rc4")  # fmt: skip
    lines = shown(tmp_path / "a", long).splitlines()
    assert max(map(len, lines[:2])) <= 80
    assert "+" in lines[1], "what is cut shows it"


def test_times_are_short() -> None:
    assert [ago(s * NS) for s in (0, 119, 120, 7_199, 7_200, 172_799, 172_800)] == [
        *("0s", "119s", "2m", "119m", "2h", "47h", "2d")
    ]


def test_the_command_prints_table_and_json(tmp_path: Path) -> None:
    folders = [folder_of(tmp_path / name, status_of(name)) for name in ("b-2", "a-1")]
    words = [word for folder in folders for word in ("--state", folder)]
    result = run(*words)
    assert result.exit_code == 0
    assert [line.split()[0] for line in result.stdout.splitlines()[1:]] == ["a-1", "b-2"]
    look = msgspec.json.decode(run(*words, "--json").stdout, type=FleetLook)
    assert [one.agent for one in look.agents] == ["a-1", "b-2"]
    status = look.agents[0].status
    assert status is not None
    assert status.spool.dropped_samples == {"age": 7, "bytes": 1}


def test_no_folder_and_no_status_are_told(tmp_path: Path) -> None:
    assert run("--state", tmp_path / "none").exit_code == 5
    (tmp_path / STATUS_FILE).write_text("{")
    result = run("--state", tmp_path)
    assert result.exit_code == 5
    assert "no status of an agent of this version" in result.output
    assert run("--state", tmp_path, "--login", tmp_path / "x").exit_code == 2


def test_a_collector_is_a_line(tmp_path: Path) -> None:
    now = time.time_ns()
    told = CollectorStatus(
        "pathbudget 1", now, now, 1_234, duplicates=2, rejected={"garbage": 3},
        written_unix_ns=now - 7 * NS, trouble="no space left",
    )  # fmt: skip
    collector_status.write_status(tmp_path / collector_status.STATUS, told)
    result = run("--store", tmp_path)
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "collector: 1,234 measurements stored, the last 7s ago; 2 came twice, 3 rejected",
        "collector: no space left",
    ]
    both = run("--store", tmp_path, "--state", folder_of(tmp_path / "a", status_of()))
    assert len(both.stdout.splitlines()) == 4
    assert run("--store", tmp_path / "none").exit_code == 5


def test_live_looks_again_until_it_is_told_to_stop(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "a", status_of())
    words = ["status", "--live", "--json", "--every", "0.5", "--state", str(folder)]
    command = [sys.executable, "-m", "pathbudget.agents.cli.main", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        seen = [msgspec.json.decode(process.stdout.readline(), type=FleetLook).at_unix_ns]
        write_status(folder / STATUS_FILE, status_of(quiet=True))
        while True:
            look = msgspec.json.decode(process.stdout.readline(), type=FleetLook)
            seen.append(look.at_unix_ns)
            if look.agents[0].state == "quiet":
                break
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
    assert seen == sorted(seen)


@pytest.fixture(scope="module")
def bus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    yield from serving(tmp_path_factory.mktemp("looked-at"))


def login(bus: Served) -> tuple[str, Path]:
    return "--login", bus.folder.login_file(OPERATOR)


async def says(bus: Served, *statuses: AgentStatus, results: int = 0) -> None:
    """Agents say how they are, and hand on results. It is as old as it was, once it connects."""
    began_ns = time.time_ns()
    for status in statuses:
        async with entered(bus.member(status.agent)) as agent:
            stream = agent.client.jetstream()
            at_ns = status.at_unix_ns + time.time_ns() - began_ns
            now = msgspec.structs.replace(status, at_unix_ns=at_ns)
            await stream.publish(key_subject(STATUS, status.agent), msgspec.json.encode(now))
            for _ in range(results):
                await stream.publish(f"{RESULTS}.{status.agent}", b"result")
            assert agent.said == []


@pytest.mark.needs("nats-server")
async def test_through_the_bus_agents_lag_and_clocks_are_seen(bus: Served) -> None:
    fast = status_of("fast-clock", age_s=-30)
    slow = status_of("slow-clock", age_s=4_000)
    await says(bus, status_of("steady", age_s=0), fast, slow, results=3)
    async with entered(bus.login(OPERATOR)) as operator:
        stream = operator.client.jetstream()
        await stream.publish(key_subject(PLANS, "unborn"), b"a plan")
    result = await asyncio.to_thread(run, *login(bus))
    assert result.exit_code == 0, result.output
    rows = {line.split()[0]: line for line in result.stdout.splitlines()}
    assert " measuring " in rows["steady"]
    assert " ok " in rows["steady"]
    assert re.search(r" (29|30)\.\d s ahead ", rows["fast-clock"])
    assert " measuring " in rows["slow-clock"], "it has just been heard, whatever its clock says"
    assert re.search(r" 4,00\d\.\d s beh", rows["slow-clock"])
    assert "never seen" in rows["unborn"]
    assert "9 results wait on the bus" in result.stdout
    look = json.loads((await asyncio.to_thread(run, *login(bus), "--json")).stdout)
    assert look["bus"]["waiting"] == 9
    ahead = {one["agent"]: one.get("clock_ahead_ns", 0) / NS for one in look["agents"]}
    assert ahead["fast-clock"] == pytest.approx(30, abs=2)
    assert ahead["slow-clock"] == pytest.approx(-4_000, abs=2)


@pytest.mark.needs("nats-server")
async def test_garbage_in_a_heartbeat_hides_no_other_agent(bus: Served) -> None:
    async with entered(bus.member("broken")) as agent:
        stream = agent.client.jetstream()
        await stream.publish(key_subject(STATUS, "broken"), b"\xff{")
    await says(bus, status_of("whole"))
    result = await asyncio.to_thread(run, *login(bus))
    assert "unreadable" in result.stdout
    assert "broken: says something that this version does not know" in result.stdout
    assert "whole" in result.stdout


@pytest.mark.needs("nats-server")
def test_who_is_no_operator_and_a_bus_that_is_away_are_told(bus: Served, tmp_path: Path) -> None:
    bus.member("curious")
    result = run("--login", bus.folder.path / "curious.login.toml")
    assert result.exit_code == 5
    assert "the bus does not tell" in result.output
    assert "permissions violation" in result.output
    text = bus.folder.login_file(OPERATOR).read_text()
    away = tmp_path / "away.toml"
    away.touch(mode=0o600)
    away.write_text(text.replace("127.0.0.1:", "127.0.0.2:"))
    assert run("--login", away).exit_code == 5
