"""Sees again what was seen once: no link out of two different moments, no diamond out of one flow.

Two answers of one flow at two hop limits came at two moments, and the path may have changed between
them. So a link counts as confirmed only when the flow was asked at both once more, after both had
answered, and both said the same again. One change between the four cannot go unnoticed.

A flow that is answered by different routers at one hop limit was balanced by packet, or moved. It
is asked again: back and forth is balancing by packet; from one to the other for good, a change.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from pathbudget.probes.trace.sightings import Hop, Sight, Sightings, is_address

SUSPECTS = 3
ANSWERS_OF_A_SUSPECT = 6
"""Answers after which flows that were answered differently are judged. Balanced by packet over two
routers a flow looks like a change in 5 of 31 cases; three of them in 1 of 238.
"""
ANSWERS_OF_THE_ONLY_SUSPECT = 9
"""By then it looks like a change in 8 of 255 cases."""
MOST_TRIES = 5
"""Flows that are asked in vain to confirm one link."""


class Verdict(StrEnum):
    """What a hop limit looks like."""

    STEADY = "steady"
    OPEN = "open"
    """It has to be asked more."""
    SPRAYED = "sprayed"
    CHANGED = "changed"


@dataclass(slots=True)
class Witnessed:
    """A link, and who saw it."""

    flow: int
    confirmed: bool


class Verification:
    """Of one trace."""

    def __init__(self, sights: Sightings) -> None:
        self._sights = sights

    def look_at(self, limit: int, flows_needed: int) -> tuple[Verdict, list[int]]:
        """What the hop limit looks like, and which flows to ask there once more."""
        hop = self._sights.hop(limit)
        if hop.sprayed or hop.mute or not hop.answers:
            return Verdict.STEADY, []
        suspects = [flow for flow, one in hop.sights.items() if not one.stable]
        if suspects:
            return self._judge(hop, suspects)
        names = {one.names[-1] for one in hop.sights.values() if one.names}
        if len(names) < 2:
            return Verdict.STEADY, []
        again = self._once_more(hop, limit, flows_needed)
        waits = any(one.pending and one.names for one in hop.sights.values())
        return (Verdict.OPEN if waits or again else Verdict.STEADY), again

    def links(self) -> dict[tuple[int, str, str], Witnessed]:
        """All links, each with its best witness."""
        found: dict[tuple[int, str, str], Witnessed] = {}
        for limit, flow, first, second in self._pairs():
            link = (limit, first.names[-1], second.names[-1])
            known = found.get(link)
            if known is not None and known.confirmed:
                continue
            confirmed = _confirmed(first, second)
            if known is None or confirmed:
                found[link] = Witnessed(flow, confirmed)
        return found

    def unconfirmed(self, attempts: int) -> Iterator[tuple[int, int]]:
        """Which flows to ask where so that every link is confirmed; nothing that was in vain."""
        asked: set[tuple[int, int]] = set()
        sights, hops = self._sights, self._sights.hops
        links = [(link, one) for link, one in self.links().items() if not one.confirmed]
        for (limit, a, b), _ in links:
            tries = 0
            for flow in self._witnesses(limit, a, b):
                first, second = hops[limit].sights[flow], hops[limit + 1].sights[flow]
                if tries >= MOST_TRIES:
                    break
                tries += 1
                if max(first.silent, second.silent) >= attempts + sights.attempts(hops[limit]):
                    continue
                since = max(first.heard_first, second.heard_first)
                for at, sight in ((limit, first), (limit + 1, second)):
                    if sight.confirmed_asked <= since and (flow, at) not in asked:
                        asked.add((flow, at))
                        yield flow, at
                break

    def _witnesses(self, limit: int, a: str, b: str) -> Iterator[int]:
        for at, flow, first, second in self._pairs(limit):
            if at == limit and first.names[-1] == a and second.names[-1] == b:
                yield flow

    def _pairs(self, only: int | None = None) -> Iterator[tuple[int, int, Sight, Sight]]:
        """Flows that saw somebody at two hop limits in a row, and never anybody else there."""
        sights = self._sights
        limits = sorted(sights.hops) if only is None else [only]
        for limit in limits:
            here, there = sights.hops.get(limit), sights.hops.get(limit + 1)
            if here is None or there is None or here.sprayed or there.sprayed:
                continue
            for flow in sorted(here.sights):
                first, second = here.sights[flow], there.sights.get(flow)
                if second is None or not (first.names and second.names):
                    continue
                if not (is_address(first.names[-1]) and is_address(second.names[-1])):
                    continue
                if first.stable and second.stable and sights.live(flow, limit + 1):
                    yield limit, flow, first, second

    def _judge(self, hop: Hop, suspects: list[int]) -> tuple[Verdict, list[int]]:
        again: list[int] = []
        waits = False
        if any(not hop.sights[flow].moved_on for flow in suspects):
            hop.sprayed = True
            return Verdict.SPRAYED, []
        lonely = len(suspects) < SUSPECTS
        answers = ANSWERS_OF_THE_ONLY_SUSPECT if lonely else ANSWERS_OF_A_SUSPECT
        for flow in suspects[:SUSPECTS]:
            sight = hop.sights[flow]
            if len(sight.names) < answers and sight.silent < answers:
                waits = True
                if not sight.pending:
                    again.append(flow)
        return (Verdict.OPEN if waits else Verdict.CHANGED), again

    def _once_more(self, hop: Hop, limit: int, flows_needed: int) -> list[int]:
        """Flows to ask again until so many have been answered twice."""
        chosen: list[int] = []
        seen = 0
        for flow in sorted(hop.sights):
            sight = hop.sights[flow]
            if not sight.names or not self._sights.live(flow, limit):
                continue
            if len(sight.names) > 1 or sight.pending:
                seen += 1
            elif sight.silent <= 1:
                seen += 1
                chosen.append(flow)
            if seen >= flows_needed:
                break
        return chosen


def _confirmed(first: Sight, second: Sight) -> bool:
    since = max(first.heard_first, second.heard_first)
    return min(first.confirmed_asked, second.confirmed_asked) > since
