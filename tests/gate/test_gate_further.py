"""How many more samples would decide: an estimate that behaves as it should."""

import math

import pytest
from tests.gate.conftest import make_line, make_of_lines

from pathbudget.analysis.gate.checks import Numbers
from pathbudget.analysis.gate.further import fewest, further_samples
from pathbudget.analysis.gate.outcome import check
from pathbudget.analysis.gate.policy import Policy
from pathbudget.analysis.quantiles import fewest_samples
from pathbudget.analysis.report.selection import Sites


def numbers(
    value: float | None = 24.0,
    low: float | None = 22.0,
    high: float | None = 26.0,
    *,
    n: int = 100,
    worth: float = 100.0,
    losses: int = 0,
    floor: float = 0.0,
) -> Numbers:
    return Numbers(
        value_ms=value,
        low_ms=low,
        high_ms=high,
        n=n,
        n_effective=worth,
        losses=losses,
        noise_floor_ms=floor,
    )


def more(one: Numbers, allowance: float = 25.0, percentile: float = 95.0) -> int | None:
    return further_samples(one, allowance, percentile, 0.95)


def test_twice_as_near_needs_four_times_as_many() -> None:
    assert more(numbers(high=26.0)) == 300  # half the width: 400 in all
    assert more(numbers(high=28.0)) == 1500


def test_above_the_allowance_the_lower_side_counts() -> None:
    assert more(numbers(26.0, 24.0, 99.0)) == 300


def test_correlated_samples_count_as_they_are_worth() -> None:
    assert more(numbers(high=26.0, n=400, worth=100.0)) == 1200


def test_nearer_than_the_noise_floor_no_number_decides() -> None:
    assert more(numbers(floor=1.0)) is None
    assert more(numbers(value=25.0)) is None
    assert more(numbers(value=25.0 - 1e-6)) is None


@pytest.mark.parametrize(("percentile", "needed"), [(50.0, 6), (95.0, 72), (99.0, 368)])
def test_without_a_limit_as_many_as_the_percentile_needs(percentile: float, needed: int) -> None:
    assert fewest(percentile, 0.95) == needed == fewest_samples(percentile / 100)
    few = numbers(high=None, n=5, worth=5.0)
    wanted = more(few, percentile=percentile)
    assert wanted is not None
    assert needed - 5 <= wanted <= max(1.2 * needed, 2)


def test_losses_must_be_told_apart_from_what_the_percentile_bears() -> None:
    assert more(numbers(high=None, n=100, losses=5)) is None
    near = more(numbers(high=None, n=100, losses=4))
    far = more(numbers(high=None, n=100, losses=1))
    assert near is not None
    assert far is not None
    assert near > 1000 > far
    beyond = more(numbers(None, 20.0, None, n=100, losses=8))
    assert beyond is not None


def test_not_measured_needs_what_the_percentile_needs() -> None:
    assert more(numbers(None, None, None, n=0, worth=0.0)) == 72


def test_the_number_is_rounded_up_to_two_figures() -> None:
    wanted = more(numbers(23.9, 22.0, 26.04))
    assert wanted is not None
    assert wanted % 10 ** (int(math.log10(wanted)) - 1) == 0


def test_it_stands_in_the_sentence() -> None:
    evaluation = make_of_lines([make_line(24.0, 22.0, 26.0, n=100)])
    (one,) = check(evaluation, Policy(which=Sites.ALL)).checks
    assert one.further_samples == 300
    assert one.text.endswith("About 300 more samples would decide it.")
