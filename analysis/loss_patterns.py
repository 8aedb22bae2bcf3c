"""How losses follow one another. Which packet is lost depends on how long one waits: Tmax.

`lost` holds one boolean per packet in order of sending. A loss is a packet without an answer
within Tmax (RFC 7680 for one way, RFC 6673 for the round trip); Tmax is part of every result.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Lost = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class LossPattern:
    """Loss distance and loss period of RFC 3357, loss episodes of RFC 6534."""

    n: int
    lost: int
    tmax_ns: int | None
    """How long an answer was waited for; None where the measurement does not say."""
    distances: tuple[int, ...]
    """Packets from each loss back to the loss before it (RFC 3357 section 5.3); 1 is a neighbour.
    The first loss has none."""
    period_lengths: tuple[int, ...]
    """Packets of each loss period: a run of losses next to one another (RFC 3357 section 5.4)."""
    inter_loss_period_lengths: tuple[int, ...]
    """Packets from the end of each loss period to the start of the next (section 5.4, 6.4)."""

    @property
    def ratio(self) -> float:
        """Share lost; 0 for no packets."""
        return self.lost / self.n if self.n else 0.0

    def noticeable_rate(self, constraint: int) -> float:
        """Share of the losses with a distance of at most `constraint` (RFC 3357 section 6.1).

        A loss so near to the last one may be heard or seen. 0 for no losses.
        """
        near = sum(distance <= constraint for distance in self.distances)
        return near / self.lost if self.lost else 0.0


def loss_pattern(lost: Lost, tmax_ns: int | None = None) -> LossPattern:
    """The pattern of one stream in order of sending."""
    places = np.flatnonzero(lost)
    starts, ends = runs(lost)
    return LossPattern(
        n=len(lost),
        lost=len(places),
        tmax_ns=tmax_ns,
        distances=tuple(int(gap) for gap in np.diff(places)),
        period_lengths=tuple(int(length) for length in ends - starts),
        inter_loss_period_lengths=tuple(int(gap) + 1 for gap in starts[1:] - ends[:-1]),
    )


def runs(lost: Lost) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """First place and place after the last of every run of losses."""
    edges = np.diff(np.concatenate(([False], lost, [False])).astype(np.int8))
    return np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)


@dataclass(frozen=True, slots=True)
class LossEpisodes:
    """Loss episodes by probe pairs, RFC 6534: how often they are and how long they last."""

    pairs: int
    frequency: float
    """Share of time in a loss episode (section 5.2)."""
    mean_duration_pairs: float | None
    """Mean length of an episode in steps of the pair spacing; None while no episode began and
    ended inside a pair (section 5.3)."""


def loss_episodes(lost: Lost) -> LossEpisodes:
    """Episode frequency and mean duration out of neighbouring packets taken as probe pairs.

    Estimators of Sommers, Barford, Duffield and Ron (SIGCOMM 2005), as in RFC 6534 section 5:
    frequency is the mean of the first outcome, the duration 2 R / S - 1 with R the pairs that saw
    any loss and S those that saw it begin or end, less half a step of each end.
    """
    first, second = lost[:-1], lost[1:]
    pairs = len(first)
    if not pairs:
        return LossEpisodes(0, 0.0, None)
    mixed = int(np.count_nonzero(first ^ second))
    either = int(np.count_nonzero(first | second))
    mean = 2 * either / mixed - 1 if mixed else None
    return LossEpisodes(pairs, float(np.mean(first)), mean)


def gilbert(lost: Lost) -> tuple[float, float] | None:
    """Chance that a loss follows an arrival, and that one follows a loss; None where unseen.

    The two parameters of Gilbert's model. Equal ones mean that losses do not know each other.
    """
    first, second = lost[:-1], lost[1:]
    after_arrival, after_loss = second[~first], second[first]
    if not len(after_arrival) or not len(after_loss):
        return None
    into, stay = float(np.mean(after_arrival)), float(np.mean(after_loss))
    return None if math.isnan(into + stay) else (into, stay)
