"""What of all the evidence belongs together: one incident per thing that happened.

    evidence -> episodes (with their end)          episodes.py
             -> groups: what packets felt, then routes, then BGP, each to its nearest in time
             -> cause, blame and cost              causes.py

Times are windows, and windows are compared: two series that felt the same thing overlap, or lie
`together_ns` apart; routes and BGP are looked for from `before_ns` before to `after_ns` after what
packets felt. Flutter and rate limits are no evidence of anything.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from pathbudget.analysis.routes.black_holes import SizeFinding
from pathbudget.analysis.routes.causes import UNSEEN, Facts, blame_of, cause_of
from pathbudget.analysis.routes.episodes import (
    Clean,
    Episode,
    bgp_episodes,
    feed_episodes,
    gap_ns,
    hole_episodes,
    level_episodes,
    member_episodes,
    outage_episodes,
    path_of,
    route_episodes,
)
from pathbudget.analysis.routes.model import (
    BgpEvent,
    Cause,
    Estimate,
    Evidence,
    FeedEvent,
    Incident,
    LevelShift,
    MemberFinding,
    Outage,
    PathSeries,
    RouteEvent,
    RouteEventKind,
    Window,
)

Kind = TypeVar("Kind")

SECOND_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class JoinOptions:
    """Times in ns. The defaults are for probes every second or so and traces every minute or so."""

    before_ns: int = 120 * SECOND_NS
    after_ns: int = 300 * SECOND_NS
    together_ns: int = 30 * SECOND_NS
    flap_ns: int = 600 * SECOND_NS
    shortest_ns: int = 10 * SECOND_NS
    """A level that is left again sooner than this, with no change of route, is no incident."""

    def scaled(self, factor: float) -> "JoinOptions":
        """For runs in which time is compressed: all times times `factor`."""
        names = ("before_ns", "after_ns", "together_ns", "flap_ns", "shortest_ns")
        return JoinOptions(*(round(getattr(self, name) * factor) for name in names))


NO_COST = frozenset({Cause.OUTAGE, Cause.WITHDRAWN, Cause.FEED, Cause.ROUTING_ONLY, Cause.ORIGIN})
"""Nothing came back, or no packet noticed."""


def join(
    evidence: Iterable[Evidence],
    options: JoinOptions | None = None,
    *,
    holes: Iterable[SizeFinding] = (),
    clean: Clean | None = None,
) -> list[Incident]:
    """Incidents of all evidence, in order of time.

    `holes`: black holes that were found; `clean`: sweeps that found every member healthy.
    """
    options = options or JoinOptions()
    rows = list(dict.fromkeys(evidence))
    felt = level_episodes(_only(rows, LevelShift)) + outage_episodes(_only(rows, Outage))
    sick = member_episodes(_only(rows, MemberFinding), clean or {})
    members = _member_groups(sick, felt, options)
    lasting = [one for one in felt if not _is_brief(one, options)]
    groups = _felt_groups(lasting, options)
    groups += [_Group([one]) for one in hole_episodes(holes)]
    groups += _felt_groups((one for one in felt if _is_brief(one, options)), options)
    _attach(route_episodes(_only(rows, RouteEvent)), groups, options)
    groups = _moves(groups, options)
    _attach(bgp_episodes(_only(rows, BgpEvent)), groups, options)
    groups = [one for one in groups if not all(_is_brief(each, options) for each in one.episodes)]
    groups += [one for one in members if not _is_of_a_move(one, groups, options)]
    groups += [_Group([one]) for one in feed_episodes(_only(rows, FeedEvent))]
    found = [_incident(group, options) for group in groups]
    return sorted(found, key=lambda one: (one.window.by_unix_ns, one.window.after_unix_ns))


@dataclass(slots=True, eq=False)
class _Group:
    episodes: list[Episode] = field(default_factory=list[Episode])

    @property
    def series(self) -> set[PathSeries]:
        return {path_of(series) for one in self.episodes for series in one.series}

    def distance(self, one: Episode, options: JoinOptions) -> tuple[int, bool] | None:
        """How far the episode is from what is here; None if further than it may be.

        At the same distance what began together comes before what only ended together.
        """
        begins = [_within(other.window, one.window, options) for other in self.episodes]
        ends = [
            _within(end, other, options)
            for end in (each.over for each in self.episodes)
            for other in (one.window, one.over)
            if end is not None and other is not None
        ]
        found = [(gap, False) for gap in begins if gap is not None]
        found += [(gap, True) for gap in ends if gap is not None]
        return min(found, default=None)

    def related(self, one: Episode) -> bool:
        """Whether they may have to do with each other: a vantage or a site in common."""
        if not one.series:
            return any(one.site in ("", mine.site) for mine in self.episodes)
        if not any(mine.series for mine in self.episodes):
            return any(mine.site == one.site for mine in self.episodes)
        return any(
            mine.vantage == theirs.vantage or mine.site == theirs.site
            for each in self.episodes
            for mine in each.series
            for theirs in one.series
        )


def _within(mine: Window, other: Window, options: JoinOptions) -> int | None:
    """Time between them, if the other may belong to mine."""
    early = other.by_unix_ns < mine.after_unix_ns - options.before_ns
    late = other.after_unix_ns > mine.by_unix_ns + options.after_ns
    return None if early or late else gap_ns(mine, other)


def _only(rows: Iterable[Evidence], kind: type[Kind]) -> list[Kind]:
    return [one for one in rows if isinstance(one, kind)]


def _felt_groups(found: Iterable[Episode], options: JoinOptions) -> list[_Group]:
    """Groups of what packets felt, each of which began at one time."""
    groups: list[_Group] = []
    near: list[_Group] = []
    """Those that what comes next in time may have begun with: no others are looked at again."""
    for one in sorted(found, key=lambda one: one.window):
        near = [group for group in near if _may_be_joined(group, one, options)]
        mine = [group for group in near if group.related(one) and _at_once(group, one, options)]
        if mine:
            mine[0].episodes += [one, *(each for group in mine[1:] for each in group.episodes)]
            near = [group for group in near if group not in mine[1:]]
            for group in mine[1:]:
                groups.remove(group)
        else:
            groups.append(_Group([one]))
            near.append(groups[-1])
    return groups


def _may_be_joined(group: _Group, one: Episode, options: JoinOptions) -> bool:
    """By something that begins with this one or later."""
    since = one.window.after_unix_ns - options.together_ns
    return any(
        other.window.by_unix_ns >= since
        or (other.gradual and (other.over is None or other.over.by_unix_ns >= since))
        for other in group.episodes
    )


def _at_once(group: _Group, one: Episode, options: JoinOptions) -> bool:
    """Whether they began together, or are swells that last while the other does."""
    return any(
        gap_ns(other.window, one.window) <= options.together_ns
        or (one.gradual and other.gradual and _overlap(one, other))
        for other in group.episodes
    )


def _member_groups(
    found: Iterable[Episode], felt: list[Episode], options: JoinOptions
) -> list[_Group]:
    """Each sick member with the loss and the variation that it explains, which leave `felt`.

    Pairs whose flows began to lose at one time share it: nobody sees which link a flow is on, and
    on the way back it is another than there. Its time is known to some losses only, so that
    nothing else is joined by it.
    """
    groups: list[_Group] = []
    for member in found:
        mine = [one for one in felt if _explains(member, one)]
        felt[:] = [one for one in felt if one not in mine]
        group = next((one for one in groups if _falls_ill_with(one, member, options)), None)
        if group is None:
            groups.append(_Group([member, *mine]))
        else:
            group.episodes += [member, *mine]
    return groups


def _is_of_a_move(member: _Group, groups: Iterable[_Group], options: JoinOptions) -> bool:
    """Whether round trips of some flows grew as the whole path moved: flows are on ways of another
    length since, and nobody is sick. A sweep may end just when it began, and not show it yet.
    """
    found = [one for one in member.episodes if isinstance(one.first, MemberFinding)]
    if any(isinstance(one.first, MemberFinding) and one.first.what != "rtt" for one in found):
        return False
    moves = [one for group in groups for one in group.episodes if _is_move(one)]
    return any(
        member.series & {path_of(each) for each in move.series}
        and _within_a_sweep(move, one.window, options)
        for one in found
        for move in moves
    )


def _is_move(one: Episode) -> bool:
    first = one.first
    return isinstance(first, RouteEvent) or (isinstance(first, LevelShift) and first.what == "rtt")


def _within_a_sweep(move: Episode, sweep: Window, options: JoinOptions) -> bool:
    near = max(options.together_ns, sweep.by_unix_ns - sweep.after_unix_ns)
    ends = [one for one in (move.window, move.over) if one is not None]
    return any(gap_ns(one, sweep) <= near for one in ends)


def _falls_ill_with(group: _Group, member: Episode, options: JoinOptions) -> bool:
    return any(
        isinstance(one.first, MemberFinding)
        and gap_ns(one.window, member.window) <= options.together_ns
        for one in group.episodes
    )


def _explains(member: Episode, other: Episode) -> bool:
    """Whether it is loss or variation of the same path while the member is sick."""
    one, both = ({(each.vantage, each.address) for each in e.series} for e in (member, other))
    first = other.first
    partly = isinstance(first, LevelShift) and first.what != "rtt" and first.after.value_ns != 1.0
    return partly and bool(one & both) and _overlap(member, other)


def _overlap(one: Episode, other: Episode) -> bool:
    return (one.over is None or one.over.by_unix_ns >= other.window.after_unix_ns) and (
        other.over is None or other.over.by_unix_ns >= one.window.after_unix_ns
    )


def _attach(episodes: Iterable[Episode], groups: list[_Group], options: JoinOptions) -> None:
    """Each to the nearest group within the window, else to a group of its own kind."""
    for one in sorted(episodes, key=lambda one: one.window):
        near = [
            (distance, number)
            for number, group in enumerate(groups)
            if group.related(one) and (distance := group.distance(one, options)) is not None
        ]
        if near:
            groups[min(near)[1]].episodes.append(one)
        else:
            groups.append(_Group([one]))


def _moves(groups: Iterable[_Group], options: JoinOptions) -> list[_Group]:
    """Moves that began together on paths with a hop or an AS in common are one.

    A link that fails moves pairs that share nothing else, neither vantage nor site.
    """
    found: list[_Group] = []
    moves: list[tuple[set[str], Window, _Group]] = []
    for group in groups:
        ways, begin = _ways(group), _begin(group.episodes)
        same = (
            place
            for place, (theirs, began, _) in enumerate(moves)
            if gap_ns(began, begin) <= options.together_ns and not ways.isdisjoint(theirs)
        )
        place = next(same, None) if ways else None
        if place is None:
            found.append(group)
            moves += [(ways, begin, group)] if ways else []
        else:
            before = moves[place][2]
            before.episodes += group.episodes
            moves[place] = (_ways(before), _begin(before.episodes), before)
    return found


def _ways(group: _Group) -> set[str]:
    """Hops and ASes that packets took before they took others."""
    moves = [
        one.first
        for one in group.episodes
        if isinstance(one.first, RouteEvent)
        and one.first.kind in (RouteEventKind.SHIFT, RouteEventKind.FLAP)
    ]
    hops = {hop for move in moves for path in move.before for hop in path}
    return (hops | {name for move in moves for name in move.as_before}) - UNSEEN


def _is_brief(one: Episode, options: JoinOptions) -> bool:
    """Whether a level was left again at once: no incident, unless something else was seen."""
    return (
        isinstance(one.first, LevelShift)
        and one.over is not None
        and one.over.after_unix_ns - one.window.by_unix_ns < options.shortest_ns
    )


def _incident(group: _Group, options: JoinOptions) -> Incident:
    episodes = tuple(sorted(group.episodes, key=lambda one: one.window))
    facts = Facts(episodes, options.flap_ns)
    cause = cause_of(facts)
    blamed, reason = blame_of(cause, facts)
    evidence = [one for episode in episodes for one in episode.evidence]
    return Incident(
        cause=cause,
        window=_begin(episodes),
        series=tuple(sorted(group.series, key=_order)),
        cost=None if cause in NO_COST else _cost(episodes),
        blamed=blamed,
        reason=reason,
        over=_over(episodes),
        evidence=tuple(sorted(evidence, key=_time)),
    )


def _order(series: PathSeries) -> tuple[str, ...]:
    return tuple(str(part or "") for part in series)


def _time(one: Evidence) -> tuple[Window, str]:
    return (one.began if isinstance(one, Outage) else one.window), type(one).__name__


def _begin(episodes: Sequence[Episode]) -> Window:
    """What all windows of packets have in common where they have, else the narrowest; packets
    before routes, and routes before BGP: it is their time that is known best.
    """
    for kinds in (MemberFinding, LevelShift | Outage, RouteEvent, BgpEvent, FeedEvent):
        windows = [one.window for one in episodes if isinstance(one.first, kinds)]
        if kinds is MemberFinding:
            findings = [one.first for one in episodes if isinstance(one.first, MemberFinding)]
            if findings:  # the surest: the narrowest of several is the luckiest
                return min(findings, key=lambda one: one.p_value).window
        if windows and all(one.gradual for one in episodes):
            return min(windows, key=lambda window: window.by_unix_ns)
        if windows:
            return min(windows, key=lambda window: window.by_unix_ns - window.after_unix_ns)
    return episodes[0].window


def _over(episodes: Sequence[Episode]) -> Window | None:
    """When all that packets felt was over, whichever way they go since; where they felt nothing,
    when routes were what they had been, and of BGP alone, when that was.
    """
    for kinds in (MemberFinding, LevelShift | Outage | None, RouteEvent, object):
        ends = [one.over for one in episodes if isinstance(one.first, kinds)]
        if ends:
            return None if None in ends else max(filter(None, ends), key=_end)
    return None


def _end(window: Window) -> int:
    return window.by_unix_ns


def _cost(episodes: Sequence[Episode]) -> Estimate | None:
    """Of the series that tells it most sharply, round trips before connects; of swells that of the
    highest: a series may have noticed a part of it only.
    """
    swells = [one.cost for one in episodes if one.gradual and one.cost is not None]
    if swells:
        return max(swells, key=lambda cost: abs(cost.value_ns))
    known = [
        (isinstance(one.first, LevelShift) and one.first.metric != "rtt", one.cost)
        for one in episodes
        if one.cost is not None
    ]
    narrow = min(known, key=lambda pair: (pair[0], pair[1].high_ns - pair[1].low_ns), default=None)
    return None if narrow is None else narrow[1]
