"""Arithmetic of chunks, on numbers worked out by hand and on paths whose truth is known."""

import random

import pytest
from tests.token_stream.links import MS, plain, sends

from pathbudget.probes.stream import chunk_times as times


def test_the_numbers_of_a_stream_worked_out_by_hand() -> None:
    sent = [0, 10, 20, 30, 40]
    came = [105, 115, 140, 141, 146]
    gaps = times.gaps_of(came)
    assert gaps == [10, 25, 1, 5]
    variations = times.variations_of(gaps, times.gaps_of(sent))
    assert variations == [0, 15, -9, -5]
    assert times.pdv_of(variations) == [0, 0, 15, 6, 1]
    assert times.pdv_of([-5, 2]) == [5, 0, 2], "the fastest need not be the first"
    assert times.stalls_in(gaps, 12) == 1
    assert times.burst_index_of([MS, MS - 1, 3 * MS, 0]) == 0.5
    assert times.burst_index_of([]) == 0.0


@pytest.mark.parametrize(
    ("p", "expected"), [(0.5, 50), (0.95, 95), (0.99, 99), (0.999, 100), (1.0, 100), (0.0, 1)]
)
def test_a_quantile_is_the_smallest_value_that_reaches_it(p: float, expected: int) -> None:
    assert times.quantile_of(range(100, 0, -1), p) == expected


def test_no_values_have_no_quantile() -> None:
    with pytest.raises(ValueError, match="no quantile"):
        times.quantile_of([], 0.5)


def test_the_play_out_buffer_leaves_that_share_too_late() -> None:
    rng = random.Random(3)
    pdv = [round(rng.expovariate(1 / 5e6)) for _ in range(5_000)]
    buffer_ns = times.playout_buffer_of(pdv, 0.02)
    late = sum(value > buffer_ns for value in pdv) / len(pdv)
    assert late <= 0.02
    assert sum(value >= buffer_ns for value in pdv) / len(pdv) > 0.02


def test_both_ends_of_a_send_gap_are_of_one_clock() -> None:
    user = [100, 200, 300]
    assert times.send_gap_of(1, user, {0: 107, 1: 203}) == (96, True)
    assert times.send_gap_of(2, user, {0: 107, 1: 203}) == (100, False)
    assert times.send_gap_of(1, user, {}) == (100, False)


def test_variation_and_pdv_are_those_of_the_path_whatever_the_clocks_say() -> None:
    rng = random.Random(11)
    sent = sends(rng, 2_000, 33 * MS)
    came = plain(variation_ns=2 * MS)(rng, sent)
    truth = [there - here for here, there in zip(sent, came, strict=True)]
    offset = 7_000 * MS  # of the other clock
    gaps = times.gaps_of(came)
    send_gaps = times.gaps_of([at + offset for at in sent])
    pdv = times.pdv_of(times.variations_of(gaps, send_gaps))
    assert pdv == [delay - min(truth) for delay in truth]
    # Exponential of mean 2 ms above its minimum: p95 is 6 ms.
    assert times.quantile_of(pdv, 0.95) == pytest.approx(6 * MS, rel=0.15)


def test_stalls_are_those_of_the_path_and_of_the_sender_apart() -> None:
    rng = random.Random(2)
    sent = sends(rng, 400, 30 * MS, late_ns=1)
    sent = [at + (500 * MS if n >= 100 else 0) for n, at in enumerate(sent)]
    came = [at + 20 * MS for at in sent]
    came = [at + 300 * MS if n == 200 else at for n, at in enumerate(came)]
    limit = 130 * MS
    assert times.stalls_in(times.gaps_of(came), limit) == 2
    assert times.stalls_in(times.gaps_of(sent), limit) == 1
