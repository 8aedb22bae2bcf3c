"""A run without an end in pieces: every sample once, ids of their own, a full disk survived."""

import itertools
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest
from tests.daemon.conftest import measured

from pathbudget.agents.daemon.pieces import Pieces
from pathbudget.agents.store.journal import Journal, read_journal
from pathbudget.probes.errors import SpoolError
from pathbudget.probes.fake_time import FakeClock
from pathbudget.probes.record import Measurement, Sample

SECOND = 1_000_000_000


@dataclass
class Scene:
    folder: Path
    clock: FakeClock = field(default_factory=FakeClock)
    closed: list[Path] = field(default_factory=list[Path])
    lost: int = 0

    def __post_init__(self) -> None:
        numbers = itertools.count()
        self.pieces = Pieces(
            self.folder,
            clock=self.clock,
            new_id=lambda _: f"id-{next(numbers):04}",
            closed=self.closed.append,
            lost=self._lose,
        )

    def _lose(self, samples: int) -> None:
        self.lost += samples

    def found(self) -> list[Measurement]:
        return [one for path in self.closed for one in read_journal(path).measurements]


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def begun(name: str) -> tuple[Measurement, tuple[Sample, ...]]:
    whole = measured(name, 6)
    return msgspec.structs.replace(whole, samples=()), whole.samples


def test_pieces_share_the_samples_and_have_ids_and_times_of_their_own(scene: Scene) -> None:
    envelope, samples = begun("first")
    scene.pieces.begin(4, envelope)
    for number, sample in enumerate(samples):
        scene.pieces.append(4, sample)
        scene.pieces.count(4, "duplicate")
        scene.clock.advance(SECOND)
        if number % 2:
            scene.pieces.roll(None, None)
    scene.pieces.end(4, clock=None, noise=None, duration_ns=99 * SECOND)
    scene.pieces.close()
    found = scene.found()
    assert [one.samples for one in found] == [samples[:2], samples[2:4], samples[4:], ()]
    assert len({one.id for one in found}) == 4
    assert [one.duration_ns for one in found] == [2 * SECOND, 2 * SECOND, 2 * SECOND, 0]
    starts = [one.started_unix_ns for one in found]
    assert [after - before for before, after in itertools.pairwise(starts[1:])] == [2 * SECOND] * 2
    assert [one.counters.get("duplicate") for one in found] == [2, 2, 2, None]
    assert scene.lost == 0


def test_series_that_have_ended_are_in_no_later_piece(scene: Scene) -> None:
    for series in (1, 2):
        scene.pieces.begin(series, begun(f"s{series}")[0])
    scene.pieces.end(1, clock=None, noise=None, duration_ns=0)
    scene.pieces.roll(None, None)
    scene.pieces.close()
    first, second = (read_journal(path).measurements for path in scene.closed)
    assert (len(first), len(second)) == (2, 1)


def test_a_disk_that_takes_nothing_loses_samples_and_counts_them_until_the_next_piece(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    envelope, samples = begun("first")
    scene.pieces.begin(1, envelope)
    scene.pieces.append(1, samples[0])

    def full(*_: object) -> None:
        raise SpoolError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(Journal, "append", full)
        scene.pieces.append(1, samples[1])
        scene.pieces.append(1, samples[2])
        assert (scene.lost, scene.pieces.trouble) == (2, "the disk is full")
        patched.setattr(Journal, "create", full)
        scene.pieces.roll(None, None)
        scene.pieces.append(1, samples[3])
    assert scene.lost == 3
    scene.pieces.roll(None, None)
    scene.pieces.append(1, samples[4])
    scene.pieces.close()
    assert scene.pieces.trouble == ""
    kept = [sample for one in scene.found() for sample in one.samples]
    assert kept == [samples[0], samples[4]]
