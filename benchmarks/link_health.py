"""False alarms and power of the test for sick members, over seeds. Run by hand:

    .venv/bin/python benchmarks/link_health.py [--seeds 300]

Every row is one kind of path: how many sweeps had a finding, out of how many. Healthy rows have to
stay at or below alpha; the others say how often the sick member was found, and how exactly.
"""

import argparse
import sys
from dataclasses import dataclass

import numpy as np

from pathbudget.analysis.routes.members import ALPHA, MemberOptions, MemberSurvey, survey_sweep
from pathbudget.analysis.routes.model import MemberFinding, PathSeries
from pathbudget.analysis.routes.sweeps import Sweep, sweep_from_arrays

SERIES = PathSeries("bench", "region", "site", "target", "192.0.2.1", None)
INTERVAL_NS = 10_000_000


@dataclass(frozen=True)
class Case:
    """One kind of path. `sick` flows of `flows` lose `more` and take `longer_ns`."""

    name: str
    flows: int = 64
    per_flow: int = 200
    loss: float = 0.0005
    bursts: int = 0
    burst_packets: float = 40.0
    outages: int = 0
    diurnal_ns: float = 0.0
    slow_noise_ns: float = 0.0
    sick: int = 0
    more: float = 0.0
    longer_ns: float = 0.0


CASES = (
    Case("healthy, 0.05 % loss"),
    Case("healthy, 3 % loss", loss=0.03),
    Case("healthy, 256 flows", flows=256, per_flow=100),
    Case("healthy, 512 flows, 1 % loss", flows=512, per_flow=60, loss=0.01),
    Case("healthy, 8 flows, 2 % loss", flows=8, per_flow=400, loss=0.02),
    Case("healthy, 3 bursts of about 10 packets", bursts=3, burst_packets=10),
    Case("healthy, 20 bursts of about 10 packets", bursts=20, burst_packets=10),
    Case("healthy, 20 bursts of about 40 packets", bursts=20),
    Case("healthy, 100 bursts of about 3 packets", bursts=100, burst_packets=3),
    Case("healthy, 3 outages of 3 s", outages=3),
    Case("healthy, queue at busy hour", diurnal_ns=20e6, slow_noise_ns=2e6),
    Case("8 of 64 flows lose 3 %", sick=8, more=0.03),
    Case("8 of 64 flows lose 3 %, 20 bursts", sick=8, more=0.03, bursts=20),
    Case("4 of 64 flows lose 3 %", sick=4, more=0.03),
    Case("1 of 64 flows loses 3 %", sick=1, more=0.03),
    Case("1 of 64 flows loses 5.3 % (smallest)", sick=1, more=0.053),
    Case("1 of 64 flows loses 3 %, 400 packets", sick=1, more=0.03, per_flow=400),
    Case("32 of 64 flows lose 3 %", sick=32, more=0.03),
    Case("2 of 256 flows lose 10 %", flows=256, per_flow=100, sick=2, more=0.1),
    Case("4 of 64 flows take 40 us longer", sick=4, longer_ns=40_000),
    Case("4 of 64 flows take 10 us longer", sick=4, longer_ns=10_000),
)


def sweep_of_case(case: Case, rng: np.random.Generator) -> tuple[Sweep, set[int]]:
    """A sweep in turn, and the sick flows."""
    n = case.flows * case.per_flow
    flows = np.arange(n) % case.flows
    sick = set(rng.choice(case.flows, case.sick, replace=False).tolist())
    ill = np.isin(flows, list(sick))
    lost = (rng.random(n) < case.loss) | (ill & (rng.random(n) < case.more))
    for _ in range(case.bursts):
        start = rng.integers(n)
        lost[start : start + rng.geometric(1 / case.burst_packets)] = True
    for _ in range(case.outages):
        start = rng.integers(n)
        lost[start : start + 300] = True
    swell = case.diurnal_ns * np.sin(np.linspace(0, np.pi, n)) ** 2
    slow = np.cumsum(rng.normal(0, case.slow_noise_ns / 100, n))
    rtt = 5e6 + swell + slow + rng.exponential(50_000, n) + ill * case.longer_ns
    rtt[lost] = np.nan
    return sweep_from_arrays(flows, lost, np.arange(n) * INTERVAL_NS, rtt), sick


def main() -> int:
    """Print a row for each case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=300)
    parser.add_argument("--only", default="")
    parser.add_argument("--alpha", type=float, default=ALPHA)
    asked = parser.parse_args()
    print(f"{'path':42} {'loss':>9} {'rtt':>9} {'right flows':>12} {'in interval':>12}")
    for number, case in enumerate(CASES):
        if asked.only not in case.name:
            continue
        rows = [_one(case, number, seed, asked.alpha) for seed in range(asked.seeds)]
        print(_row(case, rows), flush=True)
    return 0


def _one(case: Case, number: int, seed: int, alpha: float) -> tuple[MemberSurvey, set[int]]:
    sweep, sick = sweep_of_case(case, np.random.default_rng((number, seed)))
    return survey_sweep(SERIES, sweep, MemberOptions(alpha, seed=seed)), sick


def _row(case: Case, rows: list[tuple[MemberSurvey, set[int]]]) -> str:
    kinds = [{one.what: one for one in survey.findings} for survey, _ in rows]
    wanted = "rtt" if case.longer_ns else "loss"
    found = [
        (one[wanted], sick) for one, (_, sick) in zip(kinds, rows, strict=True) if wanted in one
    ]
    right = sum(set(one.flows) == sick for one, sick in found)
    inside = sum(one.low <= _truth(case, one) <= one.high for one, _ in found)
    counts = [sum(what in one for one in kinds) for what in ("loss", "rtt")]
    cells = [f"{count}/{len(rows)}" for count in counts]
    exact = [f"{count}/{len(found)}" if case.sick else "" for count in (right, inside)]
    return f"{case.name:42} {cells[0]:>9} {cells[1]:>9} {exact[0]:>12} {exact[1]:>12}"


def _truth(case: Case, found: MemberFinding) -> float:
    """What the others lose, bursts and outages included, and what only the sick member does."""
    return case.longer_ns or 1 - (1 - found.group) * (1 - case.more)


if __name__ == "__main__":
    sys.exit(main())
