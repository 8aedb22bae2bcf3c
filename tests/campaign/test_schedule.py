"""Send times: fixed by the seed, with the statistics that their names promise."""

import itertools
import math
import random

import pytest

from pathbudget.agents.campaign.schedule import (
    TRUNCATION,
    ScheduleKind,
    send_times,
    series_rng,
)

SECOND = 1_000_000_000


def gaps(times: list[int]) -> list[int]:
    return [after - before for before, after in zip([0, *times], times, strict=False)]


def test_poisson_gaps_have_mean_and_standard_deviation_of_the_interval() -> None:
    times = list(send_times(ScheduleKind.POISSON, SECOND, 20_000 * SECOND, random.Random(1)))
    drawn = gaps(times)
    mean = sum(drawn) / len(drawn)
    spread = math.sqrt(sum((gap - mean) ** 2 for gap in drawn) / len(drawn))
    assert mean == pytest.approx(SECOND, rel=0.03)
    assert spread == pytest.approx(SECOND, rel=0.05)
    assert max(drawn) <= TRUNCATION * SECOND


def test_poisson_counts_per_second_have_the_variance_of_their_mean() -> None:
    """What makes sampling unbiased (PASTA) is that the counts are Poisson, not merely the mean."""
    duration = 5_000
    counts = [0] * duration
    for time in send_times(ScheduleKind.POISSON, SECOND // 4, duration * SECOND, random.Random(2)):
        counts[time // SECOND] += 1
    mean = sum(counts) / duration
    variance = sum((count - mean) ** 2 for count in counts) / duration
    assert variance / mean == pytest.approx(1.0, abs=0.1)


def test_periodic_starts_at_a_random_phase_and_keeps_it() -> None:
    starts = set[int]()
    for seed in range(20):
        times = list(send_times(ScheduleKind.PERIODIC, 1000, 10_000, random.Random(seed)))
        assert len(times) == 10
        assert {after - before for before, after in itertools.pairwise(times)} == {1000}
        assert 0 <= times[0] < 1000
        starts.add(times[0])
    assert len(starts) > 10


def test_the_same_seed_and_series_give_the_same_times_and_another_gives_others() -> None:
    def times(seed: int, *key: str) -> list[int]:
        return list(send_times(ScheduleKind.POISSON, SECOND, 50 * SECOND, series_rng(seed, *key)))

    assert times(7, "a", "icmp") == times(7, "a", "icmp")
    assert times(7, "a", "icmp") != times(8, "a", "icmp")
    assert times(7, "a", "icmp") != times(7, "a", "tcp")
    assert times(7, "a", "bc") != times(7, "ab", "c")


def test_an_interval_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="longer than nothing"):
        send_times(ScheduleKind.POISSON, 0, SECOND, random.Random(1))
