"""Intervals that hold at every look, so that measuring may stop as soon as it is decided.

Looking again and again at a 95 % interval until it decides is wrong far oftener than in 5 %. An
always-valid interval holds the quantile at *all* times at once with that confidence (confidence
sequences for quantiles: Howard and Ramdas, Bernoulli 28, 2022). Ours inverts a martingale: the
likelihood of the number of samples below the quantile, mixed over a beta prior, against that of
`p`. By Ville's inequality it ever exceeds 1 / alpha with probability alpha at most. That is exact
for independent samples. For correlated ones it counts what they are worth, which is asymptotic;
docs/calibration.md says how often it was wrong.
"""

import functools
import math
from collections.abc import Sequence

import numpy as np
from scipy import special

from pathbudget.analysis.mixture import Part, mixture_estimate
from pathbudget.analysis.quantiles import Estimate

TIGHTEST_AT = 1000
"""Number of samples around which the interval is as narrow as it can be."""


@functools.lru_cache(maxsize=65536)
def sequence_ranks(n: int, p: float, confidence: float = 0.95) -> tuple[int, int | None]:
    """Ranks (1-based) that enclose quantile `p` at every number of samples `n` at once.

    Rank 0 says there is no lower limit, None no upper one.
    """
    least, most = _counts(float(n), p, confidence)
    lower = math.floor(least) + 1 if least >= 0 else 0
    upper = math.ceil(most)
    return lower, upper if upper <= n else None


@functools.lru_cache(maxsize=65536)
def one_look_confidence(size: float, p: float, confidence: float = 0.95) -> float:
    """Confidence of the interval for one look that is as wide as the always-valid one.

    `size` is what the samples are worth. This carries the always-valid interval over to mixtures
    and correlated samples.
    """
    least, most = _counts(max(1.0, size), p, confidence)
    below = 0.0 if least < 0 else float(special.betainc(size - least, least + 1, 1 - p))
    above = 0.0 if most > size else float(special.betainc(most, size - most + 1, p))
    tails = [tail for tail in (below, above) if tail > 0]
    return 1 - 2 * min(tails, default=(1 - confidence) / 20)


def always_valid_mixture(
    parts: Sequence[Part], p: float, *, missing_weight: float = 0.0, confidence: float = 0.95
) -> Estimate:
    """`mixture_estimate` with an interval that may be looked at whenever one likes."""
    once = mixture_estimate(parts, p, missing_weight=missing_weight, confidence=confidence)
    wider = one_look_confidence(round(once.n_effective, 1), p, confidence)
    return mixture_estimate(parts, p, missing_weight=missing_weight, confidence=wider)


def _counts(n: float, p: float, confidence: float) -> tuple[float, float]:
    """Least and most number of samples below the quantile that are still believed; -1 for none."""
    threshold = -math.log(1 - confidence)
    least = _root(n, p, threshold, 0.0)
    most = _root(n, p, threshold, n)
    return (-1.0 if least is None else least), (n + 1 if most is None else most)


def _root(n: float, p: float, threshold: float, end: float) -> float | None:
    """Where between n p and an end the martingale reaches the threshold; None for nowhere.

    It is convex in the count and at most 1 at n p.
    """
    if _log_martingale(end, n, p) < threshold:
        return None
    inside, outside = n * p, end
    for _ in range(60):
        middle = (inside + outside) / 2
        if _log_martingale(middle, n, p) < threshold:
            inside = middle
        else:
            outside = middle
    return outside


def _log_martingale(k: float, n: float, p: float) -> float:
    """Log of the mixed likelihood of k of n against that of p."""
    weight = TIGHTEST_AT / 8
    a, b = p * weight, (1 - p) * weight
    mixed = special.betaln(a + k, b + n - k) - special.betaln(a, b)
    return float(mixed - k * np.log(p) - (n - k) * np.log1p(-p))
