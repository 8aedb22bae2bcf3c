"""Latency under load: what the round trip becomes while our own traffic fills the path."""

import numpy as np

from pathbudget.analysis.quantiles import (
    Estimate,
    Values,
    estimate_quantile,
    independent_size,
)


def added_by_load(
    idle_ns: Values, loaded_ns: Values, p: float, confidence: float = 0.95
) -> Estimate | None:
    """Quantile `p` loaded less the same quantile idle, ns; None where either has no samples.

    Each quantile gets its order-statistic interval at half of the permitted error, so the
    difference of their far ends holds with the confidence asked for. Values in order of time,
    losses ``inf``. An end is infinite where the data sets no limit.
    """
    if not len(idle_ns) or not len(loaded_ns):
        return None
    each = 1 - (1 - confidence) / 2
    idle, loaded = (
        estimate_quantile(np.sort(values), p, n_effective=independent_size(values), confidence=each)
        for values in (idle_ns, loaded_ns)
    )
    return Estimate(
        value=_difference(loaded.value, idle.value),
        low=_difference(loaded.low, idle.high, unknown=-np.inf),
        high=_difference(loaded.high, idle.low),
        n=min(idle.n, loaded.n),
        n_effective=min(idle.n_effective, loaded.n_effective),
    )


def _difference(a: float, b: float, unknown: float = np.inf) -> float:
    """a - b, where infinity less infinity is not known."""
    return unknown if np.isinf(a) and np.isinf(b) else a - b
