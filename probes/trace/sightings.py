"""What the flows of one trace have seen, hop limit by hop limit.

A *name* is who a flow passes at a hop limit: an address, or one of these, `X` being the name one
hop before (so that what is behind silent routers is still told apart by how one came there):

    !X   X refuses to carry the flow further; X may be anywhere before
    *X   nobody ever answers at this hop limit: wild
    ?X   others are answered there, this flow is not, however often it asks: a silent branch
    ~X   packets of one flow are answered by different routers: load is balanced by packet

``""`` is the source. Names are only as good as what has been seen so far.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

SOURCE = ""
WILD, SILENT, SPRAYED, REFUSED = "*", "?", "~", "!"
MARKS = frozenset((WILD, SILENT, SPRAYED, REFUSED))
MUTE_FLOWS = 2
"""Flows that nobody answered at a hop limit, however often they asked, before it is called mute; as
many as a stopping point says must have asked in vain, too, where somebody answers further on.
"""
LIMITED_FLOWS = 2
"""Flows that were answered only when they asked again, before silence there proves nothing."""
EVERYBODY = 6
"""Flows after which the only one who answers is taken for the one that all flows pass."""
REMEMBERED_ANSWERS = 16
LOOP_TIMES = 3
"""One router at so many hop limits of one flow: packets go round in circles."""


def is_address(name: str) -> bool:
    """Whether somebody answered for it."""
    return name != SOURCE and name[0] not in MARKS


@dataclass(slots=True)
class Sight:
    """What one flow saw at one hop limit. `asked` and `heard` count events, not time."""

    names: list[str] = field(default_factory=list[str])
    """Who answered, in the order of asking."""
    terminal: bool = False
    """Packets of this flow end here: at the destination, or at somebody who refuses them."""
    silent: int = 0
    pending: bool = False
    asked_last: int = 0
    heard_first: int = 0
    confirmed_asked: int = 0
    """When the latest answer was asked for."""

    @property
    def stable(self) -> bool:
        """Every answer came from the same one."""
        return all(name == self.names[0] for name in self.names)

    @property
    def moved_on(self) -> bool:
        """First one, then another for good: what a change of the path looks like."""
        changes = sum(a != b for a, b in zip(self.names, self.names[1:], strict=False))
        return changes == 1


@dataclass(slots=True)
class Hop:
    """All flows at one hop limit."""

    sights: dict[int, Sight] = field(default_factory=dict[int, Sight])
    answers: int = 0
    silent_flows: int = 0
    """Flows that asked in vain."""
    given_up: int = 0
    """Flows that asked in vain as often as they may."""
    least: int = MUTE_FLOWS
    """Flows that must have asked in vain before nobody answers here."""
    late_answers: int = 0
    """Flows that were answered only when they asked again."""
    pending: int = 0
    sprayed: bool = False
    heard: set[str] = field(default_factory=set[str])
    """Everybody who answered."""

    @property
    def mute(self) -> bool:
        """Nobody answers here."""
        return not self.answers and self.given_up >= MUTE_FLOWS and self.silent_flows >= self.least

    @property
    def limited(self) -> bool:
        """Answers are rationed, or get lost: no answer does not mean that there never is one."""
        return self.late_answers >= LIMITED_FLOWS


class Sightings:
    """The table. Hop limits below `first_hop` are not looked at."""

    def __init__(self, first_hop: int, attempts: int) -> None:
        self.first_hop = first_hop
        self.hops: dict[int, Hop] = {}
        self.ends: dict[int, int] = {}
        """Hop limit at which a flow ends, by flow."""
        self.looped: set[int] = set()
        self.last_answered = first_hop - 1
        self.farthest = first_hop - 1
        """The greatest hop limit at which somebody passed a packet on."""
        self.events = 0
        self.mute_flows = MUTE_FLOWS
        """What `Hop.least` is where somebody answers further on."""
        self._attempts = attempts
        self._places: dict[str, set[int]] = {}
        """Hop limits of each router: most are at one."""

    def hop(self, limit: int) -> Hop:
        """The row of a hop limit."""
        found = self.hops.get(limit)
        if found is None:
            found = self.hops[limit] = Hop()
            if limit < self.last_answered:
                found.least = self.mute_flows
        return found

    def attempts(self, hop: Hop) -> int:
        """How often one flow asks there before it takes silence for an answer."""
        return 2 * self._attempts + 1 if hop.limited else self._attempts

    def ask(self, flow: int, limit: int) -> int:
        """A packet leaves; the number of this event."""
        hop = self.hop(limit)
        sight = hop.sights.get(flow)
        if sight is None:
            sight = hop.sights[flow] = Sight()
        self.events += 1
        sight.pending = True
        sight.asked_last = self.events
        hop.pending += 1
        return self.events

    def answered(
        self, flow: int, limit: int, name: str, *, terminal: bool, asked: int = 0
    ) -> Sight | None:
        """Somebody answered; None where nobody was asked (any more). `asked` is the event that it
        answers, 0: the latest.
        """
        hop = self.hops.get(limit)
        sight = None if hop is None else hop.sights.get(flow)
        if hop is None or sight is None:
            return None
        self.events += 1
        self._no_longer_pending(hop, sight)
        first = not sight.names
        if first:
            sight.heard_first = self.events
            hop.answers += 1
            hop.late_answers += sight.silent > 0
            hop.given_up -= sight.silent >= self._attempts
            hop.silent_flows -= sight.silent > 0
        if len(sight.names) < REMEMBERED_ANSWERS:
            sight.names.append(name)
        hop.heard.add(name)
        sight.confirmed_asked = max(sight.confirmed_asked, asked or sight.asked_last)
        self._place_end(flow, limit, sight, name, terminal=terminal, first=first)
        self._answered_as_far_as(limit)
        return sight

    def silent(self, flow: int, limit: int, *, for_good: bool = False) -> None:
        """Nobody answered in time; `for_good`: there is no point in asking again."""
        hop = self.hops.get(limit)
        sight = None if hop is None else hop.sights.get(flow)
        if hop is None or sight is None or not sight.pending:
            return
        self.events += 1
        self._no_longer_pending(hop, sight)
        before = sight.silent
        hop.silent_flows += not before and not sight.names
        sight.silent = max(before + 1, 99 if for_good else 0)
        if not sight.names and before < self._attempts <= sight.silent:
            hop.given_up += 1

    def may_ask(self, flow: int, limit: int) -> bool:
        """Whether a flow has had no answer there, and may ask (again)."""
        hop = self.hop(limit)
        sight = hop.sights.get(flow)
        if sight is None:
            return True
        return not (sight.names or sight.pending or self.exhausted(hop, sight))

    def require(self, mute_flows: int) -> None:
        """So many flows from now on have to ask in vain before a hop is mute."""
        self.mute_flows = mute_flows
        for limit, hop in self.hops.items():
            hop.least = MUTE_FLOWS if limit > self.last_answered else mute_flows

    def exhausted(self, hop: Hop, sight: Sight) -> bool:
        """It has asked as often as it may."""
        return sight.silent >= self.attempts(hop)

    def live(self, flow: int, limit: int) -> bool:
        """Whether packets of a flow, as far as is known, get as far as to this hop limit."""
        return self.ends.get(flow, limit) >= limit

    def name(self, flow: int, limit: int) -> str | None:
        """Who the flow passes there; None: not known."""
        if limit < self.first_hop:
            return SOURCE
        if not self.live(flow, limit):
            return None
        hop = self.hops.get(limit)
        if hop is None:
            return None
        if hop.sprayed:
            return self._marked(SPRAYED, flow, limit)
        sight = hop.sights.get(flow)
        if sight is not None and sight.names:
            return sight.names[-1]
        if hop.mute:
            return self._marked(WILD, flow, limit)
        if sight is not None and self.exhausted(hop, sight) and not hop.limited and hop.answers:
            return self._marked(SILENT, flow, limit)
        return None

    def ended_at(self, flow: int, limit: int) -> bool:
        """Whether packets of the flow end at this very hop limit."""
        return self.ends.get(flow) == limit

    @property
    def sprayed(self) -> list[int]:
        """Hop limits at which load is balanced by packet."""
        return sorted(limit for limit, hop in self.hops.items() if hop.sprayed)

    @property
    def mute(self) -> list[int]:
        """Hop limits before the last one that answered at which nobody does."""
        return [
            limit for limit, hop in self.hops.items() if hop.mute and limit < self.last_answered
        ]

    def hands_on(self, limit: int) -> bool:
        """Whether who passes the hop before passes this one, too, without being asked there."""
        hop = self.hops.get(limit)
        return hop is not None and (hop.mute or hop.sprayed)

    def named(self, limit: int) -> Iterator[tuple[int, str]]:
        """All flows whose name is known at a hop limit."""
        hop = self.hops.get(limit)
        flows = (
            self._all_flows(limit)
            if hop is not None and (hop.mute or hop.sprayed)
            else (() if hop is None else tuple(hop.sights))
        )
        for flow in flows:
            name = self.name(flow, limit)
            if name is not None:
                yield flow, name

    def forget(self) -> None:
        """The path has changed: all that was seen is of the past."""
        self.hops.clear()
        self.ends.clear()
        self.looped.clear()
        self._places.clear()
        self.last_answered = self.farthest = self.first_hop - 1

    def _answered_as_far_as(self, limit: int) -> None:
        if limit > self.last_answered:
            self.last_answered = limit
            self.require(self.mute_flows)

    def _all_flows(self, limit: int) -> tuple[int, ...]:
        """Flows known one hop before: they pass a mute hop limit without being asked there."""
        while limit >= self.first_hop:
            hop = self.hops.get(limit)
            if hop is not None and not (hop.mute or hop.sprayed):
                return tuple(hop.sights)
            limit -= 1
        flows = {flow for hop in self.hops.values() for flow in hop.sights}
        return tuple(sorted(flows))

    def _marked(self, mark: str, flow: int, limit: int) -> str | None:
        before = self.name(flow, limit - 1) or self._everybody(limit - 1)
        return None if before is None else mark + before

    def _everybody(self, limit: int) -> str | None:
        """Who all flows pass at a hop limit, those among them that were never asked there."""
        if limit < self.first_hop:
            return SOURCE
        hop = self.hops.get(limit)
        if hop is None or len(hop.heard) > 1:
            return None
        if hop.heard and not hop.sprayed:
            return next(iter(hop.heard)) if hop.answers >= EVERYBODY else None
        before = self._everybody(limit - 1) if hop.mute else None
        return None if before is None else WILD + before

    def _no_longer_pending(self, hop: Hop, sight: Sight) -> None:
        if sight.pending:
            sight.pending = False
            hop.pending -= 1

    def _place_end(
        self, flow: int, limit: int, sight: Sight, name: str, *, terminal: bool, first: bool
    ) -> None:
        """Where the flow ends. Who passes packets on is no end, whatever was seen before: the path
        may have grown.
        """
        sight.terminal = terminal if first else sight.terminal and terminal
        end = self.ends.get(flow)
        if terminal and sight.terminal:
            if end is None or limit < end:
                self.ends[flow] = limit
            return
        if flow not in self.looped:
            self.farthest = max(self.farthest, limit)
        if end is not None and end <= limit and flow not in self.looped:
            self._place_later(flow, limit)
        places = self._places.setdefault(name, set())
        places.add(limit)
        if len(places) >= LOOP_TIMES and self._goes_round(flow, name, places):
            self._loop(flow, name, places)

    def _place_later(self, flow: int, limit: int) -> None:
        del self.ends[flow]
        for later in sorted(self.hops):
            sight = self.hops[later].sights.get(flow)
            if later > limit and sight is not None and sight.terminal and sight.names:
                self.ends[flow] = later
                return

    def _loop(self, flow: int, name: str, places: set[int]) -> None:
        """A flow that goes round ends where it comes by for the last time that is of interest."""
        here = [limit for limit in sorted(places) if self._saw(flow, limit) == name]
        self.looped.add(flow)
        self.ends[flow] = min(self.ends.get(flow, here[-1]), here[LOOP_TIMES - 1])
        self.farthest = max(
            (
                limit
                for limit, hop in self.hops.items()
                for one, sight in hop.sights.items()
                if sight.names and self.ends.get(one, limit + 1) > limit
            ),
            default=self.first_hop - 1,
        )

    def _saw(self, flow: int, limit: int) -> str | None:
        sight = self.hops[limit].sights.get(flow)
        return sight.names[-1] if sight is not None and sight.names else None

    def _goes_round(self, flow: int, name: str, places: set[int]) -> bool:
        return sum(self._saw(flow, limit) == name for limit in places) >= LOOP_TIMES
