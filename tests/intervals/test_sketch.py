"""Sketches: error within what is stated, merging exact, bytes read back."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathbudget.analysis.intervals.sketch import Sketch
from pathbudget.analysis.quantiles import estimate_quantile

TIMES = st.lists(st.floats(1.0, 1e13) | st.just(0.0) | st.just(math.inf), min_size=1, max_size=60)


def sketch_of(values: list[float], error: float = 0.01) -> Sketch:
    made = Sketch(error)
    made.add(values)
    return made


@settings(max_examples=40, deadline=None)
@given(TIMES, st.floats(0.01, 0.99), st.sampled_from([0.005, 0.01, 0.05]))
def test_quantiles_are_within_the_stated_error(values: list[float], p: float, error: float) -> None:
    exact = sorted(values)[max(1, math.ceil(p * len(values) - 1e-9)) - 1]
    found = sketch_of(values, error).quantile(p)
    assert found == exact if exact in (0.0, math.inf) else abs(found / exact - 1) <= error + 1e-9


@settings(max_examples=30, deadline=None)
@given(TIMES, TIMES)
def test_merged_sketches_are_the_sketch_of_all(first: list[float], second: list[float]) -> None:
    merged = sketch_of(first)
    merged.merge(sketch_of(second))
    whole, other_way = sketch_of([*first, *second]), sketch_of(second)
    other_way.merge(sketch_of(first))
    assert merged.to_bytes() == whole.to_bytes() == other_way.to_bytes()


@settings(max_examples=30, deadline=None)
@given(TIMES)
def test_bytes_are_read_back(values: list[float]) -> None:
    made = sketch_of(values)
    again = Sketch.from_bytes(made.to_bytes())
    assert (again.n, again.losses, again.zeros) == (made.n, made.losses, made.zeros)
    assert again.quantile(0.5) == made.quantile(0.5)


def test_the_interval_holds_that_of_the_samples() -> None:
    values = np.random.default_rng(41).lognormal(17, 0.4, 3000)
    exact = estimate_quantile(np.sort(values), 0.95, n_effective=800.0)
    made = Sketch()
    made.add(values)
    found = made.estimate(0.95, n_effective=800.0)
    assert found.low <= exact.low
    assert found.high >= exact.high
    assert found.high < 1.021 * exact.high


@pytest.mark.parametrize("data", [b"", b"\xc0", b"junk", Sketch().to_bytes()[:-1]])
def test_other_bytes_are_no_sketch(data: bytes) -> None:
    with pytest.raises(ValueError, match="no sketch"):
        Sketch.from_bytes(data)


def test_what_it_refuses() -> None:
    with pytest.raises(ValueError, match="relative error"):
        Sketch(1.0)
    with pytest.raises(ValueError, match="do not merge"):
        Sketch(0.01).merge(Sketch(0.02))
    for wrong in (-1.0, math.nan):
        with pytest.raises(ValueError, match="0 or more"):
            Sketch().add(wrong)
    with pytest.raises(ValueError, match="no samples"):
        Sketch().quantile(0.5)
