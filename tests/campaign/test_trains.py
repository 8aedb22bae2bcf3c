"""Trains of packets: when they leave, how they are numbered, counted and written down."""

import itertools
from collections.abc import Callable
from io import StringIO

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from pathbudget.agents.campaign.campaign_file import Campaign
from pathbudget.agents.campaign.explain import explain
from pathbudget.agents.campaign.limits import planned_cost
from pathbudget.agents.campaign.plan import due_shots, schedule_text
from pathbudget.agents.campaign.schedule import Train, numbered_trains, train_times
from pathbudget.probes.errors import ConfigError
from pathbudget.probes.table import probe_table

Load = Callable[..., Campaign]

ICMP = 'kind = "icmp"'


def with_train(packets: int, gap: str = "0s") -> tuple[str, str]:
    return ICMP, f'{ICMP}\ntrain = {packets}\ntrain_gap = "{gap}"'


def test_each_instant_sends_the_whole_train_with_consecutive_numbers(load: Load) -> None:
    single, train = load().plan.vantages[0], load(with_train(10, "100us")).plan.vantages[0]
    index = next(i for i, series in enumerate(train.series) if series.probe == "icmp")
    instants = [offset for offset, series, _ in due_shots(single) if series == index]
    sent = [(offset, seq) for offset, series, seq in due_shots(train) if series == index]
    assert [seq for _, seq in sent] == list(range(10 * len(instants)))
    starts = [offset for offset, seq in sent if seq % 10 == 0]
    assert starts == instants  # a train changes no instant of the schedule
    for first, number in zip(starts, itertools.count(0, 10), strict=False):
        assert [offset - first for offset, _ in sent[number : number + 10]] == [
            place * 100_000 for place in range(10)
        ]


def test_a_train_back_to_back_is_due_at_one_time(load: Load) -> None:
    plan = load(with_train(3)).plan.vantages[0]
    for _, train in itertools.groupby(due_shots(plan), key=lambda shot: shot[:2]):
        numbers = [seq for _, _, seq in train]
        if plan.series[0].train == 3 and len(numbers) > 1:
            assert numbers == [numbers[0], numbers[0] + 1, numbers[0] + 2]


@given(
    st.lists(st.integers(0, 1000), max_size=40).map(sorted),
    st.integers(1, 6),
    st.integers(0, 200),
)
def test_trains_ascend_and_none_of_their_packets_is_lost(
    instants: list[int], packets: int, gap_ns: int
) -> None:
    sent = list(train_times(iter(instants), Train(packets, gap_ns)))
    expected = [instant + place * gap_ns for instant in instants for place in range(packets)]
    assert sent == sorted(expected)


def test_schedule_says_the_train(load: Load) -> None:
    series = load(with_train(10)).plan.vantages[0].series[0]
    assert schedule_text(series, 7) == "poisson 250ms train 10 gap 0s seed 7"
    series = load(with_train(2, "100us")).plan.vantages[0].series[0]
    assert schedule_text(series, 7) == "poisson 250ms train 2 gap 100us seed 7"
    assert schedule_text(load().plan.vantages[0].series[0], 7) == "poisson 250ms seed 7"


def test_limits_and_the_plan_in_words_count_every_packet(load: Load) -> None:
    table = probe_table()
    sites = (ICMP, f'{ICMP}\nsites = ["cermak"]')
    one = planned_cost(load(sites).plan, table)
    ten = planned_cost(load((sites[0], f"{sites[1]}\ntrain = 10")).plan, table)
    echoes = 10 / 0.25
    assert ten.shots - one.shots == pytest.approx(9 * echoes)
    assert ten.packets - one.packets == pytest.approx(9 * echoes * 2)
    assert ten.packets_of_a_train == 20
    text = StringIO()
    explain(load(with_train(10)).plan, table, Console(file=text, width=100))
    assert "poisson 250ms train 10 gap 0s" in text.getvalue()
    assert "240.0" in text.getvalue()  # 3 hosts x 4 a second x 10 packets x 2 ways


@pytest.mark.parametrize(
    ("train", "where", "problem"),
    [
        ("train = 0", "probe[0].train", "out of range"),
        ("train = 2.5", "probe[0].train", "fraction"),
        ("train = 1001", "probe[0].train", "out of range"),
        ('train = "ten"', "probe[0].train", "no number"),
        ('train_gap = "1ms"', "probe[0].train_gap", "no train"),
        ('train = 2\ntrain_gap = "soon"', "probe[0].train_gap", "no duration"),
        ('train = 6\ntrain_gap = "50ms"', "probe[0].train_gap", "as long as the interval"),
        ("train = 200", "limits.packets_per_second", "would send"),
    ],
)
def test_each_fault_of_a_train_names_its_place(
    load: Load, train: str, where: str, problem: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        load((ICMP, f"{ICMP}\n{train}"))
    found = [fault for fault in caught.value.faults if fault.where.startswith(where)]
    assert found, caught.value.faults
    assert problem in found[0].problem


def test_a_train_that_bursts_over_the_limit_of_a_second_is_refused(load: Load) -> None:
    """On average it would pass: 600 packets every 20 s."""
    with pytest.raises(ConfigError) as caught:
        load(('interval = "250ms"', 'interval = "20s"\ntrain = 300'))
    problems = [fault.problem for fault in caught.value.faults]
    assert problems == ["a train puts 600 packets on the wire within a second"]


def test_the_number_of_a_packet_is_its_train_and_place_even_where_trains_overlap(
    load: Load,
) -> None:
    """Trains of 180 ms at random instants, 250 ms apart on average."""
    single, train = load().plan.vantages[0], load(with_train(4, "60ms")).plan.vantages[0]
    index = next(i for i, series in enumerate(train.series) if series.probe == "icmp")
    instants = [offset for offset, series, _ in due_shots(single) if series == index]
    sent = [(offset, seq) for offset, series, seq in due_shots(train) if series == index]
    for offset, seq in sent:
        assert offset == instants[seq // 4] + seq % 4 * 60_000_000
    assert sorted(seq for _, seq in sent) == list(range(4 * len(instants)))
    assert [seq for _, seq in sent] != sorted(seq for _, seq in sent)  # some did overlap
    others = [shot for shot in due_shots(train) if train.series[shot[1]].train == 1]
    assert others == [shot for shot in due_shots(single) if single.series[shot[1]].probe != "icmp"]


def test_a_run_that_goes_on_among_overlapping_trains_keeps_their_numbers(load: Load) -> None:
    plan = load(with_train(4, "60ms")).plan.vantages[0]
    shots = list(due_shots(plan))
    assert shots == sorted(shots)
    for cut, _, _ in shots[:: len(shots) // 20]:
        rest = due_shots(msgspec.structs.replace(plan, resume_at_ns=cut))
        assert list(rest) == [shot for shot in shots if shot[0] >= cut]


@given(
    st.lists(st.integers(0, 1000), max_size=40).map(sorted),
    st.integers(1, 6),
    st.integers(0, 200),
)
def test_every_place_of_every_train_has_one_packet_at_its_time(
    instants: list[int], packets: int, gap_ns: int
) -> None:
    found = list(numbered_trains(iter(instants), Train(packets, gap_ns)))
    assert found == sorted(
        (instant + place * gap_ns, index * packets + place)
        for index, instant in enumerate(instants)
        for place in range(packets)
    )
