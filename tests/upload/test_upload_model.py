"""The model of one upload against the formulas it stands for, and against itself."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathbudget.analysis.slow_start import flights
from pathbudget.analysis.upload_model import (
    BBR_GAIN,
    HTTP2_WINDOW,
    RECORD_OVERHEAD,
    Term,
    UploadPath,
    Version,
    model_upload,
    window_after_idle,
    wire_bytes,
)

MS = 1_000_000
RTT = 40 * MS
PATH = UploadPath(RTT)


@pytest.mark.parametrize(
    ("tokens", "expected"), [(1, 1), (4, 2), (16, 3), (64, 5), (128, 6)], ids=lambda one: str(one)
)
def test_flights_of_prompts_of_thousands_of_tokens(tokens: int, expected: int) -> None:
    modelled = model_upload(tokens * 4_000, PATH)
    assert modelled.flights == expected
    assert modelled.last_arrived_ns == RTT // 2 + (expected - 1) * RTT
    assert modelled.acknowledged_ns == expected * RTT


@settings(max_examples=40)
@given(st.integers(1, 1_000_000))
def test_without_a_bottleneck_it_is_the_formula(size: int) -> None:
    modelled = model_upload(size, PATH)
    assert modelled.flights == flights(size)
    assert modelled.last_left_ns == (modelled.flights - 1) * RTT


@settings(max_examples=40)
@given(
    st.integers(1, 200_000),
    st.integers(1, 60),
    st.one_of(st.none(), st.integers(1_000, 200_000)),
    st.one_of(st.none(), st.floats(1e5, 1e10)),
    st.one_of(st.none(), st.floats(0.5, 4)),
)
def test_terms_add_up_and_nothing_makes_it_faster(
    size: int, initial: int, window: int | None, rate: float | None, gain: float | None
) -> None:
    path = UploadPath(
        RTT, initial_segments=initial, flow_window=window, rate=rate, pacing_gain=gain
    )
    modelled = model_upload(size, path)
    assert sum(modelled.waits_ns.values()) == modelled.last_arrived_ns
    assert min(modelled.waits_ns.values()) >= -1
    assert modelled.last_arrived_ns >= RTT // 2
    assert modelled.acknowledged_ns == modelled.last_arrived_ns + RTT // 2
    wider = model_upload(size, UploadPath(RTT, initial_segments=initial + 10))
    assert wider.last_arrived_ns <= modelled.last_arrived_ns or initial >= modelled.segments


def test_a_wide_open_connection_takes_one_flight() -> None:
    warm = model_upload(64_000, UploadPath(RTT, initial_segments=60))
    assert (warm.flights, warm.term) == (1, Term.PROPAGATION)


def test_slow_start_is_what_a_prompt_of_rag_waits_for() -> None:
    modelled = model_upload(64_000, PATH)
    assert modelled.term is Term.SLOW_START
    assert modelled.waits_ns[Term.SLOW_START] == 2 * RTT


def test_the_default_window_of_http2_stalls_a_long_prompt() -> None:
    size = wire_bytes(512_000, Version.HTTP2)
    stalled = model_upload(size, UploadPath(RTT, flow_window=HTTP2_WINDOW))
    free = model_upload(size, PATH)
    # Ten windows of 44 segments, of which the first two are those of slow start.
    assert (free.flights, stalled.flights) == (6, 10)
    assert stalled.waits_ns[Term.FLOW_CONTROL] == 4 * RTT
    assert stalled.term is Term.SLOW_START
    short = model_upload(30_000, UploadPath(RTT, flow_window=HTTP2_WINDOW))
    assert short.waits_ns[Term.FLOW_CONTROL] == 0


def test_a_narrow_path_takes_the_time_of_its_bytes() -> None:
    narrow = model_upload(512_000, UploadPath(RTT, rate=2e6))
    assert narrow.term is Term.BOTTLENECK
    # Once the pipe is full it never runs dry: all bytes, and the starts of the first flights.
    seconds = 512_000 * 8 / 2e6
    assert narrow.last_arrived_ns / 1e9 == pytest.approx(seconds + 0.02, abs=0.01)


def test_pacing_of_bbr_spreads_flights_but_adds_none() -> None:
    paced = model_upload(64_000, UploadPath(RTT, pacing_gain=BBR_GAIN))
    plain = model_upload(64_000, PATH)
    assert paced.flights == plain.flights == 3
    assert 0 < paced.waits_ns[Term.PACING] < RTT // 2
    short = model_upload(4_000, UploadPath(RTT, pacing_gain=BBR_GAIN))
    assert short.waits_ns[Term.PACING] == 0


@pytest.mark.parametrize(
    ("segments", "idle_ms", "expected"),
    [(56, 0, 56), (56, 240, 56), (56, 241, 28), (56, 481, 14), (56, 2_000, 10), (7, 2_000, 7)],
)
def test_idle_halves_the_window_per_timeout(segments: int, idle_ms: int, expected: int) -> None:
    assert window_after_idle(segments, idle_ms * MS, 240 * MS) == expected


def test_what_is_put_around_a_body() -> None:
    assert wire_bytes(1_000, Version.PLAIN) == 1_000
    assert wire_bytes(1_000, header_bytes=0) == 1_000 + RECORD_OVERHEAD
    assert wire_bytes(16_385, header_bytes=0) == 16_385 + 2 * RECORD_OVERHEAD
    two_frames = wire_bytes(20_000, Version.HTTP2, header_bytes=100)
    assert two_frames == 20_000 + 100 + 3 * 9 + 2 * RECORD_OVERHEAD
    assert wire_bytes(1_000, Version.PLAIN, escaping=1.1) == 1_100
    quic = wire_bytes(100_000, Version.HTTP3, header_bytes=0, segment_bytes=1_200)
    assert quic == 100_000 + 32 * math.ceil(100_000 / 1_168)


@pytest.mark.parametrize(
    "wrong",
    [
        {"round_trip_ns": 0},
        {"round_trip_ns": 1, "segment_bytes": 0},
        {"round_trip_ns": 1, "initial_segments": 0},
        {"round_trip_ns": 1, "flow_window": 0},
        {"round_trip_ns": 1, "rate": 0.0},
        {"round_trip_ns": 1, "pacing_gain": 0.0},
    ],
    ids=lambda wrong: "-".join(wrong),
)
def test_paths_that_cannot_be(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="must be positive"):
        UploadPath(**wrong)
