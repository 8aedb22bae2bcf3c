"""Which flows to ask at a hop, and how many: out of what was seen of them before."""

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator

from pathbudget.probes.trace import meshing
from pathbudget.probes.trace.sightings import SILENT, SOURCE, Hop, Sightings
from pathbudget.probes.trace.stopping import StoppingPoints, needed_for_share

MOST_FOR_UNEVEN = 4
"""Times as many flows as for even shares, at most, where next hops are seen to have uneven ones."""


class Live(Iterable[int]):
    """All flows that get as far as to a hop limit, in their order, for as long as they last."""

    def __init__(self, sights: Sightings, limit: int, flows: int) -> None:
        self._sights, self._limit, self._flows = sights, limit, flows

    def __iter__(self) -> Iterator[int]:
        """See the class."""
        ends, limit = self._sights.ends, self._limit
        return (flow for flow in range(self._flows) if ends.get(flow, limit) >= limit)


def passing(sights: Sightings, limit: int) -> dict[str, list[int]]:
    """By name, the flows that pass it at a hop limit and go on."""
    groups: dict[str, list[int]] = {}
    for flow, name in sorted(sights.named(limit)):
        if not sights.ended_at(flow, limit):
            groups.setdefault(name, []).append(flow)
    return groups


def fresh(sights: Sightings, name: str, limit: int, count: int, most: int) -> list[int]:
    """Flows below `most` not asked at a hop limit yet: first those known to pass who comes before
    `name`.
    """
    hop = sights.hop(limit)
    chosen = likely(sights, name, limit, count)
    first = set(chosen)
    rest: list[int] = []
    for flow in range(most):
        if len(chosen) >= count:
            break
        if flow in hop.sights or flow in first or not sights.live(flow, limit):
            continue
        known = sights.name(flow, limit - 1)
        (chosen if known in (None, SOURCE) else rest).append(flow)
    return (chosen + rest)[:count]


def likely(sights: Sightings, name: str, limit: int, count: int) -> list[int]:
    """Flows not asked at a hop limit yet that pass who comes before `name`."""
    hop = sights.hop(limit)
    named = [flow for flow, one in sights.named(limit) if one == name]
    before = {sights.name(flow, limit - 1) for flow in named} - {None}
    found = (
        flow
        for flow, one in sorted(sights.named(limit - 1))
        if one in before
        and flow not in hop.sights
        and sights.live(flow, limit)
        and not sights.ended_at(flow, limit - 1)
    )
    return list(itertools.islice(found, count))


def unasked(hop: Hop, members: Iterable[int], count: int) -> list[int]:
    """Those of the first `count` members that nobody has asked at this hop."""
    return [flow for flow in itertools.islice(members, count) if flow not in hop.sights]


def flows_needed(
    sights: Sightings, limit: int, members: Iterable[int], points: StoppingPoints, alpha: float
) -> int:
    """Flows that must be answered of those of one vertex (or hop)."""
    hop = sights.hop(limit)
    if isinstance(members, Live):
        members = [flow for flow in hop.sights if sights.live(flow, limit)]
    found: Counter[str] = Counter()
    for flow in members:
        sight = hop.sights.get(flow)
        if sight is not None:
            if sight.names:
                found[sight.names[-1]] += 1
            elif sights.name(flow, limit) is not None:
                found[SILENT] += 1
    needed = points.needed(len(found))
    if len(found) > 1 and meshing.is_uneven(found.values()):
        share = min(found.values()) / found.total()
        more = needed_for_share(share, alpha)
        needed = max(needed, min(more, MOST_FOR_UNEVEN * needed))
    return needed
