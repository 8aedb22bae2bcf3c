"""A host that is restarted while its agent writes: the folder as it was at some moment, or less.

Copies of the folder are made at random moments while an agent measures and its collector is away.
Each is opened as a start opens it. What a power cut takes beside is cut off the copy's files.

A copy is no snapshot: files are read one after the other while they grow. Journals are copied
first, the sums of the spool next, its entries last, so what moves meanwhile is there twice, which
an agent has to tell anyway, and never not at all.
"""

import asyncio
import os
import random
import shutil
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.faults.one_agent import OneAgent, numbers_of, plan_of

from pathbudget.agents.daemon.handover import Handover
from pathbudget.agents.spool.entry import SpoolState
from pathbudget.agents.spool.spool import Spool
from pathbudget.probes.codec import decode_line
from pathbudget.probes.record import Measurement

MOMENTS = 25


@dataclass
class Copy:
    """The folder of an agent, and how many samples there were for certain as the copy began."""

    folder: Path
    made: int


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> list[Copy]:
    """Made of one agent that rolls its journal every half second."""
    folder, target = tmp_path_factory.mktemp("agent"), tmp_path_factory.mktemp("copies")
    one = OneAgent(folder)
    one.uplink.away = True
    rng, found = random.Random(1), list[Copy]()

    def work() -> None:
        for number in range(MOMENTS):
            time.sleep(rng.uniform(0.05, 0.5))
            copy = Copy(target / str(number), one.made)
            copy_folder(folder, copy.folder)
            found.append(copy)

    one.run(plan_of(10_000_000, roll_ns=500_000_000), work)
    return found


def copy_folder(folder: Path, target: Path) -> None:
    for name in ("open", "spool"):
        (target / name).mkdir(parents=True)
    files = [*sorted((folder / "open").glob("*.jsonl")), folder / "spool" / "checkpoint"]
    for path in (*files, *sorted((folder / "spool").glob("*.segment"))):
        with suppress(FileNotFoundError):  # moved into the spool meanwhile
            shutil.copyfile(path, target / path.relative_to(folder))


def samples_in(data: bytes) -> int:
    """Whole lines of a journal that are samples."""
    lines = data.splitlines(keepends=True)
    return sum(line.startswith(b'{"in":') and line.endswith(b"\n") for line in lines)


def started(folder: Path) -> tuple[list[Measurement], SpoolState]:
    """What an agent that starts there has to deliver, and how it counts."""
    with Spool.open(folder / "spool") as spool:
        asyncio.run(Handover(folder / "open", spool).finish())
        entries = spool.waiting(0, 100_000)
        state = spool.state()
    assert not [*(folder / "open").glob("*.jsonl")]
    assert state.made_samples == (
        state.acknowledged_samples + state.waiting_samples + sum(state.dropped_samples.values())
    )
    found = [decode_line(entry.payload) for entry in entries]
    assert len({one.id for one in found}) == len(found)
    return found, state


def test_everything_that_the_kernel_had_is_there_once(copies: list[Copy], tmp_path: Path) -> None:
    moved = 0
    for number, copy in enumerate(copies):
        folder = tmp_path / str(number)
        shutil.copytree(copy.folder, folder)
        found, state = started(folder)
        sent = numbers_of(found)
        assert len(sent) == len(set(sent))
        assert {*sent} >= {*range(copy.made)}
        assert state.waiting_samples == sum(len(one.samples) for one in found)
        moved += bool(state.waiting_entries)
        again, same = started(folder)
        assert (again, same) == (found, state)
    assert moved > MOMENTS // 2


def test_what_a_cut_takes_is_all_that_is_missing_and_nothing_comes_twice(
    copies: list[Copy], tmp_path: Path
) -> None:
    rng = random.Random(2)
    for number, copy in enumerate(copies):
        whole = tmp_path / f"{number}"
        shutil.copytree(copy.folder, whole)
        everything = numbers_of(started(whole)[0])
        for path in sorted(copy.folder.rglob("*.jsonl")) + sorted(copy.folder.rglob("*.segment")):
            folder = tmp_path / f"{number}-{path.name}"
            shutil.copytree(copy.folder, folder)
            cut = folder / path.relative_to(copy.folder)
            data = cut.read_bytes()
            os.truncate(cut, length := rng.randrange(len(data) + 1))
            found, state = started(folder)
            sent = numbers_of(found)
            assert len(sent) == len(set(sent))
            missing = {*everything} - {*sent}
            assert {*sent} <= {*everything}
            if path.suffix == ".jsonl":
                assert len(missing) <= samples_in(data) - samples_in(data[:length])
                assert not missing or missing == {*range(min(missing), 1 + max(everything))}
            else:
                torn = state.dropped_samples.get("torn", 0)
                assert sum(len(one.samples) for one in found) + torn == state.made_samples
