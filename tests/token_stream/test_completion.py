"""The completion probe against the scripted server, over loopback: what is told is what was done.

Times are held against the server's own record and with wide margins: the host may be busy.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from pathbudget.agents.completions.script import Answer, Script, Spread, Stall, Trouble
from pathbudget.agents.completions.server import CompletionsServer, Serving
from pathbudget.probes.clock import SystemClock
from pathbudget.probes.contract import Options
from pathbudget.probes.errors import ConfigError
from pathbudget.probes.fake_collector import Collector, shot_at
from pathbudget.probes.network import SystemNetwork
from pathbudget.probes.record import ConnectionMode, FailureKind, Sample
from pathbudget.probes.stream.completion import COMPLETION

MS = 1_000_000
QUICK: Options = {"scheme": "http", "ttft_deadline_ms": 5_000.0}
Run = tuple[Collector, CompletionsServer]


@asynccontextmanager
async def measured(
    script: Script, options: Options | None = None, *, shots: int = 1, api_key: str = ""
) -> AsyncGenerator[Run, None]:
    """So many shots at once."""
    network, clock = SystemNetwork(), SystemClock()
    collector = Collector(network, clock)
    async with CompletionsServer(Serving(script, port=0, api_key=api_key)) as server:
        probe = collector.open(COMPLETION, {**QUICK, **(options or {})})
        for seq in range(shots):
            probe.fire(shot_at("127.0.0.1", port=server.port, seq=seq, timeout_ns=5_000 * MS))
        await probe.drain()
        probe.close()
        yield collector, server
    network.close()


def script(**more: object) -> Script:
    plain = {
        "first_token": Spread(ms=20),
        "token": Spread(ms=4),
        "answer": Answer(tokens=8),
    }
    return Script(**{**plain, **more})  # type: ignore[arg-type]


async def test_a_whole_answer() -> None:
    async with measured(script(), {"model": "m", "prompt_tokens": 50, "max_tokens": 6}) as run:
        collector, server = run
        first = collector.only("ttft")
        served = server.stage.served[0]
        waited = served.chunk_ns[0] - served.received_ns
        assert first.value_ns is not None
        assert waited - MS <= first.value_ns <= waited + 500 * MS
        assert first.mode is ConnectionMode.COLD
        assert [s.part for s in collector.of("delivery_gap")] == [1, 2, 3, 4, 5]
        notes = first.notes
        assert notes is not None
        assert notes["chunks_received"] == notes["completion_tokens"] == 6
        assert notes["prompt_words"] == notes["prompt_tokens"] == served.prompt_words == 50
        assert {"connect_us", "rtt_us", "concurrency"} <= set(notes)
        for metric in ("connect", "setup", "send", "ttfb", "receive"):
            assert collector.only(metric).value_ns is not None
        # The role came long before the first token, and is none.
        ttfb = collector.only("ttfb").value_ns
        assert ttfb is not None
        assert ttfb < first.value_ns - 10 * MS


async def test_the_deadline_of_the_first_token_ends_the_request_alone() -> None:
    late = script(first_token=Spread(ms=3_000))
    began = asyncio.get_running_loop().time()
    async with measured(late, {"ttft_deadline_ms": 60.0}) as (collector, server):
        assert asyncio.get_running_loop().time() - began < 2
        failure = collector.only("ttft").failure
        assert failure is not None
        assert failure.kind is FailureKind.TIMEOUT
        assert failure.detail == "no token within 60 ms (ttft_deadline_ms)"
        await asyncio.sleep(0.05)
        assert not server.stage.slots.locked()
        assert server.open == set(), "the server has seen it go, and its slot is free"


async def test_the_deadline_of_the_first_token_is_no_deadline_of_the_answer() -> None:
    long = script(answer=Answer(tokens=20), token=Spread(ms=10))
    async with measured(long, {"ttft_deadline_ms": 150.0}) as (collector, _):
        assert collector.only("ttft").failure is None
        assert len(collector.of("delivery_gap")) == 19
        assert all(s.failure is None for s in collector.of("delivery_gap"))


async def test_shots_do_not_wait_for_each_other_and_load_shows() -> None:
    async with measured(script(slots=2), shots=6) as (collector, server):
        firsts = collector.of("ttft")
        assert sorted((s.notes or {})["concurrency"] for s in firsts) == [1, 2, 3, 4, 5, 6]
        received = [one.received_ns for one in server.stage.served]
        assert max(received) - min(received) < 5 * 48 * MS, "none waited for another"
        waits = sorted(s.value_ns or 0 for s in firsts)
        # Two slots of 48 ms each: the last two have waited for two others.
        assert waits[-1] - waits[0] > 80 * MS


async def test_connections_are_kept_where_asked() -> None:
    network, clock = SystemNetwork(), SystemClock()
    collector = Collector(network, clock)
    async with CompletionsServer(Serving(script(), port=0)) as server:
        probe = collector.open(COMPLETION, {**QUICK, "mode": "warm"})
        for seq in range(3):
            probe.fire(shot_at("127.0.0.1", port=server.port, seq=seq, timeout_ns=5_000 * MS))
            await probe.drain()
        probe.close()
    network.close()
    modes = [s.mode for s in collector.of("ttft")]
    assert modes == [ConnectionMode.COLD, ConnectionMode.WARM, ConnectionMode.WARM]
    assert len(collector.of("connect")) == 1
    notes = collector.of("ttft")[-1].notes
    assert notes is not None
    assert "connection_age_ms" in notes


def failure_at(collector: Collector, kind: FailureKind, text: str, *, tokens: int) -> None:
    """The first token came, and the failure stands where the next chunk would."""
    assert collector.only("ttft").failure is None
    (lost,) = [s for s in collector.of("delivery_gap") if s.failure is not None]
    assert lost.failure is not None
    assert (lost.failure.kind, lost.part) == (kind, tokens)
    assert text in lost.failure.detail


@pytest.mark.parametrize(
    ("trouble", "kind", "text"),
    [
        (Trouble(kind="event", after_tokens=3), FailureKind.STATUS, "scripted trouble"),
        (Trouble(kind="close", after_tokens=3), FailureKind.CLOSED, ""),
        (Trouble(kind="reset", after_tokens=3), FailureKind.RESET, ""),
    ],
    ids=["event", "close", "reset"],
)
async def test_trouble_in_the_middle(trouble: Trouble, kind: FailureKind, text: str) -> None:
    async with measured(script(trouble=trouble)) as (collector, _):
        failure_at(collector, kind, text, tokens=3)


async def test_silence_in_the_middle_meets_the_timeout() -> None:
    silent = script(trouble=Trouble(kind="silence", after_tokens=2))
    network, clock = SystemNetwork(), SystemClock()
    collector = Collector(network, clock)
    async with CompletionsServer(Serving(silent, port=0)) as server:
        probe = collector.open(COMPLETION, QUICK)
        probe.fire(shot_at("127.0.0.1", port=server.port, timeout_ns=400 * MS))
        await probe.drain()
        probe.close()
    network.close()
    failure_at(collector, FailureKind.TIMEOUT, "400 ms", tokens=2)


async def test_an_error_before_the_first_token_is_no_first_token() -> None:
    async with measured(script(trouble=Trouble(kind="event"))) as (collector, _):
        failure = collector.only("ttft").failure
        assert failure is not None
        assert failure.detail == "error in the stream: scripted trouble"


async def test_a_status_is_told_in_the_words_of_the_server() -> None:
    busy = script(trouble=Trouble(kind="status", status=503, message="overloaded"))
    async with measured(busy) as (collector, _):
        failure = collector.only("ttft").failure
        assert failure is not None
        assert (failure.kind, failure.detail) == (FailureKind.STATUS, "status 503: overloaded")


async def test_reasoning_counts_only_where_asked() -> None:
    thinking = script(answer=Answer(tokens=2, reasoning_tokens=5), token=Spread(ms=10))
    async with measured(thinking) as (collector, _):
        answered = collector.only("ttft")
        assert (answered.notes or {})["reasoning_chunks"] == 5
        assert (answered.notes or {})["chunks_received"] == 2
        first_us = (answered.notes or {})["first_reasoning_us"]
    assert answered.value_ns is not None
    assert answered.value_ns / 1e3 - float(first_us) > 30_000
    async with measured(thinking, {"count_reasoning": True}) as (collector, _):
        assert (collector.only("ttft").notes or {})["chunks_received"] == 7


async def test_chunks_are_counted_not_tokens() -> None:
    packed = script(answer=Answer(tokens=9, tokens_per_chunk=4, usage="always"))
    async with measured(packed, {"usage": False}) as (collector, _):
        notes = collector.only("ttft").notes
        assert notes is not None
        assert notes["chunks_received"] == 3
        assert notes["completion_tokens"] == 9


async def test_stalls_are_seen() -> None:
    stalling = script(answer=Answer(tokens=9), stall=Stall(every=4, ms=120))
    async with measured(stalling, {"stall_ms": 80.0}) as (collector, _):
        notes = collector.only("ttft").notes
        assert notes is not None
        assert int(notes["stalls"]) >= 2


async def test_the_key_is_shown_to_the_server_and_to_nobody_else(tmp_path: Path) -> None:
    key = "sk-very-secret-0123456789"
    (tmp_path / "key").write_text(f"{key}\n")
    options: Options = {"api_key_file": str(tmp_path / "key")}
    async with measured(script(), options, api_key=key) as (collector, _):
        assert collector.only("ttft").failure is None
        assert key not in str(collector.emitted)
    async with measured(script(), api_key=key) as (collector, _):
        failure = collector.only("ttft").failure
        assert failure is not None
        assert failure.detail == "status 401: the API key is not the right one"


async def test_an_answer_that_is_no_stream_is_told() -> None:
    async with measured(script(), {"path": "/v1/models"}) as (collector, _):
        failure = collector.only("ttft").failure
        assert failure is not None
        assert failure.kind is FailureKind.STATUS


@pytest.mark.parametrize(
    "options",
    [
        {"path": "v1"},
        {"path": "/a b"},
        {"prompt_tokens": 500, "prompt_most": 100},
        {"prompt_file": "/nowhere"},
        {"api_key_file": "/nowhere"},
        {"version": "3"},
    ],
    ids=lambda options: "-".join(options),
)
def test_options_that_make_no_sense_are_refused(options: Options) -> None:
    network = SystemNetwork()
    collector = Collector(network, SystemClock())
    with pytest.raises(ConfigError):
        collector.open(COMPLETION, {**QUICK, **options})
    network.close()


def test_every_sample_of_a_shot_has_its_sequence_number() -> None:
    async def run() -> list[Sample]:
        async with measured(script(), shots=2) as (collector, _):
            return [sample for _, sample in collector.emitted]

    samples = asyncio.run(run())
    assert {sample.seq for sample in samples} == {0, 1}
