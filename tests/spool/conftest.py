"""Spools in a folder, under a clock that is moved by hand."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pathbudget.agents.spool.bounds import Bounds
from pathbudget.agents.spool.entry import SpoolState
from pathbudget.agents.spool.spool import Spool
from pathbudget.probes.fake_time import FakeClock

Open = Callable[..., Spool]


def balanced(state: SpoolState) -> bool:
    """Whether every sample is somewhere, once."""
    dropped = sum(state.dropped_samples.values())
    return state.made_samples == (
        state.acknowledged_samples + dropped + state.waiting_samples
    ) and all(number > 0 for number in state.dropped_samples.values())


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel has it, which is all that a test can see; hundreds of spools are opened."""

    def at_once(_: int) -> None:
        """Nothing to wait for."""

    monkeypatch.setattr(os, "fdatasync", at_once)
    monkeypatch.setattr(os, "fsync", at_once)


@pytest.fixture
def clock() -> FakeClock:
    """One clock for all spools of a test."""
    return FakeClock()


@pytest.fixture
def open_spool(tmp_path: Path, clock: FakeClock) -> Iterator[Open]:
    """Opens the spool of the test, whoever had it before."""
    opened: list[Spool] = []

    def open_it(bounds: Bounds | None = None, folder: Path | None = None) -> Spool:
        for spool in opened:
            spool.close()
        opened.append(Spool.open(folder or tmp_path / "spool", bounds, clock))
        return opened[-1]

    yield open_it
    for spool in opened:
        spool.close()
