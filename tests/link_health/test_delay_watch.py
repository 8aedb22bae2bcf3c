"""Members whose round trips grow: told once, and only of what has changed beside the others."""

import numpy as np
import pytest
from tests.link_health.paths import INTERVAL, MS, SERIES, START, sample

from pathbudget.analysis.routes.delay_watch import PER_FLOW, DelayWatch
from pathbudget.analysis.routes.incidents import join
from pathbudget.analysis.routes.level_shifts import BATCH, level_shifts
from pathbudget.analysis.routes.member_watch import MemberWatch
from pathbudget.analysis.routes.model import Cause, Incident
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
