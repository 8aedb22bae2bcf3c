"""A sick member found while packets come, and how many of them that takes."""

from typing import Any

import numpy as np
import pytest
from tests.link_health.paths import INTERVAL, SERIES, START, sample

from pathbudget.analysis.routes.member_power import (
    chance_to_show,
    losses_needed,
    packets_to_show,
)
from pathbudget.analysis.routes.model import MemberFinding
from pathbudget.analysis.routes.sweep_watch import MOST, OPTIONS, SweepWatch, _Sick

FLOWS = 16
SICK = (1, 6, 7, 12)
SINCE = 3_300


def watched(
    packets: int,
    *,
    sick: tuple[int, ...] = SICK,
    until: int = 10**9,
    again: int = 10**9,
    loss: float = 0.03,
    seed: int = 3,
) -> tuple[SweepWatch, list[MemberFinding]]:
    """Packets over flows in turn; sick ones lose some from `SINCE` on, and from `again` on; all
    lose 40 in a row.
    """
    drawn = np.random.default_rng(seed).random(packets)
    watch, found = SweepWatch(SERIES), list[MemberFinding]()
    for seq in range(packets):
        ill = seq % FLOWS in sick and (SINCE <= seq < until or seq >= again)
        gone = (ill and drawn[seq] < loss) or 1000 <= seq < 1040
        found += watch.see(sample(seq, None if gone else 5e6, flow=seq % FLOWS))
    return watch, [*found, *watch.finish()]


def test_a_member_that_loses_3_percent_is_found_and_when_it_began() -> None:
    _, found = watched(SINCE + 3_000)
    first = found[0]
    assert set(first.flows) <= set(SICK)
    assert first.group == pytest.approx(40 / 4_000, abs=0.01)
    assert first.window.after_unix_ns <= START + SINCE * INTERVAL <= first.window.by_unix_ns


def test_it_is_over_once_its_flows_lose_no_more() -> None:
    watch, found = watched(SINCE + 7_000, until=SINCE + 3_000)
    (well,) = watch.clean[-1:]
    assert well.after_unix_ns >= found[-1].window.after_unix_ns
    assert well.by_unix_ns > START + (SINCE + 3_000) * INTERVAL


@pytest.mark.parametrize("seed", range(4, 8))
def test_a_second_illness_begins_when_it_did_not_with_what_was_left_of_the_first(seed: int) -> None:
    """What the flows lost before they were well again is no part of it."""
    until, again = SINCE + 3_000, SINCE + 5_000
    watch, found = watched(again + 3_000, until=until, again=again, loss=0.06, seed=seed)
    well = next(one for one in watch.clean if one.by_unix_ns > START + until * INTERVAL)
    after = [one for one in found if one.window.by_unix_ns > well.by_unix_ns]
    first = min(after, key=lambda one: one.window)
    assert first.window.after_unix_ns <= START + again * INTERVAL <= first.window.by_unix_ns


def packets(*, lost: int, sent: int, run: int = 0) -> tuple[Any, Any]:
    """Packets of flow 1 with losses far apart, the last `run` more of them in a row."""
    fates = np.zeros(sent + run, dtype=np.bool_)
    fates[np.linspace(0, sent - 2, lost, dtype=np.int64)] = True
    fates[sent:] = True
    return np.ones(sent + run, dtype=np.int64), fates


def test_losing_less_than_when_the_flows_were_chosen_for_it_is_not_yet_well() -> None:
    """The worst two of sixteen lost 11 %; they lose 2 % later, and that is sick."""
    assert not _Sick((1,), lost=16, sent=145).is_over(*packets(lost=3, sent=187))
    assert _Sick((1,), lost=16, sent=145).is_over(*packets(lost=3, sent=800))
    assert _Sick((1,), lost=31, sent=585).is_over(*packets(lost=0, sent=220))


def test_an_outage_of_all_does_not_keep_a_member_sick() -> None:
    assert _Sick((1,), lost=31, sent=585).is_over(*packets(lost=0, sent=220, run=100))


def test_flows_that_changed_their_names_are_not_sick_for_ever() -> None:
    """None of the sick ones is asked any more: what all lose now is held against all of before."""
    sick = _Sick((1,), lost=31, sent=585, all_lost=31, all_sent=2_000)
    names = np.arange(4_000) % 256 + 1_000
    assert sick.is_over(names, np.zeros(4_000, dtype=np.bool_))
    still = np.zeros(4_000, dtype=np.bool_)
    still[::70] = True
    assert not sick.is_over(names, still)


@pytest.mark.parametrize("seed", range(3))
def test_healthy_members_under_an_outage_are_none(seed: int) -> None:
    assert watched(6_000, sick=(), seed=seed)[1] == []


def test_few_flows_tell_nothing_and_memory_is_bounded() -> None:
    watch = SweepWatch(SERIES)
    for seq in range(2 * MOST):
        assert watch.see(sample(seq, None if seq % 7 == 0 else 5e6, flow=seq % 7)) == []
    assert len(watch._times) < MOST


def test_a_flow_without_a_name_is_not_of_a_sweep() -> None:
    watch = SweepWatch(SERIES)
    assert [*watch.see(sample(1)), *watch.finish()] == []


def test_so_many_losses_on_so_few_flows_are_chance_once_in_a_thousand() -> None:
    """All 6 of 6 on 2 of 16 flows: 120 pairs of flows, each with 8^-6."""
    assert losses_needed(16, 2, 120 / 8**6) == 6
    assert losses_needed(16, 2, 119 / 8**6) == 7


def test_packets_that_it_takes_grow_as_the_loss_falls() -> None:
    three = packets_to_show(0.03, flows=16, members=4)
    assert three is not None
    assert chance_to_show(three, 0.03, flows=16, members=4) >= 0.95
    assert chance_to_show(three - 1, 0.03, flows=16, members=4) < 0.95
    one = packets_to_show(0.01, flows=16, members=4)
    assert one == pytest.approx(3 * three, rel=0.01)


def test_no_number_of_packets_shows_a_member_that_no_flow_may_be_on() -> None:
    """Of 16 flows none is on one of 8 members with a chance of 12 %."""
    assert packets_to_show(0.03, flows=16, members=8) is None


def test_the_calculation_is_what_the_watch_does() -> None:
    """4 of 16 flows, 2,000 packets: found about as often as calculated for what they lose."""
    found = sum(bool(watched(SINCE + 2_000, seed=100 + seed)[1]) for seed in range(8))
    needed = losses_needed(FLOWS, len(SICK), OPTIONS.alpha)
    assert needed == 12
    assert 4 <= found <= 8  # 15 losses are expected: enough in four of five
