"""What one direction of a link does to packets. Pure definitions; times in integer nanoseconds.

The order in which a packet meets them: loss, then the queue of the rate limit, then propagation
with variation, then reordering. `direction.py` carries them out, `truth.py` says what they imply.
"""

from dataclasses import dataclass, field
from enum import StrEnum


class VariationKind(StrEnum):
    """How the delay of a packet differs from the configured one."""

    NONE = "none"
    NORMAL = "normal"
    """delay + N(0, scale), cut at 4 scales and at zero delay. The configured delay is the mean."""
    PARETO = "pareto"
    """delay + scale * (X - 1), X Pareto with `shape`. The configured delay is the minimum."""


NORMAL_CUT = 4
"""Scales from the mean at which the normal variation ends; 1 packet in 16,000 meets an end."""


class Order(StrEnum):
    """Which packets may not overtake each other when the delay varies."""

    FLOW = "flow"
    """Those of one flow: addresses, protocol and the first four octets of the transport header,
    which is what routers hash (Augustin et al., IMC 2006). Every ICMP echo is its own flow."""
    LINK = "link"
    """All of them. Then a delay is a running maximum, and depends on the other traffic."""
    FREE = "free"
    """None."""


@dataclass(frozen=True, slots=True)
class Variation:
    """Delay variation of a share of the packets; the others take exactly the configured delay."""

    kind: VariationKind = VariationKind.NONE
    scale_ns: int = 0
    shape: float = 2.5
    """Pareto only: the smaller, the heavier the tail. The mean exists above 1."""
    share: float = 1.0


@dataclass(frozen=True, slots=True)
class BurstLoss:
    """Two states, moved before each packet (Gilbert 1960, Elliott 1963)."""

    to_bad: float
    to_good: float
    loss_bad: float = 1.0
    loss_good: float = 0.0

    @property
    def mean_loss(self) -> float:
        """Loss probability of a packet, with the states in their long-run shares."""
        bad = self.to_bad / (self.to_bad + self.to_good)
        return bad * self.loss_bad + (1 - bad) * self.loss_good


@dataclass(frozen=True, slots=True)
class Swell:
    """A queue that fills and empties once, as over a day: what it adds to the delay begins at
    nothing, is `peak_ns` in the middle of `length_ns`, and ends at nothing (a squared sine).
    A packet meets between a half and three halves of that, evenly distributed."""

    peak_ns: int
    length_ns: int


@dataclass(frozen=True, slots=True)
class DirectionModel:
    """One direction of a link. `rate_bits` counts bits per second of whole Ethernet frames."""

    delay_ns: int = 0
    variation: Variation = field(default_factory=Variation)
    loss: float = 0.0
    bursts: BurstLoss | None = None
    rate_bits: int | None = None
    queue_ns: int = 100_000_000
    """A packet that would wait longer than this for the rate limit is dropped (tail drop)."""
    reorder: float = 0.0
    """Share of packets that are held back by `reorder_by_ns`, so that later ones overtake them."""
    reorder_by_ns: int = 5_000_000
    order: Order = Order.FLOW
    largest_octets: int | None = None
    """IP packets larger than this vanish without a word (a black hole of path MTU discovery)."""
    swell: Swell | None = None
    """Begins when the model comes into force; nothing of it is in `truth`."""

    @property
    def loss_probability(self) -> float:
        """Loss of a packet by random and burst loss; queue overflow is not in it."""
        burst = self.bursts.mean_loss if self.bursts else 0.0
        return 1 - (1 - self.loss) * (1 - burst)
