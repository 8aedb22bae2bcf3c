"""Egress of streams: the way back and what each chunk was delayed beyond it; buffering; TTFT."""

from collections.abc import Sequence

import msgspec
import pytest
from tests.request_lines.parts import (
    MS,
    RTT_MS,
    START,
    N,
    echoes,
    evaluated,
    findings,
    line,
    measurement,
    sample,
)

from pathbudget.analysis.finding_kinds import FindingKind
from pathbudget.analysis.report.markdown import render_markdown
from pathbudget.analysis.results import Direction, Method, Mode
from pathbudget.probes.contract import Option
from pathbudget.probes.record import (
    ClockSource,
    ConnectionMode,
    Measurement,
    Metric,
    Note,
    Sample,
    Stamps,
    Transport,
)

INTERVAL_MS = 33
WARM = ConnectionMode.WARM


def stream(seq: int, delays_ms: Sequence[float], expected: int | None = None) -> tuple[Sample, ...]:
    """Chunks sent every 33 ms, each delayed by so much beyond the first one's way."""
    began = START + seq * 60_000 * MS
    notes: dict[str, Note] = {"chunks_expected": expected or len(delays_ms)}
    made = [
        Sample(seq, Metric.TTFT, began, value_ns=40 * MS, mode=WARM, notes=notes),
    ]
    for part in range(1, len(delays_ms)):
        variation = round((delays_ms[part] - delays_ms[part - 1]) * MS)
        gap = INTERVAL_MS * MS + variation
        at = began + part * INTERVAL_MS * MS
        for metric, value in ((Metric.DELIVERY_GAP, gap), (Metric.DELIVERY_VARIATION, variation)):
            made.append(
                Sample(
                    seq,
                    metric,
                    at,
                    value_ns=value,
                    clock_source=ClockSource.KERNEL,
                    stamps=Stamps(kernel_received_ns=gap, user_received_ns=gap),
                    part=part,
                    notes={"send_clock": "kernel"},
                )
            )
    return tuple(made)


def streams(delays: Sequence[Sequence[float]], expected: int | None = None) -> Measurement:
    """One measurement of several streams."""
    made = [one for seq, each in enumerate(delays) for one in stream(seq, each, expected)]
    options: dict[str, Option] = {
        "interval_ms": float(INTERVAL_MS),
        "buffer_ms": 50.0,
        "form": "sse",
    }
    return measurement(made, "token_stream", Transport.TLS, options=options)


UNEVEN = [3.0, 0.0, 1.0, 2.0, 5.0, 0.0, 1.0, 0.0, 2.0, 1.0] * 10


def test_the_line_of_streams_is_the_way_back_and_the_delay_of_each_chunk() -> None:
    evaluation = evaluated([echoes(), streams([UNEVEN] * 4)])
    for percentile, beyond in ((50.0, 1.0), (95.0, 5.0)):
        found = line(evaluation, Mode.WARM, direction=Direction.STREAM, percentile=percentile)
        assert found.value_ms == RTT_MS / 2 + beyond
    assert (found.n, found.method) == (400, Method.SYMMETRIC_SPLIT)
    assert (found.allowance_ms, found.prompt_bytes, found.headline) == (None, 0, False)
    (summary,) = evaluation.requests.token_streams
    assert (summary.streams, summary.chunks_received, summary.chunks_expected) == (4, 400, 400)
    assert summary.first_chunk_pdv_p95_ms.value_ms == 3.0
    assert summary.pdv_p95_ms.value_ms == 5.0
    assert (summary.stalls, summary.stall_limit_ms) == (0, 83.0)
    text = render_markdown(evaluation)
    assert "How evenly streams come" in text
    assert "Variation of first chunks, p95" in text
    assert "First chunk, p95" not in text


@pytest.mark.parametrize("note", ["many", "1e9", True, -5, 10**12, float("nan"), float("inf")])
def test_a_malformed_note_of_the_chunks_asked_for_stops_no_report(note: Note) -> None:
    made = streams([UNEVEN] * 4)
    spoilt = tuple(
        msgspec.structs.replace(one, notes={**(one.notes or {}), "chunks_expected": note})
        for one in made.samples
    )
    evaluation = evaluated([echoes(), msgspec.structs.replace(made, samples=spoilt)])
    (summary,) = evaluation.requests.token_streams
    assert (summary.chunks_received, summary.chunks_expected) == (400, 400)


def test_the_time_to_first_token_stands_beside_the_variation_of_first_chunks() -> None:
    evaluation = evaluated([echoes(), streams([UNEVEN] * 4)])
    (summary,) = evaluation.requests.token_streams
    (series,) = [one for one in evaluation.summaries if one.metric == Metric.TTFT]
    p95 = next(one for one in series.quantiles if one.percentile == 95)
    assert summary.ttft_p95_ms is not None
    assert summary.ttft_p95_ms.value_ms == p95.value_ms
    assert p95.value_ms not in (None, summary.first_chunk_pdv_p95_ms.value_ms)


def test_chunks_that_never_came_are_later_than_any_number() -> None:
    evaluation = evaluated([echoes(), streams([UNEVEN[:80]] * 4, expected=100)])
    found = line(evaluation, Mode.WARM, direction=Direction.STREAM)
    assert (found.n, found.losses, found.value_ms) == (400, 80, None)


def test_chunks_are_in_no_series_of_round_trips() -> None:
    evaluation = evaluated([echoes(), streams([UNEVEN] * 4)])
    metrics = {one.metric for one in evaluation.summaries}
    assert metrics == {Metric.RTT, Metric.TTFT}
    assert line(evaluation, Mode.WARM).value_ms == RTT_MS
    assert not evaluation.exclusions


def test_a_stall_is_told() -> None:
    evaluation = evaluated([echoes(), streams([[0.0] * 50 + [60.0] + [0.0] * 49])])
    (summary,) = evaluation.requests.token_streams
    assert summary.stalls == 1
    assert "1 of 99 gaps" in findings(evaluation)[FindingKind.STREAM_STALLS]


@pytest.mark.parametrize("block", [1, 8])
def test_a_proxy_that_buffers_is_found(block: int) -> None:
    """It releases a block when its last chunk is there; a block of one is no proxy."""
    delays = [(block - 1 - n % block) * INTERVAL_MS + 0.03 * (n % block) for n in range(160)]
    evaluation = evaluated([echoes(), streams([delays] * 4)])
    (summary,) = evaluation.requests.token_streams
    assert summary.buffering == ("bursts" if block > 1 else "no")
    assert (FindingKind.BUFFERING_PROXY in findings(evaluation)) == (block > 1)


def test_the_servers_part_of_a_time_to_first_token_has_bounds_and_no_mean() -> None:
    waits = (sample(i, Metric.TTFT, 340.0 if i % 2 else 440.0) for i in range(N))
    trips = (sample(i, Metric.RTT, 40.0 if i % 2 else 50.0) for i in range(N))
    endpoint = measurement(waits, "completion", Transport.TLS)
    (found,) = evaluated([measurement(trips, "icmp"), endpoint]).requests.completions
    assert (found.n, found.losses) == (N, 0)
    server = found.server_p50_ms
    assert server is not None
    assert server.value_ms is None
    assert server.low_ms is not None
    assert server.high_ms is not None
    assert 290.0 <= server.low_ms <= 300.0 <= server.high_ms <= 400.0
    assert found.ttft_p95_ms.value_ms == 440.0


def test_without_round_trips_nothing_is_said_of_the_server() -> None:
    waits = (sample(i, Metric.TTFT, 340.0) for i in range(10))
    (found,) = evaluated([measurement(waits, "completion", Transport.TLS)]).requests.completions
    assert found.server_p50_ms is None
