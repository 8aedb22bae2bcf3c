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
"""A run whose own p95 error is above this is repeated; see `Allowance` for what comes then."""
ATTEMPTS = 3


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
    """The first of some runs that the lab itself calls exact enough; else the most exact one."""
    best: dict[str, Echoes] | None = None
    best_error = math.inf
    for _ in range(ATTEMPTS):
        echoes = measure()
        report = next(iter(echoes.values())).report
        error = math.inf if report.ring_drops else report.error_us(0.95)
        if best is None or error < best_error:
            best, best_error = echoes, error
        if error < NOISY_US:
            break
    assert best is not None
    return best


@dataclass(frozen=True, slots=True)
class Allowance:
    """What the lab's statement about its own error leaves of an accuracy.

    Quiet run: the error that 95 % of the deliveries keep. Noisy run (a hypervisor that takes the
    processor away): a round trip has two deliveries, so P(round trip > t + 2e) is at most
    P(truth > t) + 2 P(error > e). With e so that the second term is a fifth of the share above the
    quantile, the measured quantile is below the truth's at that much higher a share, plus 2e.
    """

    report: LabReport

    @property
    def noisy(self) -> bool:
        return self.report.error_us(0.95) >= NOISY_US

    def share(self, share: float) -> float:
        """The share at which the truth bounds the measured quantile from above."""
        return share + (1 - share) / 5 if self.noisy else share

    def ms(self, share: float) -> float:
        """How much longer than that the measured quantile may be."""
        if not self.noisy:
            return max(0.0, self.report.error_us(0.95)) / 1000
        return 2 * max(0.0, self.report.error_us(1 - (1 - share) / 10)) / 1000


@dataclass(frozen=True, slots=True)
class Tools:
    """Functions of this module, for tests."""

    line: Callable[..., World] = line
    ping: Callable[..., dict[str, Echoes]] = ping
    allowance: Callable[[LabReport], Allowance] = Allowance
    when_quiet: Callable[[Callable[[], dict[str, Echoes]]], dict[str, Echoes]] = when_quiet


@pytest.fixture
def tools() -> Tools:
    return Tools()
