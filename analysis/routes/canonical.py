"""Paths that can be compared: at one granularity, with what nobody saw left wild.

Two paths *agree* when nothing that was seen contradicts: hop by hop, wild matches anything, and
sets of addresses match where they share one. Behind the last hop that answered, a path that did not
reach its destination matches anything. At AS granularity wild matches any number of ASes, none
included, since a silent hop may belong to its neighbours.

Agreement is no equivalence: A-*-C agrees with A-B-C and with A-D-C, which do not agree. So paths
are not merged by it one after the other: a path with wild hops is counted for the most frequent of
the most complete ones that it agrees with, and no wild hop is ever filled in from another path.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pathbudget.analysis.routes.as_paths import WILD_WORD, as_hops
from pathbudget.analysis.routes.model import WILD, FlowPath, Granularity, Hop
from pathbudget.sites.prefix_table import Origins

OPEN_WORD = "..."
"""Any number of hops that nobody answered."""

Words = tuple[str, ...]


class Canonical(NamedTuple):
    """Hops from the first on. `open`: behind them is any number of unknown ones, and after those
    the destination if it was `reached`. Otherwise the last hop is the destination.
    """

    hops: tuple[Hop, ...]
    reached: bool
    open: bool
    end: Hop = WILD
    """The destination behind an open stretch."""
    by_as: bool = False

    @property
    def words(self) -> Words:
        """Each hop as a word: its addresses (several joined by ``|``), ``*``, ``...``."""
        row = [_word(hop) for hop in self.hops]
        if self.open:
            row += [OPEN_WORD, *([_word(self.end)] if self.reached else [])]
        return tuple(row)

    @property
    def unknown(self) -> int:
        """How much of it is not known; fewer is more complete."""
        return sum(not hop for hop in self.hops) + 100 * self.open + 100 * (not self.reached)


@dataclass(frozen=True, slots=True)
class Sight:
    """What hops are called: at which granularity, by which tables."""

    granularity: Granularity = Granularity.ADDRESS
    origins: Origins | None = None
    routers: Mapping[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        if self.granularity is Granularity.AS and self.origins is None:
            raise ValueError("paths of ASes need a table of prefixes")

    def canonical(self, path: FlowPath) -> Canonical:
        """The path of one flow."""
        hops, end = path.hops, WILD
        is_open = not path.reached or path.gap is not None
        if path.reached and path.gap is not None:
            hops, end = hops[: path.gap], hops[-1]
        elif not path.reached:
            hops = _stripped(hops)
        if self.granularity is Granularity.AS:
            assert self.origins is not None
            mapped = as_hops([*hops, end] if end else hops, self.origins)
            return Canonical(mapped, path.reached, is_open and not path.reached, by_as=True)
        if self.granularity is Granularity.ROUTER:
            hops, end = tuple(map(self._routers, hops)), self._routers(end)
        return Canonical(hops, path.reached, is_open, end)

    def _routers(self, hop: Hop) -> Hop:
        return frozenset(self.routers.get(address, address) for address in hop)


def agree(one: Canonical, other: Canonical) -> bool:
    """Whether nothing that was seen of one contradicts the other."""
    if one.by_as:
        return _aligned(one, other)
    return not differences(one, other)


def differences(one: Canonical, other: Canonical) -> list[int]:
    """Indices of hops that contradict each other; where one ends and the other goes on is one."""
    found = [
        index
        for index, (left, right) in enumerate(zip(one.hops, other.hops, strict=False))
        if left and right and not left & right
    ]
    for short, long in ((one, other), (other, one)):
        if not short.open and len(short.hops) < len(long.hops):
            found.append(len(short.hops))
    return sorted(set(found))


def _aligned(one: Canonical, other: Canonical) -> bool:
    """Whether two rows with wild stretches can be the same row."""
    left = (*one.hops, *((WILD,) if one.open else ()))
    right = (*other.hops, *((WILD,) if other.open else ()))
    places = _behind_wild({0}, right)
    for hop in left:
        if hop:
            step = {at for at in places if at < len(right) and not right[at]}
            step |= {at + 1 for at in places if at < len(right) and right[at] & hop}
        else:
            step = set(range(min(places, default=len(right) + 1), len(right) + 1))
        places = _behind_wild(step, right)
    return len(right) in places


def _behind_wild(places: set[int], row: Sequence[Hop]) -> set[int]:
    """Places in `row` that are reached by letting wild stand for nothing."""
    found = set(places)
    for start in places:
        wild = itertools.takewhile(lambda at: not row[at], range(start, len(row)))
        found.update(at + 1 for at in wild)
    return found


def representatives(paths: Iterable[tuple[Canonical, int]]) -> dict[Canonical, int]:
    """Paths that stand for all, with how often they were seen, the most frequent first.

    A path with more wild hops counts for the most frequent one that it agrees with among those
    that are more complete; see the top of this page.
    """
    ordered = sorted(paths, key=lambda item: (item[0].unknown, -item[1], item[0].words))
    kept: dict[Canonical, int] = {}
    for path, count in ordered:
        fitting = [known for known in kept if agree(known, path)]
        if fitting:
            kept[max(fitting, key=lambda known: kept[known])] += count
        else:
            kept[path] = count
    return dict(sorted(kept.items(), key=lambda item: (-item[1], item[0].words)))


def _stripped(hops: tuple[Hop, ...]) -> tuple[Hop, ...]:
    """Without the silent hops at the end."""
    last = max((i for i, hop in enumerate(hops, 1) if hop), default=0)
    return hops[:last]


def _word(hop: Hop) -> str:
    return "|".join(sorted(hop)) or WILD_WORD
