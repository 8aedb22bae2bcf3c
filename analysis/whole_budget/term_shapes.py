"""Distributions that a user states: by quantiles, or by a name with parameters.

Both become `PARTS` times of equal weight, so that everything which takes samples takes them.

Quantiles become steps that are never too quick: between two of them the upper one holds. Beyond the
largest nothing is known, so there the time is +inf; ``max`` (or ``p100``) says otherwise. What they
are worth is the ``n`` of the requests they were taken from, and nobody can know them without it.

A name with parameters is an assumption, or a fit: with ``n`` it is worth that many requests,
without it is taken as exactly known.
"""

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy import special

from pathbudget.analysis.quantiles import Values
from pathbudget.sites.entry import Entry, Interval, show

PARTS = 100_001
"""Odd, so that the median is one of them and no mean of two."""
MILLISECOND = 1e6
QUANTILE = re.compile(r"p(\d{1,2}(?:[._]\d{1,4})?|100)", re.ASCII)
QUANTILE_KEYS = "p50, p95, p99, p99.9, max"
TIME = Interval(0, 1e9, "milliseconds from 0 on")
POSITIVE = Interval(0, 1e9, "milliseconds above 0", open_low=True)
SPREAD = Interval(0, 10, "a number above 0, up to 10", open_low=True)
REQUESTS = Interval(1, 1e12, "the number of requests, from 1 on")
SHARE = Interval(0, 1, "a share from 0 to below 1", open_high=True)
Z95 = 1.6448536269514722
"""The 95 % quantile of the standard normal distribution."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Times in ns, ascending, and how many requests they are worth."""

    values_ns: Values
    n_effective: float
    description: str
    stated: tuple[str, ...] = ()
    """The lines of the file that say so, to be written again."""


def shape_of(entry: Entry, form: str) -> Shape | None:
    """The distribution in the key `form` of a table; None with faults."""
    table = entry.values[form]
    if not isinstance(table, dict):
        entry.fault(form, f"{show(table)} is no table", f"{form} = {{ ... }}")
        return None
    inner = Entry(entry.file, table, lambda key: entry.where(f"{form}.{key}"), entry.faults)
    if form == "quantiles_ms":
        return quantile_shape(inner, entry)
    values = NAMED[form](inner)
    if values is not None and len(values) == 1 and entry.values.get("failed"):
        values = np.full(PARTS, values[0])
    n = entry.whole_number("n", REQUESTS)
    failed = entry.number("failed", SHARE) or 0.0
    if values is None or not entry.sound:
        return None
    worth = math.inf if n is None else float(n)
    told = ", ".join(f"{key} {value}" for key, value in table.items())
    stated = _stated(entry, form, inner)
    return Shape(_with_failures(values * MILLISECOND, failed), worth, f"{form}, {told}", stated)


def quantile_shape(told: Entry, entry: Entry) -> Shape | None:
    """Steps out of ``p50 = 120`` and so on; `entry` has ``n`` and ``failed``."""
    points = quantile_points(told)
    n = entry.whole_number("n", REQUESTS, required=True)
    failed = entry.number("failed", SHARE) or 0.0
    if not entry.sound or not points or n is None:
        return None
    shares = np.array(list(points))
    times = np.array([*points.values(), math.inf])
    last = np.ceil(shares * PARTS - 1e-6)  # rank of each quantile, as `empirical_quantile` has it
    values = times[np.searchsorted(last, np.arange(1, PARTS + 1), side="left")] * MILLISECOND
    named = ", ".join(_percent(share) for share in points)
    description = f"quantiles {named} of {n} requests"
    stated = _stated(entry, "quantiles_ms", told)
    return Shape(_with_failures(values, failed), float(n), description, stated)


def quantile_points(told: Entry) -> Mapping[float, float]:
    """Share to milliseconds, ascending in both; empty with faults."""
    points: dict[float, float] = {}
    for key in told.values:
        share = share_of(key)
        if share is None:
            told.fault(key, f"{show(key)} is no quantile", QUANTILE_KEYS)
            continue
        value = told.number(key, TIME, required=True)
        if share in points:
            told.fault(key, f"a second {_percent(share)}", "each quantile once")
        if value is not None:
            points[share] = value
    ordered = dict(sorted(points.items()))
    before = 0.0
    for share, value in ordered.items():
        if value < before:
            told.fault(_percent(share), f"{value:g} is below {before:g}", "quantiles that rise")
        before = value
    if not points and told.sound:
        told.fault("p50", "is missing", f"one quantile at least: {QUANTILE_KEYS}")
    return ordered if told.sound else {}


def share_of(key: str) -> float | None:
    """0.95 of ``p95``, 0.999 of ``p99.9`` or ``p99_9``; None for another word."""
    if key == "max":
        return 1.0
    found = QUANTILE.fullmatch(key)
    share = float(found[1].replace("_", ".")) / 100 if found else 0.0
    return round(share, 9) if share > 0 else None


def _stated(entry: Entry, form: str, told: Entry) -> tuple[str, ...]:
    inner = ", ".join(f"{json.dumps(key)} = {json.dumps(told.values[key])}" for key in told.values)
    others = [key for key in ("n", "failed") if key in entry.values]
    return (
        f"{form} = {{ {inner} }}",
        *(f"{key} = {json.dumps(entry.values[key])}" for key in others),
    )


def _percent(share: float) -> str:
    return "max" if share == 1 else f"p{share * 100:g}"


def _with_failures(values: Values, failed: float) -> Values:
    """The same with a share of requests that fail; none is rounded away."""
    count = math.ceil(failed / (1 - failed) * len(values) - 1e-9)
    return np.concatenate([values, np.full(count, math.inf)])


def _lognormal(told: Entry) -> Values | None:
    told.only(("median_ms", "sigma", "p95_ms"))
    median = told.number("median_ms", POSITIVE, required=True)
    sigma = told.number("sigma", SPREAD)
    p95 = told.number("p95_ms", POSITIVE)
    if (sigma is None) == (p95 is None) and told.sound:
        told.fault("sigma", "needs exactly one of sigma and p95_ms", "sigma, or p95_ms")
    if p95 is not None and median is not None and p95 <= median:
        told.fault("p95_ms", f"{p95:g} is not above the median {median:g}", "a larger p95")
    if not told.sound or median is None:
        return None
    spread = sigma if sigma is not None else math.log((p95 or median) / median) / Z95
    return np.asarray(median * np.exp(spread * special.ndtri(_shares())), dtype=np.float64)


def _gamma(told: Entry) -> Values | None:
    told.only(("mean_ms", "sd_ms"))
    mean = told.number("mean_ms", POSITIVE, required=True)
    spread = told.number("sd_ms", POSITIVE, required=True)
    if mean is None or spread is None:
        return None
    shape = (mean / spread) ** 2
    return np.asarray(special.gammaincinv(shape, _shares()) * mean / shape, dtype=np.float64)


def _normal(told: Entry) -> Values | None:
    told.only(("mean_ms", "sd_ms"))
    mean = told.number("mean_ms", POSITIVE, required=True)
    spread = told.number("sd_ms", POSITIVE, required=True)
    if mean is None or spread is None:
        return None
    return np.asarray(np.maximum(0.0, mean + spread * special.ndtri(_shares())), dtype=np.float64)


def _exponential(told: Entry) -> Values | None:
    told.only(("mean_ms", "least_ms"))
    mean = told.number("mean_ms", POSITIVE, required=True)
    least = told.number("least_ms", TIME) or 0.0
    if mean is not None and mean <= least:
        told.fault("mean_ms", f"{mean:g} is not above least_ms {least:g}", "a larger mean")
    if mean is None or not told.sound:
        return None
    return np.asarray(least - (mean - least) * np.log1p(-_shares()), dtype=np.float64)


def _uniform(told: Entry) -> Values | None:
    told.only(("least_ms", "most_ms"))
    least = told.number("least_ms", TIME, required=True)
    most = told.number("most_ms", TIME, required=True)
    if least is None or most is None:
        return None
    if most < least:
        told.fault("most_ms", f"{most:g} is below least_ms {least:g}", "a larger one")
        return None
    return np.asarray(least + (most - least) * _shares(), dtype=np.float64)


def _constant(told: Entry) -> Values | None:
    told.only(("value_ms",))
    value = told.number("value_ms", TIME, required=True)
    return None if value is None else np.full(1, value)


def _shares() -> Values:
    """Upper ends of equal parts, so that no time is too small; the last is 1 - 1 / (2 PARTS)."""
    shares = np.arange(1, PARTS + 1) / PARTS
    shares[-1] = 1 - 0.5 / PARTS
    return shares


NAMED: Mapping[str, Callable[[Entry], Values | None]] = {
    "lognormal": _lognormal,
    "gamma": _gamma,
    "normal": _normal,
    "exponential": _exponential,
    "uniform": _uniform,
    "constant": _constant,
}
"""Distributions by name, in milliseconds."""
