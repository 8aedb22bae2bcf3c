"""Whether two hops in a row look as MDA-Lite takes for granted: evenly spread and unmeshed.

Between two hops each vertex of the wider one has one neighbour, each of the narrower one the same
number of them. A vertex with more is meshed, one with fewer than others uneven; a flow that ends
before others do makes paths of unequal length (Vermeulen et al., IMC 2018, section 2.3).
"""

from collections.abc import Iterable, Iterator

from pathbudget.probes.trace.sightings import Sightings

FLOWS_PER_VERTEX = 4
"""Flows of each vertex that are looked at on both sides. A vertex with two neighbours shows only
one of them with probability 2 ** (1 - 4); all of a meshed diamond have to for it to go unnoticed.
"""
_UNLIKELY = 3.09
"""Normal quantile of 0.999: so rarely does an even spread look uneven."""
_LEAST_FLOWS = 16

Neighbours = dict[str, set[str]]


def is_uneven(counts: Iterable[int]) -> bool:
    """Whether so many flows each would be a surprise if all were equally likely (chi-square test;
    the quantile by Wilson and Hilferty, 1931).
    """
    numbers = list(counts)
    total, ways = sum(numbers), len(numbers)
    if ways < 2 or total < _LEAST_FLOWS:
        return False
    mean = total / ways
    statistic = sum((number - mean) ** 2 for number in numbers) / mean
    freedom = ways - 1
    spread = 2 / (9 * freedom)
    return bool(statistic > freedom * (1 - spread + _UNLIKELY * spread**0.5) ** 3)


def is_irregular(sights: Sightings, limit: int) -> bool:
    """Whether the step to this hop limit is anything that MDA-Lite does not look for."""
    after, before, ends = _neighbours(sights, limit)
    if len(before) < 2:
        return False
    if ends and len(before) > 1:
        return True  # some flows end here, others go on
    counts: dict[str, int] = {}
    for _, name in sights.named(limit):
        counts[name] = counts.get(name, 0) + 1
    if is_uneven(counts.values()):
        return True
    if len(after) < 2:
        return False
    forth = {len(one) for one in after.values()}
    back = {len(one) for one in before.values()}
    if len(after) >= len(before) and forth != {1}:
        return True
    if len(after) <= len(before) and back != {1}:
        return True
    return len(forth) > 1 or len(back) > 1


def missing(sights: Sightings, limit: int) -> Iterator[tuple[int, int]]:
    """Flows and hop limits still to be asked: some flows of each vertex, on both sides."""
    yield from _of_side(sights, limit - 1, limit)
    yield from _of_side(sights, limit, limit - 1)


def _of_side(sights: Sightings, here: int, there: int) -> Iterator[tuple[int, int]]:
    hop = sights.hops.get(there)
    if hop is None or hop.mute or hop.sprayed or there < sights.first_hop:
        return
    flows: dict[str, list[int]] = {}
    for flow, name in sights.named(here):
        if there < here or not sights.ended_at(flow, here):
            flows.setdefault(name, []).append(flow)
    if len(flows) < 2:
        return
    for members in flows.values():
        seen = 0
        for flow in members:
            sight = hop.sights.get(flow)
            seen += sight is not None and (sight.pending or bool(sight.names))
        for flow in members:
            if seen >= FLOWS_PER_VERTEX:
                break
            if flow not in hop.sights and sights.live(flow, there):
                seen += 1
                yield flow, there


def _neighbours(sights: Sightings, limit: int) -> tuple[Neighbours, Neighbours, bool]:
    """Who comes after whom, who before whom, and whether some flows end here but not all."""
    after: Neighbours = {}
    before: Neighbours = {}
    ended = passed = False
    for flow, name in sights.named(limit):
        ended |= sights.ended_at(flow, limit)
        passed |= not sights.ended_at(flow, limit)
        source = sights.name(flow, limit - 1)
        if source is not None:
            after.setdefault(source, set()).add(name)
            before.setdefault(name, set()).add(source)
    return after, before, ended and passed
