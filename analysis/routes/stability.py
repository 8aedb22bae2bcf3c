"""How stable the way of a series was: prevalence and persistence of its routes (Paxson 1996).

With ``k`` of ``n`` traces on a route its prevalence is ``k/n``, with the interval of Clopper and
Pearson, as if traces were independent; entropy is ``-sum(k/n log2 k/n)``. A stay lasts from its
first trace to its last one: the change before and the one after lie somewhere in a gap between two
traces, so a stay was longer by up to two gaps, and a return within one gap was not seen at all.

Changes that come as a Poisson process of rate ``r`` change the route between two traces that are
``d`` apart with probability ``1 - exp(-r d)``: ``c`` changes in ``m`` gaps give ``r = -ln(1 -
c/m)/d``, and the interval of ``c/m`` gives its interval.
"""

import itertools
import math
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from pathbudget.analysis.proportion import clopper_pearson
from pathbudget.analysis.routes.as_paths import as_path
from pathbudget.analysis.routes.canonical import Canonical, Sight, Words, representatives
from pathbudget.analysis.routes.model import (
    Granularity,
    PathObservation,
    RouteShare,
    RouteStability,
)
from pathbudget.analysis.routes.tracking import RouteTracker
from pathbudget.sites.prefix_table import Origins

DAY_NS = 86_400 * 10**9


def stability_of(
    observations: Sequence[PathObservation],
    granularity: Granularity = Granularity.ADDRESS,
    origins: Origins | None = None,
    *,
    sight: Sight | None = None,
) -> RouteStability:
    """Of the traces of one series, in any order. Raises ValueError without any, or with several.

    Traces that reach nobody are left out once one has reached the destination: they say nothing of
    the route.
    """
    if len({one.series for one in observations}) != 1:
        raise ValueError("stability is that of one series")
    ordered = sorted(observations, key=lambda one: (one.started_unix_ns, one.measurement))
    seen = sight or Sight(granularity, origins)
    looks, flutters = _looks(ordered, seen)
    times = [look.ended_ns for look in looks]
    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    gap_ns = float(statistics.median(gaps)) if gaps else 0.0
    changes = sum(one.route != other.route for one, other in itertools.pairwise(looks))
    rate, low, high = changes_per_day(changes, len(gaps), gap_ns)
    shares = _shares(looks)
    return RouteStability(
        series=ordered[0].series,
        granularity=seen.granularity,
        observations=len(looks),
        first_unix_ns=times[0],
        last_unix_ns=times[-1],
        gap_ns=gap_ns,
        routes=tuple(share for share, _ in shares),
        entropy_bits=_entropy([share.prevalence for share, _ in shares]),
        flutters=flutters,
        changes=changes,
        changes_per_day=rate,
        changes_low=low,
        changes_high=high,
        as_paths=tuple(as_path for _, as_path in shares) if any(a for _, a in shares) else (),
    )


def changes_per_day(changes: int, gaps: int, gap_ns: float) -> tuple[float, float, float]:
    """Rate of changes with its interval at 95 %; infinite where every gap has one."""
    low, high = clopper_pearson(changes, gaps)
    share = changes / gaps if gaps else 0.0
    rates = [_rate(share, gap_ns), _rate(low, gap_ns), _rate(high, gap_ns)]
    return rates[0], rates[1], rates[2]


def _rate(share: float, gap_ns: float) -> float:
    if share <= 0:
        return 0.0
    return -math.log1p(-share) * DAY_NS / gap_ns if share < 1 and gap_ns > 0 else math.inf


@dataclass(slots=True)
class _Look:
    """One trace: when it ended, and which route it shows."""

    ended_ns: int
    route: int
    paths: list[Canonical]
    as_paths: list[Words]


def _looks(ordered: Sequence[PathObservation], sight: Sight) -> tuple[list[_Look], int]:
    """All traces that count, and in how many of them flows fluttered."""
    tracker, looks, flutters, reached = RouteTracker(sight), list[_Look](), 0, False
    for observation in ordered:
        reaches = any(flow.reached for flow in observation.flows)
        if reached and not reaches:
            continue
        reached |= reaches
        step = tracker.see(observation)
        flutters += step.flutter
        paths = [sight.canonical(flow) for flow in observation.flows]
        looks.append(_Look(observation.ended_unix_ns, step.number, paths, _as(observation, sight)))
        for look in looks[len(looks) - step.traces :]:
            look.route = step.number
        if step.joined is not None:
            _relabel(looks, step.joined, step.number)
    return looks, flutters


def _relabel(looks: Sequence[_Look], joined: int, number: int) -> None:
    for look in looks:
        if look.route == joined:
            look.route = number


def _as(observation: PathObservation, sight: Sight) -> list[Words]:
    origins = sight.origins
    return [] if origins is None else [as_path(flow, origins) for flow in observation.flows]


@dataclass(slots=True)
class _Stays:
    """All stays on one route."""

    looks: list[_Look] = field(default_factory=list[_Look])
    lengths_ns: list[int] = field(default_factory=list[int])


def _shares(looks: Sequence[_Look]) -> list[tuple[RouteShare, Words]]:
    """Each route with its AS path, the most frequent first."""
    routes: dict[int, _Stays] = {}
    for number, stay in itertools.groupby(looks, key=lambda look: look.route):
        of_stay = list(stay)
        stays = routes.setdefault(number, _Stays())
        stays.looks += of_stay
        stays.lengths_ns.append(of_stay[-1].ended_ns - of_stay[0].ended_ns)
    ranked = sorted(routes.values(), key=lambda stays: (-len(stays.looks), stays.looks[0].ended_ns))
    return [_share(stays, len(looks)) for stays in ranked]


def _share(stays: _Stays, n: int) -> tuple[RouteShare, Words]:
    counted = Counter(path for look in stays.looks for path in look.paths)
    known = representatives(counted.items())
    if any(path.reached for path in known):
        known = {path: count for path, count in known.items() if path.reached}
    as_paths = Counter(words for look in stays.looks for words in look.as_paths)
    k = len(stays.looks)
    low, high = clopper_pearson(k, n)
    share = RouteShare(
        paths=frozenset(path.words for path in known),
        observations=k,
        prevalence=k / n,
        low=low,
        high=high,
        sojourns=len(stays.lengths_ns),
        mean_sojourn_ns=statistics.fmean(stays.lengths_ns),
        first_unix_ns=stays.looks[0].ended_ns,
        last_unix_ns=stays.looks[-1].ended_ns,
    )
    return share, min(as_paths, key=lambda words: (-as_paths[words], words), default=())


def _entropy(shares: Iterable[float]) -> float:
    return max(0.0, -sum(share * math.log2(share) for share in shares))
