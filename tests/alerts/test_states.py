"""What becomes of an alert: pending, firing, over; and what is told of it, whatever comes."""

from itertools import pairwise

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from tests.alerts.conftest import AT, HOUR, MINUTE, SECOND, a_signal

from pathbudget.analysis.alerts.alarm import Alarm
from pathbudget.analysis.alerts.model import AlertKind, AlertState, News, Notice, Phase, Timing
from pathbudget.analysis.alerts.rules import SilentRule
from pathbudget.analysis.alerts.states import step

TIMING = Timing(for_ns=2 * MINUTE, fade_ns=5 * MINUTE, repeat_ns=10 * MINUTE)
VERDICTS = st.sampled_from(["bad", "good", "undecided", "absent"])


def play(
    words: list[str], every: int = MINUTE, timing: Timing = TIMING
) -> tuple[AlertState | None, list[Notice]]:
    """A look for each word."""
    state, told = None, list[Notice]()
    for number, word in enumerate(words):
        bad = {"bad": True, "good": False}.get(word)
        signal = None if word == "absent" else a_signal(bad)
        state, notice = step(state, signal, AT + number * every, timing)
        told += [notice] if notice else []
    return state, told


def news(told: list[Notice]) -> list[tuple[News, int]]:
    return [(one.news, (one.at_unix_ns - AT) // MINUTE) for one in told]


def test_it_fires_when_it_was_bad_for_so_long_and_is_over_when_it_was_good_for_so_long() -> None:
    _, told = play(["bad"] * 4 + ["good"] * 8)
    assert news(told) == [(News.FIRING, 2), (News.RESOLVED, 9)]


def test_one_that_is_bad_for_a_moment_is_never_told() -> None:
    assert play(["bad", "bad", "good", "bad", "good"]) == (None, [])


def test_one_that_flaps_is_held_and_told_once() -> None:
    state, told = play(["bad"] * 3 + ["good", "bad"] * 3 + ["good"] * 6)
    assert news(told) == [(News.FIRING, 2), (News.RESOLVED, 14)]
    assert state is not None
    assert state.returns == 3


def test_it_is_told_again_at_growing_intervals_up_to_a_day() -> None:
    _, told = play(["bad"] * 500, every=10 * MINUTE)
    first = [(one.at_unix_ns - AT) // (10 * MINUTE) for one in told[:6]]
    assert first == [1, 2, 4, 8, 16, 32]
    gaps = [b.at_unix_ns - a.at_unix_ns for a, b in pairwise(told)]
    assert max(gaps) == 24 * HOUR


def test_what_is_undecided_neither_begins_nor_ends_an_alert() -> None:
    _, told = play(["undecided"] * 20)
    assert told == []
    state, told = play(["bad"] * 3 + ["undecided"] * 4 + ["good"] + ["undecided"] * 20)
    assert [one.news for one in told] == [News.FIRING]
    assert state is not None
    assert state.phase is Phase.FIRING


def test_one_that_comes_back_soon_waits_with_its_message() -> None:
    timing = Timing(fade_ns=0, repeat_ns=10 * MINUTE)
    _, told = play(["bad", "good"] + ["bad"] * 12, timing=timing)
    assert news(told) == [(News.FIRING, 0), (News.RESOLVED, 1), (News.FIRING, 10)]


def test_one_of_which_nothing_is_seen_for_a_week_is_over_and_says_so() -> None:
    _, told = play(["bad"] * 4 + ["absent"] * 200, every=HOUR)
    last = told[-1]
    assert last.news is News.RESOLVED
    assert "nothing was seen" in last.state.signal.summary
    assert last.at_unix_ns - AT == (3 + 7 * 24) * HOUR


@given(
    st.lists(st.tuples(VERDICTS, st.integers(1, 30)), max_size=60),
    st.integers(0, 5),
    st.integers(0, 20),
    st.integers(1, 30),
    st.integers(5, 120),
)
def test_whatever_comes(
    looks: list[tuple[str, int]], wait: int, fade: int, repeat: int, every_s: int
) -> None:
    timing = Timing(for_ns=wait * MINUTE, fade_ns=fade * MINUTE, repeat_ns=repeat * MINUTE)
    words = [word for word, times in looks for _ in range(times)]
    state, told = play(words, every_s * SECOND, timing)
    kinds = [one.news for one in told]
    open_now = False
    for kind in kinds:  # told to fire, perhaps again and again, told once to be over
        assert (kind is News.FIRING) is not open_now or kind is not News.FIRING
        assert open_now or kind is News.FIRING
        open_now = kind is not News.RESOLVED
    fires = state is not None and state.phase is Phase.FIRING and state.told_times > 0
    assert open_now == fires
    firing = [one.at_unix_ns for one in told if one.news is not News.RESOLVED]
    gaps = [b - a for a, b in pairwise(firing)]
    assert all(gap >= timing.repeat_ns for gap in gaps)
    if words and set(words) <= {"undecided", "absent", "good"}:
        assert told == []


@given(st.lists(VERDICTS, max_size=40), st.integers(0, 40))
def test_a_restart_changes_nothing(words: list[str], at: int) -> None:
    rule = SilentRule(name="r", kind=AlertKind.AGENT_SILENT, timing=TIMING)

    def run(restarts: bool) -> list[Notice]:
        alarm, told = Alarm([rule]), list[Notice]()
        for number, word in enumerate(words):
            if restarts and number == at:
                kept = msgspec.json.encode(alarm.states)
                alarm = Alarm([rule], msgspec.json.decode(kept, type=dict[str, AlertState]))
            signals = [] if word == "absent" else [a_signal({"bad": True, "good": False}.get(word))]
            told += alarm.look(signals, AT + number * MINUTE)
        return told

    assert run(restarts=True) == run(restarts=False)


def test_states_of_rules_that_are_gone_are_dropped() -> None:
    rule = SilentRule(name="r", kind=AlertKind.AGENT_SILENT)
    alarm = Alarm([rule])
    alarm.look([a_signal()], AT)
    other = SilentRule(name="other", kind=AlertKind.AGENT_SILENT)
    assert Alarm([other], alarm.states).look([], AT + HOUR) == []
