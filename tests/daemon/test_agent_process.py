"""An agent as its users run it: a process that measures loopback, is killed, told, and told off."""

import contextlib
import json
import signal
import socket
from itertools import pairwise
from pathlib import Path

import pytest
from tests.daemon.conftest import POLICY, AgentHost, until
from tests.daemon.signed import sign_campaign

from pathbudget.probes.agent_health import AGENT

ROUNDS = 3


def test_everything_measured_is_in_the_store_after_it_was_told_to_stop(host: AgentHost) -> None:
    host.start()
    host.await_samples(40)
    assert host.end() == 0
    assert host.made() > len(host.samples()) >= 40
    assert all(sample.value_ns for sample in host.samples())
    sent = sorted(sample.seq for sample in host.samples())
    assert sent == list(range(len(sent)))
    (first,) = {one.campaign for one in host.stored()}
    assert first == "months"
    assert not [*host.folder.glob("pathbudget-agent/open/*")]
    (health,) = (one for one in host.everything() if one.probe == AGENT)
    said = {sample.metric: sample.value_ns for sample in health.samples}
    assert {*said} >= {"noise_floor", "timer_lateness", "clock_bound", "processor", "spool_age"}
    assert said["processor"]
    assert health.clock is not None
    assert health.noise is not None
    assert health.target.name == "office"


def test_killed_at_any_moment_it_loses_nothing_that_the_kernel_had(host: AgentHost) -> None:
    """Of each life: every probe up to the kill is in the store once, but for those still out."""
    for number in range(ROUNDS):
        host.start()
        host.await_samples(5 + 7 * number)
        host.end(signal.SIGKILL)
    host.start()
    host.await_samples(5)
    assert host.end() == 0
    assert host.made() > len(host.samples())
    ids = [one.id for one in host.stored()]
    assert len(ids) == len(set(ids)) >= ROUNDS
    lives: dict[object, list[int]] = {}
    for one in host.stored():
        lives.setdefault(one.options["run"], []).extend(sample.seq for sample in one.samples)
    assert len(lives) == ROUNDS + 1
    for sent in lives.values():
        assert sorted(sent) == list(range(len(sent)))
        assert len(sent) >= 5


def test_another_plan_is_taken_without_a_gap_and_a_wrong_one_changes_nothing(
    host: AgentHost,
) -> None:
    host.start()
    host.await_samples(20)
    (host.folder / "campaign.toml").write_text("name = 1\n")
    until(lambda: "going on as before" in host.log, "the refusal")
    host.write(interval="25ms")
    until(lambda: host.log.count("series of months") == 2, "the second plan")
    host.await_samples(20)
    assert host.end() == 0
    runs = {str(one.options["run"]) for one in host.stored()}
    assert len(runs) == 2
    host.made()
    sent = sorted(sample.sent_unix_ns for sample in host.samples())
    widest = max(after - before for before, after in pairwise(sent))
    assert widest < 2_000_000_000, "a reload that stops measuring would be seconds"


def test_a_reload_that_changes_nothing_leaves_out_not_one_beat(host: AgentHost) -> None:
    host.start()
    host.await_samples(10)
    host.send(signal.SIGHUP)
    until(lambda: "the same series, which go on" in host.log, "the reload")
    host.await_samples(30)
    assert host.end() == 0
    (only,) = {str(one.options["run"]) for one in host.stored()}
    assert only
    sent = sorted(sample.seq for sample in host.samples())
    assert sent == list(range(len(sent)))


def test_bytes_of_a_day_hold_while_it_runs_and_over_a_restart(host: AgentHost) -> None:
    """A policy that a plan was admitted by can allow less once something has been sent."""
    host.start()
    host.await_samples(40)
    host.write(policy=POLICY + "bytes_per_day = 2_000_000_000\n")
    assert host.end() == 0
    kept = host.folder / "pathbudget-agent" / "bytes.json"
    spent = json.loads(kept.read_bytes())
    assert spent["octets"] >= 40 * 100
    kept.write_text(json.dumps({**spent, "octets": 2_000_000_000 - 5_000}))
    host.start()
    until(lambda: "the bytes of today are used up" in host.log, "the end of the day's bytes")
    until(lambda: host.status.get("spent"), "the status")
    assert host.end() == 0
    assert 2_000_000_000 <= host.status["bytes_today"] < 2_000_100_000
    host.made()


def test_hangup_reads_the_policy_again_and_quiet_hours_are_quiet(host: AgentHost) -> None:
    host.start()
    host.await_samples(5)
    quiet = '[[quiet_hours]]\nzone = "UTC"\nfrom = "00:00"\nto = "23:59"\n'
    later = '[[quiet_hours]]\nzone = "UTC"\nfrom = "12:00"\nto = "11:59"\n'
    host.write(policy=POLICY + quiet + later)
    host.send(signal.SIGHUP)
    until(lambda: host.status.get("quiet"), "quiet hours")
    until(lambda: host.status["spool"].get("waiting_samples", 0) == 0, "all delivered")
    before = len(host.samples())
    host.write()
    host.send(signal.SIGHUP)
    until(lambda: "quiet hours are over" in host.log, "the end")
    host.await_samples(5)
    assert host.end() == 0
    assert len(host.samples()) > before
    assert "quiet hours begin" in host.log
    assert "quiet hours are over" in host.log


def test_out_of_policy_nothing_is_sent_and_the_reason_is_said(host: AgentHost) -> None:
    host.write(policy='allowed_networks = ["198.51.100.0/24"]\n')
    host.start()
    assert host.running[-1].wait(30) == 5
    assert "127.0.0.1 is in no allowed network" in host.log
    assert not [*host.folder.glob("pathbudget-agent/open/*")]


def test_a_second_agent_in_one_folder_is_refused(host: AgentHost) -> None:
    host.start()
    host.await_samples(1)
    host.start()
    assert host.running[-1].wait(30) == 5
    assert "another process has this spool" in host.log


def test_a_store_that_is_away_is_waited_for(host: AgentHost) -> None:
    """What is measured meanwhile is in the spool, and gets there when the store is back."""
    store = host.folder / "pathbudget-store"
    host.start("--store", "pathbudget-store")
    host.await_samples(5)
    assert host.end() == 0
    before = len(host.samples())
    away = host.folder / "away"
    host.start()
    host.await_samples(10)
    store.rename(away)
    store.write_text("no store")
    host.end(signal.SIGKILL)
    host.start()  # says that the store is none
    assert host.running[-1].wait(30) == 5
    store.unlink()
    away.rename(store)
    host.start()
    host.await_samples(1)
    assert host.end() == 0
    assert len(host.samples()) > before + 5
    host.made()


def test_systemd_is_told(host: AgentHost, manager: socket.socket) -> None:
    host.start(NOTIFY_SOCKET=str(Path(manager.getsockname())), WATCHDOG_USEC="600000")
    heard: list[str] = []

    def hear(word: str) -> bool:
        with contextlib.suppress(TimeoutError):
            heard.append(manager.recv(4096).decode())
        return any(word in one for one in heard)

    until(lambda: hear("READY=1"), "ready")
    until(lambda: sum("WATCHDOG=1" in one for one in heard) >= 3 or hear("nothing"), "alive")
    host.send(signal.SIGHUP)
    until(lambda: hear("RELOADING=1"), "reloading")
    heard.clear()
    until(lambda: hear("READY=1"), "done with it")
    assert host.end() == 0
    until(lambda: hear("STOPPING=1"), "stopping")
    assert "STATUS=measuring" in "\n".join(heard)


@pytest.mark.parametrize("trust", [True, False])
def test_a_signed_plan_needs_the_key_of_its_operator(host: AgentHost, *, trust: bool) -> None:

    path = sign_campaign(host.folder)
    host.start(*(("--trust", "operator.pub") if trust else ()), plan=path)
    if not trust:
        assert host.running[-1].wait(30) == 2
        assert "--trust" in host.log
        return
    host.await_samples(5)
    file = host.folder / path
    file.write_bytes(file.read_bytes().replace(b'"signature":"', b'"signature":"AAAA'))
    until(lambda: "plan refused (wrong_signature)" in host.log, "the refusal")
    host.end(signal.SIGKILL)
    host.start("--trust", "operator.pub", plan=path)  # goes on with what it took
    until(lambda: "going on with plan" in host.log, "the plan it had taken")
    host.await_samples(5)
    assert host.end() == 0
    sign_campaign(host.folder, serial=3)
    host.start("--trust", "operator.pub", plan=path)
    until(lambda: "plan refused (replayed)" in host.log, "an old plan")
    assert host.end() == 0
