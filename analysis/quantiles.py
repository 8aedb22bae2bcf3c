"""Quantiles of samples with losses, and how far they can be trusted. No shape is assumed.

A lost probe is ``+inf``: it is slower than any number (RFC 2330 section 11.3 lets an undefined
value count as infinite). All intervals are made of order statistics, so they hold for any
distribution. Proportions `p` are in (0, 1); arrays are one-dimensional float64.
"""

import functools
import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

Values = npt.NDArray[np.float64]

STRONGEST_CORRELATION = 0.999
"""Larger ones would leave no sample at all."""

FEWEST_FOR_LAGS = 8
"""Of fewer samples only the first lag is looked at."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A quantile with its interval, in the unit of the samples.

    `value` and `high` may be ``inf`` (unbounded). `low` is 0 where the data sets no lower limit:
    no delay is negative.
    """

    value: float
    low: float
    high: float
    n: int
    n_effective: float


def empirical_quantile(ordered: Values, p: float) -> float:
    """Smallest x of the sorted values with F(x) >= p; the median of an even n is the mean of two.

    RFC 2330 section 11.3. Raises ValueError for no values at all.
    """
    n = len(ordered)
    if n == 0:
        raise ValueError("no samples, no quantile")
    if p == 0.5 and n % 2 == 0:
        return float(ordered[n // 2 - 1] + ordered[n // 2]) / 2
    return float(ordered[min(n, max(1, math.ceil(p * n - 1e-9))) - 1])


@functools.lru_cache(maxsize=65536)
def interval_ranks(n: int, p: float, confidence: float = 0.95) -> tuple[int, int | None]:
    """Ranks (1-based) of the order statistics that enclose quantile `p`.

    l = max with BinCDF(l-1) <= alpha/2, u = min with BinCDF(u-1) >= 1 - alpha/2, for a binomial of
    `n` and `p`. Rank 0 says there is no lower limit, None no upper one.
    """
    tail = (1 - confidence) / 2
    spread = 12 * math.sqrt(n * p * (1 - p)) + 12
    first = max(0, math.floor(n * p - spread))
    last = min(n, math.ceil(n * p + spread))
    below = special.bdtr(np.arange(first, last + 1, dtype=np.float64), n, p)
    lower = first + int(np.searchsorted(below, tail, side="right"))
    upper = first + int(np.searchsorted(below, 1 - tail, side="left")) + 1
    return lower, upper if upper <= n else None


def fewest_samples(p: float, confidence: float = 0.95, *, two_sided: bool = True) -> int:
    """How many independent samples give quantile `p` any upper limit: 72 for p95, 368 for p99."""
    tail = (1 - confidence) / (2 if two_sided else 1)
    return math.ceil(math.log(tail) / math.log(p) - 1e-9)


def loss_interval(losses: int, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Clopper-Pearson interval of a loss ratio (RFC 7680); (0, 1) for no probes at all."""
    tail = (1 - confidence) / 2
    low = 0.0 if losses == 0 else float(special.betaincinv(losses, n - losses + 1, tail))
    high = 1.0 if losses == n else float(special.betaincinv(losses + 1, n - losses, 1 - tail))
    return low, high


def ranks_of(values: Values) -> Values:
    """Ranks of the values, ties (all losses are one) at the mean of the places they share."""
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    mean_rank: Values = ends - (counts - 1) / 2
    return mean_rank[which]


def lag_one_correlation(values: Values) -> float | None:
    """Correlation of neighbours in time, of ranks: neither the unit nor a loss can dominate it.

    None where it is undefined: fewer than three samples, or all alike.
    """
    if len(values) < 3:
        return None
    centred = ranks_of(values)
    centred -= centred.mean()
    power = float(centred @ centred)
    return float(centred[1:] @ centred[:-1]) / power if power > 0 else None


def effective_size(n: int, correlation: float | None) -> float:
    """What `n` correlated samples are worth: n (1 - r) / (1 + r), that of an AR(1) process.

    A negative correlation is taken as none, so the result never exceeds `n`.
    """
    r = min(max(correlation or 0.0, 0.0), STRONGEST_CORRELATION)
    return n * (1 - r) / (1 + r)


def independent_size(values: Values) -> float:
    """What correlated samples, in order of time, are worth: n / (1 + 2 x sum of correlations).

    Of ranks, like `lag_one_correlation`. Lags are summed in pairs up to the first pair that does
    not stand out of chance by two standard errors (after Geyer, Statistical Science 7, 1992). An
    AR(1) process has no correlation beyond that of its first lag; delays do, where a slow swing
    lies under quick noise. The smaller of this and `effective_size` counts.
    """
    n = len(values)
    first = effective_size(n, lag_one_correlation(values))
    if n < FEWEST_FOR_LAGS:
        return first
    correlations = _correlations(ranks_of(values))
    pairs = correlations[2 : n // 2 * 2].reshape(-1, 2).sum(axis=1)
    ends = np.flatnonzero(pairs < 2 * math.sqrt(2 / n))
    beyond = float(pairs[: ends[0]].sum()) if len(ends) else float(pairs.sum())
    return min(first, n / (1 + 2 * (max(0.0, float(correlations[1])) + beyond)))


def _correlations(values: Values) -> Values:
    """Correlation at every lag from 0, by Fourier transform; zeros where all are alike."""
    n = len(values)
    spectrum = np.fft.rfft(values - values.mean(), 1 << (2 * n - 1).bit_length())
    products: Values = np.fft.irfft(np.abs(spectrum) ** 2)[:n]
    return products / products[0] if products[0] > 1e-9 * n else np.zeros(n)


@functools.lru_cache(maxsize=65536)
def widened_ranks(
    n: int, n_effective: float, p: float, confidence: float
) -> tuple[int, int | None]:
    """Ranks, among `n` samples, of the interval that `n_effective` independent ones would give.

    The l-th of m independent values has a share below it that is beta distributed with l and
    m + 1 - l, also for l and m that are no whole numbers; rank l of m is rank l (n + 1) / (m + 1)
    of n, rounded outwards. For n_effective = n these are the ranks of `interval_ranks`. All that is
    needed is these four numbers: counts from a database will do.
    """
    if abs(n_effective - n) <= 1e-9:
        return interval_ranks(n, p, confidence)
    size = max(1.0, n_effective)
    tail = (1 - confidence) / 2
    stretch = (n + 1) / (size + 1)
    has_lower = (1 - p) ** size <= tail
    lower = float(special.bdtrik(tail, size, p)) + 1 if has_lower else 0.0
    has_upper = p**size <= tail
    upper = float(special.bdtrik(1 - tail, size, p)) + 1 if has_upper else size + 1
    last = math.ceil(upper * stretch - 1e-9)
    return math.floor(lower * stretch + 1e-9), last if last <= n else None


def estimate_quantile(
    ordered: Values, p: float, *, n_effective: float | None = None, confidence: float = 0.95
) -> Estimate:
    """Quantile `p` of sorted values with its interval; raises ValueError for no values."""
    n = len(ordered)
    worth = float(n) if n_effective is None or math.isinf(n_effective) else n_effective
    value = empirical_quantile(ordered, p)
    lower, upper = widened_ranks(n, worth, p, confidence)
    low = float(ordered[lower - 1]) if lower else 0.0
    high = math.inf if upper is None else float(ordered[upper - 1])
    return Estimate(value=value, low=min(low, value), high=max(high, value), n=n, n_effective=worth)
