"""Simulated campaigns with known quantiles. Marginally all of them are 20 exp(0.3 z)."""

import math

import numpy as np
import numpy.typing as npt
from scipy import signal, special

from pathbudget.analysis.distribution import Distribution, distribution_of
from pathbudget.analysis.quantiles import Estimate, Values
from pathbudget.analysis.track import Track

MIDNIGHT = 1_790_035_200_000_000_000
SECOND = 1_000_000_000


def autoregressive(rng: np.random.Generator, campaigns: int, n: int, r: float) -> Values:
    """Shape (campaigns, n); r = 0 is independent."""
    noise = rng.standard_normal((campaigns, n)) * math.sqrt(1 - r * r)
    noise[:, 0] /= math.sqrt(1 - r * r)
    found: Values = signal.lfilter([1.0], [1.0, -r], noise, axis=1)
    return 20 * np.exp(0.3 * found)


def truth(p: float) -> float:
    """The quantile of all of them."""
    return 20 * math.exp(0.3 * float(special.ndtri(p)))


def track_of(values: Values, gap_s: float = 10.0, start_unix_ns: int = MIDNIGHT) -> Track:
    """One vantage, one sample every so many seconds."""
    sent: npt.NDArray[np.int64] = start_unix_ns + (np.arange(len(values)) * gap_s * SECOND).astype(
        np.int64
    )
    return Track(sent, values, np.zeros(len(values), dtype=np.int64))


def distributions(rows: Values, gap_s: float = 10.0) -> list[Distribution]:
    """One per campaign."""
    return [distribution_of(track_of(row, gap_s)) for row in rows]


def held(estimates: list[Estimate], value: float, stretch: float = 1.0) -> float:
    """Share of intervals that hold a value, each stretched about its estimate."""
    inside = [
        one.value - stretch * (one.value - one.low)
        <= value
        <= one.value + stretch * (one.high - one.value)
        for one in estimates
    ]
    return sum(inside) / len(inside)
