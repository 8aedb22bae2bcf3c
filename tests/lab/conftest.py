"""Tests that start a lab: as root in this process, as an ordinary user in one of their own.

Where a module says ``STARTS_LABS_HERE = True`` and this process is not root, each test function is
run by another pytest inside a user namespace: so they are written as if root, and hold for both.
"""

import itertools
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from pathbudget.agents.lab.container import command_inside
from pathbudget.agents.lab.link import DirectionModel
from pathbudget.agents.lab.report import LabReport
from pathbudget.agents.lab.running import Lab
from pathbudget.agents.lab.topology import Link, Node, NodeKind
from pathbudget.agents.lab.world import World
from pathbudget.agents.lab.world_check import build_world

MS = 1_000_000
PINGER = Path(__file__).parent / "pinger.py"
NOISY_US = 150.0
"""A run whose own p95 error is above this says nothing about the models: it is repeated."""
ATTEMPTS = 6


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not getattr(pyfuncitem.module, "STARTS_LABS_HERE", False) or os.geteuid() == 0:
        return None
    options = ["-q", "-p", "no:randomly", "-p", "no:cacheprovider"]
    inner = [sys.executable, "-m", "pytest", *options, pyfuncitem.nodeid]
    ran = subprocess.run(
        command_inside(inner, with_parent=True),
        cwd=pyfuncitem.config.rootpath,
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode:
        pytest.fail(f"in a user namespace:\n{ran.stdout}\n{ran.stderr}", pytrace=False)
    return True


def line(
    forward: DirectionModel, reverse: DirectionModel | None = None, *, routers: int = 1
) -> World:
    """region - router(s) - site; the models stand on the link in front of the site."""
    plain = DirectionModel(delay_ns=2 * MS)
    names = ["region", *(f"router{number}" for number in range(1, routers + 1)), "site"]
    kinds = [NodeKind.REGION, *[NodeKind.ROUTER] * routers, NodeKind.SITE]
    nodes = [Node(name, kind, responder=False) for name, kind in zip(names, kinds, strict=True)]
    links = [Link(one, other, plain, plain) for one, other in itertools.pairwise(names)]
    links[-1] = Link(links[-1].a, "site", forward, reverse or DirectionModel(forward.delay_ns))
    return build_world(nodes, links)


@dataclass(frozen=True, slots=True)
class Echoes:
    """What a pinger saw, and what the lab said of that time."""

    rtt_ms: dict[str, list[float | None]]
    report: LabReport

    def answered(self, address: str) -> list[float]:
        return [value for value in self.rtt_ms[address] if value is not None]

    def quantile(self, address: str, share: float) -> float:
        ordered = sorted(self.answered(address))
        return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def ping(
    lab: Lab, regions: Sequence[str], addresses: Sequence[str], **order: float
) -> dict[str, Echoes]:
    """Echoes from several regions at once to the same addresses."""
    text = json.dumps({"addresses": list(addresses), **order})
    before = lab.report()
    running = {
        region: lab.spawn(region, [sys.executable, str(PINGER), text], stdout=subprocess.PIPE)
        for region in regions
    }
    said = {region: process.communicate()[0] for region, process in running.items()}
    report = lab.report().since(before)
    return {region: Echoes(json.loads(text)["rtt_ms"], report) for region, text in said.items()}


def when_quiet(measure: Callable[[], dict[str, Echoes]]) -> dict[str, Echoes]:
    """The first of some runs that the lab itself calls exact enough."""
    errors: list[float] = []
    for _ in range(ATTEMPTS):
        echoes = measure()
        report = next(iter(echoes.values())).report
        if report.error_us(0.95) < NOISY_US and not report.ring_drops:
            return echoes
        errors.append(report.error_us(0.95))
    said = ", ".join(f"{error:.0f}" for error in errors)
    pytest.fail(f"the host is too busy for a lab: its own p95 error was {said} us, every time")


@dataclass(frozen=True, slots=True)
class Tools:
    """Functions of this module, for tests."""

    line: Callable[..., World] = line
    ping: Callable[..., dict[str, Echoes]] = ping
    when_quiet: Callable[[Callable[[], dict[str, Echoes]]], dict[str, Echoes]] = when_quiet


@pytest.fixture
def tools() -> Tools:
    return Tools()
