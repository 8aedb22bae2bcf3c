"""Quantile intervals by resampling whole stretches of time: the second opinion on every interval.

Circular blocks (Politis and Romano, 1992), their length from the autocorrelation (Politis and
White, Econometric Reviews 23, 2004, as corrected by Patton, Politis and White, 2009). Ranks stand
for the values, so that losses and heavy tails have a correlation. docs/calibration.md has both
methods side by side, and why the lines use the other one.
"""

import math

import numpy as np
from scipy import fft

from pathbudget.analysis.quantiles import Values, empirical_quantile, interval_ranks, ranks_of

RESAMPLES = 1000
FEWEST_BLOCKS = 8
"""A block is never longer than this part of the samples."""
DRAWN_AT_ONCE = 2_000_000


def block_length(values: Values) -> int:
    """Length of the blocks in samples, for values in order of time; 1 where nothing correlates."""
    n = len(values)
    if n < 2 * FEWEST_BLOCKS:
        return 1
    covariances = _covariances(ranks_of(values))
    if covariances[0] <= 0:
        return 1
    cut = _last_lag(covariances / covariances[0], n)
    lags = np.arange(-cut, cut + 1)
    weights = np.clip(2 * (1 - np.abs(lags) / max(1, cut)), 0, 1)  # flat to a half, then falling
    around = weights * covariances[np.abs(lags)]
    slope, level = float(np.abs(lags) @ around), float(around.sum())
    if level <= 0 or slope <= 0:
        return 1
    length: float = (2 * slope**2 / (4 / 3 * level**2)) ** (1 / 3) * n ** (1 / 3)
    return max(1, min(n // FEWEST_BLOCKS, round(length)))


def bootstrap_interval(
    values: Values, p: float, confidence: float = 0.95, seed: int = 0
) -> tuple[float, float]:
    """Interval of quantile `p` of values in order of time; its upper end is inf where that is lost.

    Percentile interval of the share below the quantile, turned back into values: resampled shares
    scatter smoothly where resampled quantiles jump. Where `n` independent samples would set no
    limit, neither does this. Raises ValueError for no values.
    """
    ordered = np.sort(values)
    n = len(ordered)
    below = (values <= empirical_quantile(ordered, p)).astype(np.float64)
    shares = _resampled_means(below, block_length(values), np.random.default_rng(seed))
    tail = (1 - confidence) / 2
    error = np.quantile(shares - below.mean(), [tail, 1 - tail])
    lower, upper = interval_ranks(n, p, confidence)
    first, last = math.floor(n * (p + error[0])), math.ceil(n * (p + error[1])) + 1
    low = 0.0 if lower == 0 or first < 1 else float(ordered[first - 1])
    return low, math.inf if upper is None or last > n else float(ordered[last - 1])


def _covariances(values: Values) -> Values:
    """Autocovariance at every lag from 0, by Fourier transform."""
    n = len(values)
    spectrum = fft.rfft(values - values.mean(), fft.next_fast_len(2 * n, real=True))
    products: Values = fft.irfft(np.abs(spectrum) ** 2, fft.next_fast_len(2 * n, real=True))[:n]
    return products / n


def _last_lag(correlations: Values, n: int) -> int:
    """Twice the last lag that stands out before a run of lags that do not."""
    run = max(5, math.ceil(math.sqrt(math.log10(n))))
    longest = min(n - 1, math.ceil(math.sqrt(n)) + run)
    bound = 2 * math.sqrt(math.log10(n) / n)
    quiet = np.abs(correlations[1 : longest + 1]) < bound
    for lag in range(len(quiet) - run + 1):
        if quiet[lag : lag + run].all():
            return max(1, min(2 * lag, longest))
    return longest


def _resampled_means(values: Values, length: int, rng: np.random.Generator) -> Values:
    """Means of resamples of blocks, read off running sums of the values laid end to end twice."""
    n = len(values)
    blocks = math.ceil(n / length)
    sums = np.concatenate([[0.0], np.cumsum(np.concatenate([values, values[:length]]))])
    of_block = sums[length : n + length] - sums[:n]
    found = np.empty(RESAMPLES)
    step = max(1, DRAWN_AT_ONCE // blocks)
    for start in range(0, RESAMPLES, step):
        drawn = rng.integers(0, n, (min(step, RESAMPLES - start), blocks))
        found[start : start + step] = of_block[drawn].sum(axis=1)
    return found / (blocks * length)
