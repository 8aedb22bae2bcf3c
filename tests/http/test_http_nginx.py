"""The http probe against nginx: what each sample says is what nginx says in its own log."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.http.nginx_server import Nginx

from pathbudget.probes.fake_collector import Collector, shot_at
from pathbudget.probes.http.probe import HTTP
from pathbudget.probes.record import ClockSource, FailureKind, Flag, Metric, Sample

pytestmark = pytest.mark.needs("nginx")
SECOND_NS = 1_000_000_000
VERSIONS = [("1.1", "one", "HTTP/1.1"), ("2", "two", "HTTP/2.0")]

Run = Callable[..., Awaitable[list[Sample]]]


@pytest.fixture
def run(collector: Collector, nginx: Nginx) -> Run:
    """Fire shots one after the other; the `first_byte` of each, without failure."""

    async def fire(port: str, shots: int = 1, *, pause: float = 0, **options: Any) -> list[Sample]:
        options = {"ca_file": nginx.ca_file, **options}
        probe = collector.open(HTTP, options)
        for seq in range(shots):
            shot = shot_at("127.0.0.1", host="localhost", port=getattr(nginx, port), seq=seq,
                           timeout_ns=10 * SECOND_NS)  # fmt: skip
            probe.fire(shot)
            await asyncio.wait_for(probe.drain(), 20)
            await asyncio.sleep(pause)
        probe.close()
        found = collector.of("first_byte")
        assert [sample.seq for sample in found] == list(range(shots))
        return found

    return fire


def modes(samples: list[Sample]) -> list[str]:
    assert [sample.failure for sample in samples] == [None] * len(samples)
    return [str(sample.mode) for sample in samples]


@pytest.mark.parametrize(("version", "port", "word"), VERSIONS)
async def test_modes_are_what_nginx_saw(
    run: Run, nginx: Nginx, collector: Collector, version: str, port: str, word: str
) -> None:
    """Session resumed, and number of the request on its connection."""
    for mode, reused, numbers in (
        ("cold", "..", "11"),
        ("resumed", ".r", "11"),
        ("warm", "..", "12"),
    ):
        nginx.forget()
        collector.emitted.clear()
        samples = await run(port, 2, mode=mode, version=version)
        lines = nginx.lines(2)
        assert "".join(line.reused or "." for line in lines) == reused
        assert "".join(line.number for line in lines) == numbers
        assert {line.early for line in lines} <= {"", "-"}
        assert {line.protocol for line in lines} == {word}
        assert modes(samples) == ["cold", mode]
        assert [sample.mode for sample in collector.of("ttfb")] == ["cold", mode]
        assert {sample.clock_source for sample in collector.of("ttfb")} == {ClockSource.KERNEL}


@pytest.mark.parametrize(("version", "port", "word"), VERSIONS)
async def test_early_data_is_what_nginx_saw(
    run: Run, nginx: Nginx, version: str, port: str, word: str
) -> None:
    """nginx says so only while the handshake is incomplete: on a busy host it may be complete by
    the time that it looks at the request. So some of the shots prove it, and the first never does.
    """
    samples = await run(port, 8, mode="early_data", version=version)
    lines = nginx.lines(8)
    assert modes(samples) == ["cold"] + ["early_data"] * 7
    assert "".join(line.reused or "." for line in lines) == ".rrrrrrr"
    early = [line.early == "1" for line in lines]
    assert not early[0]
    assert any(early)
    assert {line.number for line in lines} == {"1"}


@pytest.mark.parametrize(("version", "port", "word"), VERSIONS)
async def test_a_cold_request_says_everything(
    run: Run, collector: Collector, version: str, port: str, word: str
) -> None:
    (sample,) = await run(port, version=version)
    names = [str(one.metric) for _, one in collector.emitted]
    assert names == ["connect", "tls_handshake", "client_compute", "setup", "send", "wait", "ttfb",
                     "receive", "first_byte"]  # fmt: skip
    notes = sample.notes or {}
    assert notes["protocol"] == word.removesuffix(".0")
    assert notes["alpn"] == {"1.1": "http/1.1", "2": "h2"}[version]
    assert (notes["status"], notes["bytes"]) == (200, 2)
    assert notes["server_timing"] == 'cache;desc="hit";dur=2.5'
    value = {str(one.metric): one.value_ns or 0 for _, one in collector.emitted}
    assert value["setup"] == value["connect"] + value["tls_handshake"]
    assert value["ttfb"] == value["send"] + value["wait"]
    assert value["first_byte"] == value["setup"] + value["ttfb"]
    assert (collector.only("tls_handshake").notes or {})["group"] == "X25519"


@pytest.mark.parametrize(("version", "port", "word"), VERSIONS)
async def test_a_download(run: Run, version: str, port: str, word: str) -> None:
    (sample,) = await run(port, version=version, path="/large", answer_bytes=3_000_000)
    assert (sample.notes or {})["bytes"] == 3_000_000


@pytest.mark.parametrize(("version", "port", "word"), VERSIONS)
async def test_an_answer_beyond_what_is_taken(
    run: Run, collector: Collector, version: str, port: str, word: str
) -> None:
    await run(port, version=version, path="/large", answer_bytes=100_000)
    failure = collector.only("receive").failure
    assert failure is not None
    assert failure.detail == "an answer of more than 100000 bytes"


@pytest.mark.parametrize(("version", "port", "word"), VERSIONS)
async def test_an_upload(
    run: Run, nginx: Nginx, collector: Collector, version: str, port: str, word: str
) -> None:
    """More than the window that HTTP/2 begins with."""
    await run(port, version=version, method="POST", path="/upload", body_bytes=300_000)
    (line,) = nginx.lines(1)
    assert int(line.length) > 300_000
    assert (collector.only("send").value_ns or 0) > 0
    assert collector.only("send").clock_source is ClockSource.KERNEL


@pytest.mark.parametrize(
    ("port", "version", "found"),
    [("once", "1.1", ["cold"] * 4), ("short", "2", ["cold", "warm"] * 2)],
)
async def test_connections_that_nginx_ends_are_opened_anew(
    run: Run, nginx: Nginx, port: str, version: str, found: list[str]
) -> None:
    """By ``Connection: close``, and by GOAWAY after its second request."""
    samples = await run(port, 4, pause=0.05, mode="warm", version=version)
    assert modes(samples) == found
    assert [line.number for line in nginx.lines(4)] == [
        {"cold": "1", "warm": "2"}[mode] for mode in found
    ]


async def test_idle_connections_are_left_alone(run: Run) -> None:
    samples = await run("one", 3, pause=0.15, mode="idle", idle=0.1)
    assert modes(samples) == ["cold", "idle", "idle"]
    assert int((samples[1].notes or {})["idle_ms"]) >= 100


@pytest.mark.parametrize(("version", "port", "word"), VERSIONS)
async def test_what_credentials_cost(
    run: Run, nginx: Nginx, collector: Collector, tmp_path: Path, version: str, port: str, word: str
) -> None:
    """On the same connection: once with them, once without."""
    (tmp_path / "secret").write_text("hunter2")
    await run(port, 3, mode="warm", version=version, path="/secret", compare_credentials=True,
              authorization_file=str(tmp_path / "secret"))  # fmt: skip
    lines = nginx.lines(5)
    seen = [(line.authorization, line.status) for line in lines]
    both = [("Bearer hunter2", "200"), ("-", "401")]
    assert seen == [both[0], *both, *both]
    assert len({line.connection for line in lines}) == 1
    without = collector.of("ttfb_anonymous")
    assert [sample.seq for sample in without] == [1, 2]
    for sample in without:
        assert (sample.mode, sample.failure) == ("warm", None)
        assert (sample.notes or {}) == {"status_anonymous": 401}
    assert "hunter2" not in repr(collector.emitted)


@pytest.mark.parametrize(("version", "port", "word"), VERSIONS)
async def test_redirects(
    run: Run, nginx: Nginx, collector: Collector, version: str, port: str, word: str
) -> None:
    (sample,) = await run(port, version=version, path="/moved", follow_redirects=True)
    assert [line.status for line in nginx.lines(2)] == ["302", "200"]
    assert [one.part for one in collector.of("ttfb")] == [0, 1]
    assert [one.value_ns for one in collector.of("setup")][1] == 0
    assert ((sample.notes or {})["redirects"], (sample.notes or {})["status"]) == (1, 200)
    parts = (*collector.of("setup"), *collector.of("ttfb"), collector.of("receive")[0])
    assert sample.value_ns == sum(one.value_ns or 0 for one in parts)


async def test_a_redirect_where_connections_are_not_kept_is_dialled_again(
    run: Run, collector: Collector
) -> None:
    await run("once", path="/moved", follow_redirects=True)
    assert [(one.part, one.mode) for one in collector.of("setup")] == [(0, "cold"), (1, "cold")]
    assert len(collector.of("tls_handshake")) == 2


async def test_a_redirect_away_is_refused(run: Run) -> None:
    (sample,) = await run("one", path="/away", follow_redirects=True)
    assert sample.failure is not None
    assert sample.failure.kind is FailureKind.STATUS
    assert "https://other.example/" in sample.failure.detail


async def test_http_2_without_tls(run: Run) -> None:
    (sample,) = await run("clear", scheme="http", version="2")
    assert (sample.notes or {})["protocol"] == "HTTP/2"


async def test_a_server_without_http_2_says_so(run: Run) -> None:
    (sample,) = await run("one", version="2")
    assert sample.failure is not None
    assert sample.failure.kind is FailureKind.PROTOCOL
    assert "no application protocol" in sample.failure.detail


async def test_an_unchecked_certificate_is_marked_on_every_number(
    run: Run, collector: Collector
) -> None:
    await run("one", ca_file="", verify=False)
    for _, sample in collector.emitted:
        marked = sample.metric not in (Metric.CONNECT, Metric.CLIENT_COMPUTE)
        assert (Flag.UNVERIFIED in sample.flags) is marked, sample.metric


async def test_a_certificate_that_is_not_trusted_is_a_failure(run: Run) -> None:
    (sample,) = await run("one", ca_file="")
    assert sample.failure is not None
    assert sample.failure.kind is FailureKind.CERTIFICATE
