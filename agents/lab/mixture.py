"""What packets may meet on all their ways, with the share that meets it.

Ways are many (8 x 8 x 8 and the same back), but what they do to packets differs little: so the
sums below run over kinds of ways, not over ways.
"""

import functools
from collections.abc import Iterable

from pathbudget.agents.lab.link import DirectionModel
from pathbudget.agents.lab.routing import NextHops
from pathbudget.agents.lab.topology import NodeKind
from pathbudget.agents.lab.world import World

Models = tuple[DirectionModel, ...]
"""What one packet meets on its way, in the order of the way where there is but one."""
Legs = tuple[tuple[str, str], ...]
"""From where to where, one after the other."""

MOST_KINDS = 20_000


def legs(world: World, source: str, destination: str) -> Legs:
    """The way of a packet. To a region behind address translation it leads over the translator."""
    for step in world.passes[destination]:
        translator = world.nodes[step.destination]
        inside = world.nodes[destination].kind is NodeKind.REGION
        if inside and translator.hop.translation and source != translator.name:
            if not any(
                pass_.source == translator.name for pass_ in world.path(destination, source)
            ):
                continue
            return ((source, translator.name), (translator.name, destination))
    return ((source, destination),)


def mixture(next_hops: NextHops, loop: Legs) -> dict[Models, float]:
    """Shares of the packets by what they meet, if every choice is by lot.

    Raises LookupError where packets do not arrive, or there are too many kinds of ways.
    """
    whole: dict[Models, float] = {(): 1.0}
    for source, destination in loop:
        whole = _joined(whole, _leg(next_hops, source, destination))
    return whole


def _leg(next_hops: NextHops, source: str, destination: str) -> dict[Models, float]:
    @functools.cache
    def onwards(at: str) -> dict[Models, float]:
        if at == destination:
            return {(): 1.0}
        steps = next_hops[at].get(destination, ())
        if not steps:
            raise LookupError(f"no way from {source} to {destination}: it ends at {at}")
        parts: list[tuple[Models, float]] = []
        for step in steps:
            models = step.models
            for model in models:
                share = 1 / (len(steps) * len(models))
                parts += [
                    ((model, *rest), share * weight)
                    for rest, weight in onwards(step.destination).items()
                ]
        return _summed(parts)

    return onwards(source)


def _joined(one: dict[Models, float], other: dict[Models, float]) -> dict[Models, float]:
    return _summed(
        ((*first, *second), share * weight)
        for first, share in one.items()
        for second, weight in other.items()
    )


def _summed(parts: Iterable[tuple[Models, float]]) -> dict[Models, float]:
    """Ways that do the same to packets, whatever the order, are one."""
    kinds: dict[frozenset[tuple[DirectionModel, int]], Models] = {}
    shares: dict[Models, float] = {}
    for models, share in parts:
        counts = {model: models.count(model) for model in models}
        kept = kinds.setdefault(frozenset(counts.items()), models)
        shares[kept] = shares.get(kept, 0.0) + share
    if len(shares) > MOST_KINDS:
        raise LookupError("too many kinds of ways")
    return shares
