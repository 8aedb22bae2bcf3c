"""A store that grows, rules, a webhook: what is told, over restarts and while nobody listens."""

import json
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from tests.alerts.conftest import AT, MINUTE, Hook, a_heartbeat, echoes, serve
from typer.testing import CliRunner

from pathbudget.agents.alerts.memory import memory_of, read_memory
from pathbudget.agents.alerts.message import Message
from pathbudget.agents.alerts.rules_file import load_rules
from pathbudget.agents.alerts.watching import Places, Watcher
from pathbudget.agents.cli.main import application
from pathbudget.agents.daemon.status import STATUS, write_status
from pathbudget.agents.store.parquet import Store
from pathbudget.agents.store.reading import Selection
from pathbudget.probes.errors import StoreError
from pathbudget.probes.record import Measurement, SyncState

WAIT_S = 30.0
SILENCE = """
[[rule]]
name = "silence"
kind = "agent_silent"
[[rule]]
name = "clocks"
kind = "clock_bad"
"""


class Bench:
    """A watcher that can be started again, at any time."""

    def __init__(self, rules: Path, store: Path, states: tuple[Path, ...] = ()) -> None:
        self.rules, self.folder, self.states = rules, store, states
        self.said: list[str] = []
        self.told: list[Message] = []
        self.store = Store(store)
        self.watcher: Watcher | None = None

    def write(self, values: list[float | None], begin: int) -> None:
        self.store.write([echoes(values, begin)])

    def look(self, at: int) -> None:
        if self.watcher is None:
            places = Places(memory_of(self.rules), self.states)
            self.watcher = Watcher(
                load_rules(self.rules),
                self.store,
                places,
                at,
                say=self.said.append,
                tell=self.told.append,
            )
        self.watcher.look(at)
        self.watcher.finish(at, WAIT_S)

    def restart(self) -> None:
        self.watcher = None


@pytest.fixture
def bench(rules: Path, tmp_path: Path) -> Bench:
    return Bench(rules, tmp_path / "store")


def statuses(hook: Hook) -> list[tuple[str, str]]:
    """Rule and status of each alert that came, in order."""
    messages = [msgspec.json.decode(post.body, type=Message) for post in hook.posts]
    return [(one.rule, str(alert.status)) for one in messages for alert in one.alerts]


def slow_then_quick(bench: Bench, restarts: bool = False) -> None:
    """Ten minutes slow, eight minutes quick, a look every other minute."""
    for minute in range(0, 18, 2):
        bench.write([90.0 if minute < 10 else 10.0] * 120, AT + minute * MINUTE)
        bench.look(AT + (minute + 2) * MINUTE)
        if restarts:
            bench.restart()


@pytest.mark.parametrize("restarts", [False, True])
def test_a_line_at_risk_is_told_once_and_once_when_it_is_over(
    bench: Bench, hook: Hook, restarts: bool
) -> None:
    slow_then_quick(bench, restarts)
    assert statuses(hook) == [("lines", "firing"), ("lines", "resolved")]
    first, last = (msgspec.json.decode(post.body, type=Message) for post in hook.posts)
    assert first.alerts[0].key == "lines/page/chat/tokyo/frankfurt"
    assert first.alerts[0].numbers["long_burn_rate"] == pytest.approx(20)
    assert last.alerts[0].ended_unix_ns is not None


def test_a_receiver_that_is_away_gets_everything_later_and_holds_nobody(
    bench: Bench, hook: Hook, rules: Path
) -> None:
    away = Hook()
    server = serve(away)
    server.shutdown()
    server.server_close()
    more = f'[[receiver]]\nname = "away"\nkind = "webhook"\nurl = "{away.url}"\n'
    rules.write_text(rules.read_text() + more)
    slow_then_quick(bench)
    assert statuses(hook) == [("lines", "firing"), ("lines", "resolved")]
    assert "away: Connection refused" in bench.said
    kept = read_memory(memory_of(rules)).outboxes["away"]
    assert len(kept.waiting) == 2
    assert kept.counts.failed > 1
    bench.restart()
    away.hold.set()
    server = serve(away)
    try:
        bench.look(AT + 60 * MINUTE)
    finally:
        server.shutdown()
        server.server_close()
    assert [post.body for post in away.posts] == [post.body for post in hook.posts]
    assert read_memory(memory_of(rules)).outboxes["away"].counts.sent == 2


def test_one_that_does_not_answer_holds_none_of_the_others(
    bench: Bench, hook: Hook, rules: Path
) -> None:
    slow = Hook()
    server = serve(slow)  # `hold` is not set: it takes the request and says nothing
    text = f'[[receiver]]\nname = "slow"\nkind = "webhook"\nurl = "{slow.url}"\n'
    rules.write_text(rules.read_text() + text)
    bench.write([90.0] * 120, AT)
    watcher = Watcher(
        load_rules(rules), bench.store, Places(memory_of(rules)), AT + 2 * MINUTE,
        say=bench.said.append, tell=bench.told.append,
    )  # fmt: skip
    try:
        watcher.look(AT + 2 * MINUTE)
        while not hook.posts:
            watcher.couriers.settle(AT + 2 * MINUTE, 0.05)
        assert slow.posts == []
        assert len(watcher.couriers.outboxes["slow"].waiting) == 1
    finally:
        slow.hold.set()
        watcher.finish(AT + 3 * MINUTE, WAIT_S)
        server.shutdown()
        server.server_close()
    assert len(slow.posts) == 1


def test_what_a_receiver_refuses_for_good_is_given_up_and_said(bench: Bench, hook: Hook) -> None:
    hook.codes = [400]
    slow_then_quick(bench)
    assert any("given up" in one for one in bench.said)
    counts = read_memory(memory_of(bench.rules)).outboxes["hook"].counts
    assert (counts.sent, counts.lost) == (1, 1)


def a_status(folder: Path, name: str, at: int, sync: SyncState = SyncState.SYNCHRONISED) -> None:
    folder.mkdir(exist_ok=True)
    write_status(folder / STATUS, a_heartbeat(name, at, sync))


def test_agents_of_this_host_are_heard_by_their_status(
    rules: Path, tmp_path: Path, hook: Hook
) -> None:
    rules.write_text(rules.read_text() + SILENCE)
    folders = tuple(tmp_path / name for name in ("one", "two", "gone"))
    bench = Bench(rules, tmp_path / "store", folders)
    a_status(folders[0], "one", AT)
    a_status(folders[1], "two", AT)
    for minute in range(12):
        a_status(folders[1], "two", AT + minute * MINUTE, SyncState.UNSYNCHRONISED)
        bench.look(AT + minute * MINUTE)
    told = [(alert.key, str(alert.status)) for one in bench.told for alert in one.alerts]
    assert told.count(("silence/one", "firing")) == 1
    assert told.count(("clocks/two", "firing")) == 1
    assert not any(key == "silence/two" for key, _ in told)
    assert told.count((f"blind/{folders[2]}", "firing")) == 1
    a_status(folders[0], "one", AT + 12 * MINUTE)
    for minute in range(12, 19):
        a_status(folders[0], "one", AT + minute * MINUTE)
        bench.look(AT + minute * MINUTE)
    told = [(alert.key, str(alert.status)) for one in bench.told for alert in one.alerts]
    assert told.count(("silence/one", "resolved")) == 1


def test_a_memory_that_cannot_be_read_is_not_begun_anew(bench: Bench) -> None:
    memory_of(bench.rules).write_text("{")
    with pytest.raises(StoreError, match="no memory of alerts"):
        bench.look(AT)


def test_a_memory_that_cannot_be_written_is_told_and_ends_nothing(
    bench: Bench, hook: Hook, tmp_path: Path
) -> None:
    folder = tmp_path / "kept"
    folder.mkdir()
    bench.write([10.0] * 60, AT - MINUTE)
    watcher = Watcher(
        load_rules(bench.rules), bench.store, Places(folder / "memory.json"), AT,
        say=bench.said.append, tell=bench.told.append,
    )  # fmt: skip
    watcher.look(AT)
    (folder / "memory.json").unlink()
    folder.rmdir()
    for minute in range(1, 6):
        watcher.look(AT + minute * MINUTE)
    watcher.finish(AT + 6 * MINUTE, WAIT_S)
    assert statuses(hook) == [("blind", "firing")]
    assert sum("cannot be written" in one for one in bench.said) == 1
    folder.mkdir()
    for minute in range(6, 14):
        watcher.look(AT + minute * MINUTE)
    watcher.finish(AT + 14 * MINUTE, WAIT_S)
    assert statuses(hook) == [("blind", "firing"), ("blind", "resolved")]


def test_a_store_that_breaks_off_is_read_again_from_the_beginning(
    bench: Bench, hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    for minute in range(4):
        bench.write([90.0] * 60, AT + minute * MINUTE)
    whole = bench.store.select

    def broken(selection: Selection) -> Iterator[Measurement]:
        yield next(iter(whole(selection)))
        raise StoreError("the disk reports an error")

    monkeypatch.setattr(bench.store, "select", broken)
    bench.look(AT + 4 * MINUTE)
    monkeypatch.setattr(bench.store, "select", whole)
    bench.look(AT + 5 * MINUTE)
    (message,) = [one for one in bench.told if one.rule == "lines"]
    assert message.alerts[0].numbers["long_requests"] == 240


def run(*words: object) -> tuple[int, str]:
    result = CliRunner().invoke(application, ["alerts", *(str(word) for word in words)])
    return result.exit_code, result.output


def test_a_replay_says_what_would_have_been_told_twice_the_same(bench: Bench, hook: Hook) -> None:
    slow_then_quick(bench)
    sent = len(hook.posts)
    code, said = run("replay", bench.rules, "--store", bench.folder, "--json")
    assert code == 0
    lines = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    assert [one["alerts"][0]["status"] for one in lines] == ["firing", "resolved"]
    assert run("replay", bench.rules, "--store", bench.folder, "--json") == (code, said)
    assert len(hook.posts) == sent
    assert "2 messages, 0 firing" in said


def test_test_sends_a_marked_message_and_says_what_came_back(rules: Path, hook: Hook) -> None:
    assert run("test", rules) == (0, "hook: 200 OK\n")
    message = msgspec.json.decode(hook.posts[0].body, type=Message)
    assert message.test
    assert message.title.startswith("TEST, nothing happened: ")
    hook.codes = [500]
    code, said = run("test", rules, "--to", "hook")
    assert (code, said.splitlines()[0]) == (5, "hook: FAILED: 500 Internal Server Error")
    assert run("test", rules, "--to", "nobody")[0] == 2


def test_once_is_one_look_and_two_never_look_with_one_memory(bench: Bench, hook: Hook) -> None:
    bench.write([90.0] * 120, AT)  # long ago: it says nothing of now
    assert run("watch", bench.rules, "--store", bench.folder, "--once") == (0, "")
    assert read_memory(memory_of(bench.rules)).last_look_unix_ns > AT
    assert hook.posts == []
