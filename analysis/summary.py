"""Statistics of one series, always with n, losses and intervals."""

import math

from pathbudget.analysis.distribution import distribution_of
from pathbudget.analysis.quantiles import (
    Estimate,
    Values,
    empirical_quantile,
    lag_one_correlation,
    loss_interval,
)
from pathbudget.analysis.results import Quantile, Summary
from pathbudget.analysis.series import NS_PER_MS, Series
from pathbudget.analysis.track import Track

PERCENTILES = (50.0, 90.0, 95.0, 99.0)
CURVE_POINTS = 101


def milliseconds(value_ns: float) -> float | None:
    """What a person reads; None for unbounded."""
    return None if math.isinf(value_ns) else value_ns / NS_PER_MS


def autocorrelation(track: Track) -> float | None:
    """Lag-1 correlation of ranks within each vantage, their mean by samples; None if undefined."""
    total, known = 0.0, 0
    for _, values in track.by_vantage():
        correlation = lag_one_correlation(values)
        if correlation is not None:
            total += correlation * len(values)
            known += len(values)
    return total / known if known else None


def as_quantile(percentile: float, estimate: Estimate) -> Quantile:
    """An estimate in ns as the result that a person reads."""
    return Quantile(
        percentile=percentile,
        value_ms=milliseconds(estimate.value),
        low_ms=milliseconds(estimate.low),
        high_ms=milliseconds(estimate.high),
        n=estimate.n,
        n_effective=estimate.n_effective,
    )


def summarise(series: Series, confidence: float = 0.95) -> Summary:
    """The summary of one series that has at least one sample."""
    track = series.track
    distribution = distribution_of(track)
    ordered = distribution.ordered
    n, losses = track.n, track.losses
    loss_low, loss_high = loss_interval(losses, n, confidence)
    return Summary(
        **series.key._asdict(),
        n=n,
        losses=losses,
        loss_ratio=losses / n,
        loss_low=loss_low,
        loss_high=loss_high,
        minimum_ms=milliseconds(float(ordered[0])),
        maximum_ms=milliseconds(float(ordered[n - losses - 1])) if losses < n else None,
        quantiles=tuple(
            as_quantile(percentile, distribution.estimate(percentile / 100, confidence))
            for percentile in PERCENTILES
        ),
        autocorrelation=autocorrelation(track),
        failures=dict(sorted(series.failures.items())),
        clock_sources=dict(sorted(series.clock_sources.items())),
        flags=dict(sorted(series.flags.items())),
        noise_floor_ms=None if series.noise_floor_ns is None else series.noise_floor_ns / NS_PER_MS,
        quantile_curve=quantile_curve(ordered),
        started_unix_ns=int(track.sent_unix_ns[0]),
        ended_unix_ns=int(track.sent_unix_ns[-1]),
    )


def quantile_curve(ordered: Values) -> tuple[tuple[float, float | None], ...]:
    """Points (p, ms) of the empirical quantile function, from the minimum to the maximum."""
    last = CURVE_POINTS - 1
    inner = (
        (i / last, milliseconds(empirical_quantile(ordered, i / last))) for i in range(1, last)
    )
    ends = milliseconds(float(ordered[0])), milliseconds(float(ordered[-1]))
    return ((0.0, ends[0]), *inner, (1.0, ends[1]))
