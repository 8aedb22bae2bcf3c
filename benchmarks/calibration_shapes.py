"""Shapes of simulated campaigns, for calibration.py and calibration_further.py, in ms."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import signal

START = 1_790_035_200_000_000_000
"""A midnight."""

Values = npt.NDArray[np.float64]
Rng = np.random.Generator


@dataclass(frozen=True)
class Shape:
    """Campaigns of `n` samples, one every `gap_s` seconds; `make` gives ms, one campaign a row."""

    name: str
    n: int
    gap_s: float
    make: Callable[[Rng, int, int], Values]
    independent: bool = False
    cold_every: int = 0
    """Of so many round trips one is beside a cold set-up; 10 % of the traffic is cold then."""
    infinite: float = 1.0
    """Quantiles from this share on are lost."""


def normal(rng: Rng, campaigns: int, n: int) -> Values:
    return rng.standard_normal((campaigns, n))


def autoregressive(rng: Rng, campaigns: int, n: int, r: float) -> Values:
    noise = normal(rng, campaigns, n) * math.sqrt(1 - r * r)
    noise[:, 0] /= math.sqrt(1 - r * r)
    found: Values = signal.lfilter([1.0], [1.0, -r], noise, axis=1)
    return found


def delays(noise: Values) -> Values:
    return 20 * np.exp(0.3 * noise)


def swinging(rng: Rng, campaigns: int, n: int) -> Values:
    slow = autoregressive(rng, campaigns, n, math.exp(-1 / 60))
    return delays(math.sqrt(0.3) * slow + math.sqrt(0.7) * normal(rng, campaigns, n))


def episodes(rng: Rng, campaigns: int, n: int, on: float, off: float) -> npt.NDArray[np.bool_]:
    """A two-state Markov chain with mean durations `on` and `off`."""
    draws = rng.random((campaigns, n))
    states = np.empty((campaigns, n), dtype=bool)
    states[:, 0] = draws[:, 0] < on / (on + off)
    for i in range(1, n):
        states[:, i] = np.where(states[:, i - 1], draws[:, i] >= 1 / on, draws[:, i] < 1 / off)
    return states


def two_paths(rng: Rng, campaigns: int, n: int) -> Values:
    is_longer = rng.random((campaigns, n)) < 0.3
    return np.where(is_longer, 26.0, 20.0) + rng.exponential(1.0, (campaigns, n))


def two_kept_paths(rng: Rng, campaigns: int, n: int) -> Values:
    is_longer = episodes(rng, campaigns, n, 15, 35)
    return np.where(is_longer, 26.0, 20.0) + rng.exponential(1.0, (campaigns, n))


def pareto(rng: Rng, campaigns: int, n: int) -> Values:
    return 20 + 2 * rng.random((campaigns, n)) ** (-1 / 1.3)


def congested(rng: Rng, campaigns: int, n: int) -> Values:
    """Queues in episodes of six samples, with a heavy tail."""
    queued = episodes(rng, campaigns, n, 6, 60) * 2 * rng.random((campaigns, n)) ** (-1 / 1.5)
    return 20 + rng.exponential(1.0, (campaigns, n)) + queued


def lossy(rng: Rng, campaigns: int, n: int) -> Values:
    values = delays(normal(rng, campaigns, n))
    values[rng.random((campaigns, n)) < 0.01] = np.inf
    return values


def lossy_in_bursts(rng: Rng, campaigns: int, n: int) -> Values:
    values = delays(normal(rng, campaigns, n))
    values[episodes(rng, campaigns, n, 3, 297)] = np.inf
    return values


def lossy_in_long_bursts(rng: Rng, campaigns: int, n: int) -> Values:
    values = delays(normal(rng, campaigns, n))
    values[episodes(rng, campaigns, n, 10, 990)] = np.inf
    return values


def daily(per_day: float) -> Callable[[Rng, int, int], Values]:
    """An evening whose level and queues are higher, every day alike."""

    def make(rng: Rng, campaigns: int, n: int) -> Values:
        evening = np.maximum(0, np.cos(2 * np.pi * (np.arange(n) / per_day - 0.85))) ** 4
        queues = rng.exponential(1.5, (campaigns, n))
        return 20 * (1 + 0.5 * evening) + (1 + 2 * evening) * queues

    return make


def days(per_day: int, r: float, uneven: float = 0.0) -> Callable[[Rng, int, int], Values]:
    """The same evenings with queues that are correlated, and that differ from day to day."""

    def make(rng: Rng, campaigns: int, n: int) -> Values:
        evening = np.maximum(0, np.cos(2 * np.pi * (np.arange(n) / per_day - 0.85))) ** 4
        heights = np.exp(uneven * normal(rng, campaigns, n // per_day) - uneven**2 / 2)
        evenings = evening * np.repeat(heights, per_day, axis=1)
        queues = 1.5 * np.exp(0.5 * autoregressive(rng, campaigns, n, r))
        return 20 * (1 + 0.5 * evenings) + (1 + 2 * evenings) * queues

    return make


LIMITS = (
    Shape("daily, AR(1), 0.6, 1 day", 1440, 60, days(1440, 0.6)),
    Shape("daily, AR(1), 0.9, 2 days", 2880, 60, days(1440, 0.9)),
    Shape("daily, AR(1), 0.6, 3 days", 4320, 60, days(1440, 0.6)),
    Shape("daily, AR(1), 0.8, 7 days", 5040, 120, days(720, 0.8)),
    Shape("uneven evenings, 7 days", 5040, 120, days(720, 0.0, 0.3)),
    Shape("uneven evenings, 14 days", 5040, 240, days(360, 0.0, 0.3)),
    Shape("AR(1), 0.99", 20_000, 10, lambda r, c, n: delays(autoregressive(r, c, n, 0.99))),
    Shape("1 % loss in bursts of ten", 5000, 10, lossy_in_long_bursts, infinite=0.99),
)
"""Shapes that are harder than intervals can be trusted for."""

SHAPES = (
    Shape("independent", 500, 10, lambda r, c, n: delays(normal(r, c, n)), independent=True),
    Shape("independent", 3000, 10, lambda r, c, n: delays(normal(r, c, n)), independent=True),
    Shape("AR(1), 0.6", 2000, 10, lambda r, c, n: delays(autoregressive(r, c, n, 0.6))),
    Shape("AR(1), 0.9", 5000, 10, lambda r, c, n: delays(autoregressive(r, c, n, 0.9))),
    Shape("slow swing of 10 min", 5000, 10, swinging),
    Shape("slow swing of 10 min, 1 day", 8640, 10, swinging),
    Shape("daily, 3 days", 4320, 60, daily(1440)),
    Shape("daily, 7 days", 5040, 120, daily(720)),
    Shape("daily, 1 day only", 1440, 60, daily(1440)),
    Shape("two ECMP paths", 2000, 10, two_paths, independent=True),
    Shape("two ECMP paths, kept", 4000, 10, two_kept_paths),
    Shape("heavy tail (Pareto 1.3)", 2000, 10, pareto, independent=True),
    Shape("heavy tail in episodes", 4000, 10, congested),
    Shape("1 % loss", 2000, 10, lossy, independent=True, infinite=0.99),
    Shape("1 % loss in bursts", 5000, 10, lossy_in_bursts, infinite=0.99),
    Shape(
        "90 % warm, 10 % cold",
        2000,
        10,
        lambda r, c, n: delays(autoregressive(r, c, n, 0.6)),
        cold_every=4,
    ),
)
