"""BGP updates in the store: once each, whole or not at all, and covered by every command."""

import json
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import msgspec
import pandas as pd
import pytest
from typer.testing import CliRunner

from pathbudget.agents.cli.main import application
from pathbudget.agents.store.parquet import Store
from pathbudget.agents.store.recovery import recover
from pathbudget.agents.store.update_files import UpdateSelection
from pathbudget.agents.store.update_journal import UpdateJournal
from pathbudget.probes.bgp.record import FeedKind, RouteUpdate, UpdateKind
from pathbudget.probes.errors import StoreError

KilledAt = Callable[[str, Callable[[Callable[[str], None]], object]], int]
NOON = 1_764_590_400_000_000_000
DAY = 86_400_000_000_000
STEPS = ["staged", "decided", "published bgp_updates", "cleaned"]


def update(number: int, *, day: int = 0, **fields: Any) -> RouteUpdate:
    time = NOON + day * DAY + number * 1_000_000_000
    known: dict[str, Any] = {
        "id": f"{time:016x}-000000-00000-{number:012x}",
        "feed": "edge",
        "feed_kind": FeedKind.SESSION,
        "peer_address": f"192.0.2.{number % 3}",
        "peer_asn": 64500 + number % 3,
        "kind": UpdateKind.ANNOUNCE,
        "time_unix_ns": time,
        "arrived_unix_ns": time + 5,
        "prefix": f"203.0.{number}.0/24",
        "as_path": "64500 {64501,64502}",
        "communities": ("65000:120",),
        "path_id": number or None,
        **fields,
    }
    return RouteUpdate(**known)


def test_what_is_written_is_read_and_written_once(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    updates = [update(number, day=number % 2) for number in range(6)]
    assert store.write_updates(reversed(updates)).written == 6
    again = Store(store.path).write_updates([*updates, update(9)])
    assert (again.written, again.already_there) == (1, 6)
    expected = sorted([*updates, update(9)], key=lambda one: one.id)
    assert list(store.updates()) == expected
    assert store.verify() == []


def test_every_field_survives(tmp_path: Path) -> None:
    full = update(1, origin="igp", next_hop="192.0.2.9", local_preference=0, med=7,
                  collector="rrc00", detail="said")  # fmt: skip
    bare = RouteUpdate("0", "f", FeedKind.MRT, "", 0, UpdateKind.PEER_DOWN, NOON, NOON)
    store = Store(tmp_path / "store")
    store.write_updates([full, bare])
    assert sorted(store.updates(), key=lambda one: one.id) == [bare, full]


def test_selections(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    down = update(8, kind=UpdateKind.PEER_DOWN, prefix="", as_path="", path_id=None)
    store.write_updates([update(1), update(2, feed="ris"), update(3, day=1), down])
    prefix = UpdateSelection(prefixes=frozenset(("203.0.1.0/24",)))
    assert list(store.updates(prefix)) == [update(1), down]
    since = UpdateSelection(since_unix_ns=NOON + 2_000_000_000, until_unix_ns=NOON + DAY)
    assert [one.feed for one in store.updates(since)] == ["ris", "edge"]
    assert list(store.updates(UpdateSelection(feed="ris"))) == [update(2, feed="ris")]


@pytest.mark.parametrize("step", STEPS)
def test_a_writer_killed_at_any_step(tmp_path: Path, killed_at: KilledAt, step: str) -> None:
    store = Store(tmp_path / "store")
    store.write_updates([update(0)])
    more = [update(number, day=number % 2) for number in range(1, 5)]
    died = killed_at(step, lambda die: Store(store.path, at_step=die).write_updates(more))
    assert died == signal.SIGKILL
    everything = sorted([update(0), *more], key=lambda one: one.id)
    seen = list(store.updates())
    assert seen == ([update(0)] if step == "staged" else everything)
    assert store.write_updates(everything).already_there == len(seen)
    assert list(store.updates()) == everything
    assert store.verify() == []


@pytest.mark.parametrize("step", STEPS)
def test_a_compaction_killed_at_any_step(tmp_path: Path, killed_at: KilledAt, step: str) -> None:
    store = Store(tmp_path / "store")
    updates = [update(number) for number in range(6)]
    for one in updates:
        store.write_updates([one])
    assert killed_at(step, lambda die: Store(store.path, at_step=die).compact()) == signal.SIGKILL
    assert list(store.updates()) == updates
    store.compact()
    assert store.compact().files_before == 0
    assert len(list((store.path / "bgp_updates").rglob("*.parquet"))) == 1
    assert list(store.updates()) == updates
    assert store.verify() == []


def test_a_store_without_the_table_is_read_and_gets_one(
    tmp_path: Path, make: Callable[..., Any]
) -> None:
    """As every store of an earlier version is."""
    store = Store(tmp_path / "store")
    store.write([make(0)])
    assert not (store.path / "bgp_updates").exists()
    assert list(store.updates()) == []
    assert (store.list_feeds(), store.verify()) == ([], [])
    assert store.compact().files_before == 0
    store.write_updates([update(1)])
    assert list(store.updates()) == [update(1)]
    assert len(list(store.measurements())) == 1


def test_damage_is_named(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    (file,) = store.write_updates([update(number) for number in range(3)]).files
    data = file.read_bytes()
    file.write_bytes(data[: len(data) // 2])
    (problem,) = store.verify()
    assert str(problem).startswith(str(file))
    with pytest.raises(StoreError, match="cannot be read"):
        list(store.updates())
    store.write_updates([update(7, day=3)])
    assert "left as it is" not in " ".join(store.compact().problems)


def test_files_that_were_copied_or_misplaced_are_found(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    (file,) = store.write_updates([update(1)]).files
    (file.parent / "copy.parquet").write_bytes(file.read_bytes())
    other = file.parent.parent / "date=2030-01-01"
    other.mkdir()
    (other / "moved.parquet").write_bytes(file.read_bytes())
    told = " ".join(str(problem) for problem in store.verify())
    assert "is there twice" in told
    assert "filed under a wrong date" in told


def test_an_update_from_the_far_future_is_filed_under_its_arrival(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    (file,) = store.write_updates([update(1, time_unix_ns=NOON + 900 * DAY)]).files
    assert file.parent.name == "date=2025-12-01"
    assert store.verify() == []


def test_a_killed_feed_leaves_a_journal_that_is_recovered(
    tmp_path: Path, run_script: Callable[..., "subprocess.CompletedProcess[str]"]
) -> None:
    store = Store(tmp_path / "store")
    store.check_writable()
    lines = tmp_path / "updates.jsonl"
    lines.write_bytes(b"\n".join(msgspec.json.encode(update(number)) for number in range(3)))
    program = """
import os, msgspec
from pathbudget.agents.store.update_journal import UpdateJournal
from pathbudget.probes.bgp.record import RouteUpdate
journal = UpdateJournal.begin(Store(sys.argv[1]).spool, 1)
for line in open(sys.argv[2], "rb"):
    journal.append(msgspec.json.decode(line, type=RouteUpdate))
os.kill(os.getpid(), 9)
"""
    assert run_script(program, store.path, lines).returncode == -signal.SIGKILL
    (path,) = store.spool.glob("*.updates")
    assert "not in the tables yet" in str(store.verify()[0])
    with path.open("ab") as file:
        file.write(b'{"id":"cut')
    receipt, left_alone = recover(store)
    assert (receipt.updates, left_alone) == (3, [])
    assert receipt.problems == (f"{path}: line 5: cut off; passed over",)
    assert list(store.updates()) == [update(number) for number in range(3)]
    assert not path.exists()
    assert recover(store)[0].updates == 0


def test_a_journal_in_use_is_left_alone(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    store.check_writable()
    with UpdateJournal.begin(store.spool, 1) as journal:
        journal.append(update(1))
        receipt, left_alone = recover(store)
        assert receipt.updates == 0
        assert len(left_alone) == 1
    assert recover(store)[0].updates == 1


def test_others_read_the_table(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    store.write_updates([update(number, day=number % 2) for number in range(4)])
    frame = pd.read_parquet(store.path / "bgp_updates")
    assert sorted(frame.prefix) == [f"203.0.{number}.0/24" for number in range(4)]
    query = f"select count(*), min(as_path) from '{store.path}/bgp_updates/**/*.parquet'"
    with duckdb.connect() as connection:
        assert connection.execute(query).fetchall() == [(4, "64500 {64501,64502}")]


def run(*words: object) -> Any:
    return CliRunner().invoke(application, ["store", *map(str, words)])


def test_the_commands_cover_updates(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    store.write_updates([update(1), update(2, feed="=ris")])
    listed = json.loads(run("list", store.path, "--table", "bgp", "--format", "json").stdout)
    assert [(one["feed"], one["updates"], one["peers"]) for one in listed] == [
        ("=ris", 1, 1),
        ("edge", 1, 1),
    ]
    assert "edge" in run("list", store.path).stdout
    assert json.loads(run("list", store.path, "--format", "json").stdout) == []
    rows = run("export", store.path, "--table", "bgp").stdout.splitlines()
    assert len(rows) == 3
    assert "'=ris" in rows[2]
    exported = run("export", store.path, "--table", "bgp", "--format", "jsonl", "--feed", "edge")
    assert msgspec.json.decode(exported.stdout, type=RouteUpdate) == update(1)
    target = tmp_path / "updates.parquet"
    run("export", store.path, "--table", "bgp", "--format", "parquet", "--output", target)
    assert len(pd.read_parquet(target)) == 2
    assert run("verify", store.path).stdout == "No problem found.\n"


def test_filters_that_the_table_has_no_column_for_are_refused(tmp_path: Path) -> None:
    Store(tmp_path / "store").write_updates([update(1)])
    assert run("export", tmp_path / "store", "--table", "bgp", "--site", "a").exit_code == 2
    assert run("list", tmp_path / "store", "--feed", "edge").exit_code == 2
