"""Agents as processes on loopback, and pieces of them in a folder."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pathbudget.agents.store.parquet import Store
from pathbudget.probes.agent_health import AGENT
from pathbudget.probes.record import Measurement, Metric, Sample, Target, Vantage

CATALOGUE = """
[[region]]
name = "here"
latitude = 50.0
longitude = 8.0

[[site]]
name = "loop"
latitude = 50.1
longitude = 8.1
[[site.target]]
name = "lo"
host = "127.0.0.1"
"""
CAMPAIGN = """
name = "months"
catalogue = "catalogue.toml"
duration = "10s"
seed = 7

[[vantage]]
name = "office"
region = "here"

[[probe]]
kind = "icmp"
interval = "INTERVAL"
schedule = "periodic"
"""
POLICY = 'allowed_networks = ["127.0.0.0/8"]\n'
PATIENCE_S = 30.0


def until(holds: Callable[[], object], what: str = "") -> None:
    """Wait for something that must come; how long it takes is not what is tested."""
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end, f"not within {PATIENCE_S:.0f} s: {what}"
        time.sleep(0.05)


@dataclass
class AgentHost:
    """A folder with campaign and policy, and the agents that were started in it."""

    folder: Path
    running: list[subprocess.Popen[str]] = field(default_factory=list[subprocess.Popen[str]])
    inside: tuple[str, ...] = ()
    """What a command begins with to run where the agents do."""
    state: Path = Path()
    """Folder of the agents, as this process sees it."""
    _left_over: set[Path] = field(default_factory=set[Path])

    def __post_init__(self) -> None:
        self.state = self.folder / "pathbudget-agent"

    def write(self, interval: str = "20ms", policy: str = POLICY) -> None:
        (self.folder / "catalogue.toml").write_text(CATALOGUE)
        new = self.folder / "campaign.new"
        new.write_text(CAMPAIGN.replace("INTERVAL", interval))
        new.replace(self.folder / "campaign.toml")
        (self.folder / "policy.toml").write_text(policy)

    def start(self, *more: str, plan: str = "campaign.toml", **environment: str) -> None:
        program = str(Path(sys.executable).with_name("pathbudget"))
        self.count_anew()
        command = [
            *self.inside,
            program,
            "agent",
            plan,
            "--policy",
            "policy.toml",
            "--realtime",
            "off",
            *more,
        ]
        with (self.folder / "log.txt").open("a") as log:
            self.running.append(
                subprocess.Popen(
                    command, cwd=self.folder, stdout=log, stderr=log, text=True,
                    env={**os.environ, **environment},
                )
            )  # fmt: skip

    def send(self, number: int) -> None:
        self.running[-1].send_signal(number)

    def end(self, number: int = signal.SIGTERM) -> int:
        self.send(number)
        return self.running[-1].wait(PATIENCE_S)

    @property
    def log(self) -> str:
        return (self.folder / "log.txt").read_text()

    @property
    def status(self) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads(self.status_file.read_bytes())
        except FileNotFoundError:
            return {}
        return found

    @property
    def status_file(self) -> Path:
        return self.state / "status.json"

    def await_samples(self, number: int) -> None:
        """Until so many have been measured since the last start, or `count_anew`."""
        until(lambda: self._in_journals() >= number, f"{number} samples")

    def count_anew(self) -> None:
        """Journals that there are do not count from now on."""
        self._left_over = set(self._journals())

    def _journals(self) -> list[Path]:
        return [*self.state.glob("open/*.jsonl")]

    def _in_journals(self) -> int:
        found = 0
        for one in {*self._journals()} - self._left_over:
            with contextlib.suppress(FileNotFoundError):
                found += one.read_bytes().count(b'{"in":')
        return found

    def stored(self) -> list[Measurement]:
        """What was measured of paths."""
        return [one for one in self.everything() if one.probe != AGENT]

    def everything(self) -> list[Measurement]:
        """That, and what agents say of themselves."""
        return list(Store(self.folder / "pathbudget-store").measurements())

    def made(self) -> int:
        """Samples in the store; all that there ever were, or this fails."""
        found = sum(len(one.samples) for one in self.everything())
        spool = self.status["spool"]
        assert spool["made_samples"] == spool["acknowledged_samples"] == found
        return found

    def samples(self) -> list[Sample]:
        return [sample for one in self.stored() for sample in one.samples]


@pytest.fixture
def host(tmp_path: Path) -> Iterator[AgentHost]:
    """A host on which agents can be started."""
    one = AgentHost(tmp_path)
    one.write()
    yield one
    for process in one.running:
        process.kill()
        process.wait(PATIENCE_S)


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[socket.socket]:
    """A socket that hears what a service manager is told."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as heard:
        heard.bind(str(tmp_path / "notify"))
        heard.settimeout(PATIENCE_S)
        yield heard


def measured(name: str, samples: int = 3) -> Measurement:
    """A measurement with so many samples."""
    rows = tuple(
        Sample(seq=n, metric=Metric.RTT, sent_unix_ns=1_790_000_000_000_000_000 + n, value_ns=1000)
        for n in range(samples)
    )
    return Measurement(
        id=name, vantage=Vantage("office", "here"), target=Target("lo", "127.0.0.1", "loop"),
        probe="icmp", started_unix_ns=1_790_000_000_000_000_000, samples=rows,
    )  # fmt: skip
