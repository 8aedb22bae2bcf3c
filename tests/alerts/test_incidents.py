"""Route incidents: once each, with cause, who and cost, over restarts of whoever looks."""

import random
from dataclasses import replace
from pathlib import Path

import msgspec
from tests.alerts.conftest import AT, MINUTE, RULES, SECOND, echoes

from pathbudget.agents.alerts.replaying import Replay
from pathbudget.agents.alerts.rules_file import load_rules
from pathbudget.agents.store.parquet import Store
from pathbudget.analysis.alerts.alarm import Alarm
from pathbudget.analysis.alerts.evidence import AlertEvidence
from pathbudget.analysis.alerts.incidents import IncidentBook, is_wanted
from pathbudget.analysis.alerts.model import AlertKind, News, Notice, Timing
from pathbudget.analysis.alerts.rules import IncidentRule
from pathbudget.analysis.routes.evaluate import RouteOptions
from pathbudget.analysis.routes.model import Cause, Estimate, Incident, PathSeries, Window
from pathbudget.probes.record import AddressFamily
from pathbudget.sites.catalogue import Catalogue

RULE = IncidentRule(name="routes", kind=AlertKind.ROUTE_INCIDENT, timing=Timing(fade_ns=0))
SERIES = PathSeries("tokyo-1", "tokyo", "frankfurt", "fra", "192.0.2.1", AddressFamily.IPV4)
OTHER = SERIES._replace(vantage="osaka-1", region="osaka")
MOVED = Incident(
    Cause.PATH_MOVED,
    Window(AT, AT + SECOND),
    (SERIES,),
    Estimate(12e6, 11e6, 13e6),
    "AS65012",
    "the first hop that differs is its",
)
OVER = Window(AT + 9 * MINUTE, AT + 10 * MINUTE)


def look(evidence: AlertEvidence, alarm: Alarm, *found: Incident, now: int) -> list[Notice]:
    """A look at which the monitor of routes has this news."""
    evidence._take(found)
    return alarm.look(evidence.signals(now, alarm.kept()), now)


def begun(book: IncidentBook | None = None, last_look: int = AT) -> AlertEvidence:
    return AlertEvidence([RULE], Catalogue(), RouteOptions(), None, book, last_look)


def test_an_incident_is_told_once_and_once_when_it_is_over() -> None:
    evidence, alarm = begun(), Alarm([RULE])
    told = look(evidence, alarm, MOVED, now=AT + MINUTE)
    assert [one.news for one in told] == [News.FIRING]
    signal = told[0].state.signal
    assert signal.labels["blamed"] == "AS65012"
    assert signal.labels["cause"] == "path_moved"
    assert signal.numbers["cost_ms"] == 12
    assert "tokyo > frankfurt: path moved" in signal.summary
    assert "AS65012" in signal.summary
    changed = replace(MOVED, cause=Cause.FLAP, series=(SERIES, OTHER))
    assert look(evidence, alarm, changed, now=AT + 2 * MINUTE) == []
    assert look(evidence, alarm, now=AT + 3 * MINUTE) == []
    told = look(evidence, alarm, replace(changed, over=OVER), now=AT + 11 * MINUTE)
    assert [one.news for one in told] == [News.RESOLVED]
    assert told[0].state.signal.ended_unix_ns == OVER.by_unix_ns
    assert look(evidence, alarm, now=AT + 12 * MINUTE) == []


def test_after_a_restart_it_is_the_same_though_its_window_is_known_better() -> None:
    evidence, alarm = begun(), Alarm([RULE])
    look(evidence, alarm, MOVED, now=AT + MINUTE)
    kept = msgspec.json.decode(msgspec.json.encode(evidence.book), type=IncidentBook)
    again = replace(MOVED, window=Window(AT - SECOND, AT + 5 * SECOND), series=(SERIES, OTHER))
    evidence = begun(kept, AT + 2 * MINUTE)
    assert look(evidence, alarm, again, now=AT + 3 * MINUTE) == []
    told = look(evidence, alarm, replace(again, over=OVER), now=AT + 11 * MINUTE)
    assert [one.news for one in told] == [News.RESOLVED]


def test_another_one_is_another_alert() -> None:
    evidence, alarm = begun(), Alarm([RULE])
    elsewhere = replace(MOVED, series=(OTHER._replace(site="paris"),))
    later = replace(MOVED, window=Window(AT + 5 * MINUTE, AT + 6 * MINUTE))
    told = look(evidence, alarm, MOVED, elsewhere, later, now=AT + 7 * MINUTE)
    assert len({one.state.key for one in told}) == 3


def test_what_began_and_ended_between_two_looks_is_told_and_what_is_older_is_not() -> None:
    evidence, alarm = begun(last_look=AT), Alarm([RULE])
    told = look(evidence, alarm, replace(MOVED, over=OVER), now=AT + 11 * MINUTE)
    assert [one.news for one in told] == [News.FIRING, News.RESOLVED]
    evidence, alarm = begun(last_look=AT + 11 * MINUTE), Alarm([RULE])
    assert look(evidence, alarm, replace(MOVED, over=OVER), now=AT + 12 * MINUTE) == []


def test_one_that_fades_is_over_later() -> None:
    rule = replace(RULE, timing=Timing(fade_ns=5 * MINUTE))
    evidence = AlertEvidence([rule], Catalogue(), RouteOptions(), None, None, AT)
    alarm = Alarm([rule])
    look(evidence, alarm, MOVED, now=AT + MINUTE)
    over = replace(MOVED, over=OVER)
    assert look(evidence, alarm, over, now=AT + 11 * MINUTE) == []
    told = [
        notice
        for minute in range(12, 20)
        for notice in look(evidence, alarm, now=AT + minute * MINUTE)
    ]
    assert [one.news for one in told] == [News.RESOLVED]
    assert told[0].at_unix_ns == AT + 16 * MINUTE


def test_rules_choose_by_cause_place_and_what_it_surely_costs() -> None:
    assert is_wanted(RULE, MOVED)
    assert not is_wanted(RULE, replace(MOVED, cause=Cause.ROUTING_ONLY))
    assert not is_wanted(RULE, replace(MOVED, cause=Cause.FEED))
    assert not is_wanted(replace(RULE, regions=("osaka",)), MOVED)
    assert is_wanted(replace(RULE, least_cost_ns=11_000_000), MOVED)
    assert not is_wanted(replace(RULE, least_cost_ns=12_000_000), MOVED)
    away = replace(MOVED, cause=Cause.OUTAGE, cost=None)
    assert is_wanted(replace(RULE, least_cost_ns=12_000_000), away)


def test_the_store_alone_gives_a_level_that_moved_with_its_cost(tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text(
        RULES.format(url="http://127.0.0.1:9/")
        + '[[rule]]\nname = "routes"\nkind = "route_incident"\nleast_cost = "20ms"\n'
    )
    chance = random.Random(7)
    store = Store(tmp_path / "store")
    for minute in range(25):
        level = 40.0 if 10 <= minute < 15 else 10.0
        values = [level + chance.expovariate(5) for _ in range(60)]
        store.write([echoes(values, AT + minute * MINUTE)])
    replay = Replay(load_rules(rules), store)
    (began, over) = (alert for one in replay.messages() for alert in one.alerts)
    assert (began.status, over.status) == (News.FIRING, News.RESOLVED)
    assert began.key == over.key
    assert began.numbers["cost_low_ms"] is not None
    assert 29 < began.numbers["cost_low_ms"] < 31
    assert abs(began.began_unix_ns - (AT + 10 * MINUTE)) < MINUTE
    assert over.ended_unix_ns is not None
    assert abs(over.ended_unix_ns - (AT + 15 * MINUTE)) < MINUTE
