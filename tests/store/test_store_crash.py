"""kill -9 at every step of a write and of a compaction: nothing lost, nothing twice."""

import signal
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from pathbudget.agents.store import exchange as exchange_module
from pathbudget.agents.store.journal import Journal
from pathbudget.agents.store.parquet import Store
from pathbudget.agents.store.recovery import commit_journal, recover
from pathbudget.probes.errors import StoreError
from pathbudget.probes.record import Measurement

Make = Callable[..., Measurement]
KilledAt = Callable[[str, Callable[[Callable[[str], None]], object]], int]

STEPS = ["staged", "decided", "published samples", "published measurements", "cleaned"]


def sample_rows(store: Store) -> list[tuple[str, int]]:
    """What a reader that knows nothing of us sees: samples of each measurement."""
    files = f"{store.path}/samples/**/*.parquet"
    query = f"select measurement_id, count(*) from '{files}' group by 1 order by 1"
    with duckdb.connect() as connection:
        return connection.execute(query).fetchall()


def expected_rows(records: list[Measurement]) -> list[tuple[str, int]]:
    return [(record.id, len(record.samples)) for record in records]


@pytest.mark.parametrize("step", STEPS)
def test_a_writer_killed_at_any_step(
    tmp_path: Path, make: Make, killed_at: KilledAt, step: str
) -> None:
    store = Store(tmp_path / "store")
    store.write([make(0)])
    more = [make(number, day=number % 2) for number in range(1, 5)]
    signal_number = killed_at(step, lambda die: Store(store.path, at_step=die).write(more))
    assert signal_number == signal.SIGKILL
    first, everything = [make(0)], [make(0), *more]
    everything.sort(key=lambda record: record.id)
    seen = list(store.measurements())
    assert seen == (first if step == "staged" else everything)
    assert store.write(everything).already_there == len(seen)
    assert list(store.measurements()) == everything
    assert sample_rows(store) == expected_rows(everything)
    assert store.verify() == []


@pytest.mark.parametrize("step", STEPS)
def test_a_plain_reader_never_sees_a_sample_twice(
    tmp_path: Path, make: Make, killed_at: KilledAt, step: str
) -> None:
    store = Store(tmp_path / "store")
    records = [make(number) for number in range(4)]
    killed_at(step, lambda die: Store(store.path, at_step=die).write(records))
    if step in STEPS[2:]:
        assert sample_rows(store) == expected_rows(records)
    store.write(records)
    assert sample_rows(store) == expected_rows(records)


@pytest.mark.parametrize("swap", ["atomic", "in two steps"])
@pytest.mark.parametrize("step", STEPS)
def test_a_compaction_killed_at_any_step(
    tmp_path: Path,
    make: Make,
    killed_at: KilledAt,
    monkeypatch: pytest.MonkeyPatch,
    step: str,
    swap: str,
) -> None:
    store = Store(tmp_path / "store")
    records = [make(number) for number in range(6)]
    for record in records:
        store.write([record])
    if swap == "in two steps":
        monkeypatch.setattr(exchange_module, "_RENAME_EXCHANGE", 1 << 9)  # refused with EINVAL
    signal_number = killed_at(step, lambda die: Store(store.path, at_step=die).compact())
    assert signal_number == signal.SIGKILL
    assert sample_rows(store) == expected_rows(records)
    assert list(store.measurements()) == records
    store.write(records)
    assert sample_rows(store) == expected_rows(records)
    assert store.verify() == []


def test_an_exchange_in_two_steps_that_was_cut_in_half_is_completed(
    tmp_path: Path, make: Make, killed_at: KilledAt
) -> None:
    store = Store(tmp_path / "store")
    for number in range(3):
        store.write([make(number)])
    killed_at("decided", lambda die: Store(store.path, at_step=die).compact())
    (staged,) = (store.path / ".staging").glob("ready-*/samples/date=*")
    folder = store.path / "samples" / staged.name
    folder.rename(exchange_module._aside(staged))
    assert list(store.measurements()) == [make(number) for number in range(3)]
    assert len(list(folder.iterdir())) == 1
    assert store.verify() == []


def test_half_an_exchange_that_cannot_be_completed_is_never_read_as_less(
    public_folder: Path,
    make: Make,
    killed_at: KilledAt,
    as_ordinary_user: Callable[[Callable[[], str]], str],
) -> None:
    store = Store(public_folder / "store")
    for number in range(2):
        store.write([make(number)])
    killed_at("decided", lambda die: Store(store.path, at_step=die).compact())
    (staged,) = (store.path / ".staging").glob("ready-*/measurements/date=*")
    (store.path / "measurements" / staged.name).rename(exchange_module._aside(staged))
    (store.path / ".writer.lock").chmod(0o444)

    def read() -> str:
        try:
            return str(list(store.measurements()))
        except StoreError as error:
            return str(error)

    assert "a compaction was interrupted here" in as_ordinary_user(read)
    (store.path / ".writer.lock").chmod(0o644)
    assert list(store.measurements()) == [make(0), make(1)]


@pytest.mark.parametrize("step", STEPS[1:4])
def test_a_read_only_store_is_readable_after_a_crash(
    public_folder: Path,
    make: Make,
    killed_at: KilledAt,
    as_ordinary_user: Callable[[Callable[[], str]], str],
    step: str,
) -> None:
    """Whoever may not write cannot finish the work, and still reads nothing wrong."""
    store = Store(public_folder / "store")
    for number in range(3):
        store.write([make(number)])
    killed_at(step, lambda die: Store(store.path, at_step=die).compact())
    for path in [store.path, *store.path.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)

    def read() -> str:
        return str([record.id for record in store.measurements()])

    assert as_ordinary_user(read) == str([make(number).id for number in range(3)])
    for path in [store.path, *store.path.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)


@pytest.mark.parametrize("step", STEPS)
def test_a_journal_whose_commit_was_killed_is_committed_once(
    tmp_path: Path, make: Make, killed_at: KilledAt, step: str
) -> None:
    store = Store(tmp_path / "store")
    store.check_writable()
    with Journal.create(store.spool / "a.jsonl") as journal:
        journal.begin(0, make(1, samples=0))
        for sample in make(1).samples:
            journal.append(0, sample)
        journal.end(0, clock=None, noise=None, duration_ns=make(1).duration_ns)
    signal_number = killed_at(
        step, lambda die: commit_journal(journal.path, Store(store.path, at_step=die))
    )
    assert signal_number == signal.SIGKILL
    assert journal.path.exists()
    receipt, left_alone = recover(store)
    assert (receipt.written + receipt.already_there, left_alone) == (1, [])
    assert not journal.path.exists()
    assert list(store.measurements()) == [make(1)]
    assert sample_rows(store) == expected_rows([make(1)])
    assert store.verify() == []
