"""Samples of paths with known faults. Everything follows from a seed."""

from collections.abc import Sequence

import numpy as np

from pathbudget.analysis.routes.model import PathSeries
from pathbudget.analysis.routes.sweeps import Sweep, sweep_from_arrays
from pathbudget.probes.record import Failure, FailureKind, Sample, Stage

SERIES = PathSeries("here", "region", "site", "target", "192.0.2.1", None)
START = 1_790_000_000 * 10**9
MS = 1_000_000
INTERVAL = 10 * MS
TIMEOUT = Failure(FailureKind.TIMEOUT, Stage.WAIT)


def sample(
    seq: int,
    rtt_ns: float | None = 5 * MS,
    *,
    failure: Failure = TIMEOUT,
    flow: int | None = None,
    at: int | None = None,
) -> Sample:
    """One packet; lost where it has no round trip."""
    return Sample(
        seq=seq,
        metric="rtt",
        sent_unix_ns=START + (seq * INTERVAL if at is None else at),
        value_ns=None if rtt_ns is None else round(rtt_ns),
        failure=failure if rtt_ns is None else None,
        flow=flow,
    )


def word(text: str) -> list[Sample]:
    """Packets in order of sending: ``.`` answered, ``x`` lost."""
    return [sample(seq, None if letter == "x" else 5 * MS) for seq, letter in enumerate(text)]


def sweep(
    rng: np.random.Generator,
    flows: int = 64,
    per_flow: int = 200,
    *,
    loss: float = 0.0005,
    bursts: int = 0,
    sick: Sequence[int] = (),
    more: float = 0.0,
    longer_ns: float = 0.0,
) -> Sweep:
    """Flows asked in turn; flows 0, 1 ... of which the `sick` ones lose more and take longer."""
    n = flows * per_flow
    flow = np.arange(n) % flows
    ill = np.isin(flow, sick)
    lost = (rng.random(n) < loss) | (ill & (rng.random(n) < more))
    for start in rng.integers(0, n, bursts):
        lost[start : start + 30] = True
    rtt = 5e6 + rng.exponential(50_000, n) + ill * longer_ns
    rtt[lost] = np.nan
    return sweep_from_arrays(flow, lost, START + np.arange(n) * INTERVAL, rtt)
