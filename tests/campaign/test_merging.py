"""The one queue of all series: the order of a plain merge, for ever, in bounded memory."""

import heapq
import itertools
import tracemalloc
from collections.abc import Iterator

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from pathbudget.agents.campaign.merging import AHEAD, merge
from pathbudget.agents.campaign.plan import SeriesPlan, VantagePlan, due_shots
from pathbudget.agents.campaign.schedule import ScheduleKind, send_times, series_rng
from pathbudget.probes.record import Target, Vantage

SECOND = 1_000_000_000

Streams = list[list[int]]


def plainly_merged(streams: Streams) -> list[tuple[int, int, int]]:
    numbered = (
        [(time, stream, number) for number, time in enumerate(times)]
        for stream, times in enumerate(streams)
    )
    return list(heapq.merge(*numbered))


@given(
    st.lists(st.lists(st.integers(0, 500), max_size=3 * AHEAD).map(sorted), max_size=8),
    st.floats(1e-3, 1e4),
)
def test_the_order_is_that_of_a_plain_merge_whatever_the_windows(
    streams: Streams, mean_gap_ns: float
) -> None:
    merged = list(merge([iter(times) for times in streams], mean_gap_ns))
    assert merged == plainly_merged(streams)


def plan_of(count: int, duration_ns: int | None, **changes: object) -> VantagePlan:
    series = tuple(
        SeriesPlan(
            target=Target(name=str(number), host="192.0.2.1"),
            probe="icmp",
            kind="icmp",
            interval_ns=SECOND * (1 + number % 7),
            timeout_ns=SECOND,
            schedule=ScheduleKind.PERIODIC if number % 5 == 0 else ScheduleKind.POISSON,
        )
        for number in range(count)
    )
    plan = VantagePlan(
        vantage=Vantage(name="here", region="dallas"),
        series=series,
        campaign="test",
        run_id="run",
        seed=1,
        duration_ns=duration_ns,
    )
    return msgspec.structs.replace(plan, **changes)


def times_as_ever(plan: VantagePlan, index: int) -> list[int]:
    """As drawn by the library's own exponential gaps, one series at a time."""
    series = plan.series[index]
    assert plan.duration_ns is not None
    rng = series_rng(plan.seed, plan.vantage.name, *series.key)
    if series.schedule is ScheduleKind.PERIODIC:
        first = int(rng.random() * series.interval_ns)
        return list(range(first, plan.duration_ns, series.interval_ns))
    times: list[int] = []
    offset = 0.0
    while True:
        offset += min(rng.expovariate(1.0), 10.0) * series.interval_ns
        if offset >= plan.duration_ns:
            return times
        times.append(int(offset))


def test_all_sends_of_a_plan_are_those_of_its_series_in_order() -> None:
    plan = plan_of(40, 60 * SECOND)
    streams = [times_as_ever(plan, index) for index in range(40)]
    assert list(due_shots(plan)) == plainly_merged(streams)


def test_what_an_earlier_run_has_sent_is_left_out_and_numbers_go_on() -> None:
    plan = plan_of(40, 60 * SECOND)
    whole = list(due_shots(plan))
    cut = whole[len(whole) // 2][0]
    rest = list(due_shots(msgspec.structs.replace(plan, resume_at_ns=cut)))
    assert rest == [shot for shot in whole if shot[0] >= cut]


def test_a_plan_without_series_has_no_sends() -> None:
    assert list(due_shots(plan_of(0, None))) == []


def test_the_send_times_of_a_seed_never_change() -> None:
    """Written down, so that a plan can be repeated by a later version."""
    times = send_times(ScheduleKind.POISSON, SECOND, None, series_rng(7, "dallas", "icmp"))
    assert list(itertools.islice(times, 4)) == [215799719, 1651025602, 3010175430, 4466573833]
    times = send_times(ScheduleKind.PERIODIC, SECOND, None, series_rng(7, "dallas", "icmp"))
    assert list(itertools.islice(times, 2)) == [194103309, 1194103309]


def test_a_month_without_end_takes_no_more_memory_than_its_beginning() -> None:
    shots = due_shots(plan_of(50, None))
    drop(itertools.islice(shots, 5_000))
    tracemalloc.start()
    drop(itertools.islice(shots, 5_000))
    before, _ = tracemalloc.get_traced_memory()
    drop(itertools.islice(shots, 60_000))
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert after - before < 20_000  # 60,000 shots of 100 bytes would be 6 MB


def drop(items: Iterator[object]) -> None:
    for _ in items:
        pass


def test_a_plan_with_an_end_has_the_same_sends_up_to_there() -> None:
    bounded = list(due_shots(plan_of(30, 20 * SECOND)))
    endless = itertools.islice(due_shots(plan_of(30, None)), len(bounded))
    assert list(endless) == bounded
