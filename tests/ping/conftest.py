"""Hosts with a history, and whole runs against a network that can do anything."""

import asyncio
import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from pathbudget.agents.ping.display import nothing
from pathbudget.agents.ping.host_state import HostState
from pathbudget.agents.ping.hosts import parse_ping_host
from pathbudget.agents.ping.options import PingOptions
from pathbudget.agents.ping.session import Session
from pathbudget.probes.fake_network import FakeClock, FakeNetwork, FakePath
from pathbudget.probes.record import ClockSource, Failure, FailureKind, Sample, Stage
from pathbudget.probes.table import probe_table

MS = 1_000_000
SECOND = 1_000 * MS
START_UNIX_NS = 1_790_000_000_000_000_000


def history(
    host: str, base_ns: int, spread_ns: int, lost: Callable[[int], bool], packets: int
) -> HostState:
    """A packet a second; twice the variation in the second half."""
    rng = random.Random(host)
    state = HostState(
        host=host,
        probe="icmp",
        address="192.0.2.1",
        start_unix_ns=START_UNIX_NS,
        column_ns=10 * SECOND,
        timeout_ns=SECOND,
    )
    for seq in range(packets):
        at = START_UNIX_NS + seq * SECOND
        if lost(seq):
            failure = Failure(FailureKind.TIMEOUT, Stage.WAIT)
            state.take(Sample(seq, "rtt", at, failure=failure), "rtt")
            continue
        value = base_ns + int(rng.expovariate(1 / spread_ns) * (1 + 2 * seq // packets))
        sample = Sample(seq, "rtt", at, value_ns=value, clock_source=ClockSource.KERNEL)
        state.take(sample, "rtt")
    return state


@pytest.fixture
def states() -> Sequence[HostState]:
    """A good path, one with loss and an outage, one inside a metro."""
    return (
        history("frankfurt.example", 15 * MS, MS, lambda seq: seq == 250, 600),
        history("sydney.example", 120 * MS, 5 * MS, lambda seq: 300 <= seq < 325, 600),
        history("metro.example", 180_000, 9_000, lambda seq: False, 600),
    )


@dataclass
class World:
    """A fake network and what a run on it wrote."""

    clock: FakeClock = field(default_factory=lambda: FakeClock(jumps=True))
    lines: list[tuple[int, dict[str, Any]]] = field(
        default_factory=list[tuple[int, dict[str, Any]]]
    )
    """(unix time of writing, the object)."""

    def __post_init__(self) -> None:
        self.network = FakeNetwork(self.clock)

    def path(self, address: str, **behaviour: Any) -> FakePath:
        path = self.network.paths[address] = FakePath(**behaviour)
        return path

    def session(self, hosts: Sequence[str], **options: Any) -> Session:
        asked = PingOptions(hosts=[parse_ping_host(one) for one in hosts], **options)
        return Session(
            asked, table=probe_table(), network=self.network, clock=self.clock, write=self._write
        )

    def run(self, hosts: Sequence[str], **options: Any) -> Session:
        async def whole() -> Session:
            session = self.session(hosts, **options)
            await session.run(nothing)
            return session

        return asyncio.run(whole())

    def objects(self, kind: str) -> list[dict[str, Any]]:
        return [one for _, one in self.lines if one["type"] == kind]

    def _write(self, line: bytes) -> None:
        assert line.endswith(b"\n")
        assert line.count(b"\n") == 1
        self.lines.append((self.clock.unix_ns(), json.loads(line)))


@pytest.fixture
def world() -> World:
    """Empty; give it paths."""
    return World()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--write-pictures", action="store_true", help="keep what is drawn now")
