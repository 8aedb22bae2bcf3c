"""What an evaluation says as data frames: stable names, stable types.

Names of columns are those of the fields in `results`. Text is `string`, counts are `int64`, numbers
`float64`, yes and no `bool`. A bound that the data does not set is infinite; a number of something
that was not measured is NaN.
"""

import types
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
import numpy as np
import pandas as pd

from pathbudget.analysis.frame_columns import FrameError, need_frame
from pathbudget.analysis.results import (
    Assignment,
    BudgetLine,
    Evaluation,
    Finding,
    Pair,
    Recommendation,
    Summary,
)
from pathbudget.analysis.routes.model import Estimate, PathSeries, Window
from pathbudget.analysis.routes.route_report import RouteReport
from pathbudget.analysis.summary import PERCENTILES
from pathbudget.analysis.whole_budget.results import WholeBudget, WholeTerm

Row = TypeVar("Row", bound=msgspec.Struct)


def lines_frame(evaluation: Evaluation) -> pd.DataFrame:
    """One row per budget line, with the fields of `BudgetLine`."""
    frame = _frame(evaluation.lines, BudgetLine)
    measured = frame["n"] > 0
    for name in ("value_ms", "low_ms", "high_ms"):
        frame.loc[measured & frame[name].isna(), name] = np.inf
    return frame


def lines_of(frame: pd.DataFrame) -> tuple[BudgetLine, ...]:
    """The lines of a frame that `lines_frame` made, or a part of one. Raises FrameError."""
    need_frame(frame, "lines")
    names = [one.name for one in msgspec.structs.fields(BudgetLine)]
    if missing := [name for name in names if name not in frame.columns]:
        raise FrameError(f"{missing[0]}: missing")
    found: list[BudgetLine] = []
    for row, values in enumerate(frame[names].to_dict("records")):
        plain = {str(name): _plain(value) for name, value in values.items()}
        try:
            found.append(msgspec.convert(plain, BudgetLine, strict=False))
        except msgspec.ValidationError as error:
            raise FrameError(f"row {row}: {error}") from None
    return tuple(found)


def _plain(value: Any) -> Any:
    if value is None or value is pd.NA:
        return None
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value.item() if isinstance(value, np.generic) else value


def summaries_frame(evaluation: Evaluation) -> pd.DataFrame:
    """One row per series of samples; each quantile is three columns: p95_ms, p95_low_ms,
    p95_high_ms. Curves and counts by word are left to the report.
    """
    frame = _frame(evaluation.summaries, Summary)
    found = {q.percentile for one in evaluation.summaries for q in one.quantiles}
    percentiles = sorted({*PERCENTILES, *found})
    for percentile in percentiles:
        quantiles = [
            next((q for q in one.quantiles if q.percentile == percentile), None)
            for one in evaluation.summaries
        ]
        for ending, field in (("ms", "value_ms"), ("low_ms", "low_ms"), ("high_ms", "high_ms")):
            frame[f"p{percentile:g}_{ending}"] = np.array(
                [np.nan if q is None else _bound(getattr(q, field)) for q in quantiles],
                dtype=np.float64,
            )
    return frame


def _bound(value: float | None) -> float:
    return np.inf if value is None else value


def pairs_frame(evaluation: Evaluation) -> pd.DataFrame:
    """One row per region and site: distance, light floor, shortest round trip, inflation."""
    return _frame(evaluation.pairs, Pair)


def recommendations_frame(evaluation: Evaluation) -> pd.DataFrame:
    """One row per tier, objective and number of sites; names are joined by commas."""
    return _frame(evaluation.recommendations, Recommendation)


def assignments_frame(evaluation: Evaluation) -> pd.DataFrame:
    """One row per region of each recommendation: which site serves it, and at what cost."""
    rows = [(one, its) for one in evaluation.recommendations for its in one.assignments]
    frame = _frame([its for _, its in rows], Assignment)
    frame.insert(0, "tier", pd.Series([one.tier for one, _ in rows], dtype="string"))
    aims = [str(one.objective) for one, _ in rows]
    frame.insert(1, "objective", pd.Series(aims, dtype="string"))
    frame.insert(2, "k", pd.Series([one.k for one, _ in rows], dtype="int64"))
    frame["cost_ms"] = frame["cost_ms"].fillna(np.inf)
    return frame


def whole_budgets_frame(budgets: Iterable[WholeBudget]) -> pd.DataFrame:
    """One row per whole budget (`Evaluation.whole_budgets`, or any others)."""
    frame = _frame(list(budgets), WholeBudget)
    for name in ("value_ms", "low_ms", "high_ms"):
        frame[name] = frame[name].fillna(np.inf)
    return frame


def whole_terms_frame(budgets: Iterable[WholeBudget]) -> pd.DataFrame:
    """One row per term of each whole budget; `contribution_ms` of all adds up to its value."""
    rows = [(one, term) for one in budgets for term in one.terms]
    frame = _frame([term for _, term in rows], WholeTerm).rename(columns={"name": "term"})
    for at, name in enumerate(("tier", "region", "site")):
        words = [getattr(one, name) for one, _ in rows]
        frame.insert(at, name, pd.Series(words, dtype="string"))
    return frame


def findings_frame(evaluation: Evaluation) -> pd.DataFrame:
    """One row per thing noticed."""
    return _frame(evaluation.findings, Finding)


def events_frame(report: RouteReport) -> pd.DataFrame:
    """One row per change of a route: where, when, and what came for what.

    Times are UTC; a change happened after `after` and by `by`.
    """
    rows = [
        _series(one.series)
        | {
            "kind": str(one.kind),
            "granularity": str(one.granularity),
            **_window(one.window),
            "as_before": " ".join(one.as_before),
            "as_after": " ".join(one.as_after),
            "paths_before": len(one.before),
            "paths_after": len(one.after),
        }
        for one in report.events
    ]
    texts = [*_SERIES, "kind", "granularity", "as_before", "as_after"]
    return _table(rows, texts, times=("after", "by"), counts=("paths_before", "paths_after"))


def incidents_frame(report: RouteReport) -> pd.DataFrame:
    """One row per incident: cause, window, who is blamed, and its cost in ms with an interval."""
    rows = [
        {
            "cause": str(one.cause),
            **_window(one.window),
            "over_by": None if one.over is None else one.over.by_unix_ns,
            "series": len(one.series),
            "regions": ", ".join(sorted({series.region for series in one.series})),
            "sites": ", ".join(sorted({series.site for series in one.series})),
            **_cost(one.cost),
            "blamed": one.blamed,
            "reason": one.reason,
        }
        for one in report.incidents
    ]
    return _table(
        rows,
        ("cause", "regions", "sites", "blamed", "reason"),
        times=("after", "by", "over_by"),
        counts=("series",),
        numbers=("cost_ms", "cost_low_ms", "cost_high_ms"),
    )


_SERIES = ("vantage", "region", "site", "target", "address", "family", "protocol")


def _series(series: PathSeries) -> dict[str, Any]:
    return {
        name: None if getattr(series, name) is None else str(getattr(series, name))
        for name in _SERIES
    }


def _window(window: Window) -> dict[str, Any]:
    return {"after": window.after_unix_ns, "by": window.by_unix_ns}


def _cost(cost: Estimate | None) -> dict[str, float]:
    numbers = (np.nan,) * 3 if cost is None else (cost.value_ns, cost.low_ns, cost.high_ns)
    names = ("cost_ms", "cost_low_ms", "cost_high_ms")
    return {name: number / 1e6 for name, number in zip(names, numbers, strict=True)}


def _table(
    rows: Sequence[dict[str, Any]],
    texts: Iterable[str],
    *,
    times: Iterable[str] = (),
    counts: Iterable[str] = (),
    numbers: Iterable[str] = (),
) -> pd.DataFrame:
    kinds: dict[str, Any] = dict.fromkeys(texts, "string")
    kinds |= dict.fromkeys(counts, "int64") | dict.fromkeys(numbers, "float64")
    names = list(rows[0]) if rows else [*kinds, *times]
    columns: dict[str, Any] = {}
    for name in names:
        values = [row[name] for row in rows]
        if name in kinds:
            columns[name] = pd.Series(values, dtype=kinds[name])
        else:
            whole = pd.array(values, dtype="Int64")
            stamps = pd.to_datetime(pd.Series(whole), unit="ns", utc=True)
            columns[name] = stamps.astype("datetime64[ns, UTC]")
    return pd.DataFrame(columns)


def _frame(rows: Sequence[Row], kind: type[Row]) -> pd.DataFrame:
    """A column for every field that is one value, or a row of names."""
    columns: dict[str, Any] = {}
    for name, hint in get_type_hints(kind).items():
        dtype = _dtype(hint)
        if dtype is None:
            continue
        values = [getattr(row, name) for row in rows]
        if dtype == "names":
            columns[name] = pd.Series([_joined(value) for value in values], dtype="string")
        elif dtype == "string":
            words = [None if value is None else str(value) for value in values]
            columns[name] = pd.Series(words, dtype="string")
        else:
            columns[name] = pd.Series(values, dtype=dtype)
    return pd.DataFrame(columns)


def _joined(words: Sequence[str]) -> str:
    """Names with commas, sentences as they are."""
    return (" " if any(word.endswith(".") for word in words) else ", ").join(words)


def _dtype(hint: Any) -> str | None:
    """How a field stands in a frame; None where it does not."""
    if get_origin(hint) in (Union, types.UnionType):
        inner = [one for one in get_args(hint) if one is not type(None)]
        return _dtype(inner[0]) if len(inner) == 1 else None
    if get_origin(hint) is tuple:
        return "names" if get_args(hint) == (str, ...) else None
    if not isinstance(hint, type):
        return None
    if issubclass(hint, str | StrEnum):
        return "string"
    return {bool: "bool", int: "int64", float: "float64"}.get(hint)
