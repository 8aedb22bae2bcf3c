"""When to send. Fixed by a seed before the first packet, whatever the replies do (open loop).

Poisson sampling (RFC 2330 section 11.1) sees time averages without bias; its gaps are exponential,
truncated here at ten times the mean. Periodic sampling (RFC 3432) starts at a random phase, so that
agents do not run in step.
"""

import random
from collections.abc import Iterator
from enum import StrEnum

TRUNCATION = 10.0
"""A gap is never longer than this many mean gaps (probability 4.5e-5): part of the definition."""


class ScheduleKind(StrEnum):
    """How the gaps between sends are drawn."""

    POISSON = "poisson"
    PERIODIC = "periodic"


def send_times(
    kind: ScheduleKind, interval_ns: int, duration_ns: int, rng: random.Random
) -> Iterator[int]:
    """Offsets from the start of the campaign in nanoseconds, ascending, all below `duration_ns`."""
    if interval_ns <= 0:
        raise ValueError("the interval must be longer than nothing")
    draw = _poisson if kind is ScheduleKind.POISSON else _periodic
    return draw(interval_ns, duration_ns, rng)


def _poisson(interval_ns: int, duration_ns: int, rng: random.Random) -> Iterator[int]:
    offset = 0.0
    while True:
        offset += min(rng.expovariate(1.0), TRUNCATION) * interval_ns
        if offset >= duration_ns:
            return
        yield int(offset)


def _periodic(interval_ns: int, duration_ns: int, rng: random.Random) -> Iterator[int]:
    yield from range(int(rng.random() * interval_ns), duration_ns, interval_ns)


def series_rng(seed: int, *key: str) -> random.Random:
    """The generator of one series: the same for the same seed and key, on every machine."""
    return random.Random("\x1f".join((str(seed), *key)))
