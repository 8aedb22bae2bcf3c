"""Losses that come in bursts: how much more may be lost than was.

Few bursts hold many losses, so a campaign with fewer bursts than usual looks far better than the
path is, and its scatter looks small, too. The upper limit of a sum of such pieces is that of Fay
and Feuer (Statistics in Medicine 16, 1997), for weighted Poisson counts: a gamma distribution of
the mean and variance that one more piece, as large as the largest, would give. For pieces of one
it is Garwood's exact limit, so independent losses need none of this and get none.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

CLOSE_BY_CHANCE = 0.05
"""Independent losses are of one burst as often as this."""
FEW = 5
"""Of fewer bursts, were all alike, the slow cosines of a campaign see too little (`timeline`)."""
STANDS_OUT = 1.96
"""Standard errors of the number of close losses, below which they are taken as independent."""


@dataclass(frozen=True, slots=True)
class Bursts:
    """Losses of `n` samples by bursts."""

    n: int
    lost: int
    squares: int
    """Sum of the squares of the sizes of all bursts."""
    largest: int
    """Size of the largest; 1 where losses are independent, 0 where there are none."""

    @property
    def are_few(self) -> bool:
        """Whether they are so few that slow samples must be counted beside them."""
        return self.largest > 1 and self.lost**2 < FEW * self.squares


def bursts_of(lost: npt.NDArray[np.int64], n: int) -> Bursts:
    """Bursts of the losses at these places, in order of time, of `n` samples."""
    count = len(lost)
    alone = none_in_bursts(count, n)
    if count < 2:
        return alone
    reach = _reach(count / n)
    close = np.diff(lost) <= reach
    chance = 1 - (1 - count / n) ** reach
    expected = (count - 1) * chance
    if int(close.sum()) - expected <= STANDS_OUT * math.sqrt(expected * (1 - chance)):
        return alone
    sizes = np.diff(np.flatnonzero(np.concatenate(([True], ~close, [True]))))
    return Bursts(n, count, int((sizes**2).sum()), int(sizes.max()))


def none_in_bursts(lost: int, n: int) -> Bursts:
    """Losses that are independent."""
    return Bursts(n, lost, lost, min(lost, 1))


def _reach(share: float) -> int:
    """How many samples apart losses may be to be of one burst."""
    if share >= 1:
        return 1
    return max(1, math.floor(math.log1p(-CLOSE_BY_CHANCE) / math.log1p(-share)))


def most_beyond(
    parts: Sequence[tuple[float, Bursts]], slow: Sequence[float], p: float, confidence: float
) -> float:
    """Upper limit of the share that is lost or slow, by parts of a mixture with their weights.

    `slow` are the numbers of slow samples of each part. They count one by one, and vary `p` times
    as much as a Poisson count: their share is near 1 - p.
    """
    pieces = [
        (weight / part.n, part, alone) for (weight, part), alone in zip(parts, slow, strict=True)
    ]
    more = max(each * max(1, part.largest) for each, part, _ in pieces)
    mean = sum(each * (part.lost + alone) for each, part, alone in pieces) + more
    variance = sum(each**2 * (part.squares + p * alone) for each, part, alone in pieces) + more**2
    scale = variance / mean
    return float(special.gammaincinv(mean / scale, (1 + confidence) / 2)) * scale


def slow_allowed(bursts: Bursts, p: float, confidence: float) -> int:
    """Most samples without loss that may be beyond the upper end of quantile `p`; -1 for no end.

    All of them where bursts are not few and losses alone cannot decide: scatter has the rest then.
    """
    if not bursts.are_few:
        decides = most_beyond([(1.0, bursts)], [0], p, confidence) > 1 - p
        return -1 if decides else bursts.n - bursts.lost
    least, most = -1, bursts.n - bursts.lost
    while least < most:
        middle = (least + most + 1) // 2
        if most_beyond([(1.0, bursts)], [middle], p, confidence) <= 1 - p:
            least = middle
        else:
            most = middle - 1
    return least
