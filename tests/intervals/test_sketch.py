"""Sketches: error within what is stated, merging exact, bytes read back."""

import math

import msgspec
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


def test_what_it_is_asked_must_make_sense() -> None:
    sketch = Sketch()
    sketch.add([1e6, 2e6])
    for p in (-0.1, 1.1, math.nan, math.inf):
        with pytest.raises(ValueError, match="expected 0 to 1"):
            sketch.quantile(p)
    for p, confidence in ((0.0, 0.95), (1.0, 0.95), (math.nan, 0.95), (0.5, 0.0), (0.5, 1.0)):
        with pytest.raises(ValueError, match="above 0 and below 1"):
            sketch.estimate(p, confidence)
    for worth in (0.0, -1.0, math.nan):
        with pytest.raises(ValueError, match="samples worth"):
            sketch.estimate(0.5, n_effective=worth)
    for error in (1e-12, math.nan):
        with pytest.raises(ValueError, match="relative error"):
            Sketch(error)
    for times in (1e300, 10**400):
        with pytest.raises(ValueError, match="up to 2"):
            sketch.add(times)
    assert sketch.n == 2


@given(st.integers(0, 2**31), st.integers(1, 3))
@settings(max_examples=40, deadline=None)
def test_altered_bytes_are_refused_or_are_a_sketch(seed: int, changes: int) -> None:
    """Neither memory without end nor numbers beyond all bounds."""
    rng = np.random.default_rng(seed)
    sketch = Sketch()
    sketch.add(np.array([2e6, 3e6, 0.0, np.inf]))
    data = bytearray(sketch.to_bytes())
    for _ in range(changes):
        data[rng.integers(len(data))] = rng.integers(256)
    try:
        found = Sketch.from_bytes(bytes(data))
    except ValueError:
        return
    found.add(5e6)
    assert found.quantile(0.99) >= 0
    assert found.estimate(0.5).low <= found.quantile(0.5)


@pytest.mark.parametrize(
    ("first", "counts"), [(60_000, [1]), (-5, [1]), (0, [2**62, 2**62])], ids=["far", "low", "many"]
)
def test_buckets_of_no_time_are_refused(first: int, counts: list[int]) -> None:
    packed = msgspec.msgpack.encode([0.01, first, counts, 0, 0])
    with pytest.raises(ValueError, match="this is no sketch"):
        Sketch.from_bytes(packed)
