"""Feeds at work together: journal, store, freshness, and the commands over them."""

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pathbudget.agents.bgp.feeds_file import load_feeds
from pathbudget.agents.bgp.listening import Hearing, listen
from pathbudget.agents.cli.main import application
from pathbudget.agents.store.parquet import Store
from pathbudget.analysis.routes.bgp_state import RouteTable
from pathbudget.analysis.routes.model import FeedEvent, FeedState
from pathbudget.probes.bgp.record import UpdateKind

RECORDED = Path(__file__).resolve().parents[1] / "bgp_wire" / "exabgp_session.jsonl"


def feeds_file(folder: Path, more: str = "") -> Path:
    path = folder / "feeds.toml"
    path.write_text(
        'prefixes = ["203.0.113.0/24"]\nsettle = "1s"\n'
        '[[feed]]\nname = "bird"\nkind = "mrt"\nfile = "updates.mrt"\n' + more
    )
    return path


async def test_what_is_heard_is_in_the_store_at_the_end(tmp_path: Path, wire: Any) -> None:
    store, stop = Store(tmp_path / "store"), asyncio.Event()
    store.check_writable()
    events: list[Any] = []
    hearing = Hearing(load_feeds(feeds_file(tmp_path)), store, events.append)
    task = asyncio.ensure_future(listen(hearing, store, stop))
    (tmp_path / "updates.mrt").write_bytes(wire.mrt())
    async with asyncio.timeout(20):
        while not hearing.table.prefixes():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    (journal,) = store.spool.glob("*.updates")
    assert b"203.0.113.0/24" in journal.read_bytes()
    stop.set()
    await task
    assert (hearing.stored, list(store.spool.iterdir())) == (1, [])
    assert [update.prefix for update in store.updates()] == ["203.0.113.0/24"]
    (live,) = events
    assert (live.before, live.after) == (FeedState.NEVER, FeedState.LIVE)


def test_other_prefixes_are_not_kept(tmp_path: Path, talk: Any) -> None:
    store = Store(tmp_path / "store")
    store.check_writable()
    hearing = Hearing(load_feeds(feeds_file(tmp_path)), store)
    hearing.hear([talk("announce", "203.0.113.128/25"), talk("announce", "198.51.100.0/24")])
    hearing.hear([talk("peer_down", "")])
    hearing.commit()
    assert [update.prefix for update in store.updates()] == ["203.0.113.128/25", ""]


def test_a_feed_that_is_lost_or_silent_is_in_the_store_for_later(tmp_path: Path, talk: Any) -> None:
    """Whoever reads the store needs no configuration to know that silence was no stability."""
    store = Store(tmp_path / "store")
    store.check_writable()
    told: list[Any] = []
    hearing = Hearing(load_feeds(feeds_file(tmp_path, 'stale_after = "1ms"\n')), store, told.append)
    hearing.hear([talk("announce", "203.0.113.0/24")])
    time.sleep(0.05)
    hearing.tick()
    hearing.connected("bird", "reading again")
    hearing.lost("bird", "the disk is full")
    hearing.lost("bird", "once more")
    hearing.commit()
    kinds = [(one.kind, one.detail) for one in store.updates() if not one.peer_address]
    assert kinds == [
        (UpdateKind.PEER_DOWN, "stale: no message"),
        (UpdateKind.PEER_UP, "reading again"),
        (UpdateKind.PEER_DOWN, "the disk is full"),
    ]
    later = RouteTable()
    again = [event for update in store.updates() for event in later.see(update)]
    states = [event.after for event in again if isinstance(event, FeedEvent)]
    assert states == [FeedState.STALE, FeedState.LIVE, FeedState.DOWN]
    assert [event.after for event in told] == [FeedState.LIVE, *states]


@pytest.fixture
def talk() -> Any:
    from pathbudget.probes.bgp.record import FeedKind, RouteUpdate

    numbers = iter(range(1000))

    def say(kind: str, prefix: str) -> RouteUpdate:
        now = time.time_ns()
        return RouteUpdate(
            id=f"{next(numbers):04}",
            feed="bird",
            feed_kind=FeedKind.MRT,
            peer_address="192.0.2.1",
            peer_asn=64500,
            kind=UpdateKind(kind),
            time_unix_ns=now,
            arrived_unix_ns=now,
            prefix=prefix,
            as_path="64500" if prefix else "",
        )

    return say


def run(*words: object) -> Any:
    return CliRunner().invoke(application, ["bgp", *map(str, words)])


def test_check_says_what_is_asked_for(tmp_path: Path) -> None:
    done = run("check", feeds_file(tmp_path, 'stale_after = "10m"\n'))
    assert done.stdout == "bird: mrt, stale after 600 s\n-: 203.0.113.0/24\n"
    (tmp_path / "bad.toml").write_text('[[feed]]\nkind = "session"\n')
    assert run("check", tmp_path / "bad.toml").exit_code == 2


def test_import_and_show(tmp_path: Path, wire: Any) -> None:
    store, dump = tmp_path / "store", tmp_path / "dump.mrt"
    dump.write_bytes(wire.mrt() + wire.mrt()[:40])
    first = run("import", dump, RECORDED, "--store", store, "--json")
    files = [json.loads(line) for line in first.stdout.splitlines()]
    assert [(one["format"], one["updates"], one["unreadable"]) for one in files] == [
        ("MRT", 1, 1),
        ("exabgp", 10, 0),
    ]
    again = run("import", dump, RECORDED, "--store", store)
    assert "0 updates stored" in again.stdout
    assert "11 were there already" in again.stdout
    shown = [
        json.loads(line) for line in run("show", "--store", store, "--json").stdout.splitlines()
    ]
    assert shown[-1]["event"] == "status"
    assert [one["feed"] for one in shown[-1]["feeds"]] == ["dump.mrt", RECORDED.name]
    withdrawn = [one for one in shown if one.get("kind") == "withdrawn"]
    assert {one["prefix"] for one in withdrawn} == {"10.200.1.0/24", "10.200.2.0/24"}
    text = run("show", "--store", store, "--prefix", "203.0.113.0/24").stdout
    assert "64500" in text
    assert all(len(line) <= 80 for line in text.splitlines())


def test_only_what_was_asked_for_is_imported(tmp_path: Path) -> None:
    done = run("import", RECORDED, "--store", tmp_path / "store", "--prefix", "10.200.2.0/24")
    assert done.exit_code == 0
    prefixes = {update.prefix for update in Store(tmp_path / "store").updates()}
    assert prefixes == {"", "10.200.2.0/24"}
    assert run("import", RECORDED, "--store", tmp_path, "--prefix", "nowhere").exit_code == 2


def test_what_cannot_be_imported_is_said(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.gz"
    wrong.write_bytes(b"\x1f\x8b\x08\x00broken")
    done = run("import", wrong, tmp_path / "none", "--store", tmp_path / "store")
    assert done.exit_code == 4
    assert f"{tmp_path / 'none'}: cannot be read: " in done.stderr
    assert str(wrong) in done.stderr


def test_a_run_tells_events_as_json_lines(tmp_path: Path, wire: Any) -> None:
    (tmp_path / "updates.mrt").write_bytes(wire.mrt())
    done = run("run", feeds_file(tmp_path), "--store", tmp_path / "store", "--json",
               "--duration", 1)  # fmt: skip
    assert done.exit_code == 0, done.output
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [one["event"] for one in lines] == ["feed", "status"]
    assert lines[-1]["prefixes"][0]["path"] == "64500"
