"""How long a round trip each pair of the loopback world gets: light floor x inflation + access.

Inflation of real paths over the fibre great circle has a median near 1.7 and is seldom below 1.3
(docs/metrics.md); each pair draws its own, from the seed and the two names alone, so that adding a
site changes no other pair.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from pathbudget.agents.responder.delays import PairDelay
from pathbudget.sites.geodesy import distance_km, floor_rtt_ms

Place = tuple[str, float, float]
"""Name, latitude, longitude (degrees)."""


@dataclass(frozen=True, slots=True)
class PathModel:
    """How distance becomes delay. Ratios are of the light floor, times are ms of a round trip."""

    inflation_low: float = 1.4
    inflation_high: float = 2.0
    access_ms: float = 2.0
    """What the two ends add, however near they are."""
    variation_ms: float = 0.4
    variation_ratio: float = 0.01
    """Share of the minimum that the mean variation grows by."""
    loss: float = 0.002
    """Share of connections whose ClientHello is never answered."""


@dataclass(frozen=True, slots=True)
class Truth:
    """What the model of a pair implies: round trip of one TLS flight in ms, loss 0 to 1."""

    minimum_ms: float
    median_ms: float
    p95_ms: float
    loss: float


def pair_delay(
    region: Place, site: Place, source: str, destination: str, model: PathModel, seed: int
) -> PairDelay:
    """The delay model of one pair between two addresses."""
    floor = floor_rtt_ms(distance_km(region[1], region[2], site[1], site[2]))
    drawn = random.Random(f"{seed} {region[0]} {site[0]}")
    inflation = drawn.uniform(model.inflation_low, model.inflation_high)
    minimum = floor * inflation + model.access_ms
    return PairDelay(
        source=source,
        destination=destination,
        minimum_ms=round(minimum, 3),
        variation_ms=round(model.variation_ms + model.variation_ratio * minimum, 3),
        loss=model.loss,
    )


def truth_of(pair: PairDelay) -> Truth:
    """Minimum, median and 95th percentile of the model, and its loss."""
    return Truth(pair.minimum_ms, pair.quantile_ms(0.5), pair.quantile_ms(0.95), pair.loss)


def names_of(places: Sequence[Place]) -> list[str]:
    """The names in order. Raises ValueError when one comes twice."""
    names = [name for name, _, _ in places]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"places with the same name: {', '.join(twice)}")
    return names
