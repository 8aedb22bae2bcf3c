"""A collector that is watched: nothing is counted twice, and nothing of it stops the collector."""

import asyncio
import subprocess
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast
from urllib.request import urlopen

import msgspec
import pytest
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2
from prometheus_client.parser import text_string_to_metric_families
from tests.programs import program
from tests.watch.conftest import OtlpReceiver, request_of, whole_request

from pathbudget.agents.bus.subjects import STATUS, key_subject
from pathbudget.agents.collector.status import CollectorStatus
from pathbudget.agents.daemon.status import AgentStatus
from pathbudget.agents.spool.entry import SpoolState
from pathbudget.agents.watch import collector as module
from pathbudget.agents.watch.collector import CollectorWatch
from pathbudget.agents.watch.endpoint import Listening
from pathbudget.agents.watch.otlp_client import TRACES, OtlpClient, parse_endpoint

LOOPBACK = Listening("127.0.0.1", 0)


def watch_of(said: list[str], **more: Any) -> CollectorWatch:
    return CollectorWatch(said.append, metrics=LOOPBACK, **more)


def scraped(said: list[str]) -> str:
    """What the endpoint gives that was told of first."""
    time.sleep(1.01)  # a text lives for a second
    with urlopen(said[0].split()[-1], timeout=20) as answer:
        return str(answer.read().decode())


def value(text: str, name: str, **labels: str) -> list[float]:
    return [
        one.value
        for family in text_string_to_metric_families(text)
        for one in family.samples
        if one.name == name and labels.items() <= one.labels.items()
    ]


def heartbeat(agent: str, data: bytes) -> Any:
    return SimpleNamespace(subject=key_subject(STATUS, agent), data=data)


def status_of(agent: str) -> bytes:
    spool = SpoolState(waiting_samples=5)
    return msgspec.json.encode(AgentStatus(agent, "pathbudget 1", time.time_ns(), spool))


async def heard(watch: CollectorWatch, agent: str, data: bytes) -> None:
    """As the client of the bus calls it."""
    callback = cast("Callable[[Any], Any]", getattr(watch, "_heard"))  # noqa: B009
    await callback(heartbeat(agent, data))


async def test_what_is_delivered_twice_is_counted_and_sent_once(otlp: OtlpReceiver) -> None:
    said: list[str] = []
    one, other = whole_request(), request_of(*whole_request().samples, id="other")
    with watch_of(said, otlp=OtlpClient(parse_endpoint(otlp.url))) as watch:
        await watch.stored([one, one])
        await watch.stored([one, other])
        text = await asyncio.to_thread(scraped, said)
        assert value(text, "pathbudget_first_byte_seconds_count", agent="office") == [2]
        async with asyncio.timeout(30):
            while not otlp.bodies(TRACES):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        text = await asyncio.to_thread(scraped, said)
        assert value(text, "pathbudget_otlp_measurements_total") == [2]
    spans = [
        span.span_id
        for body in otlp.bodies(TRACES)
        for resource in trace_service_pb2.ExportTraceServiceRequest.FromString(body).resource_spans
        for span in resource.scope_spans[0].spans
    ]
    assert len(spans) == len(set(spans)) == 20


async def test_what_is_remembered_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REMEMBERED", 3)
    with watch_of([]) as watch:
        for number in range(10):
            await watch.stored([request_of(*whole_request().samples, id=f"m{number}")])
        await watch.stored([request_of(*whole_request().samples, id="m9")])
        (meters,) = watch.book.pages()
        assert meters.outcomes["answered"] == 10


@pytest.mark.needs("promtool")
async def test_heartbeats_are_metrics_under_the_name_that_the_server_vouches_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MOST_AGENTS", 2)
    said: list[str] = []
    with watch_of(said) as watch:
        watch.tell(CollectorStatus("pathbudget 1", 2, 1, measurements=7, rejected={"garbage": 3}))
        await heard(watch, "office", status_of("somebody-else"))
        await heard(watch, "office", b"\xff{")
        await heard(watch, "dallas-1", status_of(""))
        await heard(watch, "third", status_of("third"))
        await heard(watch, "operator", status_of("operator"))
        text = await asyncio.to_thread(scraped, said)
    told = {
        one.labels["agent"]
        for family in text_string_to_metric_families(text)
        for one in family.samples
        if one.name == "pathbudget_agent_info"
    }
    assert told == {"office", "dallas-1"}
    assert value(text, "pathbudget_spool_samples", agent="office") == [5]
    assert value(text, "pathbudget_collector_measurements_total") == [7]
    assert value(text, "pathbudget_collector_rejected_total", fault="garbage") == [3]
    command = [program("promtool"), "check", "metrics"]
    result = await asyncio.to_thread(
        subprocess.run, command, input=text.encode(), capture_output=True
    )
    assert (result.returncode, result.stderr) == (0, b"")
