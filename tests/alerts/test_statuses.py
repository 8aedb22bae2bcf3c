"""Heartbeats out of a real bus, by an operator and by a collector."""

import asyncio
import time

import msgspec
import pytest
from tests.alerts.conftest import a_heartbeat
from tests.fleet.conftest import Served, entered
from tests.fleet.conftest import fleet as fleet  # noqa: PLC0414

from pathbudget.agents.alerts.statuses import of_bus
from pathbudget.agents.bus.login import read_login
from pathbudget.agents.bus.subjects import COLLECTOR, OPERATOR, STATUS, key_subject
from pathbudget.probes.errors import BusError
from pathbudget.probes.record import SyncState

pytestmark = pytest.mark.needs("nats-server")
WRONG_CLOCK = 1_000_000_000


async def test_who_was_heard_when_by_the_clock_of_the_bus(fleet: Served) -> None:
    before = time.time_ns() // 1_000_000_000 * 1_000_000_000
    for name in ("one", "two"):
        async with entered(fleet.member(name)) as agent:
            status = a_heartbeat(name, WRONG_CLOCK, SyncState.UNSYNCHRONISED)
            await agent.client.publish(key_subject(STATUS, name), msgspec.json.encode(status))
            await agent.client.flush()
    async with entered(fleet.login(OPERATOR)) as operator:
        await operator.client.publish(key_subject(STATUS, "odd"), b"no status")
        gone = {"KV-Operation": "DEL"}
        await operator.client.publish(key_subject(STATUS, "gone"), b"", headers=gone)
        await operator.client.flush()
    for user in (OPERATOR, COLLECTOR):
        login = read_login(fleet.folder.login_file(user))
        hosts = await asyncio.to_thread(of_bus, login)
        assert sorted(hosts) == ["one", "two"]
        for host in hosts.values():
            assert host.heard_unix_ns is not None
            assert before <= host.heard_unix_ns <= time.time_ns()
            assert host.clock is not None
            assert host.clock.sync_state is SyncState.UNSYNCHRONISED


def test_an_agent_may_not_look_and_a_bus_that_is_away_is_said_to_be(
    fleet: Served, closed_port: int
) -> None:
    with pytest.raises(BusError):
        of_bus(msgspec.structs.replace(fleet.member("nosy"), servers=fleet.login(OPERATOR).servers))
    away = msgspec.structs.replace(
        fleet.login(OPERATOR), servers=(f"tls://127.0.0.1:{closed_port}",)
    )
    with pytest.raises(BusError):
        of_bus(away)
