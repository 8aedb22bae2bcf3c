"""Interval of a share without numpy or scipy: an agent on a small host judges hops with it."""

import functools
import math

ITERATIONS, TINY, CLOSE = 300, 1e-300, 1e-14
HALVINGS = 45


@functools.lru_cache(maxsize=4096)
def clopper_pearson(hits: int, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Exact interval of a share of `hits` in `n`; (0, 1) of none at all.

    Clopper and Pearson, Biometrika 26 (1934): the shares at which `hits` or more, or `hits` or
    fewer, would be as rare as half of what `confidence` leaves.
    """
    tail = (1 - confidence) / 2
    low = 0.0 if hits == 0 else _beta_quantile(hits, n - hits + 1, tail)
    high = 1.0 if hits == n else _beta_quantile(hits + 1, n - hits, 1 - tail)
    return low, high


def _beta_quantile(a: int, b: int, wanted: float) -> float:
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if _beta_share(a, b, middle) < wanted:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _beta_share(a: int, b: int, x: float) -> float:
    """Regularised incomplete beta function I_x(a, b), from the side where its fraction is quick."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - _beta_share(b, a, 1 - x)
    scale = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    front = math.exp(scale + a * math.log(x) + b * math.log1p(-x))
    return front * _fraction(a, b, x) / a


def _fraction(a: int, b: int, x: float) -> float:
    """The continued fraction of I_x(a, b) (DLMF 8.17.22), from the front (Lentz)."""
    c, d = 1.0, 1 / _away(1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, ITERATIONS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / _away(1 + term * d)
            c = _away(1 + term / c)
            value *= c * d
        if abs(c * d - 1) < CLOSE:
            break
    return value


def _away(value: float) -> float:
    """Away from zero, by which is divided."""
    return value if abs(value) > TINY else TINY
