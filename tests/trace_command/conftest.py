"""Paths that a script decides, and a trace probe that walks them: samples as a real one gives."""

import asyncio
import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from pathbudget.agents.ping.hosts import parse_ping_host
from pathbudget.agents.trace.known import Knowing
from pathbudget.agents.trace.options import TraceOptions
from pathbudget.agents.trace.path_state import PathState
from pathbudget.agents.trace.session import Session
from pathbudget.probes.contract import (
    Cost,
    Options,
    OptionSpec,
    Probe,
    ProbeEnvironment,
    ProbeSpec,
    Shot,
)
from pathbudget.probes.fake_network import FakeClock, FakeNetwork
from pathbudget.probes.record import ClockSource, Failure, FailureKind, Note, Sample, Stage

MS = 1_000_000
SECOND = 1_000 * MS
START_UNIX_NS = 1_790_000_000_000_000_000
TARGET = "198.51.100.9"
LOST = Failure(FailureKind.TIMEOUT, Stage.WAIT)

Script = Callable[[int, int], Sequence[str | None]]
"""(round, flow) to who answers at hop limits 1, 2, ...; None: nobody, the target: arrived."""


@dataclass
class Walk:
    """A scripted path set. `silent` decides which probes a router leaves unanswered."""

    script: Script
    flows: int = 6
    base_ms: Sequence[float] = (0.3, 1.2, 5.1, 5.3, 9.8, 15.2, 15.4, 16.0, 16.1, 16.3)
    silent: Callable[[str, int, int], bool] = lambda who, trace, flow: False
    notes: Mapping[str, Mapping[str, Note]] = field(default_factory=dict[str, Mapping[str, Note]])
    end_notes: Mapping[str, Note] = field(
        default_factory=lambda: {
            "stopped": "arrived",
            "confidence": 0.95,
            "complete": True,
            "protocol": "udp",
            "port": 33434,
        }
    )

    def samples(self, trace: int, at_unix_ns: int, target: str = TARGET) -> Iterator[Sample]:
        """One trace, in the order of sending."""
        rng = random.Random(trace)
        for flow in range(self.flows):
            for limit, who in enumerate(self.script(trace, flow), 1):
                answers = who is not None and not self.silent(who, trace, flow)
                value = int((self.base_ms[limit - 1] + rng.expovariate(4)) * MS)
                yield Sample(
                    seq=trace,
                    metric="hop_rtt",
                    sent_unix_ns=at_unix_ns + limit * MS,
                    value_ns=value if answers else None,
                    failure=None if answers else LOST,
                    clock_source=ClockSource.KERNEL,
                    responder=who if answers and who != target else None,
                    flow=33_434 + flow,
                    part=limit,
                    notes=dict(self.notes[who]) if who and answers and who in self.notes else None,
                )
        path = self.script(trace, 0)
        reached = path[-1] == target
        yield Sample(
            seq=trace,
            metric="rtt",
            sent_unix_ns=at_unix_ns,
            value_ns=int(self.base_ms[len(path) - 1] * MS) if reached else None,
            failure=None if reached else LOST,
            flow=33_434,
            notes=dict(self.end_notes) if reached else {**self.end_notes, "stopped": "gap"},
        )


def plain(trace: int, flow: int) -> Sequence[str | None]:
    """Two branches of two hops, one hop before and two after."""
    branch = "ab"[flow % 2]
    first = {"a": "10.1.0.1", "b": "10.1.0.2"}[branch]
    second = {"a": "10.1.1.1", "b": "10.1.1.2"}[branch]
    return ("10.0.0.1", first, second, "10.2.0.1", TARGET)


def state_of(walk: Walk, rounds: int = 3, *, target: str = TARGET) -> PathState:
    """A path after so many rounds, ten seconds apart."""
    state = PathState(
        host=target,
        address=target,
        start_unix_ns=START_UNIX_NS,
        column_ns=10 * SECOND,
        timeout_ns=SECOND,
    )
    for trace in range(rounds):
        for sample in walk.samples(trace, START_UNIX_NS + 10 * trace * SECOND, target):
            state.take(sample)
    return state


class ScriptedProbe:
    """Answers every shot with the samples of a walk, after a little while."""

    def __init__(self, environment: ProbeEnvironment, walks: Mapping[str, Walk]) -> None:
        self._environment = environment
        self._walks = walks
        self._waiting = 0
        self._idle = asyncio.Event()
        self._idle.set()

    def fire(self, shot: Shot) -> None:
        self._waiting += 1
        self._idle.clear()
        environment = self._environment
        at = environment.clock.monotonic_ns() + 300 * MS
        environment.network.call_at(at, lambda: self._answer(shot))

    def _answer(self, shot: Shot) -> None:
        walk = self._walks[shot.address]
        now = self._environment.clock.unix_ns()
        for sample in walk.samples(shot.seq, now, shot.address):
            self._environment.emit(shot.series, sample)
        self._waiting -= 1
        if not self._waiting:
            self._idle.set()

    async def drain(self) -> None:
        await self._idle.wait()

    def close(self) -> None:
        """Nothing is held."""


@dataclass
class World:
    """A fake network with scripted paths on it, and what runs on it wrote."""

    clock: FakeClock = field(default_factory=lambda: FakeClock(jumps=True))
    walks: dict[str, Walk] = field(default_factory=dict[str, Walk])
    lines: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    opened: list[Options] = field(default_factory=list[Options])

    def __post_init__(self) -> None:
        self.network = FakeNetwork(self.clock)

    def spec(self) -> ProbeSpec:
        return ProbeSpec(
            name="trace",
            summary="scripted",
            version=1,
            open=self._open,
            cost=lambda _: Cost(packets=100, bytes=6_000),
            options={
                "protocol": OptionSpec(str, "udp", "", choices=("icmp", "udp", "tcp", "session")),
                "flows": OptionSpec(int, 16, "", minimum=1, maximum=128),
                "confidence": OptionSpec(float, 0.95, "", minimum=0.5, maximum=0.999),
                "max_hops": OptionSpec(int, 30, "", minimum=1, maximum=64),
            },
        )

    def _open(self, environment: ProbeEnvironment, options: Options) -> Probe:
        self.opened.append(options)
        return ScriptedProbe(environment, self.walks)

    def run(
        self, hosts: Sequence[str], *, knowing: Knowing | None = None, **options: Any
    ) -> Session:
        """A whole run."""

        async def nothing(session: Session) -> None:
            del session

        async def whole() -> Session:
            asked = TraceOptions(hosts=[parse_ping_host(one) for one in hosts], **options)
            session = Session(
                asked,
                table={"trace": self.spec()},
                network=self.network,
                clock=self.clock,
                write=lambda line: self.lines.append(json.loads(line)),
                knowing=knowing,
            )
            await session.run(nothing)
            return session

        return asyncio.run(whole())

    def objects(self, kind: str) -> list[dict[str, Any]]:
        """The lines of one type."""
        return [one for one in self.lines if one["type"] == kind]


@pytest.fixture
def world() -> World:
    return World()
