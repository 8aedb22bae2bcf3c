"""Whether two samples may be of one distribution, where the ground itself shakes a little.

Kolmogorov and Smirnov's test, each side granted a shift: the hypothesis is that the quantiles of
the two differ nowhere by more than `slack`. With a slack of 0 it is the usual test. Many pairs are
judged together by Holm's procedure.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.stats import ks_2samp, kstwo


def p_value(one: Sequence[float], other: Sequence[float], slack: float = 0.0) -> float:
    """Two-sided, from the larger of the two one-sided distances: never too small."""
    first, second = np.asarray(one), np.asarray(other)
    # Is `first` later than `second` even where it is granted the slack, or earlier?
    later = ks_2samp(first - slack, second, alternative="less", method="asymp").statistic
    earlier = ks_2samp(first + slack, second, alternative="greater", method="asymp").statistic
    n, m = len(first), len(second)
    return float(kstwo.sf(max(later, earlier), round(n * m / (n + m))))


def rejected(p_values: Mapping[str, float], level: float) -> dict[str, float]:
    """Those that are rejected at `level` for all together (Holm 1979)."""
    found: dict[str, float] = {}
    for rank, (name, value) in enumerate(sorted(p_values.items(), key=lambda item: item[1])):
        if value > level / (len(p_values) - rank):
            break
        found[name] = value
    return found
