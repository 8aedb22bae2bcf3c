"""The interval of a share without scipy is that of scipy."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathbudget.analysis.proportion import clopper_pearson
from pathbudget.analysis.quantiles import loss_interval


@given(st.data())
@settings(max_examples=60)
def test_it_is_the_interval_of_the_library(data: st.DataObject) -> None:
    n = data.draw(st.integers(0, 20_000))
    hits = data.draw(st.integers(0, n))
    confidence = data.draw(st.sampled_from([0.8, 0.95, 0.99, 0.999]))
    assert clopper_pearson(hits, n, confidence) == pytest.approx(
        loss_interval(hits, n, confidence), abs=1e-9
    )
