"""What is known of one route: its members, its paths, and the last path of each flow.

Memory is bounded: so many flows, paths and members of a level, the oldest are forgotten first.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pathbudget.analysis.routes.canonical import Canonical, Words, agree, differences
from pathbudget.analysis.routes.model import WILD, Hop
from pathbudget.analysis.routes.route_members import MOST_FLOWS, Change, LevelMembers, Unit

MOST_PATHS = 256
BY_AS = 0
"""The only level at AS granularity: flows pass several marks of it."""

K = TypeVar("K")
V = TypeVar("V")
Level = int
Mark = tuple[Level, str]


@dataclass(frozen=True, slots=True)
class Passage:
    """One flow in one trace. `packets` were answered at each hop."""

    flow: int | None
    path: Canonical
    packets: tuple[int, ...]
    as_path: Words = ()


def marks_of(path: Canonical) -> set[Mark]:
    """What a flow passed."""
    if path.by_as:
        known = [sorted(hop) for hop in path.hops]
        marks = {(BY_AS, word) for hop in known for word in hop}
        pairs = itertools.pairwise(known)
        return marks | {(BY_AS, f"{a} {b}") for left, right in pairs for a in left for b in right}
    return {(level, word) for level, hop in enumerate(path.hops) for word in hop}


def is_tested(path: Canonical, level: Level) -> bool:
    """Whether a path says what it passed at this level; where it ended before, it did not."""
    if path.by_as:
        return path.reached and not path.open and all(path.hops)
    if level < len(path.hops):
        return bool(path.hops[level])
    return not path.open


@dataclass(slots=True)
class PathRow:
    """One path of a route."""

    path: Canonical
    count: int
    first_ns: int
    last_ns: int
    as_path: Words


@dataclass(slots=True)
class _FlowMemory:
    """The last path of a flow, its wild hops filled with what it passed there before."""

    path: Canonical
    last_ns: int

    def updated(self, path: Canonical, now: int) -> "_FlowMemory":
        if not agree(self.path, path):
            return _FlowMemory(path, now)
        if path.by_as:  # where ASes are wild is not known: the more complete one is kept
            return _FlowMemory(min(path, self.path, key=lambda one: one.unknown), now)
        pairs: Iterable[tuple[Hop, Hop]] = itertools.zip_longest(
            path.hops, self.path.hops, fillvalue=WILD
        )
        hops = [new or old for new, old in pairs]
        closed = path if not path.open else self.path
        return _FlowMemory(Canonical(tuple(hops), closed.reached, closed.open, closed.end), now)


class RouteMemory:
    """One route of a series."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.paths: dict[Words, PathRow] = {}
        self.levels: dict[Level, LevelMembers] = {}
        self._flows: dict[int | None, _FlowMemory] = {}
        self._flipped: set[Level] = set()

    def marks(self) -> set[Mark]:
        """All members of all levels."""
        return {(level, word) for level, one in self.levels.items() for word in one.members}

    def elsewhere(self, passage: Passage) -> int | None:
        """When the route that this flow cannot take any more was last seen; None where it can.

        A flow that was traced before now passes what no flow of this route ever did. Packets
        without a flow, and levels where flows do not keep their way, prove nothing. Nor do levels
        with several members that flows have not yet been seen to keep to: a balancer of packets
        shows its members one after the other.
        """
        memory, path = self._flows.get(passage.flow), passage.path
        where = self._moved(passage)
        if memory is None or not where:
            return None
        levels = [self.levels[at] for at, _ in self.unknown_marks(path) if at in where]
        if any(path.by_as or one.keeps_flows or len(one.members) == 1 for one in levels):
            return max([memory.last_ns, *(self._level(at).unchanged_ns() for at in where)])
        return None

    def _moved(self, passage: Passage) -> set[Level]:
        """Levels at which a flow is not where it was; none where it still is, or is new."""
        memory = self._flows.get(passage.flow)
        if passage.flow is None or memory is None or agree(memory.path, passage.path):
            return set()
        where = [BY_AS] if passage.path.by_as else differences(memory.path, passage.path)
        return {level for level in where if not self._is_spread(level)}

    def unknown_marks(self, path: Canonical) -> set[Mark]:
        """What it passes and nothing of this route does, where this route has been seen at all."""
        return {
            (level, word)
            for level, word in marks_of(path)
            if (known := self.levels.get(level)) is not None
            and word not in known.members
            and not known.spread
        }

    def fits(self, passages: Sequence[Passage]) -> bool:
        """Whether a trace shows this route, and nothing that is not of it."""
        return not passed_by(passages).isdisjoint(self.marks()) and not any(
            self._moved(one) or self.unknown_marks(one.path) for one in passages
        )

    def take(self, passages: Sequence[Passage], now: int) -> bool:
        """Learn what a trace that ended at `now` shows of this route; whether flows flutter in it.

        Where flows were found not to keep their way counts from the next trace on: only then is
        it known whether they left a member for good.
        """
        several = {
            level
            for one in passages
            if not one.path.by_as
            for level, hop in enumerate(one.path.hops)
            if len(hop) > 1
        }
        for level in self._flipped | several:
            self._level(level).spread = True
        self._flipped = {level for one in passages for level in self._flips(one)}
        passed = passed_by(passages)
        for passage in passages:
            self._take_path(passage, now)
            self._take_marks(passage, passed, now)
            memory = self._flows.pop(passage.flow, None)
            self._flows[passage.flow] = (
                _FlowMemory(passage.path, now)
                if memory is None
                else memory.updated(passage.path, now)
            )
        _forget(self._flows, MOST_FLOWS)
        _forget(self.paths, MOST_PATHS)
        return bool(several or self._flipped)

    def change(self) -> Change | None:
        """The latest change of members that chance does not explain."""
        return max((one for level in self.levels.values() for one in level.changes()), default=None)

    def rewind(self, after_ns: int) -> None:
        """Be again what was known then: what came later is of another route."""
        for level in self.levels.values():
            level.rewind(after_ns)
        self.paths = {
            words: row for words, row in self.paths.items() if row.first_ns <= after_ns
        } or self.paths
        self._flows = {flow: one for flow, one in self._flows.items() if one.last_ns <= after_ns}

    def resume(self) -> None:
        """The path came back to this route: who passed meanwhile says nothing of it."""
        for level in self.levels.values():
            level.rewind(2**63)

    def holds(self, other: "RouteMemory") -> bool:
        """Whether everything of the other route is of this one, whose packets are balanced."""
        spread = any(level.spread for level in self.levels.values())
        return (
            spread
            and other.marks() <= self.marks()
            and all(
                one.may_have_been(other.levels[level])
                for level, one in self.levels.items()
                if level in other.levels
            )
        )

    def absorb(self, other: "RouteMemory") -> None:
        """Become both routes, which turned out to be one whose packets are balanced."""
        for level, members in other.levels.items():
            own = self._level(level)
            own.spread |= own.members.keys().isdisjoint(members.members)
            own.join(members)
        for words, row in other.paths.items():
            self.paths.setdefault(words, row)

    def _level(self, level: Level) -> LevelMembers:
        return self.levels.setdefault(level, LevelMembers())

    def _is_spread(self, level: Level) -> bool:
        known = self.levels.get(level)
        return known is not None and known.spread

    def _flips(self, passage: Passage) -> set[Level]:
        """Levels at which a flow passes another member than before; the others kept it."""
        memory = self._flows.get(passage.flow)
        if passage.flow is None or memory is None:
            return set()
        if passage.path.by_as:
            return set() if agree(memory.path, passage.path) else {BY_AS}
        found = set(differences(memory.path, passage.path))
        for level, word in marks_of(passage.path):
            if level not in found:
                self._level(level).note_kept(word, passage.flow)
        return found

    def _take_path(self, passage: Passage, now: int) -> None:
        words = passage.path.words
        row = self.paths.pop(words, None) or PathRow(passage.path, 0, now, now, passage.as_path)
        row.count += 1
        row.last_ns = now
        self.paths[words] = row

    def _take_marks(self, passage: Passage, passed: set[Mark], now: int) -> None:
        path = passage.path
        own = marks_of(path)
        for level in _levels(own):
            members = self._level(level)
            members.alone = not path.by_as
            members.begin(now)
            members.tested.add(self._unit(passage, level))
        for level, word in own:
            flow, packets = self._unit(passage, level)
            shared_by = 1 if path.by_as else len(path.hops[level])
            self.levels[level].see(word, (flow, max(1, packets // shared_by)), now)
        for level, members in self.levels.items():
            if is_tested(path, level):
                unit = self._unit(passage, level)
                for word, member in members.members.items():
                    if (level, word) not in passed:
                        member.miss(unit, passage.flow, now)

    def _unit(self, passage: Passage, level: Level) -> Unit:
        """A passage counts as its flow, or as its packets where those may differ."""
        if passage.flow is not None and not self._is_spread(level):
            return passage.flow, 1
        packets = passage.packets[level] if level < len(passage.packets) else 1
        return None, max(1, packets)


def passed_by(passages: Iterable[Passage]) -> set[Mark]:
    """What any flow of a trace passed."""
    return {mark for passage in passages for mark in marks_of(passage.path)}


def _levels(marks: Iterable[Mark]) -> Iterator[Level]:
    yield from {level for level, _ in marks}


def _forget(known: "dict[K, V]", most: int) -> None:
    """Drop the entries that were touched longest ago; dictionaries keep that order here."""
    for key in list(itertools.islice(known, max(0, len(known) - most))):
        del known[key]
