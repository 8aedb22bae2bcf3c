"""Branch and bound on the Lagrangian bound: with a site, or without it.

For programs of few sites among many, where the linear bound leaves a gap and a general solver has
too large a program. A branch begins with the multipliers of where it came from.
"""

import heapq
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pathbudget.analysis.siting.judge import Indices
from pathbudget.analysis.siting.lagrange import Found, Relaxation, Sites
from pathbudget.analysis.siting.vocabulary import Mask

STEPS = 120
"""Steps of the relaxation in a branch."""
BEYOND = 0.002
"""How far past the cutoff steps are aimed, relative to it."""
LENGTH = 0.25
"""Their first length: the multipliers are nearly right."""


@dataclass(frozen=True, slots=True)
class Node:
    """Sites that are in and out, with the bound and the multipliers there."""

    bound: float
    inside: Mask
    outside: Mask
    relaxation: Relaxation
    places: Indices
    """Numbers of the relaxation's sites in the root."""


class Branching:
    """The open branches; the lowest bound among them is the bound of all."""

    def __init__(
        self,
        sites: Sites,
        root: Relaxation,
        found: Found,
        cutoff: Callable[[], float],
        enough: Callable[[], bool],
    ) -> None:
        self.sites = sites
        self.found = found
        self.cutoff = cutoff
        self.enough = enough
        self.number = itertools.count()
        self.nodes: list[tuple[float, int, Node]] = []
        inside, outside = root.decided(cutoff())
        self._keep(Node(root.best.value, inside, outside, root, np.arange(len(inside))))

    def search(self, told: Callable[[float], None]) -> bool:
        """Close the branches; whether all are closed. `told` hears of every better bound."""
        while self.nodes and not self.enough():
            bound, _, node = heapq.heappop(self.nodes)
            if bound > self.cutoff():
                self.nodes.clear()
                break
            told(bound)
            free = np.flatnonzero(~node.inside & ~node.outside)
            if len(free):
                self._split(node, free)
            else:
                self.found(np.flatnonzero(node.inside).tolist())
        return not self.nodes

    def _split(self, node: Node, free: Indices) -> None:
        often = np.zeros(len(node.inside))
        often[node.places] = node.relaxation.often
        site = int(free[np.argmin(np.abs(often[free] - 0.5))])
        with_it, without_it = node.inside.copy(), node.outside.copy()
        with_it[site] = without_it[site] = True
        self._open(node, with_it, node.outside)
        self._open(node, node.inside, without_it)

    def _open(self, parent: Node, inside: Mask, outside: Mask) -> None:
        """Bound a branch, and keep it if there may be something better in it."""
        sites, left = self.sites, np.flatnonzero(~outside)
        k = sites.k
        if k is not None and not int(inside.sum()) <= k <= len(left):
            return
        part = replace(
            sites,
            cost=sites.cost[left],
            opening=sites.opening[left],
            taken=inside[left],
            side=sites.side[:, left],
        )
        relaxation = Relaxation(part, parent.relaxation.best.rows, parent.relaxation.best.side)

        def enough() -> bool:
            return self.enough() or relaxation.best.value > self.cutoff()

        relaxation.climb(self._aim(), self._told(left), enough, STEPS, LENGTH)
        if relaxation.best.value > self.cutoff():
            return
        decided, barred = relaxation.decided(self.cutoff())
        inside, outside = inside.copy(), outside.copy()
        inside[left] |= decided
        outside[left] |= barred
        bound = max(parent.bound, relaxation.best.value)
        self._keep(Node(bound, inside, outside, relaxation, left))

    def _aim(self) -> float:
        """What steps are aimed at: past the cutoff, or they would only ever come near it."""
        cutoff = self.cutoff()
        return cutoff + BEYOND * max(1.0, abs(cutoff))

    def _told(self, left: Indices) -> Found:
        def told(picked: Sequence[int]) -> float:
            self.found([int(left[place]) for place in picked])
            return self._aim()

        return told

    def _keep(self, node: Node) -> None:
        heapq.heappush(self.nodes, (node.bound, next(self.number), node))
