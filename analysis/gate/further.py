"""How many more samples would decide a check: an estimate, from the interval and the allowance.

The half of an interval on one side shrinks with the root of the number of samples. So the samples
that are wanted are those there are, times the square of (half width / distance to the allowance).
Autocorrelation is taken as it was. The answer is rounded up to two figures: it is no promise.
"""

import math
from statistics import NormalDist

from pathbudget.analysis.gate.checks import Numbers

MOST = 1_000_000_000
"""Beyond that many the value is as good as on the allowance: no number of samples decides."""


def fewest(percentile: float, confidence: float) -> int:
    """Independent samples from which a percentile has an upper limit at all: 72 for p95."""
    return math.ceil(math.log((1 - confidence) / 2) / math.log(percentile / 100) - 1e-9)


def further_samples(
    numbers: Numbers, allowance_ms: float, percentile: float, confidence: float
) -> int | None:
    """How many more samples; None where no number of them would decide."""
    if not numbers.n:
        return _rounded(fewest(percentile, confidence))
    worth = max(1.0, min(numbers.n_effective or numbers.n, numbers.n))
    per_independent = numbers.n / worth
    if numbers.high_ms is None or numbers.value_ms is None:
        wanted = _for_a_limit(numbers, percentile, confidence)
        return None if wanted is None else _more(wanted * per_independent, numbers.n)
    distance = abs(numbers.value_ms - allowance_ms) - numbers.noise_floor_ms
    if distance <= 0:
        return None
    is_above = numbers.value_ms > allowance_ms
    end = numbers.low_ms if is_above else numbers.high_ms
    width = abs(numbers.value_ms - (end or 0.0))
    wanted = worth * (width / distance) ** 2
    return _more(wanted * per_independent, numbers.n)


def _for_a_limit(numbers: Numbers, percentile: float, confidence: float) -> float | None:
    """Independent samples that give the percentile a limit, or show that it has none: the share of
    losses must be told apart from the share that the percentile can bear.
    """
    bearable = 1 - percentile / 100
    lost = numbers.losses / numbers.n
    if not numbers.losses:
        return fewest(percentile, confidence)
    if abs(bearable - lost) < 1e-9:
        return None
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    spread = max(lost * (1 - lost), bearable * (1 - bearable))
    return max(fewest(percentile, confidence), z * z * spread / (bearable - lost) ** 2)


def _more(wanted: float, n: int) -> int | None:
    """What is missing of `wanted`; at least a tenth, for what there is was not enough."""
    missing = max(wanted - n, 0.1 * n, 1.0)
    return None if missing > MOST else _rounded(missing)


def _rounded(count: float) -> int:
    """Up to two figures."""
    step = 10 ** max(0, math.floor(math.log10(count)) - 1) if count >= 1 else 1
    return math.ceil(count / step - 1e-9) * step
