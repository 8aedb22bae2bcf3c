"""The line that lies below all delays and as near to them as can be: how clock skew is found.

Moon, Skelly and Towsley (INFOCOM 1999): delays are never shorter than the path, so the lower
envelope of transit times over time shows the skew of the two clocks, whatever the queues do. Here
both directions share it: it tilts one way's envelope up and the other's down by the same amount.
Times and transits are float64 arrays in ns, in order of time.
"""

import numpy as np
import numpy.typing as npt

from pathbudget.analysis.quantiles import Values

Indices = npt.NDArray[np.intp]

PASSES = 24
"""Rounds of dropping points that lie above their neighbours, before the exact hull is walked."""


def lower_hull(times: Values, values: Values) -> Indices:
    """Indices of the corners of the lower convex hull, in order of time. At least one point.

    Of several points of one time only the lowest counts.
    """
    order = np.lexsort((values, times))
    first = np.concatenate(([True], np.diff(times[order]) > 0))
    kept = order[first]
    for _ in range(PASSES):
        inner = _below_neighbours(times[kept], values[kept])
        if inner.all():
            break
        kept = kept[inner]
    return _walk(times, values, kept)


def _below_neighbours(times: Values, values: Values) -> npt.NDArray[np.bool_]:
    """Whether each point is below the chord of its neighbours; the ends always are.

    A point above a chord of two others is no corner, so all such points can go at once.
    """
    below = np.ones(len(times), dtype=np.bool_)
    if len(times) > 2:
        share = (times[1:-1] - times[:-2]) / (times[2:] - times[:-2])
        below[1:-1] = values[1:-1] < values[:-2] + share * (values[2:] - values[:-2])
    return below


def _walk(times: Values, values: Values, kept: Indices) -> Indices:
    """Andrew's monotone chain."""
    corners: list[int] = []
    for i in (int(place) for place in kept):
        while len(corners) > 1 and _turns_up(times, values, corners[-2], corners[-1], i) <= 0:
            corners.pop()
        corners.append(i)
    return np.array(corners, dtype=np.intp)


def _turns_up(times: Values, values: Values, a: int, b: int, c: int) -> float:
    """Positive where the way from a over b to c bends upwards."""
    left = float(times[b] - times[a]) * float(values[c] - values[a])
    return left - float(times[c] - times[a]) * float(values[b] - values[a])


def shared_skew(times: Values, forward: Values, reverse: Values) -> float:
    """Skew s, ns per ns, with the envelopes a + s t of `forward` and b - s t of `reverse`.

    The linear programme of Moon et al. for both directions at once: the largest a + b, that is the
    smallest mean distance of all packets from their envelopes. Its optimum is a slope of one of
    the two hulls. 0 for fewer than two times.
    """
    above, below = lower_hull(times, forward), lower_hull(times, reverse)
    candidates = np.concatenate(
        (_slopes(times[above], forward[above]), -_slopes(times[below], reverse[below]))
    )
    if not len(candidates):
        return 0.0
    bases = _bases(times[above], forward[above], candidates)
    bases += _bases(times[below], reverse[below], -candidates)
    best = np.flatnonzero(bases >= bases.max() - 1e-6)
    return float(candidates[best[np.argmin(np.abs(candidates[best]))]])


def _slopes(times: Values, values: Values) -> Values:
    return np.diff(values) / np.diff(times)


def _bases(times: Values, values: Values, slopes: Values) -> Values:
    """The base of the envelope for every slope: min of value - slope x time."""
    result: Values = (values[None, :] - slopes[:, None] * times[None, :]).min(axis=1)
    return result
