"""How many packets it takes until a sick member shows: a calculation, before anything is sent.

Packets of many flows are lost on the flows of one member alone. So many losses on k of f flows are
chance with at most `C(f, k) (k / f)^n`: the number of groups of k flows, times the probability
that every loss falls into the same one. The sick member has its share of the flows by hash, so k
is binomial, and losses come as a Poisson process.

This is for a group that loses nothing else. It is what any test over flows can do that does not
know which flows share a member.
"""

import math

from scipy import stats

from pathbudget.analysis.routes.members import ALPHA, POWER

MOST_PACKETS = 10_000_000
"""What takes more is said to take forever."""


def losses_needed(flows: int, sick: int, alpha: float = ALPHA) -> int:
    """So many losses, all of them on `sick` of `flows` flows, are chance with alpha at most."""
    ratio = math.log(math.comb(flows, sick) / alpha) / math.log(flows / sick)
    return math.ceil(ratio)


def chance_to_show(
    packets: int, loss: float, *, flows: int, members: int, alpha: float = ALPHA
) -> float:
    """Probability that `packets` over `flows` show one of `members` that loses a share of `loss`.

    It is not 1 for any number of packets: no flow may be on the sick member, or all of them.
    """
    total = 0.0
    for sick in range(1, flows):
        of_so_many = float(stats.binom.pmf(sick, flows, 1 / members))
        expected = packets * sick / flows * loss
        enough = losses_needed(flows, sick, alpha)
        total += of_so_many * float(stats.poisson.sf(enough - 1, expected))
    return total


def packets_to_show(
    loss: float, *, flows: int, members: int, alpha: float = ALPHA, power: float = POWER
) -> int | None:
    """The fewest packets over all flows with which `chance_to_show` is at least `power`; None
    where no number of them does it.
    """
    low, high = 0, 1
    while chance_to_show(high, loss, flows=flows, members=members, alpha=alpha) < power:
        low, high = high, high * 2
        if high > MOST_PACKETS:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        enough = chance_to_show(middle, loss, flows=flows, members=members, alpha=alpha) >= power
        low, high = (low, middle) if enough else (middle, high)
    return high
