"""Agents that are silent, clocks that are bad, feeds that are stale, unread sources."""

import pytest
from tests.alerts.conftest import AT, MINUTE, SECOND, echoes

from pathbudget.analysis.alerts.evidence import AlertEvidence, Sources
from pathbudget.analysis.alerts.feeds import feed_signals
from pathbudget.analysis.alerts.hosts import Host, clock_signals, silent_signals
from pathbudget.analysis.alerts.model import AlertKind
from pathbudget.analysis.alerts.rules import ClockRule, FeedRule, SilentRule
from pathbudget.analysis.routes.bgp_peers import FeedRules
from pathbudget.analysis.routes.evaluate import RouteOptions
from pathbudget.analysis.routes.model import FeedState, FeedStatus
from pathbudget.probes.record import ClockQuality, SyncState
from pathbudget.sites.catalogue import Catalogue

SILENT = SilentRule(name="silence", kind=AlertKind.AGENT_SILENT, agents=("named",))
CLOCK = ClockRule(name="clocks", kind=AlertKind.CLOCK_BAD)
FEEDS = FeedRule(name="feeds", kind=AlertKind.FEED_STALE)
GOOD = ClockQuality(SyncState.SYNCHRONISED, "chrony", 2_000_000)


def test_an_agent_is_silent_when_nothing_was_heard_for_so_long() -> None:
    hosts = {
        "talks": Host("talks", AT + 9 * MINUTE),
        "silent": Host("silent", AT + 4 * MINUTE),
        "unread": Host("unread", AT, is_known=False),
        "campaign": Host("campaign", AT, is_agent=False),
    }
    found = {
        one.labels["agent"]: one.bad
        for one in silent_signals(SILENT, hosts, AT + 10 * MINUTE, AT + 6 * MINUTE)
    }
    assert found == {"named": False, "silent": True, "talks": False, "unread": None}
    (named, *_) = silent_signals(SILENT, {}, AT + 10 * MINUTE, AT)
    assert named.bad is True
    assert "never heard" in named.summary


@pytest.mark.parametrize(
    ("clock", "bad"),
    [
        (GOOD, False),
        (ClockQuality(SyncState.UNSYNCHRONISED, "adjtimex"), True),
        (ClockQuality(SyncState.UNKNOWN), None),
        (ClockQuality(SyncState.SYNCHRONISED, "chrony", 80_000_000), True),
        (ClockQuality(SyncState.SYNCHRONISED, "chrony", 1_000, 2, -900_000_000), True),
        (ClockQuality(SyncState.SYNCHRONISED, "chrony", 1_000, 2, 1_000), False),
    ],
)
def test_a_clock_is_bad_by_what_is_known_of_it(clock: ClockQuality, bad: bool | None) -> None:
    host = Host("one", AT, clock, AT)
    (signal,) = clock_signals(CLOCK, {"one": host}, AT + MINUTE)
    assert signal.bad is bad
    (later,) = clock_signals(CLOCK, {"one": host}, AT + 60 * MINUTE)
    assert later.bad is None


def status(state: FeedState, last: int | None) -> FeedStatus:
    return FeedStatus("ris", "ris_live", state, last, None, None, 3, 2, 1, 10, 0, "closed")


@pytest.mark.parametrize(
    ("state", "last", "bad"),
    [
        (FeedState.LIVE, AT, False),
        (FeedState.LIVE, AT - 20 * MINUTE, True),
        (FeedState.STALE, AT - 2 * MINUTE, True),
        (FeedState.DOWN, AT - SECOND, True),
        (FeedState.NEVER, None, None),
    ],
)
def test_a_feed_is_stale_by_its_state_or_its_age(
    state: FeedState, last: int | None, bad: bool | None
) -> None:
    expected = {"ris": FeedRules(10 * MINUTE)}
    found = list(feed_signals(FEEDS, [status(state, last)], expected, AT, AT - MINUTE))
    assert [one.bad for one in found] == [bad]


def test_a_feed_that_was_never_heard_is_stale_after_its_time() -> None:
    expected = {"ris": FeedRules(10 * MINUTE)}
    (signal,) = feed_signals(FEEDS, [], expected, AT + 11 * MINUTE, AT)
    assert signal.bad is True


def test_an_agent_whose_clock_is_ahead_is_not_heard_in_the_future() -> None:
    rules = (SilentRule(name="silence", kind=AlertKind.AGENT_SILENT, agents=("tokyo-1",)),)
    evidence = AlertEvidence(rules, Catalogue(), RouteOptions())
    evidence.see(echoes([1.0] * 10, AT + 60 * MINUTE), AT)
    (signal,) = evidence.signals(AT + 6 * MINUTE, {})
    assert signal.bad is True


def test_an_agent_is_heard_by_its_samples_too_and_blindness_is_an_alert() -> None:
    rules = (SilentRule(name="silence", kind=AlertKind.AGENT_SILENT), CLOCK)
    evidence = AlertEvidence(rules, Catalogue(), RouteOptions())
    evidence.see(echoes([1.0] * 10, AT + 9 * MINUTE), AT + 10 * MINUTE)
    agents = {"tokyo-1": Host("tokyo-1", AT, GOOD, AT), "other": Host("other", AT, GOOD, AT)}
    sources = Sources(agents, {"the bus": "refused"}, ("the store",))
    found = {one.key: one.bad for one in evidence.signals(AT + 10 * MINUTE, {}, sources)}
    assert found["silence/tokyo-1"] is False
    assert found["silence/other"] is True
    assert found["blind/the bus"] is True
    assert found["blind/the store"] is False
    assert found["clocks/other"] is False
