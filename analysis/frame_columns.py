"""Columns of data frames as the record wants them. Every fault names the column, and the row.

Columns may be of numpy, of pandas or of Arrow; what they hold is what counts.
"""

import numbers
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa

from pathbudget.probes import arrow_schema
from pathbudget.probes.columns import Kind
from pathbudget.probes.errors import RecordError
from pathbudget.probes.record import (
    AddressFamily,
    ClockSource,
    ConnectionMode,
    FailureKind,
    Stage,
    Transport,
)

Column: TypeAlias = "pd.Series[Any]"

WORDS = {
    "failure_kind": FailureKind,
    "failure_stage": Stage,
    "clock_source": ClockSource,
    "mode": ConnectionMode,
    "transport": Transport,
    "family": AddressFamily,
}
EARLIEST_NS = 100_000_000_000_000_000
"""1973. A smaller time is one in seconds, milliseconds or microseconds."""
BEYOND = 2**63


class FrameError(RecordError):
    """A data frame that cannot be taken. The message begins with the column."""


def need_frame(given: object, what: str) -> None:
    """Raises FrameError for anything but a data frame of pandas."""
    if not isinstance(given, pd.DataFrame):
        raise FrameError(f"{what}: a {type(given).__name__}; a data frame of pandas is expected")
    names = [str(name) for name in given.columns]
    if doubled := sorted({name for name in names if names.count(name) > 1}):
        raise FrameError(f"{doubled[0]}: this column is there twice")


def first_row(mask: "pd.Series[bool]") -> int:
    """Number of the first row that is marked."""
    return int(np.flatnonzero(mask.to_numpy(dtype=bool))[0])


def checked(column: Column, kind: Kind) -> Column:
    """A column of samples as one of text, whole numbers or lists of words."""
    if kind in (Kind.INT64, Kind.INT32):
        return whole_numbers(column)
    if kind is Kind.WORDS:
        return column.map(_listed)
    text = _text(column)
    name = str(column.name)
    if name in WORDS:
        known = {str(word) for word in WORDS[name]}
        wrong = text.notna() & ~text.isin(known)
        if wrong.any():
            row = first_row(wrong)
            raise FrameError(
                f"{name}: row {row} says {text[row]!r}; one of: {', '.join(sorted(known))}"
            )
    return text


def _text(column: Column) -> Column:
    if column.dtype == object:
        wrong = column.map(lambda one: isinstance(one, bytes | list | tuple | dict | set))
        if wrong.any():
            row = first_row(wrong)
            kind = type(column[row]).__name__
            raise FrameError(f"{column.name}: row {row} is a {kind}; text is expected")
    try:
        return column.astype("string")
    except (UnicodeError, TypeError, ValueError):
        raise FrameError(f"{column.name}: holds what is no text") from None


def _listed(words: Any) -> list[str]:
    if isinstance(words, str):
        return [words]
    return [str(word) for word in words] if isinstance(words, Iterable) else []


def whole_numbers(column: Column) -> Column:
    """A column of whole numbers as Int64; absent ones stay absent."""
    name = column.name
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        raise FrameError(f"{name}: is a time; a number of nanoseconds is expected")
    if pd.api.types.is_timedelta64_dtype(column.dtype):
        raise FrameError(f"{name}: is a timedelta; take column.dt.total_seconds() * 1e9, rounded")
    known = _numbers(column.dropna())  # absent ones would make floats of large whole numbers
    if pd.api.types.is_float_dtype(known.dtype):
        _check_fractions(known)
    values = known.to_numpy()
    beyond = (values >= BEYOND) | (values < -BEYOND)
    if beyond.any():
        row = known.index[int(np.flatnonzero(beyond)[0])]
        raise FrameError(f"{name}: row {row} is {known[row]:g}, beyond 64 bits")
    return known.astype("Int64").reindex(column.index)


def _numbers(known: Column) -> Column:
    """Numbers, or text that reads as one; raises FrameError for anything else."""
    text = f"{known.name}: holds text; whole numbers are expected"
    if pd.api.types.is_bool_dtype(known.dtype):
        raise FrameError(f"{known.name}: is true and false; whole numbers are expected")
    if not pd.api.types.is_numeric_dtype(known.dtype) or isinstance(known.dtype, pd.ArrowDtype):
        known = known.astype(object)
        for value in known:
            if isinstance(value, bool) or not isinstance(value, numbers.Real | Decimal | str):
                kind = type(value).__name__
                raise FrameError(f"{known.name}: holds a {kind}; whole numbers are expected")
    elif pd.api.types.is_complex_dtype(known.dtype):
        raise FrameError(f"{known.name}: is complex; whole numbers are expected")
    try:
        return pd.to_numeric(known)
    except (ValueError, TypeError, OverflowError):
        raise FrameError(text) from None


def _check_fractions(known: Column) -> None:
    plain = known.to_numpy(dtype=np.float64)
    if (wrong := np.isinf(plain)).any():
        raise FrameError(
            f"{known.name}: row {known.index[np.flatnonzero(wrong)[0]]} is infinite; a loss has no "
            "number and a failure_kind"
        )
    if (broken := plain != np.round(plain)).any():
        at = int(np.flatnonzero(broken)[0])
        raise FrameError(
            f"{known.name}: row {known.index[at]} is {plain[at]:g}, no whole number; nanoseconds "
            "are expected (milliseconds times 1e6, rounded)"
        )


def sent_times(frame: pd.DataFrame) -> Column:
    """Send times of `sent_unix_ns`, or else of `sent`, as whole nanoseconds since 1970 UTC."""
    name = "sent_unix_ns" if "sent_unix_ns" in frame.columns else "sent"
    column = frame[name]
    if name == "sent":
        _check_zone(column.dtype)
    if (absent := column.isna()).any():
        raise FrameError(f"{name}: row {first_row(absent)} has no time; also a loss was sent")
    found = whole_numbers(_nanoseconds(column) if name == "sent" else column)
    if (wrong := found < EARLIEST_NS).any():
        row = first_row(wrong)
        hint = (
            "a time after 1973 is expected"
            if name == "sent"
            else "nanoseconds since 1970 are expected (seconds times 1e9)"
        )
        raise FrameError(f"{name}: row {row} is {column[row]}; {hint}")
    return found


def _check_zone(dtype: Any) -> None:
    if not pd.api.types.is_datetime64_any_dtype(dtype):
        raise FrameError("sent: no times; pd.to_datetime(..., utc=True) makes them")
    zone = getattr(dtype, "pyarrow_dtype", dtype)
    if getattr(zone, "tz", None) is None:
        raise FrameError("sent: has no time zone; say which: frame.sent.dt.tz_localize('UTC')")


def _nanoseconds(column: Column) -> Column:
    try:
        return column.astype("datetime64[ns, UTC]").astype("int64")
    except (pd.errors.OutOfBoundsDatetime, OverflowError, ValueError):
        raise FrameError("sent: holds times beyond the years 1678 to 2261") from None


def arrow_column(column: Column, field: "pa.Field[Any]") -> "pa.Array[Any]":
    """A column as an array of Arrow. Raises FrameError for what the type cannot hold."""
    if column.isna().all():
        nothing: pa.Array[Any] = pa.nulls(len(column), field.type)
        return nothing
    if pa.types.is_map(field.type):
        column = column.map(_counts, na_action="ignore")
    try:
        found: pa.Array[Any] = pa.Array.from_pandas(column, type=field.type)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        words = str(error).splitlines()[0]
        raise FrameError(f"{field.name}: {words}") from None
    return found


def _counts(given: Any) -> list[tuple[str, int]]:
    """Words and their numbers; Arrow ends the whole process over pairs that are none."""
    pairs = list(given.items()) if isinstance(given, Mapping) else given
    if not isinstance(pairs, Iterable) or isinstance(pairs, str | bytes):
        raise FrameError("counters: words with numbers are expected")
    found: list[tuple[str, int]] = []
    for pair in pairs:
        match pair:
            case (str(word), bool()):
                raise FrameError(f"counters: {word} is true or false; a number is expected")
            case (str(word), numbers.Integral() as number):
                found.append((word, int(number)))
            case _:
                raise FrameError("counters: words with numbers are expected")
    return found


def sample_table(rows: pd.DataFrame) -> pa.Table:
    """The sample table of some rows. Raises FrameError."""
    arrays = [
        pa.array(np.arange(len(rows)))
        if field.name == "position"
        else arrow_column(rows[field.name], field)
        for field in arrow_schema.SAMPLE_SCHEMA
    ]
    return pa.Table.from_arrays(arrays, schema=arrow_schema.SAMPLE_SCHEMA)


def envelope_table(envelopes: pd.DataFrame) -> pa.Table:
    """The measurement table of a frame, with the columns that it has. Raises FrameError."""
    fields = [one for one in arrow_schema.MEASUREMENT_SCHEMA if one.name in envelopes.columns]
    arrays = [arrow_column(envelopes[field.name], field) for field in fields]
    metadata: Any = arrow_schema.MEASUREMENT_SCHEMA.metadata
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields, metadata=metadata))
