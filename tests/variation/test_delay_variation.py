"""PDV, IPDV and interarrival jitter against their RFCs, by hand and by law."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pathbudget.analysis.delay_variation import (
    interarrival_jitter,
    interarrival_jitter_integers,
    ipdv,
    mean_deviation,
    p95_minus_p50,
    pdv,
    smoothed_rtt_variation,
)

LOST = float("inf")
Numbers = np.typing.NDArray[np.float64]


def values(*numbers: float) -> Numbers:
    return np.array(numbers, dtype=np.float64)


def test_pdv_is_the_delay_over_the_smallest_one() -> None:
    assert pdv(values(12, 10, LOST, 17)).tolist() == [2, 0, 7]


def test_pdv_of_nothing_is_nothing() -> None:
    assert len(pdv(values())) == 0
    assert len(pdv(values(LOST, LOST))) == 0


def test_ipdv_is_signed_and_of_packets_sent_one_after_another() -> None:
    assert ipdv(values(10, 13, 11)).tolist() == [3, -2]


def test_pitfall_03_a_loss_breaks_its_two_pairs_and_nothing_is_bridged() -> None:
    assert ipdv(values(10, LOST, 14, 15)).tolist() == [1]
    assert ipdv(values(10, LOST, 14)).tolist() == []


def test_pitfall_03_a_calm_path_of_three_packets_has_no_variation() -> None:
    assert ipdv(values(25, 25, 25)).tolist() == [0, 0]


@pytest.mark.parametrize("delays", [values(), values(9.3), values(LOST, 9.3)])
def test_pitfall_02_no_variation_before_two_samples(delays: Numbers) -> None:
    assert len(ipdv(delays)) == 0
    assert mean_deviation(delays) is None
    assert p95_minus_p50(delays) is None
    assert smoothed_rtt_variation(delays) is None
    arrived = delays[np.isfinite(delays)]
    assert interarrival_jitter(np.zeros(len(arrived)), arrived) is None


@pytest.mark.needs("data")
def test_pitfall_01_interarrival_jitter_in_integers_is_that_of_the_vectors(
    shared_data: Path,
) -> None:
    vectors = json.loads((shared_data / "vectors" / "rfc3550_jitter.json").read_text())
    clock, step = vectors["clock_hz"], vectors["rtp_timestamp_step"]
    assert vectors["cases"]
    for case in vectors["cases"]:
        first = case["arrival_s"][0]
        transits = [
            round((arrival - first) * clock) - i * step
            for i, arrival in enumerate(case["arrival_s"])
        ]
        assert interarrival_jitter_integers(transits) == case["jitter"]


def test_pitfall_01_the_float_form_is_not_sixteen_times_too_large() -> None:
    """RFC 3550: one difference of 16 ms moves the estimate to 1 ms."""
    assert interarrival_jitter(values(0, 20), values(50, 86)) == 1.0


def test_pitfall_06_the_transit_difference_is_signed_before_it_is_taken_absolute() -> None:
    """+8 and -8 are 8 each, whatever the transits are counted from."""
    assert interarrival_jitter_integers([-100, -92, -100]) == [0, 0, 0]
    assert interarrival_jitter_integers([-1000, -200, -1000]) == [0, 50, 96]


def test_the_integer_and_the_float_form_agree_to_their_rounding() -> None:
    rng = np.random.default_rng(7)
    transits = rng.integers(0, 400, 5000)
    sent = np.linspace(0.0, 160.0 * (5000 - 1), 5000)
    exact = interarrival_jitter(sent, sent + transits.astype(np.float64))
    assert exact is not None
    assert abs(interarrival_jitter_integers([int(t) for t in transits])[-1] - exact) <= 1.0


def test_pitfall_04_the_interarrival_jitter_forgets_and_the_distribution_does_not() -> None:
    wild, calm = np.tile([0.0, 50.0], 500), np.full(200, 0.0)
    delays = np.concatenate((wild, calm))
    sent = np.linspace(0.0, 100.0 * (len(delays) - 1), len(delays))
    last = interarrival_jitter(sent, sent + delays)
    assert last is not None
    assert last < 0.01
    assert np.quantile(np.abs(ipdv(delays)), 0.8) == 50


def test_pitfall_05_definitions_differ_on_the_same_delays() -> None:
    delays = values(10, 12, 10, 30, 10, 12, 10, 11, 10, 12)
    sent = np.linspace(0.0, 100.0 * (10 - 1), 10)
    numbers = {
        mean_deviation(delays),
        p95_minus_p50(delays),
        smoothed_rtt_variation(delays),
        interarrival_jitter(sent, sent + delays),
    }
    assert len(numbers) == 4


delay_lists = st.lists(
    st.one_of(st.integers(0, 10**9).map(float), st.just(LOST)), min_size=0, max_size=60
)


@given(delay_lists, st.integers(-(10**9), 10**9))
def test_law_a_shift_of_all_delays_changes_no_variation(delays: list[float], shift: int) -> None:
    """The offset of two clocks is such a shift."""
    before, after = values(*delays), values(*delays) + shift
    assert pdv(before).tolist() == pdv(after).tolist()
    assert ipdv(before).tolist() == ipdv(after).tolist()


@given(delay_lists, st.sampled_from([0.5, 2.0, 1024.0]))
def test_law_the_unit_of_the_delays_is_the_unit_of_the_variation(
    delays: list[float], factor: float
) -> None:
    before, after = values(*delays), values(*delays) * factor
    assert (pdv(before) * factor).tolist() == pdv(after).tolist()
    assert (ipdv(before) * factor).tolist() == ipdv(after).tolist()
    for function in (mean_deviation, p95_minus_p50, smoothed_rtt_variation):
        one, other = function(before), function(after)
        assert (one is None) == (other is None)
        if one is not None and other is not None:
            assert other == pytest.approx(one * factor, rel=1e-9, abs=1e-6)


@given(delay_lists, st.randoms(use_true_random=False))
def test_law_the_order_of_sending_does_not_matter_to_pdv(
    delays: list[float], random: "np.random.Generator"
) -> None:
    shuffled = list(delays)
    random.shuffle(shuffled)
    assert sorted(pdv(values(*delays)).tolist()) == sorted(pdv(values(*shuffled)).tolist())


@given(delay_lists, delay_lists)
def test_law_joining_two_streams_across_a_loss_keeps_all_their_pairs(
    first: list[float], second: list[float]
) -> None:
    joined = ipdv(values(*first, LOST, *second)).tolist()
    assert joined == ipdv(values(*first)).tolist() + ipdv(values(*second)).tolist()


@given(delay_lists)
def test_law_reversing_a_stream_turns_the_sign_of_ipdv(delays: list[float]) -> None:
    backwards = ipdv(values(*delays[::-1]))
    assert (-backwards[::-1]).tolist() == ipdv(values(*delays)).tolist()
