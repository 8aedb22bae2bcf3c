"""All ways of packets through a topology, and which addresses answer on them.

Nodes and links make a graph without circles for each destination; what is here walks it, so that
sets of hops and links stay small where the number of ways does not.
"""

from collections.abc import Callable, Iterator

from pathbudget.agents.lab.routing import NextHops
from pathbudget.agents.lab.topology import LinkPass

Way = tuple[LinkPass, ...]
AnswerOf = Callable[[LinkPass], str]
"""The address that answers when a hop limit ends behind this link; empty: nobody does."""

MOST_WAYS = 100_000


def ways(next_hops: NextHops, source: str, destination: str) -> list[Way]:
    """Every way, the preferred one first; none where packets end on the way.

    Raises LookupError when some of them go in a circle, or there are too many to list.
    """
    found: list[Way] = []
    for way in _walk(next_hops, source, destination, (), {source}):
        if len(found) == MOST_WAYS:
            raise LookupError(f"more than {MOST_WAYS:,} ways from {source} to {destination}")
        found.append(way)
    return found


def _walk(
    next_hops: NextHops, at: str, destination: str, taken: Way, passed: set[str]
) -> Iterator[Way]:
    if at == destination:
        yield taken
        return
    for step in next_hops[at].get(destination, ()):
        if step.destination in passed:
            raise LookupError(f"packets to {destination} go in a circle at {step.destination}")
        further = passed | {step.destination}
        yield from _walk(next_hops, step.destination, destination, (*taken, step), further)


def check(next_hops: NextHops, source: str, destination: str) -> None:
    """Raise LookupError where some packets do not arrive: they end on the way or go in a circle."""
    sound: set[str] = {destination}
    passing: set[str] = set()

    def look(at: str) -> None:
        if at in sound:
            return
        if at in passing:
            circle = f"packets from {source} to {destination} go in a circle at {at}"
            raise LookupError(circle)
        steps = next_hops[at].get(destination)
        if not steps:
            raise LookupError(f"no way from {source} to {destination}: it ends at {at}")
        passing.add(at)
        for step in steps:
            look(step.destination)
        passing.remove(at)
        sound.add(at)

    look(source)


def steps_by_hop(next_hops: NextHops, source: str, destination: str) -> list[list[LinkPass]]:
    """For every hop limit the links that a packet may pass as its last. Never explodes."""
    hops: list[list[LinkPass]] = []
    here = [source]
    while len(hops) <= len(next_hops):
        steps = [
            step for at in here if at != destination for step in next_hops[at].get(destination, ())
        ]
        if not steps:
            return hops
        hops.append(steps)
        here = list(dict.fromkeys(step.destination for step in steps))
    raise LookupError(f"packets from {source} to {destination} go in a circle")


def addresses_by_hop(hops: list[list[LinkPass]], answer_of: AnswerOf) -> list[frozenset[str]]:
    """Who may answer at each hop limit; an empty address among them where one is silent."""
    return [frozenset(answer_of(step) for step in steps) for steps in hops]


def address_links(
    next_hops: NextHops, hops: list[list[LinkPass]], destination: str, answer_of: AnswerOf
) -> frozenset[tuple[int, str, str]]:
    """(hop limit, address there, address at the next): every true link between answers."""
    return frozenset(
        (limit, answer_of(step), answer_of(following))
        for limit, steps in enumerate(hops, start=1)
        for step in steps
        if step.destination != destination
        for following in next_hops[step.destination].get(destination, ())
    )
