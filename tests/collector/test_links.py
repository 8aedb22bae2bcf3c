"""A link whose greetings fail, and a store that fails in the middle: nothing is left half done."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from nats.errors import TimeoutError as NoAnswer
from tests.fleet.conftest import Served, serving, until_async

from pathbudget.agents.bus.link import Link
from pathbudget.agents.bus.subjects import OPERATOR
from pathbudget.agents.collector.batch import Batch
from pathbudget.agents.collector.collecting import Collector
from pathbudget.probes.errors import RecordError, StoreError
from pathbudget.probes.record import Measurement, Target, Vantage


@pytest.mark.needs("nats-server")
def test_a_greeting_that_fails_is_tried_again_without_a_new_connection(tmp_path: Path) -> None:
    """Streams that are not there yet must not cost an agent its plan."""
    heard: list[int] = []

    async def greeting(_client: object) -> None:
        heard.append(len(heard))
        if len(heard) < 3:
            raise NoAnswer

    async def greeted(served: Served) -> None:
        said: list[str] = []
        link = Link(served.login(OPERATOR), said.append)
        link.greet(greeting)
        running = asyncio.create_task(link.run())
        await until_async(lambda: not link.trouble)
        assert link.client.stats["reconnects"] == 0
        assert len(said) == 1, "said once, not with each try"
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await link.close()

    for served in serving(tmp_path):
        asyncio.run(greeted(served))
    assert heard == [0, 1, 2]


class Message:
    """What the collector needs of one."""

    def __init__(self, name: str) -> None:
        self.subject, self.data, self.headers = (
            "pathbudget.results.office",
            b"",
            {"Nats-Msg-Id": name},
        )
        self.answers: list[str] = []

    async def ack(self) -> None:
        self.answers.append("ack")

    async def term(self) -> None:
        self.answers.append("term")

    async def in_progress(self) -> None:
        self.answers.append("in_progress")


class Fussy:
    """A store that takes no batch with ``bad`` in it, and is away for a moment in between."""

    def __init__(self) -> None:
        self.kept: list[str] = []
        self.away = 1

    def write(self, measurements: Sequence[Measurement]) -> Any:
        names = [one.id for one in measurements]
        if "bad" in names:
            raise RecordError("no table holds it")
        if names == ["last"] and self.away:
            self.away -= 1
            raise StoreError("away")
        fresh = [one for one in names if one not in self.kept]
        self.kept += fresh
        return SimpleNamespace(written=len(fresh), already_there=len(names) - len(fresh))


async def test_a_store_that_is_away_while_the_unstorable_is_looked_for_is_waited_for(
    tmp_path: Path,
) -> None:
    names = ["first", "bad", "last"]
    messages = [Message(name) for name in names]
    rows = [
        Measurement(
            id=name, vantage=Vantage("office", "here"), target=Target("lo", "127.0.0.1", "loop"),
            probe="icmp", started_unix_ns=1, samples=(),
        )
        for name in names
    ]  # fmt: skip
    store, link = Fussy(), SimpleNamespace(trouble="")
    collector = Collector(cast("Link", link), store, tmp_path / "rejected", lambda _: None)
    await collector._store_batch(Batch(cast("Any", [*messages]), rows))
    await asyncio.sleep(0)
    assert store.kept == ["first", "last"]
    assert [one.answers[-1] for one in messages] == ["ack", "term", "ack"]
    status = collector.status()
    assert (status.measurements, status.rejected) == (2, {"unstorable": 1})
