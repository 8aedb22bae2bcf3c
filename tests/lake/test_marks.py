"""Counting bits gives what counting one by one gives."""

import numpy as np
import pytest

from pathbudget.agents.lake import counted
from pathbudget.agents.lake.counted import Marks

SIZES = (1, 2, 63, 64, 65, 127, 128, 1000)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("share", [0.0, 0.5, 0.97, 1.0])
def test_marks_are_counted(n: int, share: float) -> None:
    marked = np.random.default_rng(n).random(n) < share
    marks = Marks(marked)
    assert marks.total == marked.sum()
    assert marks.pairs() == (marked[1:] & marked[:-1]).sum()
    assert marks.before(np.arange(n + 1)).tolist() == [0, *np.cumsum(marked).tolist()]


def test_marks_are_counted_without_a_count_of_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    marked = np.random.default_rng(1).random(1000) < 0.8
    expected = Marks(marked)
    monkeypatch.delattr(np, "bitwise_count", raising=False)
    places = np.arange(1001)
    found = counted.Marks(marked)
    assert found.pairs() == expected.pairs()
    assert found.before(places).tolist() == expected.before(places).tolist()
