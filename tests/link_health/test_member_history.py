"""Sick members over a long time: told once, with when they were first and last seen."""

import numpy as np
from tests.link_health.paths import INTERVAL, MS, START, sample

from pathbudget.analysis.routes.member_history import member_findings
from pathbudget.probes.record import (
    AddressFamily,
    ClockSource,
    Measurement,
    NoiseFloor,
    Sample,
    Target,
    Vantage,
)

FLOWS, PER_FLOW = 16, 60
PIECE = FLOWS * PER_FLOW


def history(seed: int, pieces: int, sick_from: int, **fault: float) -> list[Sample]:
    """Flows 3 and 11 of 16 are sick from one sweep on, and are 2 ms longer all the time."""
    rng = np.random.default_rng(seed)
    found: list[Sample] = []
    for seq in range(pieces * PIECE):
        ill = seq % FLOWS in (3, 11)
        sick = ill and seq >= sick_from * PIECE
        lost = rng.random() < (fault.get("loss", 0.0) if sick else 0.001)
        rtt = 5 * MS + 2 * MS * ill + fault.get("longer_ns", 0.0) * sick + rng.exponential(30_000)
        found.append(sample(seq, None if lost else rtt, flow=50_000 + seq % FLOWS))
    return found


def measurement(samples: list[Sample], floor_ns: int = 0) -> Measurement:
    return Measurement(
        id="m1",
        vantage=Vantage("here", "region"),
        target=Target("target", "192.0.2.1", site="site"),
        probe="icmp",
        started_unix_ns=START,
        samples=tuple(samples),
        address="192.0.2.1",
        family=AddressFamily.IPV4,
        noise=NoiseFloor(floor_ns, ClockSource.KERNEL, 0, 0),
    )


def found_in(samples: list[Sample], floor_ns: int = 0) -> list[tuple[str, tuple[int, ...]]]:
    findings = member_findings([measurement(samples, floor_ns)], per_flow=PER_FLOW)
    return [(one.what, one.flows) for one in findings]


def test_a_member_that_falls_sick_is_told_once() -> None:
    (finding,) = member_findings([measurement(history(1, 6, 2, loss=0.25))], per_flow=PER_FLOW)
    assert (finding.what, finding.flows) == ("loss", (50_003, 50_011))
    assert finding.window.after_unix_ns == START + 2 * PIECE * INTERVAL
    assert finding.window.by_unix_ns == START + (6 * PIECE - 1) * INTERVAL
    assert finding.low <= 0.25 <= finding.high


def test_a_longer_way_is_no_fault_and_one_that_became_longer_is() -> None:
    assert found_in(history(2, 4, 9)) == []
    longer = history(2, 4, 2, longer_ns=100_000)
    assert found_in(longer) == [("rtt", (50_003, 50_011))]
    assert found_in(longer, floor_ns=300_000) == []


def test_samples_without_flows_say_nothing() -> None:
    assert member_findings([measurement([sample(seq) for seq in range(100)])]) == []
