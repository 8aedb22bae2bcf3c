"""From journals to the spool, to whoever keeps results: once, whatever happens in between."""

import asyncio
import contextlib
import os
import random
import signal
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.daemon.conftest import PATIENCE_S, measured

from pathbudget.agents.daemon.delivery import LONGEST_PAUSE_S, Delivery
from pathbudget.agents.daemon.handover import DAMAGED, Handover
from pathbudget.agents.daemon.store_uplink import WRITER, StoreUplink
from pathbudget.agents.spool.entry import Entry
from pathbudget.agents.spool.spool import Spool
from pathbudget.agents.store.journal import Journal
from pathbudget.agents.store.layout import Layout
from pathbudget.agents.store.locks import exclusive
from pathbudget.agents.store.parquet import Store
from pathbudget.probes.codec import decode_line
from pathbudget.probes.errors import StoreError


def journal(folder: Path, name: str, *ids: str) -> Path:
    with Journal.create(folder / f"{name}.jsonl") as one:
        for number, each in enumerate(ids):
            whole = measured(each)
            one.begin(number, whole)
            for sample in whole.samples:
                one.append(number, sample)
            one.end(number, clock=None, noise=None, duration_ns=5)
    return folder / f"{name}.jsonl"


def moved(folder: Path, spool: Spool) -> Handover:
    handover = Handover(folder, spool)
    asyncio.run(handover.finish())
    return handover


def test_what_a_process_left_is_moved_in_order_and_the_files_go(tmp_path: Path) -> None:
    journal(tmp_path, "b", "three")
    journal(tmp_path, "a", "one", "two")
    with Spool.open(tmp_path / "spool") as spool:
        assert moved(tmp_path, spool).problems == []
        entries = spool.waiting(0, 10)
        assert [one.id for one in entries] == ["one", "two", "three"]
        assert decode_line(entries[0].payload).samples == measured("one").samples
        assert spool.state().made_samples == 9
    assert not [*tmp_path.glob("*.jsonl")]


def test_a_crash_between_spool_and_journal_doubles_nothing(tmp_path: Path) -> None:
    path = journal(tmp_path, "a", "one", "two")
    kept = path.read_bytes()
    with Spool.open(tmp_path / "spool") as spool:
        moved(tmp_path, spool)
        path.write_bytes(kept)
        moved(tmp_path, spool)
        assert [one.id for one in spool.waiting(0, 10)] == ["one", "two"]
        assert spool.state().made_samples == 6
    assert not path.exists()


def test_a_journal_with_damage_is_moved_as_far_as_it_goes_and_kept(tmp_path: Path) -> None:
    path = journal(tmp_path, "a", "one", "two")
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2] = b'{"in":0,"sample":{broken}}\n'
    path.write_bytes(b"".join(lines))
    with Spool.open(tmp_path / "spool") as spool:
        handover = moved(tmp_path, spool)
        assert spool.state().made_samples == 5
    assert "line 3" in handover.problems[0]
    assert path.with_name(path.name + DAMAGED).exists()
    assert not path.exists()


def test_a_line_that_was_under_way_at_the_end_is_no_damage(tmp_path: Path) -> None:
    path = journal(tmp_path, "a", "one")
    path.write_bytes(path.read_bytes() + b'{"in":0,"sam')
    with Spool.open(tmp_path / "spool") as spool:
        assert "cut off" in moved(tmp_path, spool).problems[0]
    assert not [*tmp_path.glob("a.*")]


class Flaky:
    """Takes the first of what is sent, when it takes anything."""

    def __init__(self, *, broken: int) -> None:
        self.broken = broken
        self.octets_at_once = 1 << 20
        self.got: list[str] = []

    async def send(self, entries: Sequence[Entry]) -> Sequence[int]:
        if self.broken:
            self.broken -= 1
            raise StoreError("away")
        self.got.append(entries[0].id)
        return [entries[0].number]


def test_what_is_not_acknowledged_is_sent_again_and_pauses_grow(tmp_path: Path) -> None:
    async def deliver() -> list[float]:
        pauses: list[float] = []
        for _ in range(14):
            await delivery.once()
            pauses.append(delivery.pause_s)
        return pauses

    journal(tmp_path, "a", "one", "two", "three")
    with Spool.open(tmp_path / "spool") as spool:
        moved(tmp_path, spool)
        uplink = Flaky(broken=10)
        delivery = Delivery(spool, uplink, random.Random(1))
        pauses = asyncio.run(deliver())
        assert uplink.got == ["one", "two", "three"]
        assert spool.state().acknowledged_samples == 9
    for number, pause in enumerate(pauses[:10]):
        longest = min(LONGEST_PAUSE_S, 2**number)
        assert longest / 2 <= pause <= longest
    assert pauses[10] == 1.0


def test_a_store_has_everything_once_and_an_unreadable_entry_stops_nothing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    async def deliver() -> None:
        uplink = StoreUplink(tmp_path / "store")
        for _ in range(2):
            assert await uplink.send(entries) == [one.number for one in entries]
        uplink.close()

    journal(tmp_path, "a", "one", "two")
    with Spool.open(tmp_path / "spool") as spool:
        spool.append("garbage", b"{}", 1)
        moved(tmp_path, spool)
        entries = spool.waiting(0, 10)
        asyncio.run(deliver())
    assert capfd.readouterr().err.count("an entry of the spool cannot be read") == 2
    assert [one.id for one in Store(tmp_path / "store").measurements()] == ["one", "two"]


def test_a_writer_of_tables_that_dies_costs_nothing(tmp_path: Path) -> None:
    """The delivery it had is not acknowledged, and goes to the next one."""

    async def deliver() -> None:
        uplink = StoreUplink(tmp_path / "store")
        delivery = Delivery(spool, uplink, random.Random(1))
        layout = Layout(tmp_path / "store")
        layout.create()
        with exclusive(layout.writer_lock):  # or it might be done before it is killed
            sending = asyncio.create_task(delivery.once())
            async with asyncio.timeout(PATIENCE_S):
                while not sending.done():
                    for one in writers(tmp_path / "store"):
                        with contextlib.suppress(ProcessLookupError):
                            os.kill(one, signal.SIGKILL)
                    await asyncio.sleep(0.05)
            assert not await sending
        assert "the writer of tables" in delivery.trouble
        assert await delivery.once()
        uplink.close()

    journal(tmp_path, "a", "one", "two")
    with Spool.open(tmp_path / "spool") as spool:
        moved(tmp_path, spool)
        asyncio.run(deliver())
        assert spool.state().acknowledged_samples == 6
    assert [one.id for one in Store(tmp_path / "store").measurements()] == ["one", "two"]


def writers(store: Path) -> list[int]:
    """Processes of ours that write this store: that of an earlier test may be about to end."""
    found: list[int] = []
    for one in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
            for word in one.read_text().split():
                words = Path(f"/proc/{word}/cmdline").read_bytes().split(b"\0")
                if WRITER.encode() in words and os.fsencode(store) in words:
                    found.append(int(word))
    return found


def test_a_store_that_refuses_acknowledges_nothing(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("a file")
    with Spool.open(tmp_path / "spool") as spool:
        spool.append("one", b"{}", 1)
        delivery = Delivery(spool, StoreUplink(tmp_path / "store"), random.Random(1))
        assert not asyncio.run(delivery.once())
        assert delivery.trouble
        assert spool.state().waiting_samples == 1


def test_a_piece_in_which_nothing_was_due_is_not_kept(tmp_path: Path) -> None:
    with Journal.create(tmp_path / "a.jsonl") as one:
        one.begin(1, measured("empty", 0))
    with Spool.open(tmp_path / "spool") as spool:
        moved(tmp_path, spool)
        assert spool.state().waiting_entries == 0
