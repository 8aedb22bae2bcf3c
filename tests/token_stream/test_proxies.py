"""A stream of our reflector, direct and through nginx: buffering on is found, off is not."""

import asyncio
import contextlib
import socket
import subprocess
from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import pytest
from tests.programs import program

from pathbudget.agents.reflector.clocks import HostClock
from pathbudget.agents.reflector.serving.options import HttpsOptions
from pathbudget.agents.reflector.serving.service import Https
from pathbudget.analysis.stream_delivery import evaluate_delivery, streams_of
from pathbudget.probes.clock import SystemClock
from pathbudget.probes.contract import Options
from pathbudget.probes.fake_collector import Collector, shot_at
from pathbudget.probes.network import SystemNetwork
from pathbudget.probes.record import ClockSource, Flag
from pathbudget.probes.stream.buffering import Verdict
from pathbudget.probes.stream.probe import TOKEN_STREAM

MS = 1_000_000
STREAM: Options = {"chunks": 72, "interval_ms": 16.0, "bytes": 480, "verify": False}
CONFIG = """
daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/error.log;
events {{ worker_connections 64; }}
http {{
  access_log off;
  client_body_temp_path {folder}/a; proxy_temp_path {folder}/b; fastcgi_temp_path {folder}/c;
  uwsgi_temp_path {folder}/d; scgi_temp_path {folder}/e;
  proxy_http_version 1.0; proxy_ssl_verify off; proxy_ssl_protocols TLSv1.3;
  proxy_ignore_headers X-Accel-Buffering;
  server {{ listen 127.0.0.1:{on}; location / {{ proxy_buffering on; proxy_pass https://127.0.0.1:{site}; }} }}
  server {{ listen 127.0.0.1:{off}; location / {{ proxy_buffering off; proxy_pass https://127.0.0.1:{site}; }} }}
}}
"""  # noqa: E501


@contextlib.asynccontextmanager
async def reflector(network: SystemNetwork, clock: SystemClock) -> AsyncGenerator[Https, None]:
    https = Https(network, HostClock(clock), HttpsOptions(port=0), ["127.0.0.1"])
    https.open()
    try:
        yield https
    finally:
        https.close()


def free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        bound = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in bound:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in bound]


@contextlib.contextmanager
def nginx(folder: Path, site: int) -> Generator[tuple[int, int], None, None]:
    """The ports with buffering on and off."""
    on, off = free_ports(2)
    config = folder / "nginx.conf"
    config.write_text(CONFIG.format(folder=folder, on=on, off=off, site=site))
    log = folder / "error.log"
    process = subprocess.Popen(
        [program("nginx"), "-p", str(folder), "-c", str(config), "-e", str(log)],
        stderr=subprocess.DEVNULL,
    )
    try:
        yield on, off
    finally:
        process.terminate()
        process.wait(10)


async def listens(port: int) -> None:
    for _ in range(400):
        with contextlib.suppress(OSError):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.close()
            await writer.wait_closed()
            return
        await asyncio.sleep(0.01)
    pytest.fail(f"nothing listens on {port}")


async def stream(
    collector: Collector, port: int, options: Options, *, streams: int = 1
) -> Collector:
    probe = collector.open(TOKEN_STREAM, {**STREAM, **options})
    for seq in range(streams):
        probe.fire(shot_at("127.0.0.1", port=port, seq=seq, timeout_ns=5_000 * MS))
    await probe.drain()
    probe.close()
    return collector


@pytest.mark.needs("nginx")
async def test_buffering_on_is_found_and_off_is_not(tmp_path: Path) -> None:
    network, clock = SystemNetwork(), SystemClock()
    async with reflector(network, clock) as site:
        with nginx(tmp_path, site.port) as (on, off):
            await listens(on)
            await listens(off)
            plain: Options = {"scheme": "http"}
            found = await asyncio.gather(
                stream(Collector(network, clock), on, plain),
                stream(Collector(network, clock), off, plain),
                stream(Collector(network, clock), site.port, {}),
            )
    network.close()
    first = [collector.only("ttft") for collector in found]
    assert all(sample.failure is None for sample in first), [sample.failure for sample in first]
    verdicts = [(sample.notes or {})["buffered"] for sample in first]
    assert verdicts[0] == Verdict.BURSTS
    # A busy host leaves "undecided", and never raises an alarm.
    assert verdicts[1] in (Verdict.NO, Verdict.UNDECIDED)
    assert verdicts[2] in (Verdict.NO, Verdict.UNDECIDED)
    # What a proxy hides in the gaps it adds to the first token.
    assert (first[0].value_ns or 0) > (first[1].value_ns or 0) + 50 * MS
    burst = [(sample.notes or {})["burst_index"] for sample in first]
    assert float(burst[0]) > 0.7
    delivery = evaluate_delivery(
        streams_of(sample for _, sample in found[0].emitted),
        interval_ns=16 * MS,
        buffer_ns=100 * MS,
    )
    assert delivery is not None
    assert delivery.verdict is Verdict.BURSTS
    assert delivery.chunks_received == 72


@pytest.mark.parametrize(
    ("form", "version"),
    [("sse", "1.1"), ("chunked", "1.1"), ("websocket", "1.1"), ("sse", "2"), ("sse", "3")],
)
async def test_our_reflector_in_every_form(form: str, version: str) -> None:
    network, clock = SystemNetwork(), SystemClock()
    options: Options = {"form": form, "version": version, "chunks": 20, "interval_ms": 4.0}
    async with reflector(network, clock) as site:
        told = await stream(Collector(network, clock), site.port, options, streams=2)
    network.close()
    assert len(told.of("ttft")) == 2
    for first in told.of("ttft"):
        assert first.failure is None
        notes = first.notes or {}
        assert notes["chunks_received"] == 20
        assert notes["send_clock"] == "kernel"
    varied = told.of("delivery_variation")
    assert len(varied) == len(told.of("delivery_gap")) == 2 * 19
    kernel = [s for s in varied if s.clock_source is ClockSource.KERNEL]
    assert len(kernel) == len(varied)
    small = sorted(abs(s.value_ns or 0) for s in varied)
    assert small[len(small) // 2] < MS, "on loopback the path adds nothing"


@pytest.mark.parametrize("version", ["1.1", "3"])
@pytest.mark.parametrize("mode", ["resumed", "early_data", "warm"])
async def test_our_reflector_in_every_mode(mode: str, version: str) -> None:
    network, clock = SystemNetwork(), SystemClock()
    collector = Collector(network, clock)
    few: Options = {"mode": mode, "version": version, "chunks": 3, "interval_ms": 2.0}
    async with reflector(network, clock) as site:
        probe = collector.open(TOKEN_STREAM, {**STREAM, **few})
        for seq in range(2):
            probe.fire(shot_at("127.0.0.1", port=site.port, seq=seq, timeout_ns=5_000 * MS))
            await probe.drain()
        probe.close()
    network.close()
    first, second = collector.of("ttft")
    assert first.failure is None
    assert second.failure is None
    assert (first.mode, second.mode) == ("cold", mode)
    setups = [sample.value_ns for sample in collector.of("setup")]
    assert (setups[1] == 0) == (mode == "warm" or (mode, version) == ("early_data", "3"))
    unmarked = {s.metric for _, s in collector.emitted if Flag.UNVERIFIED not in s.flags}
    assert unmarked == set(), "nobody checked the certificate"
