"""Members whose round trips grow: told once, and only of what has changed beside the others."""

from dataclasses import replace

import numpy as np
import pytest
from tests.link_health.paths import INTERVAL, MS, SERIES, START, sample

from pathbudget.analysis.routes.delay_watch import PER_FLOW, DelayWatch
from pathbudget.analysis.routes.illnesses import Illnesses
from pathbudget.analysis.routes.incidents import join
from pathbudget.analysis.routes.level_shifts import BATCH, level_shifts
from pathbudget.analysis.routes.member_watch import MemberWatch
from pathbudget.analysis.routes.model import Cause, Incident, Window
from pathbudget.probes.record import ClockSource, NoiseFloor, Sample

FLOWS = 16
PIECE = FLOWS * PER_FLOW
SICK = (50_003, 50_011)


def history(
    seed: int,
    pieces: int,
    sick_from: float = 1e9,
    sick_until: float = 1e9,
    *,
    longer_ns: float = 0.0,
    all_longer_ns: float = 0.0,
    burst: int = -1,
) -> list[Sample]:
    """Flows 3 and 11 of 16 are 2 ms longer all the time, and `longer_ns` more while they are sick;
    the others become longer then, too, by `all_longer_ns`. In piece `burst` all are 5 ms longer.
    """
    rng = np.random.default_rng(seed)
    found: list[Sample] = []
    for seq in range(pieces * PIECE):
        ill = seq % FLOWS in (3, 11)
        late = sick_from * PIECE <= seq < sick_until * PIECE
        rtt = 5 * MS + 2 * MS * ill + rng.exponential(30_000)
        rtt += longer_ns * (late and ill) + all_longer_ns * late + 5 * MS * (seq // PIECE == burst)
        found.append(sample(seq, rtt, flow=50_000 + seq % FLOWS))
    return found


def watched(samples: list[Sample], floor_ns: int = 0) -> MemberWatch:
    watch = MemberWatch(SERIES)
    watch.on_host(NoiseFloor(floor_ns, ClockSource.KERNEL, 0, 0))
    for one in samples:
        watch.see(one)
    watch.finish()
    return watch


def incidents_of(samples: list[Sample]) -> list[Incident]:
    watch = watched(samples)
    times = np.array([one.sent_unix_ns for one in samples])
    values = np.array([float(one.value_ns or 0) for one in samples])
    shifts = level_shifts(SERIES, "rtt", times, values, BATCH)
    return join([*shifts, *watch.findings], clean={SERIES: watch.clean})


def test_a_longer_way_is_no_fault_and_one_that_became_longer_is() -> None:
    assert watched(history(2, 5)).findings == []
    first = watched(history(2, 6, 2, longer_ns=100_000)).findings[0]
    assert (first.what, first.flows) == ("rtt", SICK)
    assert first.window.after_unix_ns == START + 2 * PIECE * INTERVAL
    assert first.window.by_unix_ns == START + (3 * PIECE - 1) * INTERVAL
    assert first.low <= 100_000 <= first.high


def test_below_the_noise_floor_nothing_is_told() -> None:
    assert watched(history(2, 6, 2, longer_ns=100_000), floor_ns=300_000).findings == []


@pytest.mark.parametrize("seed", range(3))
def test_what_all_flows_do_together_is_no_member(seed: int) -> None:
    assert watched(history(seed, 6, 2, 4, all_longer_ns=3 * MS)).findings == []
    assert watched(history(seed, 6, burst=3)).findings == []


def test_one_sweep_alone_is_not_told() -> None:
    assert watched(history(4, 6, 2, 3, longer_ns=100_000)).findings == []


def test_it_is_one_incident_with_its_end() -> None:
    (one,) = incidents_of(history(5, 9, 2, 6, longer_ns=200_000))
    assert one.cause is Cause.MEMBER
    assert one.window.after_unix_ns <= START + 2 * PIECE * INTERVAL <= one.window.by_unix_ns
    assert one.over is not None
    assert one.over.after_unix_ns <= START + 6 * PIECE * INTERVAL <= one.over.by_unix_ns
    assert one.reason.startswith("2 of 16 flows take 0.198 ms longer than they did")


def test_flows_on_other_ways_since_the_path_moved_are_not_sick() -> None:
    """All became longer by 12 ms, two of them by 1 ms more: that is one move, and one incident."""
    found = incidents_of(history(6, 9, 2.9, longer_ns=1 * MS, all_longer_ns=12 * MS))
    assert [one.cause for one in found] == [Cause.LEVEL]


def test_other_flows_are_another_sweep() -> None:
    """After a restart the flows are new: there is nothing to hold them against."""
    later = [
        sample(seq + 4 * PIECE, 9 * MS if seq % FLOWS == 1 else 5 * MS, flow=60_000 + seq % FLOWS)
        for seq in range(4 * PIECE)
    ]
    assert watched([*history(7, 4), *later]).findings == []


def test_memory_is_bounded_and_few_flows_say_nothing() -> None:
    watch = DelayWatch(SERIES)
    for seq in range(20_000):
        assert watch.see(sample(seq, flow=seq % 7)) == []
    assert len(watch._times) <= 8 * PER_FLOW
    assert watch.see(sample(1)) == []


def test_a_first_sweep_in_an_outage_is_nothing_to_hold_others_against() -> None:
    """Nothing came back while it was made: the next one is the first."""
    out = [sample(seq - PIECE, None, flow=50_000 + seq % FLOWS) for seq in range(PIECE)]
    first = watched([*out, *history(2, 6, 2, longer_ns=100_000)]).findings[0]
    assert (first.what, first.flows) == ("rtt", SICK)


@pytest.mark.parametrize("kept", [1, 7])
def test_where_most_flows_are_others_it_is_another_sweep(kept: int) -> None:
    """Some names stay: of the others nothing is known from before, and they fall ill later."""
    names = [(50_000 if place < kept else 60_000) + place for place in range(FLOWS)]
    early = [sample(seq - PIECE, flow=names[seq % FLOWS]) for seq in range(PIECE)]
    first = watched([*early, *history(2, 6, 2, longer_ns=100_000)]).findings[0]
    assert (first.what, first.flows) == ("rtt", SICK)


def test_a_sweep_that_grows_from_8_to_64_flows_is_held_against_the_larger_one() -> None:
    few = [sample(seq - 480, flow=seq % 8) for seq in range(480)]
    rng = np.random.default_rng(3)
    many = [
        sample(
            seq,
            5 * MS + rng.exponential(30_000) + MS * (seq % 64 in (40, 50) and seq >= 3 * 64 * 60),
            flow=seq % 64,
        )
        for seq in range(8 * 64 * 60)
    ]
    assert watched([*few, *many]).findings[0].flows == (40, 50)


def test_an_outage_is_no_health() -> None:
    out = [sample(seq + 5 * PIECE, None, flow=50_000 + seq % FLOWS) for seq in range(2 * PIECE)]
    watch = watched([*history(5, 5, 2, longer_ns=200_000), *out])
    assert watch.findings
    assert watch.clean["rtt"] == []


def test_members_whose_flows_are_asked_no_more_are_not_sick_for_ever() -> None:
    others = [sample(seq + 6 * PIECE, flow=60_000 + seq % FLOWS) for seq in range(2 * PIECE)]
    found = incidents_of([*history(5, 6, 2, longer_ns=200_000), *others])
    assert [one.cause for one in found] == [Cause.MEMBER]
    assert found[0].over is not None


def test_after_the_whole_path_moved_others_are_held_against_the_new_way() -> None:
    """Two flows became longer with all, which says nothing; a third does so later, alone."""
    rng = np.random.default_rng(8)
    later = [
        sample(
            seq + 6 * PIECE,
            17 * MS + 3 * MS * (seq % FLOWS in (3, 11)) + rng.exponential(30_000)
            + MS * (seq % FLOWS == 7 and seq >= 2 * PIECE),
            flow=50_000 + seq % FLOWS,
        )
        for seq in range(6 * PIECE)
    ]  # fmt: skip
    watch = watched([*history(6, 6, 2.9, longer_ns=MS, all_longer_ns=12 * MS), *later])
    assert watch.findings[0].flows == (50_007,)
    assert watch.findings[0].window.by_unix_ns >= START + 8 * PIECE * INTERVAL


def test_a_member_that_is_sick_for_months_fell_ill_when_it_did() -> None:
    (found,) = watched(history(5, 6, 2, longer_ns=200_000)).findings[:1]
    kept = Illnesses()
    rows = [replace(found, window=Window(START + n, START + n + 1)) for n in range(1_000)]
    rows[400] = replace(rows[400], p_value=found.p_value / 2)
    for number, one in enumerate(rows):
        kept.add(one)
        if number == 200:
            kept.end(Window(START + 201, START + 201))
    assert {rows[0], rows[200], rows[201], rows[400], rows[999]} <= set(kept.findings)
    assert len(kept.findings) < 30
    for _ in range(500):
        kept.end(Window(START + 2_000, START + 2_001))
        kept.add(found)
    assert len(kept.findings) <= 3 * 64 + 16
    assert len(kept.clean) <= 64
