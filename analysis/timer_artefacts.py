"""Durations that are somebody's timer and no property of the path.

A timer shows as a spike: many durations the same distance above the quick ones, where the
distribution has next to nothing on either side. The timers that are looked for are those that
stacks and tools really have.
"""

from dataclasses import dataclass

import numpy as np
from scipy import special

from pathbudget.analysis.quantiles import Values

NS_PER_MS = 1_000_000.0

TIMERS = (
    (40.0, "a delayed acknowledgement (40 ms)"),
    (200.0, "a retransmission or delayed-acknowledgement timer (200 ms)"),
    (500.0, "a timer of 500 ms"),
    (1000.0, "a retransmitted SYN or first retransmission (1 s, RFC 6298)"),
    (3000.0, "a SYN retransmitted twice (3 s, RFC 6298)"),
    (7000.0, "a SYN retransmitted three times (7 s, RFC 6298)"),
)

FEWEST = 5
"""Fewer durations in one place are no cluster."""

CHANCE = 1e-4
"""A spike must be less likely than this in a distribution that is level around it."""


@dataclass(frozen=True, slots=True)
class TimerArtefact:
    """A spike of durations at a timer."""

    timer_ms: float
    words: str
    n: int
    of: int
    """Durations that were looked at."""
    above_base: bool
    """Whether the timer lies on top of the quick durations, or is the duration itself."""


def timer_artefacts(durations_ns: Values) -> tuple[TimerArtefact, ...]:
    """Spikes among the durations that ended; losses do not count.

    Each timer is looked for above the quickest duration and, where that is short against the timer,
    as a duration by itself (a server that answers when its timer fires).
    """
    durations = np.sort(durations_ns[np.isfinite(durations_ns)]) / NS_PER_MS
    if len(durations) < FEWEST:
        return ()
    found: list[TimerArtefact] = []
    base = float(durations[0])
    for timer, words in TIMERS:
        starts = (base, 0.0) if base < timer / 4 else (base,)
        counts = [(_spike(durations, start + timer, _width(timer)), start) for start in starts]
        n, start = max(counts)
        if n:
            found.append(TimerArtefact(timer, words, n, len(durations), start > 0))
    return tuple(found)


def _width(timer: float) -> float:
    """How far from the timer a duration may be, ms: tick, scheduling, and a little of the path."""
    return 0.05 * timer + 1.0


def _spike(ordered: Values, place: float, width: float) -> int:
    """How many durations are at the place, or 0 where that is no spike.

    The windows before and after it are as wide as its own. Of durations that are level over the
    three a third falls into the middle one, give or take chance. What most durations do is the path
    itself and no timer beside it.
    """
    edges = place + width * np.array([-3.0, -1.0, 1.0, 3.0])
    before, inside, after = (int(n) for n in np.diff(np.searchsorted(ordered, edges)))
    if inside < FEWEST or 2 * inside > len(ordered) or inside <= 2 * max(before, after):
        return 0
    level = float(special.bdtrc(inside - 1, before + inside + after, 1 / 3))
    return inside if level < CHANCE or not before + after else 0
