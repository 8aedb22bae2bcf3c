"""Rows in order of time are those of a full sort, ties and all."""

import numpy as np
import pytest

from pathbudget.analysis.track import Track, merged, order_in_time


@pytest.mark.parametrize("span", [1, 3, 40, 10**12])
@pytest.mark.parametrize("n", [0, 1, 2, 50, 400])
def test_ties_are_broken_by_the_keys(span: int, n: int) -> None:
    rng = np.random.default_rng([span, n])
    sent, first, second = rng.integers(0, span, n), rng.integers(0, 3, n), rng.integers(0, 2, n)
    expected = np.lexsort((second, first, sent))
    found = order_in_time(sent, lambda places: (first[places], second[places]))
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("span", [5, 10**12])
def test_tracks_are_merged_by_time_and_vantage(span: int) -> None:
    rng = np.random.default_rng(span)
    tracks = [
        Track(np.sort(rng.integers(0, span, n)), rng.random(n), rng.integers(0, 3, n))
        for n in (7, 0, 40)
    ]
    whole = merged(tracks)
    rows = [
        row
        for one in tracks
        for row in zip(one.sent_unix_ns, one.vantages, one.values_ns, strict=True)
    ]
    expected = sorted(rows, key=lambda row: row[:2])
    assert list(zip(whole.sent_unix_ns, whole.vantages, whole.values_ns, strict=True)) == expected
