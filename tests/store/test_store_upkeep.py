"""Compacting, verifying, listing, and journals that were left over."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pathbudget.agents.store.journal import Journal
from pathbudget.agents.store.parquet import Store
from pathbudget.agents.store.recovery import commit_journal, recover
from pathbudget.agents.store.transaction import transaction
from pathbudget.probes.errors import SpoolError, StoreError
from pathbudget.probes.record import Measurement

Make = Callable[..., Measurement]


@pytest.fixture
def records(make: Make) -> list[Measurement]:
    return [make(number, day=number // 4) for number in range(8)]


@pytest.fixture
def store(tmp_path: Path, records: list[Measurement]) -> Store:
    """Eight files in two dates."""
    store = Store(tmp_path / "store")
    for record in records:
        store.write([record])
    return store


def spooled(store: Store, *measurements: Measurement) -> Path:
    with Journal.create(store.spool / f"{measurements[0].id}.jsonl") as journal:
        for series, measurement in enumerate(measurements):
            journal.begin(series, measurement)
            for sample in measurement.samples:
                journal.append(series, sample)
            journal.end(series, clock=None, noise=None, duration_ns=measurement.duration_ns)
    return journal.path


def table_files(store: Store) -> list[str]:
    return [path.parent.name for path in sorted(store.path.glob("samples/*/*.parquet"))]


def test_compacting_leaves_one_file_a_date_and_all_measurements(
    store: Store, records: list[Measurement]
) -> None:
    receipt = store.compact()
    assert receipt.dates == ("2025-12-01", "2025-12-02")
    assert (receipt.files_before, receipt.files_after) == (8, 2)
    assert table_files(store) == ["date=2025-12-01", "date=2025-12-02"]
    assert list(store.measurements()) == records
    assert store.verify() == []
    assert store.compact().dates == ()
    assert store.write(records).already_there == 8


def test_a_reader_under_way_is_not_disturbed(
    store: Store, records: list[Measurement], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pathbudget.agents.store.transaction._READER_WAIT_S", 0.2)
    reading = store.measurements()
    first = next(reading)
    with pytest.raises(StoreError, match="somebody is reading this store; try again later"):
        store.compact()
    assert [first, *reading] == records
    assert Store(store.path).compact().files_after >= 1
    assert list(store.measurements()) == records
    assert store.verify() == []


def test_a_date_with_a_damaged_file_is_left_as_it_is(
    store: Store, records: list[Measurement]
) -> None:
    damaged = next(store.path.glob("samples/date=2025-12-02/*.parquet"))
    damaged.write_bytes(damaged.read_bytes()[:-100])
    receipt = store.compact()
    assert receipt.dates == ("2025-12-01",)
    assert len(receipt.problems) == 1
    assert str(damaged) in receipt.problems[0]
    assert table_files(store).count("date=2025-12-02") == 4
    assert list(store.measurements(until_unix_ns=records[4].started_unix_ns)) == records[:4]


def what(store: Store) -> list[str]:
    return [problem.what for problem in store.verify()]


def test_verify_finds_nothing_in_a_sound_store(store: Store) -> None:
    assert store.verify() == []


def test_verify_finds_a_file_that_was_cut(store: Store) -> None:
    path = next(store.path.glob("measurements/*/*.parquet"))
    path.write_bytes(path.read_bytes()[:-5])
    (problem,) = store.verify()
    assert problem.path == path
    assert problem.what.startswith("cannot be read: ")


def test_verify_finds_a_flipped_bit(store: Store) -> None:
    path = next(store.path.glob("samples/*/*.parquet"))
    data = bytearray(path.read_bytes())
    data[60] ^= 0x10
    path.write_bytes(data)
    (problem,) = store.verify()
    assert problem.path == path


def test_verify_finds_missing_files(store: Store) -> None:
    samples = sorted(store.path.glob("samples/*/*.parquet"))
    measurements = sorted(store.path.glob("measurements/*/*.parquet"))
    samples[0].unlink()
    measurements[1].unlink()
    problems = {problem.path: problem.what for problem in store.verify()}
    assert problems[samples[1]] == "samples without their measurements"
    assert problems[samples[0]].startswith("cannot be read: ")
    assert len(problems) == 2


def test_verify_finds_rows_that_are_too_few_or_too_many(store: Store) -> None:
    few, many, *_ = sorted(store.path.glob("samples/*/*.parquet"))
    table = pq.read_table(few, partitioning=None)
    pq.write_table(table.slice(1), few)
    table = pq.read_table(many, partitioning=None)
    pq.write_table(pa.concat_tables([table, table]), many)
    problems = {problem.path: problem.what for problem in store.verify()}
    assert problems[few].startswith("damaged: measurement")
    assert problems[few].endswith("3 of 4 samples are there")
    assert problems[many] == "samples without their measurements at the end"


def test_a_damaged_file_is_an_error_for_a_reader_never_a_gap(store: Store) -> None:
    path = next(store.path.glob("samples/*/*.parquet"))
    table = pq.read_table(path, partitioning=None)
    pq.write_table(table.slice(0, 2), path)
    with pytest.raises(StoreError, match="2 of 4 samples are there"):
        list(store.measurements())


def test_verify_finds_what_does_not_belong(store: Store) -> None:
    (store.path / "samples" / "notes.txt").touch()
    (store.path / "measurements" / "date=2025-12-01" / "a.parquet.tmp").touch()
    assert [text[:19] for text in what(store)] == ["does not belong her"] * 2


def test_verify_finds_a_measurement_under_a_wrong_date(store: Store) -> None:
    for table in ("samples", "measurements"):
        (store.path / table / "date=2025-12-01").rename(store.path / table / "date=2024-02-29")
    texts = what(store)
    assert len(texts) == 4
    assert all(text.endswith("is filed under a wrong date") for text in texts)


def test_verify_finds_leftovers_of_dead_writers_only(store: Store) -> None:
    left = store.path / ".staging" / "building-append-1"
    left.mkdir()
    with transaction(store.layout, "append", lambda step: None):
        left.mkdir()
        assert store.verify() == []
    assert what(store) == [
        f"left by a writer that was killed; `pathbudget store recover {store.path}` finishes it"
    ]


def test_a_left_over_journal_is_found_and_recovered(
    store: Store, records: list[Measurement], make: Make
) -> None:
    path = spooled(store, make(9), records[0], make(10))
    (problem,) = store.verify()
    assert problem.path == path
    receipt, left_alone = recover(store)
    assert (receipt.written, receipt.already_there, left_alone) == (2, 1, [])
    assert list(store.measurements()) == sorted(
        [*records, make(9), make(10)], key=lambda record: record.id
    )
    assert not path.exists()
    assert store.verify() == []
    assert recover(store)[0].written == 0


def test_the_journal_of_a_living_writer_is_left_alone(store: Store, make: Make) -> None:
    with Journal.create(store.spool / "a.jsonl") as journal:
        journal.begin(0, make(9))
        with pytest.raises(SpoolError, match="a running campaign is writing it; left alone"):
            commit_journal(journal.path, store)
        _, left_alone = recover(store)
        assert len(left_alone) == 1
        assert store.verify() == []
    assert recover(store)[0].written == 1


def test_one_journal_that_cannot_be_read_does_not_stop_the_others(store: Store, make: Make) -> None:
    newer = store.spool / "0.jsonl"
    newer.write_bytes(b'{"journal":2}\n')
    spooled(store, make(9))
    receipt, left_alone = recover(store)
    assert receipt.written == 1
    assert left_alone == [
        f"{newer}: written by a newer pathbudget; journal version 2, this one reads up to 1"
    ]
    assert newer.exists()


def test_a_damaged_journal_is_kept_beside_after_its_good_lines_are_stored(
    store: Store, make: Make
) -> None:
    path = spooled(store, make(9))
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:3], b"rubbish\n", *lines[4:]]))
    receipt, _ = recover(store)
    assert receipt.written == 1
    assert receipt.problems[0].startswith(f"{path}: line 4: no valid JSON")
    kept = {record.id: len(record.samples) for record in store.measurements()}
    assert kept[make(9).id] == 3
    assert not path.exists()
    assert (store.spool / f"{path.name}.damaged").exists()
    assert what(store) == ["journal with unreadable lines; the readable ones are in the tables"]


def test_a_journal_cut_off_by_a_kill_leaves_nothing_behind(store: Store, make: Make) -> None:
    path = spooled(store, make(9))
    path.write_bytes(path.read_bytes()[:-10])
    receipt, _ = recover(store)
    assert receipt.written == 1
    assert len(receipt.problems) == 1
    assert list(store.spool.iterdir()) == []


def test_a_journal_that_was_never_ready_is_cleared_away(store: Store) -> None:
    left = store.spool / ".a.jsonl.17.new"
    left.touch()
    recover(store)
    assert not left.exists()


def test_list_campaigns(store: Store, records: list[Measurement], make: Make) -> None:
    store.write([make(20, campaign="later", probe="tls", day=5)])
    first, second = store.list_campaigns()
    assert (first.name, first.measurements, first.samples, first.failures) == (
        "evaluation",
        8,
        32,
        8,
    )
    assert first.vantages == ("region-0-a", "region-1-a", "region-2-a")
    assert first.targets == ("site-0-t", "site-1-t")
    assert first.first_unix_ns == records[0].started_unix_ns
    assert first.last_unix_ns == records[-1].started_unix_ns + records[-1].duration_ns
    assert (second.name, second.probes) == ("later", ("tls",))


def test_many_small_files_need_few_open_files(
    tmp_path: Path, make: Make, with_open_files: Callable[[int, Callable[[], str]], str]
) -> None:
    store = Store(tmp_path / "many")
    for first in range(40):
        store.write([make(number, samples=1) for number in range(first, 200, 40)])

    def read() -> str:
        return str(sum(1 for _ in store.measurements()))

    assert with_open_files(30, read) == "200"


@pytest.mark.parametrize("table", ["measurements", "samples"])
def test_a_parquet_file_of_something_else_is_named_by_every_reader(
    store: Store, table: str
) -> None:
    stranger = next(iter(sorted(store.path.glob(f"{table}/*/*.parquet"))))
    pq.write_table(pa.table({"answer": [42]}), stranger)
    assert any(problem.path.name == stranger.name for problem in store.verify())
    with pytest.raises(StoreError, match=stranger.name):
        list(store.measurements())
    receipt = store.compact()
    assert any(stranger.name in problem for problem in receipt.problems)
