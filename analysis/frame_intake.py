"""Data frames of samples as measurements, and measurements as data frames.

A frame has the columns of the store (docs/record-schema.md). Few are needed: who measured (`region`
or `vantage`), what (`site` or `target`), `metric`, `value_ns`, and when: `sent_unix_ns`, or `sent`
as a time with a zone. What is missing beyond that gets the default of the record. Every fault names
the column, and the row where there is one.
"""

import difflib
from collections.abc import Iterable, Iterator
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa

from pathbudget.analysis.evaluate import EvaluationOptions, evaluate
from pathbudget.analysis.frame_columns import (
    FrameError,
    checked,
    envelope_table,
    first_row,
    need_frame,
    sample_table,
    sent_times,
    whole_numbers,
)
from pathbudget.analysis.results import Evaluation
from pathbudget.probes import arrow_schema
from pathbudget.probes.columns import CONTEXT_COLUMNS, SAMPLE_COLUMNS, Kind
from pathbudget.probes.errors import RecordError
from pathbudget.probes.record import (
    SCHEMA_VERSION,
    ClockSource,
    Measurement,
    Stage,
)
from pathbudget.sites.catalogue import Catalogue

Extra = Literal["refuse", "ignore"]

NEEDED = (("region", "vantage"), ("site", "target"), ("metric",), ("value_ns",))
CONTEXT = tuple(column.name for column in CONTEXT_COLUMNS)
OWN = tuple(column.name for column in SAMPLE_COLUMNS)
KNOWN = frozenset({*CONTEXT, *OWN, "measurement_id", "position", "sent", "date"})
UNITS = ("_ms", "_us", "_s", "_seconds", "_msec")
SHORTEST_NS = 1_000
"""No delay to another machine is shorter; where all are, they are in another unit."""

DTYPES: dict[Any, Any] = {
    pa.string(): pd.StringDtype(),
    pa.int64(): pd.Int64Dtype(),
    pa.int32(): pd.Int32Dtype(),
    pa.bool_(): pd.BooleanDtype(),
}
"""Types of pandas that know absence, by type of Arrow."""


def samples_frame(measurements: Iterable[Measurement]) -> pd.DataFrame:
    """One row per sample, in the columns of the store's table `samples`.

    Text is `string`, whole numbers are `Int64`; what is absent is `<NA>`.
    """
    return _frame(arrow_schema.sample_table(list(measurements)))


def envelopes_frame(measurements: Iterable[Measurement]) -> pd.DataFrame:
    """One row per measurement, in the columns of the store's table `measurements`."""
    return _frame(arrow_schema.measurement_table(list(measurements)))


def _frame(table: pa.Table) -> pd.DataFrame:
    found: pd.DataFrame = table.to_pandas(types_mapper=DTYPES.get)
    return found


def measurements_of(
    samples: pd.DataFrame, envelopes: pd.DataFrame | None = None, *, extra: Extra = "refuse"
) -> Iterator[Measurement]:
    """The measurements whose samples these are. Raises FrameError.

    With `envelopes` nothing is lost: these are the measurements that the two frames were made of.
    Without, rows of one `measurement_id`, or else of one vantage, target, probe and so on, are one
    measurement. Columns that mean nothing here are refused, or passed over with ``extra="ignore"``.
    """
    _check_columns(samples, extra)
    if len(samples) == 0 and envelopes is None:
        return
    whole = _completed(samples)
    if envelopes is not None:
        yield from _with_envelopes(whole, envelopes)
        return
    keys = ["measurement_id"] if "measurement_id" in samples.columns else list(CONTEXT)
    for number, (_, rows) in enumerate(whole.groupby(keys, sort=True, dropna=False)):
        yield _measurement(rows, number)


def evaluate_frames(
    samples: pd.DataFrame,
    catalogue: Catalogue,
    options: EvaluationOptions | None = None,
    *,
    envelopes: pd.DataFrame | None = None,
    extra: Extra = "refuse",
) -> Evaluation:
    """`evaluate` of a frame of samples. Raises FrameError, and ConfigError for an unknown tier."""
    return evaluate(measurements_of(samples, envelopes, extra=extra), catalogue, options)


def _check_columns(frame: pd.DataFrame, extra: Extra) -> None:
    need_frame(frame, "samples")
    names = [str(name) for name in frame.columns]
    for choice in NEEDED:
        if not any(name in names for name in choice):
            raise FrameError(f"{' or '.join(choice)}: missing{_near(choice[0], names)}")
    if "sent" not in names and "sent_unix_ns" not in names:
        raise FrameError(f"sent or sent_unix_ns: missing{_near('sent', names)}")
    for name in names:
        if name not in KNOWN and extra == "refuse":
            hint = _near(name, sorted(KNOWN)) or '; drop it, or say extra="ignore"'
            raise FrameError(f"{name}: unknown column{hint}")


def _near(name: str, names: Iterable[str]) -> str:
    """``; is it value_ms? Times are in nanoseconds`` where some name looks like another."""
    stem = name.removesuffix("_ns")
    names = list(names)
    found = [one for one in names if one in [stem + unit for unit in UNITS]]
    if found:
        return f"; {found[0]} is there, and numbers are whole nanoseconds here"
    similar = difflib.get_close_matches(name, names, 1, 0.8)
    return f"; is it {similar[0]}?" if similar else ""


def _completed(samples: pd.DataFrame) -> pd.DataFrame:
    """All columns of the record with their types, checked; rows in the order of the frame."""
    frame = samples.reset_index(drop=True)
    columns: dict[str, Any] = {}
    for column in (*CONTEXT_COLUMNS, *SAMPLE_COLUMNS):
        if column.name in frame.columns:
            columns[column.name] = checked(frame[column.name], column.kind)
    columns["sent_unix_ns"] = sent_times(frame)
    whole = pd.DataFrame(columns, index=frame.index)
    for one, other in (("region", "vantage"), ("site", "target")):
        for name, instead in ((one, other), (other, one)):
            if name not in whole.columns:
                whole[name] = whole[instead]
            nameless = whole[name].isna() | (whole[name] == "").fillna(value=False)
            if nameless.any():
                raise FrameError(f"{name}: row {first_row(nameless)} has no name")
    defaults = {"probe": "frame", "campaign": "", "network": "", "address": "",
                "clock_source": str(ClockSource.FOREIGN)}  # fmt: skip
    for name, value in defaults.items():
        if name not in whole.columns:
            whole[name] = pd.Series(value, index=whole.index, dtype="string")
    if "seq" not in whole.columns:
        whole["seq"] = np.arange(len(whole))
    if "measurement_id" in frame.columns:
        whole["measurement_id"] = checked(frame["measurement_id"], Kind.TEXT)
    whole["probe"] = whole["probe"].fillna(defaults["probe"])
    _check_values(whole)
    whole = whole.reindex(columns=["measurement_id", *CONTEXT, *OWN])
    if "position" in frame.columns:
        whole = whole.loc[whole_numbers(frame["position"]).sort_values(kind="stable").index]
    return whole


def _check_values(frame: pd.DataFrame) -> None:
    values = frame["value_ns"]
    kinds = frame.get("failure_kind")
    failed = pd.Series(False, index=frame.index) if kinds is None else kinds.notna()
    if (bare := values.isna() & ~failed).any():
        raise FrameError(
            f"value_ns: row {first_row(bare)} has no number, and no failure_kind to say why "
            "(timeout ...)"
        )
    if (both := values.notna() & failed).any():
        raise FrameError(
            f"failure_kind: row {first_row(both)} has a number too; one of them is wrong"
        )
    if failed.any() and "failure_stage" not in frame.columns:
        frame["failure_stage"] = pd.Series(pd.NA, index=frame.index, dtype="string")
    if failed.any():
        frame.loc[failed & frame["failure_stage"].isna(), "failure_stage"] = str(Stage.WAIT)
    positive = values[values > 0]
    if len(positive) and int(positive.max()) < SHORTEST_NS:
        raise FrameError(
            f"value_ns: the largest number is {int(positive.max())}, and no delay is that short; "
            "nanoseconds are expected (milliseconds times 1e6)"
        )


def _measurement(rows: pd.DataFrame, number: int) -> Measurement:
    """A measurement of rows that agree in everything that an envelope says."""
    for name in CONTEXT:
        if rows[name].nunique(dropna=False) > 1:
            raise FrameError(f"{name}: rows of one measurement_id differ in it")
    first = {name: None if pd.isna(rows[name].iloc[0]) else str(rows[name].iloc[0])
             for name in ("measurement_id", *CONTEXT)}  # fmt: skip
    rows = rows.sort_values(["sent_unix_ns", "seq"], kind="stable")
    envelope: dict[str, Any] = {name: value for name, value in first.items() if value is not None}
    identifier = envelope.pop("measurement_id", f"frame-{number:09d}")
    begun = int(rows["sent_unix_ns"].iloc[0])
    table = pa.Table.from_pylist(
        [envelope | {"id": identifier, "schema": SCHEMA_VERSION,
                     "target_host": envelope.get("address", ""), "started_unix_ns": begun,
                     "sample_count": len(rows), "failure_count": 0}],
        schema=arrow_schema.MEASUREMENT_SCHEMA,
    )  # fmt: skip
    rows = rows.assign(measurement_id=identifier)
    try:
        return next(arrow_schema.from_tables(table, sample_table(rows)))
    except RecordError as error:
        raise FrameError(str(error)) from None


def _with_envelopes(whole: pd.DataFrame, envelopes: pd.DataFrame) -> Iterator[Measurement]:
    if whole["measurement_id"].isna().any():
        raise FrameError("measurement_id: missing; it joins samples with their envelopes")
    need_frame(envelopes, "envelopes")
    if "id" not in envelopes.columns:
        raise FrameError("id: missing in the frame of envelopes")
    table = envelope_table(envelopes)
    rows_by_id = {str(name): rows for name, rows in whole.groupby("measurement_id", sort=False)}
    try:
        for envelope, count, _ in arrow_schema.envelopes(table):
            rows = rows_by_id.pop(envelope.id, whole.iloc[:0])
            yield arrow_schema.with_samples(envelope, count, sample_table(rows))
    except RecordError as error:
        raise FrameError(str(error)) from None
    if rows_by_id:
        raise FrameError(f"measurement_id: {next(iter(rows_by_id))!s} has no envelope")
