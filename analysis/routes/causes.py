"""What an incident is, and who is to be named: the table of rules, first match counts.

What was seen decides, never what is likely: without a change of the path that we can see, a level
shift is "below IP or on the way back".
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pathbudget.analysis.routes.as_paths import WILD_WORD
from pathbudget.analysis.routes.black_holes import SizeFinding
from pathbudget.analysis.routes.canonical import OPEN_WORD
from pathbudget.analysis.routes.episodes import Episode
from pathbudget.analysis.routes.model import (
    BgpEvent,
    BgpEventKind,
    Cause,
    FeedEvent,
    LevelShift,
    MemberFinding,
    Outage,
    OutageKind,
    RouteEvent,
    RouteEventKind,
)

Kind = TypeVar("Kind")

UNSEEN = frozenset({WILD_WORD, OPEN_WORD})

ALL_LOST = 0.9
"""A loss ratio from here on is no loss of some packets, but an outage."""


@dataclass(frozen=True, slots=True)
class Facts:
    """All episodes of one incident, sorted out by kind."""

    episodes: tuple[Episode, ...]
    flap_ns: int

    def routes(self, *kinds: RouteEventKind) -> list[RouteEvent]:
        """Route events of these kinds, or all of them."""
        return [one for one in self._all(RouteEvent) if not kinds or one.kind in kinds]

    def bgp(self, *kinds: BgpEventKind) -> list[BgpEvent]:
        """BGP events of these kinds, or all of them."""
        return [one for one in self._all(BgpEvent) if not kinds or one.kind in kinds]

    def shifts(self, what: str) -> list[LevelShift]:
        """Level shifts of delay, variation or loss."""
        return [one for one in self._all(LevelShift) if one.what == what]

    def outages(self) -> list[Outage]:
        """Times when nothing came back."""
        return self._all(Outage)

    def members(self) -> list[MemberFinding]:
        """Sick members."""
        return self._all(MemberFinding)

    def feeds(self) -> list[FeedEvent]:
        """Feeds that changed their state."""
        return self._all(FeedEvent)

    def holes(self) -> list[SizeFinding]:
        """Sizes that do not get through."""
        return [one.hole for one in self.episodes if one.hole is not None]

    @property
    def is_away(self) -> bool:
        """Whether nothing came back for a while."""
        lost = any(one.after.value_ns >= ALL_LOST for one in self.shifts("loss"))
        return bool(lost or self.outages() or self.routes(RouteEventKind.LOST))

    @property
    def moved(self) -> bool:
        """Whether packets, or BGP and delays together, took another way."""
        seen = self.routes(RouteEventKind.SHIFT, RouteEventKind.FLAP)
        return bool(seen or (self.bgp(BgpEventKind.PATH) and self.felt))

    @property
    def felt(self) -> bool:
        """Whether packets noticed anything."""
        return any(not isinstance(one.first, BgpEvent | FeedEvent) for one in self.episodes)

    @property
    def came_back(self) -> bool:
        """Whether a move was taken back within the time of a flap."""
        if self.routes(RouteEventKind.FLAP):
            return True
        ways = [one for one in self.episodes if isinstance(one.first, RouteEvent | BgpEvent)]
        return any(
            one.over is not None and one.over.by_unix_ns - one.window.by_unix_ns <= self.flap_ns
            for one in ways
        )

    def _all(self, kind: type[Kind]) -> list[Kind]:
        return [
            one for episode in self.episodes for one in episode.evidence if isinstance(one, kind)
        ]


Rule = tuple[Cause, Callable[[Facts], bool]]

RULES: tuple[Rule, ...] = (
    (Cause.FEED, lambda facts: bool(facts.feeds())),
    (Cause.ORIGIN, lambda facts: bool(facts.bgp(BgpEventKind.ORIGIN, BgpEventKind.INVALID))),
    (Cause.WITHDRAWN, lambda facts: facts.is_away and bool(facts.bgp(BgpEventKind.WITHDRAWN))),
    (Cause.FLAP, lambda facts: facts.moved and facts.came_back),
    (Cause.PATH_MOVED, lambda facts: facts.moved),
    (Cause.OUTAGE, lambda facts: facts.is_away),
    (Cause.BLACK_HOLE, lambda facts: bool(facts.holes())),
    (Cause.MEMBER, lambda facts: bool(facts.members())),
    (Cause.QUEUE, lambda facts: any(one.gradual for one in facts.episodes)),
    (Cause.LEVEL, lambda facts: bool(facts.shifts("rtt") or facts.shifts("pdv"))),
    (Cause.LOSS, lambda facts: bool(facts.shifts("loss"))),
    (Cause.ROUTING_ONLY, lambda _: True),
)
"""docs/routes-method.md has the same table in words."""


def cause_of(facts: Facts) -> Cause:
    """The first rule that holds."""
    return next(cause for cause, holds in RULES if holds(facts))


def blame_of(cause: Cause, facts: Facts) -> tuple[str, str]:
    """Who is named, and why: one sentence. Nobody is named without evidence."""
    return _BLAME[cause](facts)


def _path_blame(facts: Facts) -> tuple[str, str]:
    moves = facts.routes(RouteEventKind.SHIFT, RouteEventKind.FLAP)
    by_systems = [one for one in moves if one.as_before and one.as_before != one.as_after]
    if by_systems:
        return _by_systems(by_systems[0].as_before, by_systems[0].as_after, "traces show it.")
    for event in facts.bgp(BgpEventKind.PATH):
        before, after = (_systems(path) for path in (event.before, event.after))
        if before and after and before != after:
            return _by_systems(before, after, _peers(event))
    if moves:
        return _by_hops(moves[0])
    return "", "BGP and delays changed together; the paths do not show where."


def _by_systems(before: Sequence[str], after: Sequence[str], source: str) -> tuple[str, str]:
    common = _common(before, after)
    old, new = (_at(path, common) for path in (before, after))
    if common == 0:
        return old, f"the path begins with {new} instead of {old}: {source}"
    last = before[common - 1]
    return last, f"{last} sends by {new} instead of {old}: {source}"


def _by_hops(move: RouteEvent) -> tuple[str, str]:
    gone, new_ones = move.before - move.after, move.after - move.before
    before, after = min(gone or move.before, default=()), min(new_ones or move.after, default=())
    common = _common(before, after)
    old, new = (_at(path, common) for path in (before, after))
    if common == 0:
        return new, f"the first hop is {new} instead of {old}."
    last = before[common - 1]
    reason = f"after {last}, the last hop in common, comes {new} instead of {old}."
    return f"{last} > {new}", reason


def _withdrawn_blame(facts: Facts) -> tuple[str, str]:
    event = facts.bgp(BgpEventKind.WITHDRAWN)[0]
    systems = _systems(event.before)
    who = systems[-1] if systems else ""
    return who, f"{event.prefix} was withdrawn: {_peers(event)}"


def _origin_blame(facts: Facts) -> tuple[str, str]:
    event = facts.bgp(BgpEventKind.ORIGIN, BgpEventKind.INVALID)[0]
    systems = _systems(event.after)
    who = systems[-1] if systems else ""
    rpki = f", RPKI {event.rpki}" if event.rpki else ""
    return who, f"{who or 'somebody'} announces {event.prefix}{rpki}: {_peers(event)}"


def _outage_blame(facts: Facts) -> tuple[str, str]:
    for event in facts.routes(RouteEventKind.LOST):
        seen = [hop for hop in max(event.after, key=len, default=()) if hop not in UNSEEN]
        if seen:
            last, rest = seen[-1], max(event.before, key=len, default=())
            later = rest[rest.index(last) + 1 :][:1] if last in rest else ()
            link = f"{last} > {later[0]}" if later else last
            return link, f"{last} is the last hop that answers."
    flapping = [one for one in facts.outages() if one.kind is OutageKind.FLAPPING]
    if flapping:
        return "", f"away {flapping[0].times} times; routing does not say why."
    return "", "nothing came back, and routing does not say why."


def _member_blame(facts: Facts) -> tuple[str, str]:
    finding = min(facts.members(), key=lambda one: one.p_value)
    share = f"{len(finding.flows)} of {finding.flows_seen} flows"
    if finding.what == "loss":
        return "", f"{share} lose {finding.value:.1%}, the others {finding.group:.1%}."
    longer = f"{finding.value / 1e6:.3f} ms"
    return "", f"{share} take {longer} longer than they did, held against the others."


def _hole_blame(facts: Facts) -> tuple[str, str]:
    one = facts.holes()[0]
    return "", (
        f"{one.largest_passed} octets get through, {one.smallest_stopped} do not, "
        "and no router says so."
    )


def _queue_blame(_: Facts) -> tuple[str, str]:
    return "", "the round trip swelled gradually, on the same path: a queue."


def _level_blame(facts: Facts) -> tuple[str, str]:
    shifts = facts.shifts("rtt")
    if not shifts:
        return "", "the variation of the round trip changed, its level did not."
    first = shifts[0]
    if first.floor_ns is not None and abs(first.floor_ns) < 0.25 * abs(first.cost.value_ns):
        return "", "the quickest packets are as quick as before: something queues."
    return "", "no change of the path there is visible: below IP, or on the way back."


def _loss_blame(facts: Facts) -> tuple[str, str]:
    first = facts.shifts("loss")[0]
    return "", f"loss went from {first.before.value_ns:.2%} to {first.after.value_ns:.2%}."


def _feed_blame(facts: Facts) -> tuple[str, str]:
    first = facts.feeds()[0]
    detail = f" ({first.detail})" if first.detail else ""
    return first.feed, f"the feed is {first.after.value}{detail}: its silence is no news."


def _routing_blame(facts: Facts) -> tuple[str, str]:
    events = facts.bgp()
    if not events:
        return "", "the path changed, and no delay did."
    before, after = (_systems(path) for path in (events[0].before, events[0].after))
    who = _by_systems(before, after, "")[0] if before and after and before != after else ""
    word = events[0].kind.value
    return who, f"{events[0].prefix}: {word}, {_peers(events[0])[:-1]}; no probe noticed."


_BLAME: dict[Cause, Callable[[Facts], tuple[str, str]]] = {
    Cause.FEED: _feed_blame,
    Cause.ORIGIN: _origin_blame,
    Cause.WITHDRAWN: _withdrawn_blame,
    Cause.FLAP: _path_blame,
    Cause.PATH_MOVED: _path_blame,
    Cause.OUTAGE: _outage_blame,
    Cause.BLACK_HOLE: _hole_blame,
    Cause.MEMBER: _member_blame,
    Cause.QUEUE: _queue_blame,
    Cause.LEVEL: _level_blame,
    Cause.LOSS: _loss_blame,
    Cause.ROUTING_ONLY: _routing_blame,
}


def _peers(event: BgpEvent) -> str:
    return f"{event.peers_changed} of {event.peers_live} peers say so."


def _systems(path: str) -> list[str]:
    return [f"AS{word}" if word.isdecimal() else word for word in path.split()]


def _common(before: Iterable[str], after: Iterable[str]) -> int:
    n = 0
    for one, other in zip(before, after, strict=False):
        if one != other:
            break
        n += 1
    return n


def _at(path: Sequence[str], place: int) -> str:
    return path[place] if place < len(path) else "nobody"
