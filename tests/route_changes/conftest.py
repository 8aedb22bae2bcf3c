"""Series of round trips, made to order."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from pathbudget.analysis.routes.model import PathSeries
from pathbudget.probes.record import AddressFamily

Values = npt.NDArray[np.float64]
Times = npt.NDArray[np.int64]
MS = 1e6
SECOND = 1_000_000_000
SERIES = PathSeries("v", "tokyo", "dallas", "t", "192.0.2.1", AddressFamily.IPV4, "icmp")


@pytest.fixture
def series() -> PathSeries:
    return SERIES


@pytest.fixture
def poisson() -> Callable[[int, int], Times]:
    """Times of so many sends, one a second on average, by seed."""

    def times(n: int, seed: int) -> Times:
        gaps = np.random.default_rng(seed).exponential(SECOND, n)
        return (1_790_000_000 * SECOND + np.cumsum(gaps)).astype(np.int64)

    return times
