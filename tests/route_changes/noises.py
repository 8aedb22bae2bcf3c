"""Calm series of every kind that looks like a change to somebody. Round trips in ms."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy import signal

Values = npt.NDArray[np.float64]
Make = Callable[[np.random.Generator, int], Values]


def autoregressive(rng: np.random.Generator, n: int, correlation: float) -> Values:
    """Gaussian, variance 1, with this correlation of neighbours."""
    white = rng.standard_normal(n + 500)
    scale = float(np.sqrt(1 - correlation**2))
    result: Values = signal.lfilter([scale], [1, -correlation], white)[500:]
    return result


def _swell(rng: np.random.Generator, n: int) -> Values:
    """Two busy hours."""
    return np.maximum(0.0, np.sin(4 * np.pi * np.arange(n) / n + rng.uniform(0, 6)))


def _robin(n: int) -> Values:
    """Four paths in turn."""
    return np.resize(np.array([0.0, 1.0, 5.0, 9.0]), n)


NOISES: dict[str, Make] = {
    "Gaussian": lambda rng, n: 20 + 0.3 * rng.standard_normal(n),
    "gamma, shape 0.5": lambda rng, n: 20 + rng.gamma(0.5, 1, n),
    "Pareto, 1.1": lambda rng, n: 20 + 0.2 * rng.pareto(1.1, n),
    "two paths by chance": lambda rng, n: (
        20 + 10 * (rng.random(n) < 0.5) + 0.2 * rng.gamma(1, 1, n)
    ),
    "a path in ten": lambda rng, n: 20 + 10 * (rng.random(n) < 0.1) + 0.2 * rng.gamma(1, 1, n),
    "four paths in turn": lambda rng, n: 20 + _robin(n) + 0.2 * rng.gamma(1, 1, n),
    "whole milliseconds": lambda rng, n: np.round(20 + 0.7 * rng.gamma(1, 1, n)),
    "AR(1), 0.5": lambda rng, n: 20 + 0.3 * autoregressive(rng, n, 0.5),
    "AR(1), 0.9": lambda rng, n: 20 + 0.3 * autoregressive(rng, n, 0.9),
    "AR(1), 0.98": lambda rng, n: 20 + 0.3 * autoregressive(rng, n, 0.98),
    "bursts: exp of AR(1), 0.9": lambda rng, n: (
        20 + 0.3 * np.exp(1.5 * autoregressive(rng, n, 0.9))
    ),
    "busy hours, queue by chance": lambda rng, n: (
        20 + 3 * _swell(rng, n) * rng.gamma(1, 1, n) + 0.2 * rng.gamma(1, 1, n)
    ),
    "busy hours, all packets late": lambda rng, n: (
        20 + 3 * _swell(rng, n) + 0.2 * rng.gamma(1, 1, n)
    ),
}
