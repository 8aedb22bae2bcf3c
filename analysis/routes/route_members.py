"""What a route passes at each level, and whether chance explains who was not seen, or not before.

A *mark* is one thing to pass: an address at a hop limit, or at AS granularity an AS, or one AS
directly behind another. The *level* of a mark is where flows choose between it and others. Of each
mark the distinct flows that passed it are counted, and those that passed its level without it since
it was last seen: a flow that is asked again adds nothing, because its way is hashed. Where flows do
not keep their way (a level that is *spread*), or have no name, packets are counted instead.
"""

import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from pathbudget.analysis.routes.chance import DOUBTFUL, NEVER, unseen_by_chance

MOST_FLOWS = 256
MOST_FOUND = 64
MOST_MEMBERS = 128
"""Members kept of one level; those seen longest ago are forgotten first."""

PROVEN = 10
"""After so many flows that took the same of several ways again, flows keep their way here: were it
drawn for each packet, that would happen once in a thousand times at most."""

KEPT_BY_FLOWS = 3
"""So often must flows have come back to a member before their leaving it means that it is gone."""

Unit = tuple[int | None, int]
"""What a passage counts as: a flow, or a number of packets."""


class Change(NamedTuple):
    """The members changed after `after_ns` and not later than `by_ns`; traces that ended at
    `first_ns` or later show those that there are now.
    """

    after_ns: int
    by_ns: int
    first_ns: int


@dataclass(slots=True)
class Units:
    """Distinct flows, or packets where flows are no units.

    Flows beyond the most that are kept count as new ones: where there are so many, they are.
    """

    flows: set[int] = field(default_factory=set[int])
    packets: int = 0

    def add(self, unit: Unit) -> None:
        """Count a flow once, packets as many as there are."""
        flow, packets = unit
        if flow is None:
            self.packets += packets
        elif flow not in self.flows:
            if len(self.flows) < MOST_FLOWS:
                self.flows.add(flow)
            else:
                self.packets += 1

    def count(self) -> int:
        """How many in all."""
        return len(self.flows) + self.packets


@dataclass(slots=True)
class Member:
    """One mark. `before`: how many had passed its level before it was first seen, and `before_ns`:
    until when they would have seen it; `tested`: how many by the time it was last seen; `since`:
    who has since, without it.
    """

    first_ns: int
    before: int
    before_ns: int
    last_ns: int = 0
    tested: int = 0
    seen: Units = field(default_factory=Units)
    since: Units = field(default_factory=Units)
    kept: int = 0
    """How often a flow that had passed it passed it again in its next trace."""
    left_ns: int = 0
    """End of the first trace since then in which one of its flows passed another one."""
    doubtful_ns: int = 0
    """End of the first trace since then after which chance hardly explains that it is unseen."""

    def see(self, unit: Unit, tested: int, now: int) -> None:
        """It was passed."""
        self.seen.add(unit)
        self.last_ns, self.tested = now, tested
        self.forgive()

    def miss(self, unit: Unit, flow: int | None, now: int) -> None:
        """Its level was passed without it."""
        self.since.add(unit)
        if flow is not None and flow in self.seen.flows:
            self.left_ns = self.left_ns or now
        if not self.doubtful_ns and self.chance() <= DOUBTFUL:
            self.doubtful_ns = now

    def chance(self) -> float:
        """How likely it is that it was not seen since though it is still there."""
        return unseen_by_chance(self.seen.count(), self.tested, self.since.count())

    def forgive(self) -> None:
        """Begin anew to count who passes without it."""
        self.since, self.left_ns, self.doubtful_ns = Units(), 0, 0


@dataclass(slots=True)
class LevelMembers:
    """All members of one level. `alone`: a flow passes one at a time, as it does at a hop limit."""

    alone: bool = True
    spread: bool = False
    """Whether packets of one flow pass different members."""
    kept: int = 0
    """How often a flow passed the same of several members again."""
    tested: Units = field(default_factory=Units)
    latest_ns: int = 0
    members: dict[str, Member] = field(default_factory=dict[str, Member])
    _before: int = 0
    _found: deque[int] = field(default_factory=lambda: deque[int](maxlen=MOST_FOUND))
    """Ends of traces, once for each passage through a member that was known."""

    def begin(self, now: int) -> None:
        """A trace that ended at `now` tests this level."""
        if now != self.latest_ns:
            self._before, self.latest_ns = self.tested.count(), now

    def see(self, word: str, unit: Unit, now: int) -> None:
        """A passage went through a member; `tested` has counted it already."""
        member = self.members.pop(word, None)
        if member is None:
            member = Member(now, self._before, self.unchanged_ns() or now)
        else:
            self._found.append(now)
        member.see(unit, self.tested.count(), now)
        self.members[word] = member
        while len(self.members) > MOST_MEMBERS:
            del self.members[next(iter(self.members))]

    def unchanged_ns(self) -> int:
        """When the last so many passages were all through known members that one of them would
        have been through a new one beside them, had there been one. Where there were fewer it is
        the first of them, or 0.
        """
        share = len(self.members) / (len(self.members) + 1)
        enough = math.ceil(math.log(DOUBTFUL) / math.log(share)) if self.members else 1
        return self._found[-min(enough, len(self._found))] if self._found else 0

    def note_kept(self, word: str, flow: int | None) -> None:
        """A flow was found where it was before."""
        member = self.members.get(word)
        if member is not None and flow in member.seen.flows:
            member.kept += 1
            self.kept += len(self.members) > 1

    @property
    def keeps_flows(self) -> bool:
        """Whether flows are known to keep to their members here."""
        return not self.spread and self.kept >= PROVEN

    def changes(self) -> Iterator[Change]:
        """Of members that chance does not explain: new ones, and ones that are gone."""
        if len(self.members) > 1 or any(one.since.count() for one in self.members.values()):
            yield from self._arrived()
            yield from self._gone()

    def _arrived(self) -> Iterator[Change]:
        """Members that would have been seen before, had they been there: singly or together."""
        total, seen = self.tested.count(), 0
        for member in sorted(self.members.values(), key=lambda one: -one.first_ns):
            if not member.before:
                return
            seen = member.seen.count() + (seen if self.alone else 0)
            later = max(seen, total - member.before)
            if unseen_by_chance(seen, later, member.before) <= NEVER:
                yield Change(member.before_ns, member.first_ns, member.first_ns)

    def _gone(self) -> Iterator[Change]:
        """Members that would have been seen since, were they still there: singly or together."""
        seen = 0
        for member in sorted(self.members.values(), key=lambda one: one.last_ns):
            later = member.since.count()
            if not later:
                return
            seen = member.seen.count() + (seen if self.alone else 0)
            if self.keeps_flows and member.left_ns and member.kept >= KEPT_BY_FLOWS:
                yield self._left(member, member.left_ns)
            elif unseen_by_chance(min(seen, member.tested), member.tested, later) <= NEVER:
                yield self._left(member, member.doubtful_ns or self.latest_ns)

    def _left(self, gone: Member, by_ns: int) -> Change:
        """The window ends not later than another one took its place."""
        new = [one.first_ns for one in self.members.values() if one.first_ns > gone.last_ns]
        return Change(gone.last_ns, min([by_ns, *new]), gone.last_ns + 1)

    def rewind(self, after_ns: int) -> None:
        """Forget what was first seen later, and who passed without the others since."""
        for word in [word for word, one in self.members.items() if one.first_ns > after_ns]:
            del self.members[word]
        for member in self.members.values():
            member.forgive()

    def may_have_been(self, other: "LevelMembers") -> bool:
        """Whether chance explains that the other one saw some of these members only."""
        more = [one for word, one in self.members.items() if word not in other.members]
        seen = sum(one.seen.count() for one in more)
        tested = max(seen, self.tested.count())
        return unseen_by_chance(seen, tested, other.tested.count()) > NEVER

    def join(self, other: "LevelMembers") -> None:
        """Have the members of both."""
        self.spread |= other.spread
        for word, member in other.members.items():
            self.members.setdefault(word, member)
