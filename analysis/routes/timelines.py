"""Delay of a series over time in equal buckets, for people to look at."""

import itertools

import numpy as np

from pathbudget.analysis.quantiles import Values, empirical_quantile
from pathbudget.analysis.routes.model import PathSeries
from pathbudget.analysis.routes.route_report import Timeline
from pathbudget.analysis.track import Track

MOST_BUCKETS = 480
BUCKETS_NS = tuple(
    round(seconds * 1e9)
    for seconds in (0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 300, 600, 1800, 3600, 10800, 21600, 86400)
)


def bucket_of(first_unix_ns: int, last_unix_ns: int) -> int:
    """The shortest length that needs no more than `MOST_BUCKETS`."""
    length = max(1, last_unix_ns - first_unix_ns)
    day = BUCKETS_NS[-1]
    fitting = [one for one in BUCKETS_NS if length <= one * (MOST_BUCKETS - 1)]
    return fitting[0] if fitting else day * -(-length // (day * (MOST_BUCKETS - 1)))


def timeline(series: PathSeries, metric: str, track: Track, bucket_ns: int) -> Timeline:
    """Quantiles count losses as infinite; None where all are lost, or nothing was sent."""
    sent = track.sent_unix_ns
    first = int(sent[0]) // bucket_ns
    count = int(sent[-1]) // bucket_ns - first + 1
    edges = np.searchsorted(sent, (first + np.arange(count + 1)) * bucket_ns)
    parts = [np.sort(track.values_ns[a:b]) for a, b in itertools.pairwise(edges)]
    return Timeline(
        series=series,
        metric=metric,
        starts_unix_ns=tuple((first + i) * bucket_ns for i in range(count)),
        bucket_ns=bucket_ns,
        p50_ns=tuple(_quantile(part, 0.5) for part in parts),
        p95_ns=tuple(_quantile(part, 0.95) for part in parts),
        minimum_ns=tuple(_quantile(part, 1e-9) for part in parts),
        loss=tuple(float(np.mean(np.isinf(part))) if len(part) else 0.0 for part in parts),
        n=tuple(len(part) for part in parts),
    )


def _quantile(ordered: Values, p: float) -> float | None:
    if not len(ordered):
        return None
    value = empirical_quantile(ordered, p)
    return value if np.isfinite(value) else None
