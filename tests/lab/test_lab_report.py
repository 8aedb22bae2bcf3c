"""The lab's statement about itself: quantiles out of bins, differences, its sentence."""

import random
from typing import Any

import msgspec
import pytest

from pathbudget.agents.lab.report import (
    BIN_NS,
    BINS,
    DirectionCount,
    LabReport,
    Stall,
    bin_of,
    upper_edge_us,
)


def report_of(errors: list[int], **more: Any) -> LabReport:
    bins = [0] * BINS
    for error in errors:
        bins[bin_of(error)] += 1
    counts = DirectionCount("a", "b", 10, 8, 1, 1, 1000)
    return LabReport("fifo", tuple(bins), max(errors, default=0), (counts,), **more)


@pytest.mark.parametrize(
    "error", [-(10**9), -1, 0, 1, 1023, 1024, 1_900_000, 5 * 10**6, 10**9, 10**15]
)
def test_every_error_has_a_bin(error: int) -> None:
    assert 0 <= bin_of(error) < BINS


def test_bins_hold_what_their_edges_say() -> None:
    drawn = random.Random(5)
    for _ in range(3000):
        error = drawn.choice((drawn.randrange(-262_144, 10**6), drawn.randrange(10**6, 10**9)))
        index = bin_of(error)
        assert upper_edge_us(index - 1) * 1000 <= error + 1e-6 if index else True
        if index < BINS - 1:
            assert error < upper_edge_us(index) * 1000 + 1e-6


def test_quantiles_are_right_to_one_bin() -> None:
    drawn = random.Random(3)
    errors = [drawn.randrange(-20_000, 200_000) for _ in range(5000)]
    report = report_of(errors)
    for share in (0.01, 0.5, 0.95, 0.99, 1.0):
        exact = sorted(errors)[max(0, round(share * 5000) - 1)] / 1000
        assert exact - 0.001 <= report.error_us(share) <= exact + BIN_NS / 1000 + 0.5
    assert report.n == 5000


def test_an_empty_report_is_zero() -> None:
    assert report_of([]).p99_us == 0


def test_a_difference_has_the_stalls_between() -> None:
    first, second = Stall(1, 2, 10, 5, 7), Stall(8, 9, 10, 3, 4)
    early, late = report_of([], stalls=(first,)), report_of([], stalls=(first, second))
    assert late.since(early).stalls == (second,)


def test_a_difference_is_what_happened_between() -> None:
    first = report_of([1000] * 5)
    second = report_of([1000] * 5 + [90_000] * 3, unsent=2)
    between = second.since(first)
    assert between.n == 3
    assert between.p50_us == pytest.approx(91, abs=1)
    assert between.unsent == 2
    assert between.forwarded == 0


def test_the_sentence_tells_what_spoils_the_figures() -> None:
    calm = report_of([3000])
    assert "p50 3 us" in calm.sentence()
    assert "lost by the lab itself" not in calm.sentence()
    assert "busy" not in calm.sentence()
    assert "this host was busy" in report_of([3000] * 90 + [5_000_000] * 10).sentence()
    spoilt = report_of([3000], ring_drops=3, clock_steps=1).sentence()
    assert "3 lost by the lab itself" in spoilt
    assert "1 clock steps" in spoilt
    assert str(calm) == calm.sentence()


def test_it_survives_being_sent() -> None:
    report = report_of([1, 2, 3])
    assert msgspec.json.decode(msgspec.json.encode(report), type=LabReport) == report
