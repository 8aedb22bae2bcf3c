"""What belongs together, what it is called, and who is named."""

import itertools
from dataclasses import replace

import pytest
from tests.route_changes.conftest import MS, SERIES

from pathbudget.analysis.routes import incidents as joining
from pathbudget.analysis.routes.episodes import Episode
from pathbudget.analysis.routes.incidents import JoinOptions, join
from pathbudget.analysis.routes.model import (
    BgpEvent,
    BgpEventKind,
    Cause,
    Estimate,
    Evidence,
    FeedEvent,
    FeedState,
    Granularity,
    LevelShift,
    MemberFinding,
    Outage,
    OutageKind,
    PathSeries,
    RouteEvent,
    RouteEventKind,
    Window,
)

SECOND = 1_000_000_000
OTHER_SITE = SERIES._replace(site="ashburn", target="u", address="198.51.100.1")
STRANGER = PathSeries("w", "oslo", "frankfurt", "x", "203.0.113.9", None, "icmp")
OLD, NEW = ("10.0.0.1", "10.1.0.1", "192.0.2.1"), ("10.0.0.1", "10.2.0.1", "192.0.2.1")


def window(at: float, width: float = 1.0) -> Window:
    return Window(round((at - width) * SECOND), round(at * SECOND))


def exactly(value: float, half: float = 0.05 * MS) -> Estimate:
    return Estimate(value, value - half, value + half)


def shift(
    at: float, before_ms: float, after_ms: float, series: PathSeries = SERIES, *, slow: bool = False
) -> LevelShift:
    cost = exactly((after_ms - before_ms) * MS, 0.1 * MS)
    before, after = exactly(before_ms * MS), exactly(after_ms * MS)
    return LevelShift(series, "rtt", "rtt", window(at), before, after, cost, 0.05, slow, cost[0])


def lossy(at: float, before: float, after: float) -> LevelShift:
    one, other = exactly(before, 0.01), exactly(after, 0.01)
    return LevelShift(SERIES, "rtt", "loss", window(at), one, other, exactly(after - before), 0.05)


def moved(
    at: float,
    kind: RouteEventKind = RouteEventKind.SHIFT,
    series: PathSeries = SERIES,
    back: float | None = None,
    before: tuple[str, ...] = OLD,
    after: tuple[str, ...] = NEW,
    systems: tuple[tuple[str, ...], tuple[str, ...]] = ((), ()),
) -> RouteEvent:
    return RouteEvent(
        kind, series._replace(protocol="udp"), window(at, 60), Granularity.ADDRESS,
        frozenset({before}), frozenset({after}), *systems,
        back=None if back is None else window(back, 60),
    )  # fmt: skip


def said(
    at: float,
    kind: BgpEventKind = BgpEventKind.PATH,
    before: str = "65001 65011 65201",
    after: str = "65001 65012 65201",
    site: str = "dallas",
) -> BgpEvent:
    return BgpEvent(kind, "192.0.2.0/24", site, window(at), 3, 4, before, after)


def away(began: float, ended: float | None, times: int = 1) -> Outage:
    kind = OutageKind.FLAPPING if times > 1 else OutageKind.OUTAGE
    return Outage(kind, SERIES, window(began), None if ended is None else window(ended), 9, times)


def sick(at: float, *flows: int) -> MemberFinding:
    return MemberFinding(
        SERIES, window(at, 60), flows, "loss", 0.03, 0.01, 0.05, 0.001, 1e-5, 0.01, "test", 16
    )


def feed(at: float, before: FeedState, after: FeedState) -> FeedEvent:
    return FeedEvent("rrc00", "", window(at, 10), before, after)


def test_a_shift_a_move_and_bgp_are_one_incident_with_its_cost_and_who_moved_it() -> None:
    evidence: list[Evidence] = [said(940), shift(1000, 20, 32), moved(1040)]
    (one,) = join(evidence)
    assert one.cause is Cause.PATH_MOVED
    assert one.window == window(1000), "packets know the time best"
    assert one.cost is not None
    assert one.cost.low_ns < 12 * MS < one.cost.high_ns
    assert one.blamed == "AS65001"
    assert one.reason == "AS65001 sends by AS65012 instead of AS65011: 3 of 4 peers say so."
    assert set(one.evidence) == set(evidence)
    assert one.over is None


def test_traces_name_systems_before_bgp_and_hops_where_there_is_nobody_else() -> None:
    systems = (("AS1", "AS2", "AS9"), ("AS1", "AS3", "AS9"))
    (one,) = join([shift(1000, 20, 32), moved(1010, systems=systems), said(1005)])
    assert (one.blamed, one.reason) == ("AS1", "AS1 sends by AS3 instead of AS2: traces show it.")
    (one,) = join([shift(1000, 20, 32), moved(1010)])
    assert one.blamed == "10.0.0.1 > 10.2.0.1"
    assert "last hop in common" in one.reason


@pytest.mark.parametrize("kind", [RouteEventKind.FLUTTER])
def test_a_load_balancer_that_did_its_job_is_never_an_incident(kind: RouteEventKind) -> None:
    """Public report: per-packet balancing raised route flaps."""
    assert join([moved(at, kind) for at in range(100, 900, 7)]) == []
    (one,) = join([shift(500, 20, 25), moved(500, kind)])
    assert one.cause is Cause.LEVEL, "and explains no shift"
    assert not any(isinstance(each, RouteEvent) for each in one.evidence)


def test_a_shift_without_a_visible_change_says_that_nobody_is_seen() -> None:
    (one,) = join([shift(1000, 20, 25)])
    assert (one.cause, one.blamed) == (Cause.LEVEL, "")
    assert "below IP, or on the way back" in one.reason


def test_a_shift_that_leaves_the_floor_is_said_to_queue() -> None:
    (one,) = join([replace(shift(1000, 20, 25), floor_ns=0.1 * MS)])
    assert "queue" in one.reason


def test_what_many_series_and_peers_noticed_is_one_incident() -> None:
    rows: list[Evidence] = [shift(1000 + n, 20 + n, 32 + n, SERIES) for n in range(1)]
    rows += [shift(1003, 40, 52, OTHER_SITE), moved(1030), moved(1035, series=OTHER_SITE)]
    rows += [said(990), said(1004, site="ashburn")]
    (one,) = join(rows)
    assert {series.site for series in one.series} == {"dallas", "ashburn"}
    assert len(one.evidence) == len(rows)


def test_things_that_have_nothing_in_common_stay_apart() -> None:
    found = join([shift(1000, 20, 32), shift(1000, 80, 90, STRANGER), moved(1010)])
    assert sorted(one.cause for one in found) == [Cause.LEVEL, Cause.PATH_MOVED]


def test_the_window_is_before_and_after_what_packets_felt() -> None:
    """Routes and BGP from 120 s before to 300 s after (definitions of the join)."""
    for at, incidents in ((885, 1), (870, 2), (1290, 1), (1310, 2)):
        assert len(join([shift(1000, 20, 32), said(at)])) == incidents, at


def test_a_compressed_run_has_a_compressed_window() -> None:
    tight = JoinOptions().scaled(0.01)
    assert tight.before_ns == round(1.2 * SECOND)
    assert len(join([shift(1000, 20, 32), said(995)], tight)) == 2


def test_a_shift_that_is_taken_back_is_over() -> None:
    (one,) = join([shift(1000, 20, 32), shift(5000, 32, 20)])
    assert one.over == window(5000)
    (one,) = join([shift(1000, 20, 32), shift(5000, 32, 27)])[:1]
    assert one.over is None, "it is not what it was"


def test_a_shift_within_a_shift_is_another_incident() -> None:
    rows = [shift(1000, 20, 32), shift(2000, 32, 37), shift(3000, 37, 32), shift(4000, 32, 20)]
    found = join(rows)
    assert [(one.window, one.over) for one in found] == [
        (window(1000), window(4000)),
        (window(2000), window(3000)),
    ]


def test_there_and_back_within_ten_minutes_is_a_flap_told_once() -> None:
    (one,) = join(
        [shift(1000, 20, 32), shift(1200, 32, 20), moved(1010, RouteEventKind.FLAP, back=1210)]
    )
    assert one.cause is Cause.FLAP
    assert one.over is not None
    (one,) = join(
        [
            said(1000),
            shift(1000, 20, 32),
            said(1400, before="65001 65012 65201", after="65001 65011 65201"),
            shift(1401, 32, 20),
        ]
    )
    assert one.cause is Cause.FLAP, "by BGP and delays alone"


def test_a_swell_is_one_queue_from_first_rise_to_last_fall() -> None:
    levels = [20, 21, 24, 28, 30, 27, 23, 21, 20]
    rows = [
        shift(1000 + 100 * n, before, after, slow=True)
        for n, (before, after) in enumerate(itertools.pairwise(levels))
    ]
    (one,) = join(rows)
    assert one.cause is Cause.QUEUE
    assert one.window == window(1000)
    assert one.over == window(1700)
    assert one.cost is not None
    assert one.cost.low_ns < 10 * MS < one.cost.high_ns


def test_an_outage_is_withdrawn_where_bgp_says_so_and_an_outage_where_not() -> None:
    (one,) = join([away(1000, 1100), lossy(1000, 0.0, 1.0), lossy(1100, 1.0, 0.0)])
    assert (one.cause, one.cost, one.over) == (Cause.OUTAGE, None, window(1100))
    rows: list[Evidence] = [away(1000, 1100), said(998, BgpEventKind.WITHDRAWN, after="")]
    rows.append(said(1090, BgpEventKind.ANNOUNCED, before="", after="65001 65011 65201"))
    (one,) = join(rows)
    assert (one.cause, one.blamed) == (Cause.WITHDRAWN, "AS65201")
    assert "3 of 4 peers" in one.reason


def test_an_outage_names_the_last_hop_that_answers() -> None:
    lost = moved(1010, RouteEventKind.LOST, after=("10.0.0.1", "..."))
    (one,) = join([away(1000, None), lost])
    assert one.blamed == "10.0.0.1 > 10.1.0.1"
    (one,) = join([away(1000, 1500, times=4)])
    assert "4 times" in one.reason


def test_a_withdrawal_that_no_packet_noticed_is_routing_only() -> None:
    (one,) = join([said(1000, BgpEventKind.WITHDRAWN, after="")])
    assert (one.cause, one.cost) == (Cause.ROUTING_ONLY, None)
    assert "no probe noticed" in one.reason
    assert "3 of 4 peers" in one.reason, "public report: thresholds hide or invent events"


def test_another_origin_comes_before_everything() -> None:
    (one,) = join([said(1000, BgpEventKind.ORIGIN, after="65001 65666"), shift(1000, 20, 90)])
    assert (one.cause, one.blamed) == (Cause.ORIGIN, "AS65666")


def test_a_feed_that_dies_is_an_incident_of_its_own_and_withdraws_nothing() -> None:
    """Public reports: feeds died silently; stale peers raised false alarms."""
    rows: list[Evidence] = [feed(1000, FeedState.LIVE, FeedState.STALE), shift(1000, 20, 32)]
    rows.append(feed(2000, FeedState.STALE, FeedState.LIVE))
    level, dead = sorted(join(rows), key=lambda one: one.cause, reverse=True)
    assert (dead.cause, dead.blamed, dead.over) == (Cause.FEED, "rrc00", window(2000, 10))
    assert level.cause is Cause.LEVEL


def test_a_sick_member_explains_its_losses_and_nothing_else() -> None:
    rows: list[Evidence] = [sick(1000, 7), sick(1060, 7, 9), lossy(990, 0.0, 0.002)]
    rows += [shift(995, 20, 32)]
    member, level = sorted(join(rows), key=lambda one: one.cause != Cause.MEMBER)
    assert member.cause is Cause.MEMBER
    assert "1 of 16 flows lose 3.0%, the others 0.1%." in member.reason
    assert len(member.evidence) == 3
    assert level.cause is Cause.LEVEL


def test_pairs_that_fall_ill_together_share_a_member_and_later_ones_do_not() -> None:
    far = replace(sick(1010, 3), series=STRANGER, p_value=1e-9, value=0.04)
    (one,) = join([sick(1000, 7), far])
    assert len(one.series) == 2
    assert "4.0%" in one.reason  # the surest is told
    assert len(join([sick(1000, 7), replace(sick(1100, 3), series=STRANGER)])) == 2


def test_a_link_that_fails_moves_pairs_that_share_nothing_else_as_one() -> None:
    """A carrier in common, or a hop; at the same time."""
    through = ("10.9.0.1", "10.8.0.1", "203.0.113.9")
    carriers = (("AS64512", "AS1"), ("AS64512", "AS2"))
    others = (("AS64513", "AS64512", "AS3"), ("AS64513", "AS3"))
    felt: list[Evidence] = [shift(1000, 20, 32), shift(1001, 80, 90, STRANGER)]
    mine = moved(1005, systems=carriers)
    for theirs, incidents in (
        (moved(1005, series=STRANGER, before=through, systems=others), 1),
        (moved(1005, series=STRANGER, before=through), 2),
        (moved(1005, series=STRANGER, before=("10.9.0.1", "10.1.0.1", "203.0.113.9")), 1),
    ):
        assert len(join([*felt, mine, theirs])) == incidents
    later: list[Evidence] = [shift(1000, 20, 32), shift(1200, 80, 90, STRANGER), mine]
    assert len(join([*later, moved(1205, series=STRANGER, before=through, systems=others)])) == 2


def test_a_member_is_over_with_the_first_clean_sweep() -> None:
    clean = {SERIES: {"loss": [window(500, 60), window(1200, 60)]}}
    (one,) = join([sick(1000, 7)], clean=clean)
    assert one.over == Window(window(1000, 60).after_unix_ns, window(1200).by_unix_ns)


def test_what_is_left_again_at_once_is_no_incident_unless_a_route_explains_it() -> None:
    rows: list[Evidence] = [shift(1000, 20, 32), shift(1004, 32, 20)]
    assert join(rows) == []
    (one,) = join([*rows, moved(1001, RouteEventKind.FLAP, back=1030)])
    assert one.cause is Cause.FLAP


def test_no_evidence_no_incident() -> None:
    assert join([]) == []


def test_it_is_over_when_packets_feel_it_no_more_whichever_way_they_go() -> None:
    third = ("10.0.0.1", "10.3.0.1", "192.0.2.1")
    evidence: list[Evidence] = [
        shift(1000, 20, 32), moved(1040), shift(2000, 32, 20), moved(2040, before=NEW, after=third)
    ]  # fmt: skip
    (one,) = join(evidence)
    assert one.over == window(2000)
    (one,) = join([moved(1040), moved(2040, before=NEW, after=OLD)])
    assert one.over == window(2040, 60), "of routes alone: when they were what they had been"


def test_a_slow_fall_whose_rise_is_not_there_is_no_incident_and_holds_no_other_together() -> None:
    """What a busy start leaves behind once swallowed all swells that came later."""
    falls = [shift(100, 27, 26, slow=True), shift(105, 36, 35, OTHER_SITE, slow=True)]
    swell = [
        shift(1000 + 100 * n, before, after, OTHER_SITE, slow=True)
        for n, (before, after) in enumerate(itertools.pairwise((35, 38, 42, 38, 35)))
    ]
    assert join(falls) == []
    (one,) = join([*falls, *swell])
    assert (one.cause, one.window) == (Cause.QUEUE, window(1000))
    assert one.series == (OTHER_SITE._replace(protocol=""),)
    (level,) = join([shift(100, 27, 26)])
    assert level.cause is Cause.LEVEL, "a step down is told"


def test_what_lies_apart_is_not_compared_with_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five hundred outages of a pair, a day apart: each is held against what is near alone."""
    compared: list[Episode] = []
    related = joining._Group.related

    def counted(group: joining._Group, one: Episode) -> bool:
        compared.append(one)
        return related(group, one)

    monkeypatch.setattr(joining._Group, "related", counted)
    assert len(join(away(86_400 * n, 86_400 * n + 60) for n in range(500))) == 500
    assert len(compared) < 1_000
