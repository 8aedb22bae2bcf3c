"""How incidents are held against the truth; what the lab's own stalls account for."""

from tests.route_changes.conftest import SERIES
from tests.route_changes.scoring import Injected, Stalled, score

from pathbudget.analysis.routes.model import Cause, Incident, Window

SECOND = 1_000_000_000
INTERVAL = SECOND // 10


def said(at: float, cause: Cause = Cause.LEVEL) -> Incident:
    window = Window(round((at - 0.05) * SECOND), round(at * SECOND))
    return Incident(cause, window, (SERIES,), None, "", "as it is", None, ())


def event(at: float, *causes: Cause) -> Injected:
    return Injected("event", round(at * SECOND), None, frozenset(causes))


def stall(began: float, ended: float) -> Stalled:
    return Stalled(round(began * SECOND), round(ended * SECOND))


def test_an_event_told_once_is_found_and_a_second_word_about_it_is_too_much() -> None:
    truth = [event(10, Cause.LEVEL), event(50, Cause.FEED)]
    result = score(truth, [said(10.04), said(10.04), said(30)], INTERVAL)
    assert (len(result.found), len(result.twice), len(result.false)) == (1, 1, 1)
    assert result.missed == ["event"]
    assert (result.precision, result.recall) == (1 / 3, 0.5)


def test_a_stall_accounts_for_what_packets_felt_at_its_time() -> None:
    result = score([], [said(30.2), said(40)], INTERVAL, [stall(30, 30.5)])
    assert (len(result.stalled), len(result.false)) == (1, 1)


def test_a_stall_takes_no_event_away_and_hides_no_missing_one() -> None:
    truth = [event(30, Cause.LEVEL)]
    stalls = [stall(29, 31)]
    result = score(truth, [said(30.02), said(30.03)], INTERVAL, stalls)
    assert (result.found, len(result.stalled), result.twice) == (["event"], 1, [])
    assert score(truth, [], INTERVAL, stalls).missed == ["event"]


def test_a_stall_moves_no_route() -> None:
    result = score(
        [], [said(30, Cause.PATH_MOVED), said(30, Cause.FEED)], INTERVAL, [stall(29, 31)]
    )
    assert len(result.false) == 2


def test_what_is_called_wrongly_in_a_stall_is_of_the_stall_and_the_event_is_missed() -> None:
    truth = [event(30, Cause.FEED)]
    result = score(truth, [said(30.02)], INTERVAL, [stall(29, 31)])
    assert (len(result.stalled), result.missed, result.wrong_cause) == (1, ["event"], [])
    result = score(truth, [said(30.02)], INTERVAL)
    assert result.wrong_cause == ["event as level"]
