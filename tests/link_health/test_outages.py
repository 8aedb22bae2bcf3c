"""Outages and flapping: the same ones of a batch and as they come, in time and without chance."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.link_health.paths import INTERVAL, MS, SERIES, START, sample, word

from pathbudget.analysis.outage_rule import consecutive_losses, false_alarms_per_day
from pathbudget.analysis.routes.model import Outage, OutageKind, Window
from pathbudget.analysis.routes.outages import (
    FLAP_NS,
    MOST_PENDING,
    PATIENCE_NS,
    OutageWatch,
    outages,
)
from pathbudget.probes.record import Failure, FailureKind, Sample, Stage

GOOD = "." * 200


def at(seq: int) -> int:
    return START + seq * INTERVAL


def seen(samples: list[Sample], patience_ns: int = PATIENCE_NS) -> list[Outage]:
    watch = OutageWatch(SERIES, patience_ns)
    told = [outage for one in samples for outage in watch.see(one)]
    return told + watch.finish()


def test_an_outage_lies_between_sends() -> None:
    (found,) = outages(SERIES, word(GOOD + "x" * 20 + GOOD))
    began, ended = Window(at(199), at(200)), Window(at(219), at(220))
    assert found == Outage(OutageKind.OUTAGE, SERIES, began, ended, 20)


def test_an_outage_without_end() -> None:
    (found,) = outages(SERIES, word(GOOD + "x" * 20))
    assert found.ended is None
    assert found.lost == 20


def live(watch: OutageWatch, lost: range, packets: int, rtt: int = 20 * MS) -> dict[int, Outage]:
    """What is told when: a packet every 10 ms, answered 20 ms later unless lost."""
    told: dict[int, Outage] = {}
    events = [(at(seq), 0, seq) for seq in range(packets)]
    events += [(at(seq) + rtt, 1, seq) for seq in range(packets) if seq not in lost]
    for now, kind, seq in sorted(events):
        found = watch.answered(at(seq), now) if kind else watch.sent(at(seq))
        if found:
            told[now] = found[-1]
    return told


def test_an_outage_is_told_within_a_second_at_a_probe_every_10_ms() -> None:
    """Even right at the beginning, when 5 % of loss has to be assumed."""
    for before in (10, 1_000):
        lost = range(before, before + 500)
        told = live(OutageWatch(SERIES), lost, before + 900)
        (began, first), (over, last) = told.items()
        assert began - at(before) <= 1_000 * MS
        assert first.began == Window(at(before - 1), at(before))
        assert first.ended is None
        assert last.ended == Window(at(before + 499), at(before + 500))
        assert over - at(before + 500) <= 1_000 * MS


def test_a_flap_of_200_ms_is_told_within_a_second() -> None:
    told = live(OutageWatch(SERIES), range(1_000, 1_020), 1_200)
    began, over = told
    assert began - at(1_000) <= 1_000 * MS
    assert over - at(1_020) <= 1_000 * MS


def test_a_pause_of_ours_is_no_outage() -> None:
    """Nothing sent, nothing lost: it goes by what was sent, not by what did not come."""
    watch = OutageWatch(SERIES)
    assert live(watch, range(0), 300) == {}
    assert watch.advance(at(300) + 3_600 * 10**9) == []
    before, after = word(GOOD + "xx"), word("xx" + GOOD)
    moved = [sample(500 + one.seq, one.value_ns, at=3_600 * 10**9 + one.seq) for one in after]
    assert outages(SERIES, before + moved) == []
    assert seen(before + moved) == []


def test_answers_in_time_are_awaited_and_late_ones_counted() -> None:
    watch = OutageWatch(SERIES)
    assert live(watch, range(0), 300, rtt=650 * MS) == {}
    watch = OutageWatch(SERIES)
    assert live(watch, range(0), 300, rtt=750 * MS) != {}
    assert watch.late > 0


def test_what_this_host_could_not_send_is_no_loss() -> None:
    local = Failure(FailureKind.LOCAL, Stage.SEND)
    ours = [sample(200 + seq, None, failure=local) for seq in range(50)]
    assert outages(SERIES, word(GOOD) + ours) == []
    assert seen(word(GOOD) + ours) == []
    refused = Failure(FailureKind.REFUSED, Stage.CONNECT)
    answered = [sample(200 + seq, None, failure=refused) for seq in range(50)]
    assert outages(SERIES, word(GOOD) + answered) == []


def test_flapping_is_one_finding() -> None:
    text = GOOD + ("x" * 30 + GOOD) * 4
    (found,) = outages(SERIES, word(text))
    assert (found.kind, found.times, found.lost) == (OutageKind.FLAPPING, 4, 120)
    assert found.began == Window(at(199), at(200))
    assert found.ended == Window(at(200 + 3 * 230 + 29), at(200 + 3 * 230 + 30))
    told = seen(word(text))
    assert told[-1] == found
    kinds = [one.kind for one in told if one.ended is None]
    assert kinds == [OutageKind.OUTAGE] * 2 + [OutageKind.FLAPPING] * 2


def test_outages_far_apart_are_two() -> None:
    second = [
        sample(1_000 + one.seq, one.value_ns, at=FLAP_NS + one.seq * INTERVAL)
        for one in word(GOOD + "x" * 30 + GOOD)
    ]
    found = outages(SERIES, word(GOOD + "x" * 30 + GOOD) + second)
    assert [one.kind for one in found] == [OutageKind.OUTAGE] * 2


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32), st.lists(st.integers(12, 80), min_size=1, max_size=2))
def test_a_batch_and_a_watch_find_the_same_outages(seed: int, lengths: list[int]) -> None:
    """Whatever order the samples come in, as long as they come in time."""
    rng = random.Random(seed)
    samples = word(GOOD + "".join("x" * length + GOOD for length in lengths))
    order = sorted(samples, key=lambda one: one.sent_unix_ns + rng.randrange(600 * MS))
    ended = [one for one in seen(order) if one.ended is not None]
    assert ended == outages(SERIES, samples)
    assert [one.lost for one in ended] == lengths


def test_random_loss_makes_no_outages_but_as_stated() -> None:
    """None of 50,000 packets at 5 %; a laxer rule finds as many as are said of it."""
    rng = random.Random(7)
    watch = OutageWatch(SERIES)
    told = [
        one
        for seq in range(50_000)
        for one in watch.see(sample(seq, None if rng.random() < 0.05 else 5 * MS))
    ]
    assert told == []
    assert consecutive_losses(0.05) == 7
    assert 1 / false_alarms_per_day(0.05, 7, INTERVAL) == pytest.approx(156, abs=1)
    expected = false_alarms_per_day(0.05, 3, INTERVAL) * 200_000 * INTERVAL / 86_400e9
    runs = sum(len(run) >= 3 for run in _lost_runs(random.Random(8), 200_000, 0.05))
    assert abs(runs - expected) < 4 * expected**0.5


def _lost_runs(rng: random.Random, n: int, loss: float) -> list[str]:
    return list("".join("x" if rng.random() < loss else "." for _ in range(n)).split("."))


def test_memory_is_bounded_where_nothing_is_ever_told() -> None:
    watch = OutageWatch(SERIES, patience_ns=10**15)
    for seq in range(MOST_PENDING + 500):
        watch.sent(at(seq))
    assert watch.pending <= MOST_PENDING + 1


def test_an_empty_series_has_none() -> None:
    assert outages(SERIES, []) == []
    assert OutageWatch(SERIES).finish() == []
