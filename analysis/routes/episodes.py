"""Evidence with its end: what began and what took it back are one episode.

A level shift is taken back by one that undoes it, a move by the move back, a withdrawal by the
announcement, a silent feed by its next word. Slow swells are one episode from the first rise to the
fall back to where they began. A slow fall whose rise is not in the data is over when it has
happened.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pathbudget.analysis.routes.black_holes import SizeFinding
from pathbudget.analysis.routes.level_estimates import difference
from pathbudget.analysis.routes.model import (
    BgpEvent,
    BgpEventKind,
    Estimate,
    Evidence,
    FeedEvent,
    FeedState,
    LevelShift,
    MemberFinding,
    Outage,
    PathSeries,
    RouteEvent,
    RouteEventKind,
    Window,
)

UNDONE = 0.3
"""A shift undoes another if they cancel but for this share of it."""


BEYOND = 2.0
"""A stage of a swell that looks like a step raises it to this share of its height at most."""


@dataclass(slots=True)
class Episode:
    """One thing that one series, prefix or feed showed, from beginning to end."""

    evidence: list[Evidence]
    window: Window
    over: Window | None = None
    series: tuple[PathSeries, ...] = ()
    site: str = ""
    gradual: bool = False
    cost: Estimate | None = None
    """Of the round trip."""
    base: Estimate | None = field(default=None, repr=False)
    top: Estimate | None = field(default=None, repr=False)
    hole: SizeFinding | None = None
    """Large packets vanish: there is no other evidence then."""

    @property
    def first(self) -> Evidence | None:
        """What began it."""
        return self.evidence[0] if self.evidence else None


def gap_ns(one: Window, other: Window) -> int:
    """Time between two windows; 0 where they overlap."""
    return max(
        0, max(one.after_unix_ns, other.after_unix_ns) - min(one.by_unix_ns, other.by_unix_ns)
    )


def path_of(series: PathSeries) -> PathSeries:
    """The same path, by whatever protocol it was looked at."""
    return series._replace(protocol="")


def level_episodes(shifts: Iterable[LevelShift]) -> list[Episode]:
    """Episodes of delay, variation and loss of each series and metric."""
    rows: dict[tuple[PathSeries, str, str], list[LevelShift]] = {}
    for shift in shifts:
        rows.setdefault((shift.series, shift.metric, shift.what), []).append(shift)
    found: list[Episode] = []
    for row in rows.values():
        open_ones: list[Episode] = []
        for shift in sorted(row, key=lambda shift: shift.window.by_unix_ns):
            _take_shift(shift, open_ones, found)
    return [one for one in found if not _is_nothing(one)]


def _is_nothing(one: Episode) -> bool:
    """Whether a shift may have no height, or loss only ended that began before the data did."""
    first = one.first
    if isinstance(first, LevelShift) and first.what == "loss":
        return first.cost.value_ns < 0
    return one.cost is not None and one.cost.low_ns <= 0 <= one.cost.high_ns


def _take_shift(shift: LevelShift, open_ones: list[Episode], found: list[Episode]) -> None:
    undone = next((one for one in reversed(open_ones) if _undoes(shift, one)), None)
    if undone is not None:
        undone.evidence.append(shift)
        undone.over = shift.window
        undone.gradual = _mostly_gradual(undone)
        del open_ones[open_ones.index(undone) :]
        return
    swell = next((one for one in reversed(open_ones) if _swells(shift, one)), None)
    if swell is not None:
        _extend(swell, shift)
        return
    fading = next((one for one in reversed(found) if _fades(shift, one)), None)
    if fading is not None:
        fading.evidence.append(shift)
        fading.over = shift.window
        return
    cost = shift.cost if shift.what == "rtt" else None
    one = Episode(
        [shift], shift.window, series=(shift.series,), site=shift.series.site,
        gradual=shift.gradual, cost=cost, base=shift.before, top=shift.after,
    )  # fmt: skip
    found.append(one)
    if shift.gradual and shift.after.value_ns < shift.before.value_ns:
        one.over = shift.window  # what nobody saw rise: nothing of it can come back
    else:
        open_ones.append(one)


def _mostly_gradual(one: Episode) -> bool:
    shifts = [each for each in one.evidence if isinstance(each, LevelShift)]
    return 2 * sum(each.gradual for each in shifts) > len(shifts)


def _share_of_height(value_ns: float, one: Episode) -> float:
    """Where a level lies between the base of an episode (0) and its top (1)."""
    assert one.base is not None
    assert one.top is not None
    height = one.top.value_ns - one.base.value_ns
    return (value_ns - one.base.value_ns) / height if height else 0.0


def _undoes(shift: LevelShift, one: Episode) -> bool:
    """Whether the level is where it was before the episode."""
    before, after = (_share_of_height(level.value_ns, one) for level in (shift.before, shift.after))
    return after < before and abs(after) <= UNDONE


def _swells(shift: LevelShift, one: Episode) -> bool:
    """Whether it is one more stage of a slow swell: slow itself, or not far beyond the top."""
    after = _share_of_height(shift.after.value_ns, one)
    return one.gradual and (shift.gradual or UNDONE < after <= BEYOND)


def _fades(shift: LevelShift, one: Episode) -> bool:
    """Whether a swell that is over comes still nearer to where it began."""
    if one.over is None or not one.gradual or not _is_of(shift, one):
        return False
    before, after = (_share_of_height(level.value_ns, one) for level in (shift.before, shift.after))
    lasted = one.over.by_unix_ns - one.window.after_unix_ns
    soon = shift.window.after_unix_ns - one.over.by_unix_ns <= lasted
    return soon and abs(after) < abs(before) <= 2 * UNDONE


def _is_of(shift: LevelShift, one: Episode) -> bool:
    first = one.first
    return isinstance(first, LevelShift) and (first.series, first.metric, first.what) == (
        shift.series, shift.metric, shift.what,
    )  # fmt: skip


def _extend(one: Episode, shift: LevelShift) -> None:
    assert one.base is not None
    assert one.top is not None
    one.evidence.append(shift)
    base = one.base.value_ns
    if abs(shift.after.value_ns - base) > abs(one.top.value_ns - base):
        one.top = shift.after
        one.cost = difference(one.base, one.top, shift.cost.confidence)


def route_episodes(events: Iterable[RouteEvent]) -> list[Episode]:
    """Moves with their way back, losses with what was found again; flutter is none."""
    found: list[Episode] = []
    for event in sorted(events, key=lambda event: event.window):
        if event.kind is RouteEventKind.FLUTTER:
            continue
        begun = next((one for one in reversed(found) if _takes_back(event, one)), None)
        if begun is not None:
            begun.evidence.append(event)
            begun.over = event.window
        else:
            series = event.series
            found.append(Episode([event], event.window, event.back, (series,), series.site))
    return found


def _takes_back(event: RouteEvent, one: Episode) -> bool:
    first = one.first
    if one.over is not None or not isinstance(first, RouteEvent) or first.series != event.series:
        return False
    if event.kind is RouteEventKind.FOUND:
        return first.kind is RouteEventKind.LOST
    both = first.kind is event.kind is RouteEventKind.SHIFT
    return both and (event.after == first.before or bool(event.after & first.before))


def outage_episodes(outages: Iterable[Outage]) -> list[Episode]:
    """Each by itself; of an outage told twice the one with its end counts."""
    latest: dict[tuple[PathSeries, Window], Outage] = {}
    for outage in outages:
        latest[outage.series, outage.began] = outage
    return [
        Episode([one], one.began, one.ended, (one.series,), one.series.site)
        for one in latest.values()
    ]


Clean = Mapping[PathSeries, Mapping[str, Sequence[Window]]]
"""When flows of a finding were well again, by series and by what was wrong (``loss``, ``rtt``)."""


def member_episodes(findings: Iterable[MemberFinding], clean: Clean) -> list[Episode]:
    """Findings of the same flows of a series that follow each other are one, up to a clean sweep.

    It began before the end of the sweep that showed it first, and not before its beginning.
    """
    found: list[Episode] = []
    for finding in sorted(findings, key=lambda finding: finding.window):
        same = next((one for one in reversed(found) if _same_member(finding, one)), None)
        if same is not None and not _well_between(same, finding, clean):
            same.evidence.append(finding)
            continue
        series = finding.series
        found.append(Episode([finding], finding.window, None, (series,), series.site))
    for one in found:
        last = one.evidence[-1]
        assert isinstance(last, MemberFinding)
        later = [
            window
            for window in clean.get(last.series, {}).get(last.what, ())
            if window.after_unix_ns >= last.window.by_unix_ns
        ]
        if later:
            one.over = Window(last.window.after_unix_ns, min(later).by_unix_ns)
    return found


def _well_between(one: Episode, finding: MemberFinding, clean: Clean) -> bool:
    """Whether its flows were well between the last finding of an episode and this one."""
    last = one.evidence[-1]
    assert isinstance(last, MemberFinding)
    return any(
        last.window.by_unix_ns <= window.after_unix_ns
        and window.by_unix_ns <= finding.window.by_unix_ns
        for window in clean.get(last.series, {}).get(last.what, ())
    )


def _same_member(finding: MemberFinding, one: Episode) -> bool:
    first = one.first
    return (
        isinstance(first, MemberFinding)
        and first.what == finding.what
        and path_of(first.series) == path_of(finding.series)
        and bool(set(first.flows) & set(finding.flows))
    )


def hole_episodes(holes: Iterable[SizeFinding]) -> list[Episode]:
    """Each by itself."""
    return [
        Episode([], one.began, None, (one.series,), one.series.site, hole=one)
        for one in holes
        if one.began is not None
    ]


def bgp_episodes(events: Iterable[BgpEvent]) -> list[Episode]:
    """Changes of a prefix with what took them back."""
    found: list[Episode] = []
    for event in sorted(events, key=lambda event: event.window):
        begun = next((one for one in reversed(found) if _restores(event, one)), None)
        if begun is not None:
            begun.evidence.append(event)
            begun.over = event.window
        else:
            found.append(Episode([event], event.window, event.back, site=event.site))
    return found


def _restores(event: BgpEvent, one: Episode) -> bool:
    first = one.first
    if one.over is not None or not isinstance(first, BgpEvent) or first.prefix != event.prefix:
        return False
    if first.kind is BgpEventKind.WITHDRAWN:
        return event.kind is BgpEventKind.ANNOUNCED or event.after == first.before
    return bool(first.before) and event.after == first.before


def feed_episodes(events: Iterable[FeedEvent]) -> list[Episode]:
    """A feed that lived and fell silent, with its return; peers of one feed are one episode."""
    found: list[Episode] = []
    for event in sorted(events, key=lambda event: event.window):
        mine = [
            one
            for one in found
            if isinstance(one.first, FeedEvent)
            and one.first.feed == event.feed
            and one.over is None
        ]
        if mine:
            mine[-1].evidence.append(event)
            if event.after is FeedState.LIVE:
                mine[-1].over = event.window
        elif event.before is FeedState.LIVE and event.after is not FeedState.LIVE:
            found.append(Episode([event], event.window))
    return found
