"""Series of a vantage that send together: at shared ticks, and nothing lost or doubled by it."""

import itertools
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pathbudget.agents.campaign.campaign_file import Campaign
from pathbudget.agents.campaign.plan import VantagePlan, due_shots, rhythm_text
from pathbudget.agents.campaign.schedule import Ticks, coalesced
from pathbudget.probes.errors import ConfigError

Load = Callable[..., Campaign]

REGION = 'region = "dallas"'
MS = 1_000_000


def coalescing(interval: str, *changes: tuple[str, str]) -> tuple[tuple[str, str], ...]:
    return ((REGION, f'{REGION}\ncoalesce = "{interval}"'), *changes)


def sent(plan: VantagePlan, probe: str) -> list[list[int]]:
    """Times of each series of a probe."""
    times: dict[int, list[int]] = {
        index: [] for index, series in enumerate(plan.series) if series.probe == probe
    }
    for offset, series, _ in due_shots(plan):
        if series in times:
            times[series].append(offset)
    return list(times.values())


@given(
    st.lists(st.integers(0, 10_000), max_size=60).map(sorted),
    st.integers(1, 500),
    st.integers(0, 2**64 - 1),
)
def test_each_instant_goes_to_a_tick_of_its_own(
    instants: list[int], interval_ns: int, key: int
) -> None:
    ticks = Ticks(interval_ns, key)
    numbers = [time // interval_ns for time in coalesced(iter(instants), ticks)]
    assert len(numbers) == len(instants)
    assert all(before < after for before, after in itertools.pairwise(numbers))
    wanted = [instant // interval_ns for instant in instants]
    assert all(number >= least for number, least in zip(numbers, wanted, strict=True))
    alone = [n for n, least in zip(numbers, wanted, strict=True) if wanted.count(least) == 1]
    if len(alone) == len(wanted):  # nothing was in the way
        assert numbers == wanted


def test_the_phase_of_ticks_is_any_and_another_each_time() -> None:
    """Else what repeats with the interval, frames of a radio, is seen at one point of it."""
    ticks = Ticks(100, key=7)
    phases = [ticks.at(number) - number * 100 for number in range(10_000)]
    counts = [sum(phase // 10 == tenth for phase in phases) for tenth in range(10)]
    assert min(phases) >= 0
    assert max(phases) < 100
    assert sum((count - 1000) ** 2 / 1000 for count in counts) < 27.9  # chi square, 9, p = 0.001
    follows = sum(a < 50 and b < 50 for a, b in itertools.pairwise(phases))
    assert follows == pytest.approx(2500, abs=150)


def test_series_of_a_vantage_share_their_ticks(load: Load) -> None:
    plan = load(*coalescing("10ms")).plan.vantages[0]
    ticks = {series.coalesce_ns for series in plan.series}
    assert ticks == {10 * MS}
    of_tick: dict[int, set[int]] = {}
    for offset, _, _ in due_shots(plan):
        of_tick.setdefault(offset // (10 * MS), set()).add(offset)
    assert {len(times) for times in of_tick.values()} == {1}
    assert len(of_tick) < sum(1 for _ in due_shots(plan))


def test_instants_move_by_less_than_an_interval_and_none_is_lost(load: Load) -> None:
    before, after = load().plan.vantages[0], load(*coalescing("10ms")).plan.vantages[0]
    for probe in ("icmp", "tls"):
        for plain, moved in zip(sent(before, probe), sent(after, probe), strict=True):
            assert len(plain) == len(moved)
            assert len(moved) > 5
            for one, other in zip(plain, moved, strict=True):
                assert abs(one - other) < 20 * MS  # another may have been at its tick already


def test_another_vantage_or_seed_has_other_ticks(load: Load) -> None:
    plan = load(*coalescing("10ms")).plan.vantages[0]
    other = load(*coalescing("10ms"), seed=8).plan.vantages[0]
    renamed = load(*coalescing("10ms", ("office", "attic"))).plan.vantages[0]
    times = [{offset for offset, _, _ in due_shots(one)} for one in (plan, other, renamed)]
    assert not times[0] & times[1]
    assert not times[0] & times[2]
    assert times[0] == {offset for offset, _, _ in due_shots(plan)}


def test_frequent_series_keep_their_own_instants(load: Load) -> None:
    """250 ms is less than twenty times 20 ms, 1 s is more."""
    before, after = load().plan.vantages[0], load(*coalescing("20ms")).plan.vantages[0]
    assert sent(before, "icmp") == sent(after, "icmp")
    assert sent(before, "tls") != sent(after, "tls")
    assert [rhythm_text(series) for series in after.series if series.probe == "icmp"] == (
        ["poisson 250ms"] * 3
    )


def test_the_schedule_says_it_and_the_plan_keeps_it(load: Load) -> None:
    plan = load(*coalescing("10ms")).plan.vantages[0]
    assert rhythm_text(plan.series[0]) == "poisson 250ms coalesce 10ms"
    again = msgspec.json.decode(msgspec.json.encode(plan), type=VantagePlan)
    assert again == plan


def test_trains_leave_whole_at_their_tick(load: Load) -> None:
    train = ('kind = "icmp"', 'kind = "icmp"\ntrain = 3\ntrain_gap = "100us"')
    plan = load(*coalescing("10ms", train)).plan.vantages[0]
    ticks = {offset for times in sent(plan, "tls") for offset in times}
    shared = 0
    for times in sent(plan, "icmp"):
        assert len(times) % 3 == 0
        starts = sorted(times)[::3]
        assert [time for start in starts for time in (start, start + 100_000, start + 200_000)] == (
            sorted(times)
        )
        shared += len(ticks & set(starts))
    assert shared
    assert rhythm_text(plan.series[0]) == "poisson 250ms train 3 gap 100us coalesce 10ms"


def test_a_run_that_goes_on_sends_the_rest(load: Load) -> None:
    plan = load(*coalescing("10ms")).plan.vantages[0]
    shots = list(due_shots(plan))
    cut = shots[len(shots) // 2][0]
    rest = list(due_shots(msgspec.structs.replace(plan, resume_at_ns=cut)))
    assert rest == [shot for shot in shots if shot[0] >= cut]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ('"500us"', "out of range"),
        ('"2s"', "out of range"),
        ('"soon"', "no duration"),
        ("50", "no duration"),
    ],
)
def test_each_fault_names_its_place(load: Load, given: str, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load((REGION, f"{REGION}\ncoalesce = {given}"))
    assert [(fault.where, problem in fault.problem) for fault in caught.value.faults] == [
        ("vantage[0].coalesce", True)
    ]


def test_too_many_that_would_leave_together_are_refused(load: Load) -> None:
    """One echo in 2 s of each series, 100 ms together: a twentieth of the series at a tick."""

    def with_series(count: int) -> Campaign:
        hosts = "".join(
            f'[[site.target]]\nname = "t{n}"\nhost = "10.9.{n // 250}.{n % 250}"\n'
            for n in range(count - 3)
        )
        last = 'host = "edge.cermak.test"\n'
        changes = [(last, last + hosts), ('interval = "250ms"', 'interval = "2s"')]
        only = ('mode = "cold"', 'mode = "cold"\nsites = ["stemmons"]\ninterval = "100s"')
        return load(*coalescing("100ms", *changes, ('interval = "1s"\n', ""), only))

    assert len(with_series(315).plan.vantages[0].series) > 315
    with pytest.raises(ConfigError) as caught:
        with_series(350)
    (fault,) = caught.value.faults
    assert fault.where == "vantage[0].coalesce"
    assert fault.problem == "18 probes would leave together, and wait for one another"
