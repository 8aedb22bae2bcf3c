"""Where a budget line stands in the table of lines, and what follows from that alone."""

from collections.abc import Iterator
from dataclasses import dataclass

from pathbudget.analysis.one_way_tracks import OneWayTracks
from pathbudget.analysis.results import Carriage, Carrier, Direction, Method, Mode
from pathbudget.analysis.slow_start import extra_round_trips
from pathbudget.sites.catalogue import Tier
from pathbudget.sites.tiers import shares

CARRIER_WORDS = {Carrier.TLS: "", Carrier.QUIC: "QUIC ", Carrier.MIXED: ""}


@dataclass(frozen=True, slots=True)
class LinePlace:
    """Coordinates of a line in the table of lines."""

    tier: Tier
    direction: Direction
    carrier: Carrier
    mode: Mode
    percentile: float
    request_bytes: int
    """What a request uploads, also where the direction does not depend on it."""
    modelled: frozenset[Carriage] = frozenset()
    """Whose uploads are left aside, because they are too few to say anything."""

    @property
    def headline(self) -> bool:
        """Whether the tier singles this line out."""
        return (
            self.direction is Direction.NETWORK
            and (self.carrier, self.mode) == headline_carriage(self.tier)
            and self.percentile == self.tier.percentile
            and self.request_bytes == self.tier.prompt_bytes
        )

    @property
    def prompt_bytes(self) -> int:
        """What the line is of; 0 on the way back."""
        return self.request_bytes if self.has_upload else 0

    @property
    def has_upload(self) -> bool:
        """Whether the bytes of the request are in it."""
        return self.direction in (Direction.INGRESS, Direction.NETWORK)

    @property
    def extra_round_trips(self) -> int:
        """Those of slow start, by the model."""
        return extra_round_trips(self.request_bytes) if self.has_upload else 0

    @property
    def allowance_ms(self) -> float | None:
        """Only the network as a whole has an allowance."""
        return self.tier.network_allowance_ms if self.direction is Direction.NETWORK else None

    def weights(self) -> dict[Carriage, float]:
        """Share of each transport and connection mode in the traffic of the line; sums to 1."""
        if self.mode is not Mode.MIXTURE:
            return {(self.carrier, self.mode): 1.0}
        return mixture_weights(self.tier)


def mixture_weights(tier: Tier) -> dict[Carriage, float]:
    """The mixture of a tier; its shares sum to 1."""
    found = {(Carrier(over), Mode(mode)): share for (over, mode), share in shares(tier).items()}
    total = sum(found.values())
    return {carriage: share / total for carriage, share in found.items()}


def headline_carriage(tier: Tier) -> Carriage:
    """Transport and mode of the headline line."""
    mode = Mode(tier.mode)
    if mode is not Mode.MIXTURE:
        return Carrier(tier.transport), mode
    carriers = {carrier for carrier, _ in mixture_weights(tier)}
    return carriers.pop() if len(carriers) == 1 else Carrier.MIXED, mode


def mixture_carriage(tier: Tier) -> Carriage:
    """Transport and mode of the line of the mixture, whether or not it is the headline."""
    carriers = {carrier for carrier, _ in mixture_weights(tier)}
    return carriers.pop() if len(carriers) == 1 else Carrier.MIXED, Mode.MIXTURE


def carriage_words(carriage: Carriage) -> str:
    """``cold``, ``early data``, ``QUIC resumed``."""
    carrier, mode = carriage
    return CARRIER_WORDS[carrier] + mode.replace("_", " ")


def method_of(
    mode: Mode, place: LinePlace, one_way: OneWayTracks | None = None, *, uploaded: bool = False
) -> Method:
    """How the line of one mode comes about (docs/metrics.md)."""
    extra = 0 if uploaded else place.extra_round_trips
    if place.direction is Direction.NETWORK:
        derived = extra or (not uploaded and mode in (Mode.WARM, Mode.IDLE))
        return Method.DERIVED_FROM_RTT if derived else Method.MEASURED
    if one_way is not None:
        if extra:
            return Method.DERIVED_FROM_RTT
        return Method.SYMMETRIC_SPLIT if one_way.error_ns is None else Method.MEASURED
    if place.direction is Direction.STREAM or uploaded:
        return Method.SYMMETRIC_SPLIT
    return Method.DERIVED_FROM_RTT if mode in (Mode.WARM, Mode.IDLE) else Method.SYMMETRIC_SPLIT


STRENGTH = (Method.MEASURED, Method.SYMMETRIC_SPLIT, Method.DERIVED_FROM_RTT)


def weakest(methods: Iterator[Method]) -> Method:
    """A mixture is as well measured as its worst part."""
    return max(methods, key=STRENGTH.index)
