"""The http probe over HTTP/3 against caddy: the same shots, the same samples, its own log."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from tests.http.nginx_server import make_certificate
from tests.quic.others import Other, caddy

from pathbudget.probes.fake_collector import Collector, shot_at
from pathbudget.probes.http.probe import HTTP

pytestmark = pytest.mark.needs("caddy")
SECOND_NS = 1_000_000_000


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Other, str]]:
    folder = tmp_path_factory.mktemp("caddy")
    make_certificate(folder)
    with caddy(folder, folder) as other:
        yield other, str(folder / "certificate.pem")


@pytest.mark.parametrize("mode", ["cold", "resumed", "early_data", "warm"])
async def test_modes(collector: Collector, server: tuple[Other, str], mode: str) -> None:
    other, ca_file = server
    before = len(other.requests())
    probe = collector.open(
        HTTP, {"version": "3", "mode": mode, "path": "/hello", "ca_file": ca_file}
    )
    for seq in range(2):
        shot = shot_at("127.0.0.1", host="localhost", port=other.port, seq=seq,
                       timeout_ns=10 * SECOND_NS)  # fmt: skip
        probe.fire(shot)
        await asyncio.wait_for(probe.drain(), 20)
    probe.close()
    first, second = collector.of("first_byte")
    assert (first.failure, second.failure) == (None, None)
    assert (first.mode, second.mode) == ("cold", mode)
    notes = second.notes or {}
    assert (notes["status"], notes["bytes"], notes["protocol"]) == (200, 5, "HTTP/3")
    value = {str(one.metric): one.value_ns or 0 for _, one in collector.emitted if one.seq == 1}
    assert ("quic_handshake" in value) is (mode != "warm")
    waits = {"cold": value["setup"], "resumed": value["setup"], "early_data": 0, "warm": 0}[mode]
    assert value["first_byte"] == waits + value["ttfb"]
    lines = await logged(other, before + 2)
    assert [line["request"]["proto"] for line in lines[before:]] == ["HTTP/3.0"] * 2


async def logged(other: Other, count: int) -> list[dict[str, Any]]:
    """The log, once it has so many lines."""
    async with asyncio.timeout(10):
        while len(lines := other.requests()) < count:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    return lines
