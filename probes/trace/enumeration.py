"""Which flows to send with which hop limits next, until the path set of one trace is known.

No socket and no clock: `wanted` says what to ask, `answered` and `silent` say what came of it.
Three ways, all hop by hop with the same flows at every hop limit, so that these see whole paths:

    paris     as many flows as were asked for, whatever they find
    mda       at every vertex as many flows as its stopping point says, looking for flows that pass
              it where there are too few (node control)
    mda-lite  the same for a whole hop as if it were one vertex, as long as the hops look evenly
              spread and unmeshed (`meshing`); from the first sign of something else on: mda

(Augustin et al., E2EMON 2007; Vermeulen et al., "Multilevel MDA-Lite Paris traceroute", IMC 2018.)
`verification` tells a diamond from a path that changed under way and from balancing by packet.
"""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from pathbudget.probes.trace import meshing
from pathbudget.probes.trace.flow_choice import Live, flows_needed, fresh, likely, passing, unasked
from pathbudget.probes.trace.rules import (
    AT_ONCE,
    RESTARTS,
    TRIED_FOR_ONE,
    WINDOW,
    Algorithm,
    Rules,
    Stopped,
    Want,
)
from pathbudget.probes.trace.sightings import (
    REFUSED,
    SILENT,
    SOURCE,
    SPRAYED,
    WILD,
    Hop,
    Sightings,
)
from pathbudget.probes.trace.stopping import StoppingPoints, stopping_points, vertex_alpha
from pathbudget.probes.trace.verification import Verdict, Verification, Witnessed


@dataclass(slots=True)
class Enumeration:
    """One trace. `destination` is the name of the end."""

    rules: Rules
    destination: str
    sights: Sightings = field(init=False)
    full: bool = field(init=False)
    """Whether every vertex is looked at by itself."""
    asked: int = 0
    under_way: int = 0
    restarts: int = 0
    unmet: dict[int, set[str]] = field(default_factory=dict[int, set[str]])
    """By hop limit, whose next hops the stopping rule could not be met for."""
    spent: bool = False
    """No more packets may be sent."""
    refused: set[int] = field(default_factory=set[int])
    """Flows that somebody refused to carry."""
    _flows: int = 1
    _verification: Verification = field(init=False)
    _vertices: Counter[int] = field(default_factory=Counter[int])
    _points: StoppingPoints = field(init=False)
    _dirty: set[int] = field(init=False)
    _asked_mute: bool = False
    _scouted: int = 0
    """How far ahead the first flow has gone."""
    _waiting: dict[int, set[int]] = field(default_factory=dict[int, set[int]])
    """By hop limit, which others are to be looked at again once flows have been found there."""

    def __post_init__(self) -> None:
        rules = self.rules
        self.sights = Sightings(rules.first_hop, rules.attempts)
        self.full = rules.algorithm is Algorithm.MDA
        self._verification = Verification(self.sights)
        self._dirty = {rules.first_hop}
        self._choose_points()

    @property
    def vertex_alpha(self) -> float:
        """What one vertex may fail with."""
        alpha = 1 - self.rules.confidence
        return alpha if self.rules.per_vertex else vertex_alpha(alpha, sum(self._vertices.values()))

    @property
    def done(self) -> bool:
        """Nothing is under way and nothing is wanted, as of the last call of `wanted`."""
        return not self.under_way and (self.spent or not self._dirty)

    @property
    def complete(self) -> bool:
        """The rule was met at every hop that answers, and every link was seen twice."""
        return not (
            self.spent
            or any(self.unmet.values())
            or self.restarts > RESTARTS
            or (self._verifies and any(not one.confirmed for one in self.links().values()))
        )

    @property
    def stopped(self) -> Stopped:
        """Why it ended, by what the first flow met."""
        if self.spent:
            return Stopped.BUDGET
        if 0 in self.sights.looped:
            return Stopped.LOOP
        if 0 in self.refused:
            return Stopped.UNREACHABLE
        if 0 in self.sights.ends:
            return Stopped.ARRIVED
        return Stopped.LIMIT if self._reaches() >= self.rules.max_hops else Stopped.GAP

    def links(self) -> dict[tuple[int, str, str], Witnessed]:
        """Who passes packets on to whom: ``(hop limit of the first, first, second)``. Only what one
        flow saw at two hop limits in a row, nothing about silent routers.
        """
        return self._verification.links()

    def answered(self, flow: int, limit: int, name: str, *, terminal: bool, asked: int = 0) -> None:
        """Somebody answered. `terminal`: the flow ends there, at the destination or because `name`
        refuses it.
        """
        if terminal and name != self.destination:
            self.refused.add(flow)
            name = REFUSED + name
        hop = self.sights.hops.get(limit)
        before = 0 if hop is None else hop.pending
        sight = self.sights.answered(flow, limit, name, terminal=terminal, asked=asked)
        if sight is None or hop is None:
            return
        self.under_way -= before - hop.pending
        self._touch(limit)

    def silent(self, flow: int, limit: int, *, for_good: bool = False) -> None:
        """Nobody answered in time, or it could not be sent (`for_good`)."""
        hop = self.sights.hops.get(limit)
        before = 0 if hop is None else hop.pending
        self.sights.silent(flow, limit, for_good=for_good)
        if hop is not None:
            self.under_way -= before - hop.pending
        self._touch(limit)

    def stop(self) -> None:
        """No more packets: the deadline has come."""
        self.spent = True

    def wanted(self) -> list[Want]:
        """What to send now. Each is under way until `answered` or `silent` is called for it."""
        wants: list[Want] = []
        while self._dirty and not self.spent:
            limit = min(self._dirty)
            self._dirty.discard(limit)
            self._look_at(limit, wants)
        if not wants and not self.under_way and not self.spent and self._verifies:
            self._finish(wants)
        return wants

    @property
    def _verifies(self) -> bool:
        return self.rules.algorithm is not Algorithm.PARIS

    def _touch(self, limit: int) -> None:
        """What is to be looked at again after news from a hop limit."""
        dirty = self._dirty
        dirty |= self._waiting.pop(limit, set())
        dirty.add(limit)
        dirty.add(limit + 1)
        while self.sights.hands_on(limit + 1):
            limit += 1
            dirty.add(limit + 1)

    def _touch_all(self) -> None:
        self._dirty.update(range(self.rules.first_hop, self._reaches() + 1))

    def _reaches(self) -> int:
        """The last hop limit that is asked for at all."""
        return min(self.rules.max_hops, self.sights.last_answered + self.rules.gap)

    def _ask(self, flow: int, limit: int, wants: list[Want]) -> None:
        if self.asked >= self.rules.most_packets:
            self.spent = True
            return
        asked = self.sights.ask(flow, limit)
        self.asked += 1
        self.under_way += 1
        self._flows = max(self._flows, flow + 1)
        wants.append(Want(flow, limit, asked))

    def _look_at(self, limit: int, wants: list[Want]) -> None:
        if limit < self.rules.first_hop or limit > self._reaches():
            return
        self.unmet.pop(limit, None)
        self._scout(limit, wants)
        if not self._open(limit):
            return
        if self.rules.algorithm is Algorithm.PARIS:
            self._ask_flows(limit, self.rules.flows, wants)
        elif self.full:
            self._ask_by_vertex(limit, wants)
        else:
            self._ask_by_hop(limit, wants)
        if self._verifies:
            self._count_vertices(limit)

    def _scout(self, limit: int, wants: list[Want]) -> None:
        """The first flow goes ahead, a window of hop limits at once."""
        sights = self.sights
        last = min(self._reaches(), max(limit, sights.farthest) + WINDOW, sights.ends.get(0, 999))
        if limit <= last and sights.may_ask(0, limit):
            self._ask(0, limit, wants)
        for ahead in range(max(limit, self._scouted) + 1, last + 1):
            if sights.may_ask(0, ahead):
                self._ask(0, ahead, wants)
        self._scouted = max(self._scouted, last)

    def _open(self, limit: int) -> bool:
        """Whether more flows than the first are of use there: packets are known to get that far, or
        nobody has answered between here and there.
        """
        sights = self.sights
        if limit <= max(sights.farthest, sights.last_answered) + 1:
            return limit <= sights.farthest + 1 or 0 not in sights.ends
        return sights.hands_on(limit - 1) and 0 not in sights.ends

    def _ask_flows(self, limit: int, count: int, wants: list[Want]) -> None:
        """The first `count` flows, each as often as it takes."""
        sights, hop = self.sights, self.sights.hop(limit)
        for flow in range(0 if hop.mute else count):
            if sights.live(flow, limit) and sights.may_ask(flow, limit):
                self._ask(flow, limit, wants)

    def _ask_by_hop(self, limit: int, wants: list[Want]) -> None:
        """All flows alike, until the stopping rule is met for the hop as a whole."""
        hop = self.sights.hop(limit)
        members = Live(self.sights, limit, self.rules.flows)
        if self._asks_again(limit, wants):
            return
        if self._ask_members(limit, hop, SOURCE, members, wants):
            return
        if meshing.is_irregular(self.sights, limit):
            self.full = True
            self._touch_all()
            return
        for flow, at in meshing.missing(self.sights, limit):
            self._ask(flow, at, wants)

    def _ask_by_vertex(self, limit: int, wants: list[Want]) -> None:
        """Every vertex before it by itself (node control)."""
        if self._asks_again(limit, wants):
            return
        hop = self.sights.hop(limit)
        if limit == self.rules.first_hop:
            members = Live(self.sights, limit, self.rules.flows)
            self._ask_members(limit, hop, SOURCE, members, wants)
            return
        groups = passing(self.sights, limit - 1)
        for name, flows in groups.items():
            self._ask_members(limit, hop, name, flows, wants)
        if hop.mute or hop.sprayed or not self._is_steady(limit - 1):
            return
        for name, flows in groups.items():
            missing = self._needed(limit, flows) - len(flows)
            if missing > 0:
                self._hunt(name, limit - 1, missing, len(flows), wants, limit)

    def _is_steady(self, limit: int) -> bool:
        """Whether what was seen at a hop limit has been seen to last; else it is asked first."""
        verdict, _ = self._verification.look_at(limit, self._points.needed(1))
        return verdict is Verdict.STEADY

    def _ask_members(
        self, limit: int, hop: Hop, name: str, members: Iterable[int], wants: list[Want]
    ) -> bool:
        """Ask some of them until enough have been answered; whether any of it is under way."""
        sights = self.sights
        if hop.sprayed:
            return False
        if hop.mute:  # nobody has answered here: see that this is so behind each vertex
            again = unasked(hop, members, self._points.needed(1)) if self.full else []
            for flow in again:
                self._ask(flow, limit, wants)
            return bool(again)
        needed = self._needed(limit, members)
        known = 0
        under_way = False
        for tried, flow in enumerate(members):
            if known >= needed:
                break
            sight = hop.sights.get(flow)
            if sight is None and tried >= TRIED_FOR_ONE * needed:
                break
            if sight is not None and (sight.pending or sight.names):
                known += 1
                under_way |= sight.pending and not sight.names
            elif sight is None or not sights.exhausted(hop, sight):
                self._ask(flow, limit, wants)
                known += 1
                under_way = True
            elif sights.name(flow, limit) is not None:
                known += 1
        if known < needed:
            self.unmet.setdefault(limit, set()).add(name)
        return under_way

    def _hunt(
        self,
        name: str,
        limit: int,
        missing: int,
        have: int,
        wants: list[Want],
        for_limit: int,
    ) -> None:
        """Look for flows that pass a vertex, among those that nobody has asked there yet, so that
        `for_limit` has enough of them.
        """
        sights = self.sights
        while name[:1] in (WILD, SPRAYED):  # whoever passes the one before it passes it, too
            name, limit = name[1:], limit - 1
        hop = sights.hop(limit)
        if limit < self.rules.first_hop:
            return
        self._waiting.setdefault(limit, set()).add(for_limit)
        if hop.pending:
            return
        if name[:1] == SILENT and not likely(sights, name, limit, 1):
            # Nobody is known there by an address: it takes flows known one hop before.
            self._hunt(name[1:], limit - 1, missing, have, wants, for_limit)
            return
        known = max(1, sum(1 for _ in sights.named(limit)))
        share = max(have, 1) / known
        count = min(AT_ONCE, math.ceil(missing / share))
        again = [one for one in hop.sights if sights.may_ask(one, limit)]
        most = min(self.rules.flows, self._flows + count)
        for flow in again or fresh(sights, name, limit, count, most):
            self._ask(flow, limit, wants)

    def _asks_again(self, limit: int, wants: list[Want]) -> bool:
        """Ask some flows once more where there is more than one answer; whether that is under way.

        They tell balancing by packet from balancing by flow.
        """
        verdict, flows = self._verification.look_at(limit, self._points.needed(1))
        if verdict is Verdict.CHANGED:
            self._begin_again()
            return True
        if verdict is Verdict.SPRAYED:
            self._touch_all()
            return True
        for flow in flows:
            self._ask(flow, limit, wants)
        return bool(flows) or verdict is Verdict.OPEN

    def _finish(self, wants: list[Want]) -> None:
        """All is found: see every link once more, and ask once more where nobody answered."""
        mute = [] if self._asked_mute else self.sights.mute
        self._asked_mute = True
        for limit in mute:
            self._ask(0, limit, wants)
        for flow, limit in self._verification.unconfirmed(self.rules.attempts):
            self._ask(flow, limit, wants)

    def _begin_again(self) -> None:
        """The path has changed under way: what was seen before is of another path."""
        self.restarts += 1
        if self.restarts > RESTARTS:
            self.spent = True
            return
        self.sights.forget()
        self.under_way = 0
        self.unmet.clear()
        self.refused.clear()
        self._waiting.clear()
        self._scouted = 0
        self._vertices.clear()
        self.full = self.rules.algorithm is Algorithm.MDA
        self._choose_points()
        self._dirty = {self.rules.first_hop}

    def _needed(self, limit: int, members: Iterable[int]) -> int:
        """Flows that must be answered of those of one vertex (or hop)."""
        return flows_needed(self.sights, limit, members, self._points, self.vertex_alpha)

    def _choose_points(self) -> None:
        self._points = stopping_points(self.vertex_alpha)
        if self._verifies:
            self.sights.require(min(self._points.needed(1), self.rules.flows))

    def _count_vertices(self, limit: int) -> None:
        """The more vertices there are, the less may one of them fail."""
        before = self.vertex_alpha
        names = {name for _, name in self.sights.named(limit)}
        self._vertices[limit] = len(names)
        if self.vertex_alpha < before:
            self._choose_points()
            self._touch_all()
