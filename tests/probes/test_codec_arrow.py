"""The Arrow tables: what a column says of itself, older tables, damaged ones."""

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from pathbudget.probes.arrow_schema import (
    MEASUREMENT_SCHEMA,
    SAMPLE_SCHEMA,
    from_tables,
    measurement_table,
    sample_table,
)
from pathbudget.probes.codec import read_lines
from pathbudget.probes.errors import RecordError
from pathbudget.probes.record import Measurement

RECORDS = Path(__file__).resolve().parents[1] / "fixtures" / "records"
V2_COLUMNS = ["schedule", "imported_from", "vantage_source_address"]


@pytest.fixture
def records() -> list[Measurement]:
    return list(read_lines(RECORDS / "schema-1.jsonl"))


def test_a_column_says_its_unit_and_meaning() -> None:
    metadata = SAMPLE_SCHEMA.field("value_ns").metadata
    assert metadata is not None
    assert metadata[b"unit"] == b"ns"
    assert metadata[b"meaning"] == b"the number; null when there is a failure"
    for field in [*SAMPLE_SCHEMA, *MEASUREMENT_SCHEMA]:
        assert field.metadata is not None
        assert field.metadata[b"meaning"]
        assert bool(field.metadata[b"unit"]) >= field.name.endswith("_ns")


def test_a_table_says_which_version_it_is_written_in() -> None:
    for schema, table in ((SAMPLE_SCHEMA, b"samples"), (MEASUREMENT_SCHEMA, b"measurements")):
        assert schema.metadata is not None
        assert schema.metadata[b"pathbudget.schema"] == b"5"
        assert schema.metadata[b"pathbudget.table"] == table


def as_schema_1(records: list[Measurement]) -> pa.Table:
    """The measurement table as version 1 had it: no later columns, schedule in the options."""
    rows = measurement_table(records).to_pylist()
    for row in rows:
        row["schema"] = 1
        if row["schedule"]:
            row["options"] = row["options"][:-1] + f',"schedule":"{row["schedule"]}"}}'
    table = pa.Table.from_pylist(rows, schema=MEASUREMENT_SCHEMA)
    return table.drop_columns(V2_COLUMNS)


def test_tables_of_schema_1_load(records: list[Measurement]) -> None:
    old = as_schema_1(records)
    assert '"schedule":"poisson' in str(old.column("options"))
    assert list(from_tables(old, sample_table(records))) == records


def test_a_table_of_a_newer_version_is_refused(records: list[Measurement]) -> None:
    rows = measurement_table(records).to_pylist()
    newer = pa.Table.from_pylist([{**rows[0], "schema": 6}], schema=MEASUREMENT_SCHEMA)
    with pytest.raises(RecordError, match="written by a newer pathbudget; schema 6"):
        list(from_tables(newer, sample_table(records)))


def test_columns_of_others_are_ignored(records: list[Measurement]) -> None:
    more = measurement_table(records).append_column("weather", pa.array([1, 2]))
    rows = sample_table(records)
    rows = rows.append_column("mood", pa.nulls(len(rows)))
    assert list(from_tables(more, rows)) == records


def test_missing_samples_are_noticed(records: list[Measurement]) -> None:
    rows = sample_table(records)
    with pytest.raises(RecordError, match="1 of 2 samples are there"):
        list(from_tables(measurement_table(records), rows.slice(0, len(rows) - 1)))


def test_samples_of_another_measurement_are_noticed(records: list[Measurement]) -> None:
    with pytest.raises(RecordError, match="samples are there"):
        list(from_tables(measurement_table(records), sample_table(records[::-1])))


def test_an_unknown_word_is_refused(records: list[Measurement]) -> None:
    rows = sample_table(records).to_pylist()
    rows[1]["failure_kind"] = "gone"
    table = pa.Table.from_pylist(rows, schema=SAMPLE_SCHEMA)
    with pytest.raises(RecordError, match="gone"):
        list(from_tables(measurement_table(records), table))


def test_a_number_that_does_not_fit_is_refused(records: list[Measurement]) -> None:
    import msgspec

    sample = msgspec.structs.replace(records[0].samples[0], value_ns=2**63)
    record = msgspec.structs.replace(records[0], samples=(sample,))
    with pytest.raises(RecordError, match="does not fit"):
        sample_table([record])


def test_without_pyarrow_the_message_says_what_to_install() -> None:
    program = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "from pathbudget.probes.errors import StoreError\n"
        "try: import pathbudget.probes.arrow_schema\n"
        "except StoreError as error: print(error)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "pip install 'pathbudget[store]'" in run.stdout


def test_the_codec_needs_no_pyarrow() -> None:
    program = (
        "import sys, pathbudget.probes.codec, pathbudget.agents.store.journal\n"
        "print(sorted({'pyarrow', 'pandas', 'duckdb'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.stdout.strip() == "[]"
