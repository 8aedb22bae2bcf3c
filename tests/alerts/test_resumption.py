"""Resumption rate fallen: against its own earlier level, both with intervals."""

from tests.alerts.conftest import AT, HOUR, MINUTE, SECOND, handshakes

from pathbudget.analysis.alerts.alarm import Alarm
from pathbudget.analysis.alerts.model import AlertKind, News, Signal, Timing
from pathbudget.analysis.alerts.resumption import Resumptions, resumption_signals
from pathbudget.analysis.alerts.rules import ResumptionRule

RULE = ResumptionRule(
    name="tickets",
    kind=AlertKind.RESUMPTION_FALLEN,
    recent_ns=HOUR,
    usual_ns=6 * HOUR,
    timing=Timing(fade_ns=0),
)
NOW = AT + 7 * HOUR


def counted(before: list[bool], after: list[bool], every: int = 10 * SECOND) -> Resumptions:
    counts = Resumptions(RULE)
    counts.see(handshakes(before, AT + HOUR, every))
    counts.see(handshakes(after, AT + 6 * HOUR, every))
    return counts


def asked(before: list[bool], after: list[bool]) -> Signal:
    (signal,) = resumption_signals(RULE, counted(before, after), {}, NOW)
    return signal


def test_a_fall_that_is_sure_is_bad() -> None:
    signal = asked([True] * 1000, [True, False] * 170)
    assert signal.bad is True
    assert signal.numbers["resumed_ratio"] == 0.5
    assert signal.numbers["usual_ratio"] == 1.0
    assert "50 % of 340 resumed handshakes" in signal.summary


def test_the_same_share_is_good_and_few_handshakes_are_undecided() -> None:
    assert asked([True, True, True, False] * 250, [True, True, True, False] * 85).bad is False
    assert asked([True] * 1000, [True, False]).bad is None
    assert asked([True], [False] * 300).bad is None


def test_the_share_before_is_kept_while_the_alert_lasts() -> None:
    alarm, counts = Alarm([RULE]), counted([True] * 1000, [False] * 350)
    told = alarm.look(resumption_signals(RULE, counts, alarm.kept(), NOW), NOW)
    assert [one.news for one in told] == [News.FIRING]
    for hours in range(1, 13):  # long after all of the usual time is of the fallen share
        counts.see(handshakes([False] * 350, NOW + (hours - 1) * HOUR, 10 * SECOND))
        now = NOW + hours * HOUR
        told = alarm.look(resumption_signals(RULE, counts, alarm.kept(), now), now)
        assert News.RESOLVED not in [one.news for one in told]
    counts.see(handshakes([True] * 350, NOW + 12 * HOUR, 10 * SECOND))
    now = NOW + 13 * HOUR
    told = alarm.look(resumption_signals(RULE, counts, alarm.kept(), now), now)
    assert [one.news for one in told] == [News.RESOLVED]


def test_after_a_week_the_new_share_is_the_usual_one() -> None:
    counts = counted([True] * 1000, [False] * 350)
    kept = {"resumed": 1000.0, "offered": 1000.0, "since_unix_ns": float(NOW - 8 * 24 * HOUR)}
    key = "tickets/tokyo/frankfurt/fra/tls/resumed"
    (signal,) = resumption_signals(RULE, counts, {key: kept}, NOW)
    assert signal.key == key
    assert signal.bad is False
    assert "usual share from now on" in signal.summary


def test_handshakes_long_ago_say_nothing_of_now() -> None:
    counts = counted([True] * 1000, [False] * 350)
    (signal,) = resumption_signals(RULE, counts, {}, NOW + 3 * HOUR + MINUTE)
    assert signal.bad is None
