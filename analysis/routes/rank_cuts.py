"""Where the distribution of a series changes: exact segmentation of its ranks.

The values of a window are counted in bins of their own ranks (finer at both tails), and a segment
costs the entropy of its counts: the cuts that make the whole cheapest, each at a price, are found
by a dynamic programme with pruning (PELT, Killick et al., JASA 107, 2012; the cost is that of
Haynes et al., Statistics and Computing 27, 2017, with few bins). Ranks of independent values are a
random permutation whatever their distribution, so that the price stands for the same rate of false
cuts under Gaussian, heavy-tailed and two-humped noise, and a spike is one value of the uppermost
bin.
"""

import math

import numpy as np
import numpy.typing as npt

from pathbudget.analysis.quantiles import Values

EDGES = (0.01, 0.06, 0.25, 0.5, 0.75, 0.94, 0.99)
"""Shares of the values below each edge between two bins."""

PRICE = 15.0
"""Log-likelihood that one more cut must gain: one false cut per 200,000 independent values."""

LEAST = 8
"""Fewer samples are no level: a burst, and part of the noise."""

COARSE_FROM = 256
"""Windows from this size on are first cut at every fourth sample, then to the sample."""

Counts = npt.NDArray[np.int64]


def rank_cuts(values: Values, *, price: float = PRICE, least: int = LEAST) -> list[int]:
    """Indices at which a segment begins, but for the first. `values` are finite, in order of time.

    Segments are cut again by ranks of their own, until nothing is gained: two levels may share a
    bin of the whole window.
    """
    step = 4 if len(values) >= COARSE_FROM else 1
    found: list[int] = []
    todo = [(0, len(values))]
    while todo:
        first, end = todo.pop()
        cuts = [first + cut for cut in _cheapest(values[first:end], price, least, step)]
        found += cuts
        if cuts:
            todo += zip([first, *cuts], [*cuts, end], strict=True)
    found.sort()
    return found if step == 1 else _to_the_sample(values, found, least)


def running_counts(values: Values, edges: Values | None = None) -> Counts:
    """How many of the first i values are in each bin, at [bin, i]; a bin has its upper edge."""
    if edges is None:
        ordered = np.sort(values)
        edges = ordered[[min(len(values) - 1, math.ceil(edge * len(values))) for edge in EDGES]]
    edges = np.unique(edges)
    bins = np.searchsorted(edges, values, side="left")
    counts = np.zeros((len(edges) + 1, len(values) + 1), dtype=np.int64)
    counts[bins, np.arange(1, len(values) + 1)] = 1
    return np.cumsum(counts, axis=1)


def entropy_table(n: int) -> Values:
    """k log k for k up to `n`."""
    whole = np.arange(n + 1, dtype=np.float64)
    whole[1:] *= np.log(whole[1:])
    return whole


def _cheapest(values: Values, price: float, least: int, step: int) -> list[int]:
    n = len(values)
    if n < 2 * least:
        return []
    counts, table = running_counts(values), entropy_table(n)
    ends = [*range(least, n - least + 1, step), n]
    best = np.full(n + 1, np.inf)
    came_from = np.zeros(n + 1, dtype=np.int64)
    best[0] = -price
    starts = np.zeros(1, dtype=np.int64)
    waiting: list[int] = []
    for number, end in enumerate(ends):
        while waiting and waiting[0] <= end - least:
            starts = np.append(starts, waiting.pop(0))
        inside = counts[:, end, None] - counts[:, starts]
        cost = best[starts] + table[end - starts] - table[inside].sum(axis=0)
        cheapest = int(np.argmin(cost))
        best[end] = cost[cheapest] + price
        came_from[end] = starts[cheapest]
        waiting.append(end)
        if number % 16 == 15:
            starts = starts[cost <= best[end]]
    return _walk_back(came_from, n)


def _walk_back(came_from: Counts, end: int) -> list[int]:
    cuts: list[int] = []
    while (end := int(came_from[end])) > 0:
        cuts.append(end)
    return cuts[::-1]


def _to_the_sample(values: Values, cuts: list[int], least: int) -> list[int]:
    """Each cut moved to where it gains most between its neighbours."""
    bounds = [0, *cuts, len(values)]
    for i in range(1, len(bounds) - 1):
        first, cut, end = bounds[i - 1 : i + 2]
        start, stop = max(first, cut - 64), min(end, cut + 64)
        gains = gains_of_cuts(values[start:stop], cut - start)
        low, high = max(first + least, cut - 6), min(end - least, cut + 6)
        if low <= high:
            bounds[i] = low + int(np.argmax(gains[low - start : high - start + 1]))
    return bounds[1:-1]


def gains_of_cuts(values: Values, near: int) -> Values:
    """Log-likelihood gained by one cut before each index, from 0 to the number of values.

    Two sides of a cut near `near` are told apart by what lies half-way between them.
    """
    n = len(values)
    sides = [np.quantile(part, (0.1, 0.5, 0.9)) for part in (values[:near], values[near:])]
    counts, table = running_counts(values, (sides[0] + sides[1]) / 2), entropy_table(n)
    before, places = table[counts].sum(axis=0), np.arange(n + 1)
    after = table[counts[:, -1:] - counts].sum(axis=0)
    whole = float(table[counts[:, -1]].sum())
    gains: Values = before - table[places] + after - table[n - places] - whole + table[n]
    return gains
