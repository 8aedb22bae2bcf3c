"""A fleet of processes on loopback: server, agents and collectors that can be killed one by one."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from tests.faults.one_agent import plan_of
from tests.fleet.conftest import Served, until

from pathbudget.agents.bus.subjects import OPERATOR
from pathbudget.agents.daemon.status import AgentStatus, read_status
from pathbudget.agents.fleet.plan_bucket import looked_into, push
from pathbudget.agents.fleet.reload import running_pid
from pathbudget.agents.plans.keys import read_private
from pathbudget.agents.plans.signing import sign
from pathbudget.agents.store.layout import MARKER
from pathbudget.agents.store.parquet import Store
from pathbudget.probes.agent_health import AGENT as HEALTH
from pathbudget.probes.record import Measurement, Vantage

PATIENCE_S = 60.0
POLICY = 'allowed_networks = ["127.0.0.0/8"]\n'
OFFICE = "office"

Process = subprocess.Popen[bytes]


@dataclass
class FleetRun:
    """Everything lies in `folder`; `served` is `fleet serve --no-collector`."""

    folder: Path
    served: Served
    agents: dict[str, Process] = field(default_factory=dict[str, Process])
    collectors: list[Process] = field(default_factory=list[Process])

    def push(
        self, agent: str = OFFICE, *, serial: int | None = None, interval_ns: int = 20_000_000
    ) -> None:
        """Sign a plan of echo requests to loopback and bring it to the bus."""
        plan = plan_of(interval_ns, roll_ns=1_000_000_000, serial=serial or time.time_ns() // 1000)
        named = msgspec.structs.replace(plan, agent=agent, vantage=Vantage(agent, "here"))
        key = read_private(self.served.folder.path.with_name("operator"))
        asyncio.run(
            push(self.served.login(OPERATOR), [looked_into(sign(named, key))], lambda _: None)
        )

    def start_agent(self, name: str = OFFICE, *words: str) -> Process:
        self.served.member(name)
        (self.folder / "policy.toml").write_text(POLICY)
        login = self.served.folder.path / f"{name}.login.toml"
        command = ["agent", "--login", str(login), "--policy", "policy.toml", "--realtime", "off"]
        process = self._start(f"{name}.log", *command, "--state", f"{name}.state", *words)
        self.agents[name] = process
        return process

    def start_collector(self, store: str = "store") -> Process:
        login = self.served.folder.path / "collector.toml"
        process = self._start("collector.log", "collector", "--login", str(login), "--store", store)
        self.collectors.append(process)
        return process

    def kill_server(self) -> None:
        """nats-server itself; `fleet serve` starts another one."""
        pid = running_pid(self.served.folder.nats)
        if pid is not None:
            os.kill(pid, signal.SIGKILL)

    def _start(self, log: str, *words: str) -> Process:
        with (self.folder / log).open("ab") as file:
            return subprocess.Popen(
                [sys.executable, "-m", "pathbudget.agents.cli.main", *words],
                cwd=self.folder, stdout=file, stderr=file, env=dict(os.environ),
            )  # fmt: skip

    def log(self, name: str) -> str:
        path = self.folder / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def status(self, agent: str = OFFICE) -> AgentStatus | None:
        path = self.folder / f"{agent}.state" / "status.json"
        return read_status(path) if path.exists() else None

    def collected(self, store: str = "store") -> dict[str, Any]:
        path = self.folder / store / "collector.json"
        found: dict[str, Any] = json.loads(path.read_bytes()) if path.exists() else {}
        return found

    def await_samples(self, number: int, agent: str = OFFICE) -> None:
        """Of the life that is under way."""
        pid = self.agents[agent].pid
        until(lambda: self._samples(agent) >= number, lambda: f"{pid}: {self.log(agent)}")

    def _samples(self, agent: str) -> int:
        status = self.status(agent)
        fresh = status is not None and status.at_unix_ns > self._started(agent)
        return status.samples if status is not None and fresh else 0

    def _started(self, agent: str) -> int:
        return (Path("/proc") / str(self.agents[agent].pid)).stat().st_ctime_ns

    def end_agents(self) -> None:
        """As a service manager does. What the bus did not take at the end is in the spool, and goes
        with the next life.
        """
        left: list[str] = []
        for _ in range(5):
            for process in self.agents.values():
                process.send_signal(signal.SIGTERM)
            for name, process in self.agents.items():
                assert process.wait(PATIENCE_S) == 0, self.log(name)
            left = [name for name in self.agents if self.waiting(name)]
            if not left:
                return
            for name in left:
                self.start_agent(name)
                self.await_samples(1, name)
                until(lambda: not self.waiting(name), lambda: self.log(name))  # noqa: B023
        raise AssertionError(f"never all delivered: {left}")

    def waiting(self, agent: str = OFFICE) -> int:
        """Samples in the spool."""
        status = self.status(agent)
        return 0 if status is None else status.spool.waiting_samples

    def await_drained(self) -> None:
        """Until the collectors have taken everything that is on the bus."""

        def drained() -> bool:
            fresh = self.collected()
            return fresh.get("waiting") == 0 and fresh["at_unix_ns"] > asked

        asked = time.time_ns() + 2_000_000_000
        until(drained, lambda: f"{self.collected()} {self.log('collector')}")

    def stored(self, *stores: str) -> list[Measurement]:
        there = [self.folder / name for name in stores or ("store",)]
        return [
            one
            for path in there
            if (path / MARKER).exists()  # written last
            for one in Store(path).measurements()
        ]

    def accounts_for_all(self, *stores: str, agents: tuple[str, ...] = (OFFICE,)) -> int:
        """Samples made = stored + dropped, by each agent, and no measurement twice. How many."""
        measurements = self.stored(*stores)
        ids = [one.id for one in measurements]
        assert len(ids) == len(set(ids)), "something is stored twice"
        total = 0
        for agent in agents:
            status = self.status(agent)
            assert status is not None
            spool = status.spool
            mine = sum(len(one.samples) for one in measurements if one.vantage.name == agent)
            assert spool.waiting_samples == 0, spool
            dropped = sum(spool.dropped_samples.values())
            assert spool.made_samples == mine + dropped, (spool, mine)
            assert not dropped, spool
            total += mine
        return total

    def lives(self) -> dict[str, list[int]]:
        """Numbers of the samples of paths, by run: nothing may be missing but at the end."""
        found: dict[str, list[int]] = {}
        for one in self.stored():
            if one.probe != HEALTH:
                run = str(one.options["run"])
                found.setdefault(run, []).extend(sample.seq for sample in one.samples)
        return {run: sorted(rows) for run, rows in found.items()}

    def close(self) -> None:
        for process in [*self.agents.values(), *self.collectors]:
            process.kill()
            process.wait(PATIENCE_S)
