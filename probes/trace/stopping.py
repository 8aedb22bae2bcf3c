"""How many probes are enough: the stopping rule of MDA, and what it promises of a whole trace.

A vertex balances load over K next hops, each as likely as the others. Having seen k of them, one
goes on until ``needed(k)`` flows have passed the vertex (Augustin, Friedman, Teixeira,
"Multipath tracing with Paris traceroute", E2EMON 2007; Veitch, Augustin, Teixeira, Friedman,
"Failure control in multipath route tracing", INFOCOM 2009). The points are those at which all of
k+1 next hops have shown themselves with probability 1 - alpha.

That is a promise for one vertex. A trace passes many, and one mistake makes its path set wrong. So
`vertex_alpha` shares the failure that is allowed to a whole trace out among its vertices:
``1 - (1 - alpha) ** (1 / vertices)``. Without loss and with even shares, a trace by these points
finds all links of a path with that many vertices with probability 1 - alpha at least.
"""

import functools
import math

MOST_NEXT_HOPS = 128
"""More than load balancers have (Vermeulen et al., IMC 2018, saw up to 96); a trace stops there."""
LEAST_VERTICES = 8
"""A promise is never given for fewer, however short a path looks before it is known."""


def miss_probability(probes: int, next_hops: int) -> float:
    """That `probes` flows, spread evenly at random, leave one of `next_hops` or more unseen.

    Inclusion and exclusion over the next hops that nobody took.
    """
    if next_hops <= 1:
        return 0.0
    if probes < next_hops:
        return 1.0
    terms = (
        (-1) ** (i - 1) * math.comb(next_hops, i) * (1 - i / next_hops) ** probes
        for i in range(1, next_hops)
    )
    return min(1.0, max(0.0, math.fsum(terms)))


class StoppingPoints:
    """The points of one vertex that may be wrong with probability `alpha`. Worked out as needed."""

    def __init__(self, alpha: float) -> None:
        if not 0 < alpha < 1:
            raise ValueError(f"alpha is {alpha}, expected a number between 0 and 1")
        self.alpha = alpha
        self._points: list[int] = []

    def needed(self, seen: int) -> int:
        """Flows that must have passed a vertex of which `seen` next hops are known."""
        seen = min(max(1, seen), MOST_NEXT_HOPS)
        while len(self._points) < seen:
            self._points.append(self._next())
        return self._points[seen - 1]

    def _next(self) -> int:
        """The smallest n with P(one of k+1 unseen after n) <= alpha; grows with k."""
        next_hops = len(self._points) + 2
        probes = max(self._points[-1] if self._points else 2, self._at_least(next_hops))
        while miss_probability(probes, next_hops) > self.alpha:
            probes += 1
        return probes

    def _at_least(self, next_hops: int) -> int:
        """A little less than where the first term alone falls below alpha. Below it the sum
        would cancel badly, and nothing is to be found there.
        """
        rough = math.log(self.alpha / next_hops) / math.log1p(-1 / next_hops)
        return max(next_hops, math.floor(rough) - 2)


@functools.lru_cache(maxsize=256)
def stopping_points(alpha: float) -> StoppingPoints:
    """The points for a vertex, kept for all traces."""
    return StoppingPoints(alpha)


def vertex_alpha(alpha: float, vertices: int) -> float:
    """What one of `vertices` may fail with so that all of them together fail with `alpha`.

    The number is rounded up to a power of two, so that a growing path asks for few tables.
    """
    shares = 1 << (max(LEAST_VERTICES, vertices) - 1).bit_length()
    return -math.expm1(math.log1p(-alpha) / shares)


def failure_probability(points: StoppingPoints, next_hops: int) -> float:
    """Exact: that the rule stops before all of `next_hops` have been seen, at any of its points.

    Follows the number of next hops seen from flow to flow (Veitch et al., section III).
    """
    if next_hops <= 1:
        return 0.0
    chances = [0.0] * (next_hops + 1)
    chances[1] = 1.0
    failed = 0.0
    for sent in range(1, points.needed(next_hops - 1) + 1):
        if sent > 1:
            chances = _one_more(chances, next_hops)
        for seen in range(1, next_hops):
            if sent >= points.needed(seen):
                failed += chances[seen]
                chances[seen] = 0.0
    return failed


def needed_for_share(share: float, alpha: float) -> int:
    """Flows after which something that takes `share` of them has shown itself, but for `alpha`."""
    if share >= 1:
        return 1
    return math.ceil(math.log(alpha) / math.log1p(-share))


def _one_more(chances: list[float], next_hops: int) -> list[float]:
    """The distribution of the number seen after another flow."""
    after = [0.0] * len(chances)
    for seen, chance in enumerate(chances):
        if chance:
            after[seen] += chance * seen / next_hops
            if seen < next_hops:
                after[seen + 1] += chance * (next_hops - seen) / next_hops
    return after
