"""pandas and DuckDB read the folder without us, and find the numbers, units and failures."""

from collections.abc import Callable
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow.parquet as pq
import pytest

from pathbudget.agents.store.parquet import Store
from pathbudget.probes.columns import MEASUREMENT_COLUMNS, SAMPLE_COLUMNS
from pathbudget.probes.record import Measurement

Make = Callable[..., Measurement]


@pytest.fixture
def records(make: Make) -> list[Measurement]:
    return [make(number, samples=9, day=number // 4) for number in range(8)]


@pytest.fixture
def folder(tmp_path: Path, records: list[Measurement]) -> Path:
    store = Store(tmp_path / "store")
    store.write(records[:5])
    store.write(records[3:])
    return store.path


def test_pandas_reads_the_samples(folder: Path, records: list[Measurement]) -> None:
    frame = pd.read_parquet(folder / "samples").sort_values(["measurement_id", "position"])
    samples = [sample for record in records for sample in record.samples]
    assert len(frame) == len(samples) == 72
    assert frame.sent_unix_ns.tolist() == [sample.sent_unix_ns for sample in samples]
    values = [None if pd.isna(value) else int(value) for value in frame.value_ns]
    assert values == [sample.value_ns for sample in samples]
    lost = frame[frame.value_ns.isna()]
    assert len(lost) == 16
    assert set(lost.failure_kind) == {"timeout"}
    assert set(lost.failure_stage) == {"wait"}
    assert set(lost.failure_detail) == {"no answer in 1 s"}
    assert frame[frame.value_ns.notna()].failure_kind.isna().all()
    assert sorted(set(frame.date.astype(str))) == ["2025-12-01", "2025-12-02"]


def test_pandas_groups_the_samples_without_a_join(folder: Path) -> None:
    frame = pd.read_parquet(folder / "samples")
    frame["rtt_ms"] = frame.value_ns / 1e6
    median = frame.groupby(["region", "site"]).rtt_ms.median()
    assert len(median) == 6
    assert median.between(15.0, 15.00001).all()


def test_pandas_reads_the_measurements(folder: Path, records: list[Measurement]) -> None:
    frame = pd.read_parquet(folder / "measurements").sort_values("id")
    assert frame.id.tolist() == [record.id for record in records]
    assert frame.sample_count.tolist() == [9] * 8
    assert frame.failure_count.tolist() == [2] * 8
    assert frame.options.tolist() == ['{"size":56,"ratio":0.5}'] * 8
    assert [dict(counters) for counters in frame.counters] == [r.counters for r in records]
    assert set(frame.vantage_latitude) == {32.75}
    assert frame.noise_floor_ns.isna().all()


def test_duckdb_reads_both_tables(folder: Path, records: list[Measurement]) -> None:
    with duckdb.connect() as connection:
        rows = connection.execute(
            f"""
            select region, site, probe, count(*) as sent, count(value_ns) as answered,
                   count(*) filter (failure_kind = 'timeout') as timeouts,
                   min(value_ns), max(date)
            from read_parquet('{folder}/samples/**/*.parquet', hive_partitioning=true)
            group by all order by all
            """
        ).fetchall()
        joined = connection.execute(
            f"""
            select count(*), sum(counters['foreign']), min(options->>'size')
            from read_parquet('{folder}/measurements/**/*.parquet', hive_partitioning=true)
            where date = '2025-12-02'
            """
        ).fetchall()
    assert len(rows) == 6
    assert sum(row[3] for row in rows) == 72
    assert sum(row[4] for row in rows) == 56
    assert sum(row[5] for row in rows) == 16
    assert {row[6] for row in rows} == {15_000_000}
    assert {str(row[7]) for row in rows} == {"2025-12-01", "2025-12-02"}
    assert joined == [(4, sum(record.counters["foreign"] for record in records[4:]), "56")]


def test_a_file_carries_units_meanings_and_its_schema_version(folder: Path) -> None:
    for table, columns in (("samples", SAMPLE_COLUMNS), ("measurements", MEASUREMENT_COLUMNS)):
        path = next((folder / table).glob("*/*.parquet"))
        with pq.ParquetFile(path) as file:
            schema = file.schema_arrow
            assert file.metadata.row_group(0).column(0).compression == "ZSTD"
        assert schema.metadata is not None
        assert schema.metadata[b"pathbudget.schema"] == b"5"
        for column in columns:
            metadata = schema.field(column.name).metadata
            assert metadata is not None
            assert metadata[b"meaning"].decode() == column.meaning
            assert metadata[b"unit"].decode() == column.unit
