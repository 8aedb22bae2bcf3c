"""One stream of our reflector: what is told of it, on a network whose every step is known."""

import msgspec
import pytest
from tests.token_stream.scripted import MS, Event, Scripted, world

from pathbudget.probes.errors import ConfigError
from pathbudget.probes.fake_collector import Collector, shot_at
from pathbudget.probes.record import (
    ClockSource,
    ConnectionMode,
    Failure,
    FailureKind,
    Flag,
    Sample,
    Stage,
)
from pathbudget.probes.reflector_http import Chunk
from pathbudget.probes.stream import probe as stream_probe
from pathbudget.probes.stream.probe import TOKEN_STREAM

THERE = 5_000_000_000_000_000
"""The reflector's clock is another one."""
OPTIONS = {"chunks": 4, "interval_ms": 10.0, "bytes": 0, "buffer_ms": 30.0}


def event(
    n: int, sent_ns: int, left: tuple[tuple[int, int], ...] = (), *, last: bool = False
) -> bytes:
    chunk = Chunk(n=n, due_ns=n * 10 * MS, sent_unix_ns=THERE + sent_ns, left=left, last=last)
    return b"data: " + msgspec.json.encode(chunk) + b"\n\n"


HEAD = (20 * MS, "head", (200, "text/event-stream"))
SENDS = (0, 10 * MS, 20 * MS, 30 * MS)
KERNEL = tuple((n, THERE + at + 50_000 + 1_000 * n) for n, at in enumerate(SENDS))
TRAILER: tuple[Event, ...] = (
    (200 * MS, "body", event(4, 200 * MS, KERNEL, last=True)),
    (200 * MS, "complete", None),
)
WHOLE: tuple[Event, ...] = (
    HEAD,
    (25 * MS, "body", event(0, SENDS[0])),
    (36 * MS, "body", event(1, SENDS[1])),
    (95 * MS, "body", event(2, SENDS[2]) + event(3, SENDS[3])),
    *TRAILER,
)


async def shoot(
    monkeypatch: pytest.MonkeyPatch,
    events: tuple[Event, ...],
    options: dict[str, str | int | float | bool | None] | None = None,
    *,
    shots: int = 1,
    timeout_ns: int = 300 * MS,
    **more: object,
) -> tuple[Scripted, Collector]:
    script, collector = world(events, **more)
    monkeypatch.setattr(stream_probe, "dialer_for", script)
    probe = collector.open(TOKEN_STREAM, {**OPTIONS, **(options or {})})
    for seq in range(shots):
        probe.fire(shot_at("192.0.2.1", port=8621, seq=seq, timeout_ns=timeout_ns))
        await probe.drain()
    probe.close()
    return script, collector


def parts(collector: Collector, metric: str) -> dict[int | None, Sample]:
    return {sample.part: sample for sample in collector.of(metric)}


async def test_a_whole_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    script, collector = await shoot(monkeypatch, WHOLE)
    assert script.requests[0].path == "/stream?chunks=4&interval_us=10000&bytes=0&form=sse"
    assert collector.only("connect").value_ns == 20 * MS
    assert collector.only("setup").value_ns == 20 * MS
    first = collector.only("ttft")
    assert (first.value_ns, first.clock_source) == (25 * MS, ClockSource.KERNEL)
    assert first.mode is ConnectionMode.COLD
    assert collector.only("ttfb").value_ns == 20 * MS
    assert collector.only("receive").value_ns == 180 * MS
    gaps = parts(collector, "delivery_gap")
    assert [gaps[n].value_ns for n in (1, 2, 3)] == [11 * MS, 59 * MS, 0]
    varied = parts(collector, "delivery_variation")
    assert [varied[n].value_ns for n in (1, 2, 3)] == [
        MS - 1_000,
        49 * MS - 1_000,
        -10 * MS - 1_000,
    ]
    assert varied[1].notes == {"send_clock": "kernel", "send_gap_ns": 10 * MS + 1_000}
    assert varied[1].clock_source is ClockSource.KERNEL
    # Chunks 2 and 3 came together: when 2 really came cannot be told.
    assert [gaps[n].flags for n in (1, 2, 3)] == [(), (), (Flag.LOW_CONFIDENCE,)]
    notes = first.notes
    assert notes is not None
    assert notes["chunks_expected"] == notes["chunks_received"] == 4
    assert notes["stalls"] == 1
    assert notes["stalls_of_sender"] == 0
    assert notes["burst_index"] == 0.3333
    assert notes["playout_buffer_us"] == notes["pdv_p99_us"] == 49_998
    assert notes["coalesced"] == 1
    assert notes["retransmits"] == 3
    assert notes["buffered"] == "undecided"


async def test_without_kernel_send_stamps_the_user_ones_serve_and_say_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    events = (*WHOLE[:-2], (200 * MS, "body", event(4, 0, last=True)), WHOLE[-1])
    _, collector = await shoot(monkeypatch, events)
    varied = parts(collector, "delivery_variation")
    assert varied[1].value_ns == MS
    assert varied[1].clock_source is ClockSource.KERNEL_RECEIVE
    assert varied[1].notes == {"send_clock": "user", "send_gap_ns": 10 * MS}
    notes = collector.only("ttft").notes
    assert notes is not None
    assert notes["send_clock"] == "user"


async def test_a_host_that_reads_late_is_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    _, collector = await shoot(monkeypatch, WHOLE, lag_ns=12 * MS)
    assert collector.only("ttft").value_ns == 25 * MS
    assert Flag.HOST_BUSY in collector.only("ttft").flags
    assert Flag.HOST_BUSY in parts(collector, "delivery_gap")[1].flags


async def test_without_kernel_stamps_the_user_clock_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    _, collector = await shoot(monkeypatch, WHOLE, stamps=False, tells_left=False)
    first = collector.only("ttft")
    assert (first.value_ns, first.clock_source) == (25 * MS, ClockSource.USER)
    assert parts(collector, "delivery_variation")[1].clock_source is ClockSource.USER
    assert collector.of("send") == []


async def test_a_kept_connection_is_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    script, collector = await shoot(monkeypatch, WHOLE, {"mode": "warm"}, shots=3)
    assert script.dials == 1
    modes = [sample.mode for sample in collector.of("ttft")]
    assert modes == [ConnectionMode.COLD, ConnectionMode.WARM, ConnectionMode.WARM]
    assert [sample.value_ns for sample in collector.of("setup")] == [20 * MS, 0, 0]


async def test_the_deadline_is_held_and_what_came_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    script, collector = await shoot(monkeypatch, WHOLE[:3])
    lost = parts(collector, "delivery_gap")[2]
    assert lost.failure is not None
    assert lost.failure.kind is FailureKind.TIMEOUT
    assert parts(collector, "delivery_gap")[1].value_ns == 11 * MS
    first = collector.only("ttft")
    assert first.value_ns == 25 * MS
    assert first.notes is not None
    assert str(first.notes["ended"]).startswith("timeout")
    assert script.abandoned == 1
    # The timeout, and the length of the stream beyond it.
    assert script.clock.unix_ns() - first.sent_unix_ns == pytest.approx(320 * MS, abs=MS)


async def test_a_silent_server_costs_one_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    _, collector = await shoot(monkeypatch, ())
    failure = collector.only("ttft").failure
    assert failure is not None
    assert (failure.kind, failure.stage) == (FailureKind.TIMEOUT, Stage.WAIT)
    assert collector.of("delivery_gap") == []


async def test_what_never_opens_fails_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = Failure(FailureKind.REFUSED, Stage.CONNECT)
    _, collector = await shoot(monkeypatch, (), opening=refused)
    assert [(s.metric, s.failure) for _, s in collector.emitted] == [
        ("connect", refused),
        ("setup", refused),
        ("ttft", refused),
    ]
    _, collector = await shoot(monkeypatch, (), never_opens=True)
    assert [s.metric for _, s in collector.emitted] == ["setup", "ttft"]


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        (b"data: {}\n\n", "no chunk of a reflector"),
        (b"data: [1,2\n\n", "no chunk of a reflector"),
        (b"data: \xff\n\n", "no chunk of a reflector"),
        (event(1, 0), "chunk 1 came where 0 was due"),
        (event(0, 0) + event(0, 0), "chunk 0 came where 1 was due"),
        (b"".join(event(n, n) for n in range(5)), "chunk 4 came where 4 was due"),
        (event(0, 0, last=True) + event(0, 0), "chunk 0 came where 0 was due"),
        (b"x" * (1 << 20) + b"x", "a line longer than"),
    ],
    ids=["empty", "cut", "bytes", "skipped", "repeated", "too-many", "after-the-last", "endless"],
)
async def test_what_is_no_stream_of_ours_is_told(
    monkeypatch: pytest.MonkeyPatch, body: bytes, detail: str
) -> None:
    script, collector = await shoot(monkeypatch, (HEAD, (21 * MS, "body", body), *TRAILER))
    failures = [s.failure for _, s in collector.emitted if s.failure is not None]
    assert failures
    assert all(failure.kind is FailureKind.PROTOCOL for failure in failures)
    assert detail in failures[0].detail
    assert script.abandoned == 1


async def test_a_stream_cut_short_says_which_chunk_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, collector = await shoot(monkeypatch, (*WHOLE[:3], (40 * MS, "complete", None)))
    lost = parts(collector, "delivery_gap")[2].failure
    assert lost is not None
    assert lost.kind is FailureKind.CLOSED


async def test_a_refusal_is_told_in_its_words(monkeypatch: pytest.MonkeyPatch) -> None:
    events: tuple[Event, ...] = (
        (20 * MS, "head", (401, "text/plain")),
        (20 * MS, "body", b"a bearer token\nis needed\n" + b"x" * 5_000),
        (20 * MS, "complete", None),
    )
    _, collector = await shoot(monkeypatch, events)
    failure = collector.only("ttft").failure
    assert failure is not None
    assert failure.kind is FailureKind.STATUS
    assert failure.detail.startswith("status 401: a bearer token is needed xxx")
    assert len(failure.detail) < 250


async def test_a_slow_loris_meets_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    drip: tuple[Event, ...] = tuple((20 * MS + n * MS, "body", b":\n") for n in range(2_000))
    script, collector = await shoot(monkeypatch, (HEAD, *drip))
    failure = collector.only("ttft").failure
    assert failure is not None
    assert failure.kind is FailureKind.TIMEOUT
    assert script.abandoned == 1


async def test_closing_drops_what_is_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    script, collector = world(WHOLE)
    monkeypatch.setattr(stream_probe, "dialer_for", script)
    probe = collector.open(TOKEN_STREAM, OPTIONS)
    probe.fire(shot_at("192.0.2.1", port=8621))
    probe.close()
    await probe.drain()
    assert collector.emitted == []
    assert script.abandoned == 1


@pytest.mark.parametrize(
    "options",
    [
        {"form": "websocket", "version": "2"},
        {"form": "websocket", "mode": "warm"},
        {"form": "websocket", "mode": "early_data"},
        {"scheme": "http", "version": "3"},
        {"scheme": "http", "mode": "resumed"},
        {"token_file": "/nowhere"},
    ],
    ids=lambda options: "-".join(map(str, options.values())),
)
def test_options_that_do_not_go_together_are_refused(options: dict[str, str]) -> None:
    _, collector = world()
    with pytest.raises(ConfigError):
        collector.open(TOKEN_STREAM, options)


def test_the_cost_covers_what_a_stream_takes() -> None:
    cost = TOKEN_STREAM.cost({"chunks": 100, "bytes": 2_000})
    assert cost.bytes > 200_000
    assert cost.packets > 300
