"""Measurements as Arrow tables and back, without loss: one table of envelopes, one of samples.

The only module of this layer that needs pyarrow. A table remembers the schema version it was
written with; an older one is upgraded by the same steps as a JSON line (`schema_upgrades`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, repeat
from operator import attrgetter
from typing import Any

import msgspec

from pathbudget.probes.codec import from_raw
from pathbudget.probes.columns import (
    CONTEXT_COLUMNS,
    FAILURE_COUNT,
    MEASUREMENT_COLUMNS,
    MEASUREMENT_ID,
    POSITION,
    SAMPLE_COLUMNS,
    SAMPLE_COUNT,
    Column,
    Kind,
)
from pathbudget.probes.errors import RecordError, StoreError
from pathbudget.probes.record import (
    SCHEMA_VERSION,
    ClockSource,
    ConnectionMode,
    Direction,
    Failure,
    FailureKind,
    Measurement,
    Metric,
    Note,
    Sample,
    Stage,
    Stamps,
)

try:
    import pyarrow as pa
except ImportError as _error:
    raise StoreError(
        "the store needs packages that are not installed: pip install 'pathbudget[store]'"
    ) from _error

_TYPES: Mapping[Kind, pa.DataType] = {
    Kind.TEXT: pa.string(),
    Kind.INT64: pa.int64(),
    Kind.INT32: pa.int32(),
    Kind.FLOAT64: pa.float64(),
    Kind.BOOL: pa.bool_(),
    Kind.JSON: pa.string(),
    Kind.COUNTS: pa.map_(pa.string(), pa.int64()),
    Kind.WORDS: pa.list_(pa.string()),
}


def schema_of(table: str, columns: Sequence[Column], version: int = SCHEMA_VERSION) -> pa.Schema:
    """Arrow schema of a table, with what each column means in its metadata."""
    fields = [
        pa.field(
            column.name,
            _TYPES[column.kind],
            metadata={"meaning": column.meaning, "unit": column.unit},
        )
        for column in columns
    ]
    about: dict[bytes | str, bytes | str] = {
        "pathbudget.table": table,
        "pathbudget.schema": str(version),
    }
    return pa.schema(fields, metadata=about)


MEASUREMENT_SCHEMA = schema_of("measurements", [*MEASUREMENT_COLUMNS, SAMPLE_COUNT, FAILURE_COUNT])
SAMPLE_SCHEMA = schema_of("samples", [MEASUREMENT_ID, POSITION, *SAMPLE_COLUMNS, *CONTEXT_COLUMNS])


def measurement_table(measurements: Sequence[Measurement]) -> pa.Table:
    """One row per measurement, `MEASUREMENT_SCHEMA`. Raises RecordError for what cannot be held."""
    values = list(column_values(MEASUREMENT_COLUMNS, measurements))
    values.append([len(measurement.samples) for measurement in measurements])
    values.append([failures(measurement) for measurement in measurements])
    return table_of(values, MEASUREMENT_SCHEMA)


def failures(measurement: Measurement) -> int:
    """How many samples of it have no number; routers on the way may be silent without a failure."""
    return sum(
        sample.failure is not None and sample.metric != Metric.HOP_RTT
        for sample in measurement.samples
    )


def sample_table(measurements: Sequence[Measurement]) -> pa.Table:
    """One row per sample, `SAMPLE_SCHEMA`; samples of one measurement stand together, in order."""
    samples = [sample for measurement in measurements for sample in measurement.samples]
    lengths = [len(measurement.samples) for measurement in measurements]
    rows = _spread(range(len(measurements)), lengths)
    positions = list(chain.from_iterable(map(range, lengths)))
    own = [positions, *column_values(SAMPLE_COLUMNS, samples)]
    shared = [
        [measurement.id for measurement in measurements],
        *column_values(CONTEXT_COLUMNS, measurements),
    ]
    fields = list(SAMPLE_SCHEMA)
    identifier, *context = arrays_of(shared, [fields[0], *fields[1 + len(own) :]])
    per_row = pa.array(rows, type=pa.int64())
    arrays = [
        identifier.take(per_row),
        *arrays_of(own, fields[1 : 1 + len(own)]),
        *(array.take(per_row) for array in context),
    ]
    return pa.Table.from_arrays(arrays, schema=SAMPLE_SCHEMA)


def envelopes(table: pa.Table) -> Iterator[tuple[Measurement, int, int]]:
    """Each measurement of a measurement table without samples, how many it has, how many failed.

    Raises RecordError for a row that is no measurement.
    """
    try:
        raws = _raws(table)
    except (TypeError, ValueError, msgspec.DecodeError) as error:
        raise RecordError(f"measurement table: unreadable: {error}") from None
    counts = zip(
        column_list(table, SAMPLE_COUNT.name), column_list(table, FAILURE_COUNT.name), strict=True
    )
    for raw, (count, failed) in zip(raws, counts, strict=True):
        if count is None or failed is None:
            raise RecordError(f"measurement {raw.get('id')}: its number of samples is missing")
        yield from_raw(raw), count, failed


def samples(table: pa.Table) -> list[Sample]:
    """The samples of (a slice of) a sample table, in its order. Raises RecordError."""
    lists = [column_list(table, column.name) for column in SAMPLE_COLUMNS]
    try:
        return [_sample(*row) for row in zip(*lists, strict=True)]
    except (KeyError, TypeError, ValueError) as error:
        raise RecordError(f"sample table: {error}") from None


def from_tables(measurements: pa.Table, sample_rows: pa.Table) -> Iterator[Measurement]:
    """The measurements of a pair of tables whose rows are in the same order. Raises RecordError."""
    start = 0
    for envelope, count, _ in envelopes(measurements):
        part = sample_rows.slice(start, count)
        start += count
        yield with_samples(envelope, count, part)


def with_samples(envelope: Measurement, count: int, rows: pa.Table) -> Measurement:
    """The whole measurement; raises RecordError when `rows` are not exactly its samples."""
    names = set(column_list(rows, MEASUREMENT_ID.name))
    if len(rows) != count or not names <= {envelope.id}:
        raise RecordError(f"measurement {envelope.id}: {len(rows)} of {count} samples are there")
    return msgspec.structs.replace(envelope, samples=tuple(samples(rows)))


def table_of(values: Sequence[Sequence[Any]], schema: pa.Schema) -> pa.Table:
    """A table out of columns. Raises RecordError for what it cannot hold."""
    return pa.Table.from_arrays(arrays_of(values, list(schema)), schema=schema)


def arrays_of(
    values: Sequence[Sequence[Any]], fields: "Sequence[pa.Field[Any]]"
) -> "list[pa.Array[Any]]":
    """Columns as Arrow arrays. Raises RecordError for what they cannot hold."""
    try:
        return [
            pa.array(column, type=field.type) for column, field in zip(values, fields, strict=True)
        ]
    except (pa.ArrowException, OverflowError, UnicodeEncodeError) as error:
        raise RecordError(f"a record does not fit the table: {error}") from None


def column_values(columns: Iterable[Column], records: Sequence[object]) -> Iterator[list[Any]]:
    """The values of every column for every record; None where a part of the path is absent."""
    parts: dict[str, list[Any]] = {}
    for column in columns:
        parent, dot, name = column.path.partition(".")
        if parent not in parts:
            parts[parent] = list(map(attrgetter(parent), records))
        found = parts[parent]
        if column.kind is Kind.JSON:
            yield [
                value if value is None else msgspec.json.encode(value).decode() for value in found
            ]
        elif column.kind is Kind.COUNTS:
            yield [list(counts.items()) for counts in found]
        elif not dot:
            yield found
        elif not any(found):
            yield [None] * len(found)
        else:
            get = attrgetter(name)
            yield [None if part is None else get(part) for part in found]


def _spread(values: Iterable[Any], lengths: Sequence[int]) -> list[Any]:
    """Each value as often as its length says."""
    return list(chain.from_iterable(map(repeat, values, lengths)))


def column_list(table: pa.Table, name: str) -> list[Any]:
    """A column as a list; nulls where an older file lacks it."""
    if name not in table.column_names:
        return [None] * len(table)
    column = table.column(name)
    return [None] * len(table) if column.null_count == len(table) else column.to_pylist()


def _raws(table: pa.Table) -> list[dict[str, Any]]:
    """The rows as the JSON objects that they stand for: nulls left out, paths unfolded."""
    raws: list[dict[str, Any]] = [{"samples": []} for _ in range(len(table))]
    for column in MEASUREMENT_COLUMNS:
        values = column_list(table, column.name)
        if column.kind is Kind.JSON:
            values = [value and msgspec.json.decode(value) for value in values]
        elif column.kind is Kind.COUNTS:
            values = [None if value is None else dict(value) for value in values]
        parent, dot, name = column.path.partition(".")
        for raw, value in zip(raws, values, strict=True):
            if value is not None:
                (raw.setdefault(parent, {}) if dot else raw)[name or parent] = value
    return raws


_KINDS = {word.value: word for word in FailureKind}
_STAGES = {word.value: word for word in Stage}
_CLOCKS: dict[str | None, ClockSource] = {
    None: ClockSource.USER,
    **{word.value: word for word in ClockSource},
}
_DIRECTIONS: dict[str | None, Direction | None] = {
    None: None,
    **{word.value: word for word in Direction},
}
_MODES: dict[str | None, ConnectionMode | None] = {
    None: None,
    **{word.value: word for word in ConnectionMode},
}


def _sample(
    seq: int,
    metric: str,
    sent_unix_ns: int,
    value_ns: int | None,
    kind: str | None,
    stage: str,
    detail: str | None,
    icmp_type: int | None,
    icmp_code: int | None,
    direction: str | None,
    clock_source: str | None,
    mode: str | None,
    lateness_ns: int | None,
    ttl: int | None,
    responder: str | None,
    flags: list[str] | None,
    flow: int | None,
    error_ns: int | None,
    part: int | None,
    notes: str | None,
    *offsets: int | None,
) -> Sample:
    """In the order of `SAMPLE_COLUMNS`; `offsets` in that of `Stamps`."""
    failure = None
    if kind is not None:
        way = _DIRECTIONS[direction]
        failure = Failure(_KINDS[kind], _STAGES[stage], detail or "", icmp_type, icmp_code, way)
    return Sample(
        seq,
        metric,
        sent_unix_ns,
        value_ns,
        failure,
        _CLOCKS[clock_source],
        _MODES[mode],
        lateness_ns,
        ttl,
        responder,
        tuple(flags or ()),
        flow,
        error_ns,
        None if all(offset is None for offset in offsets) else Stamps(*offsets),
        part,
        None if notes is None else msgspec.json.decode(notes, type=dict[str, Note]),
    )
