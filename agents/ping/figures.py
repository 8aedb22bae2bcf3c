"""The numbers of one row, each only where there are samples enough for it. Pure."""

import math
from typing import NamedTuple

from pathbudget.agents.ping.host_state import HostState, PhaseState
from pathbudget.agents.ping.phases import Phase
from pathbudget.agents.ping.sketch import Sketch

ENOUGH = 20
"""Fewer packets give no percentile."""
METRO_NS = 1_000_000
"""A median below this is shown in microseconds."""


class Figures(NamedTuple):
    """Nanoseconds. None: not enough packets; infinity: so many are lost that it is among them.

    `pdv_p99_ns` is over the least round trip and of the packets that were answered (RFC 5481);
    `ipdv_p95_ns` is of absolute differences of successive packets (RFC 3393); `ecmp_spread_ns` is
    the largest median of a flow minus the smallest.
    """

    minimum_ns: int | None
    p50_ns: float | None
    p95_ns: float | None
    pdv_p99_ns: float | None
    ipdv_p95_ns: float | None
    ecmp_spread_ns: float | None
    micro: bool


def figures(state: HostState) -> Figures:
    """What a state says."""
    answers = state.answers
    p50 = percentile(answers, 0.5, state.lost)
    typical = answers.quantile(0.5)
    return Figures(
        minimum_ns=answers.minimum if answers.n else None,
        p50_ns=p50,
        p95_ns=percentile(answers, 0.95, state.lost),
        pdv_p99_ns=_above(percentile(answers, 0.99), answers.minimum),
        ipdv_p95_ns=percentile(state.ipdv, 0.95),
        ecmp_spread_ns=ecmp_spread_ns(state.flows),
        micro=typical is not None and typical < METRO_NS,
    )


def percentile(sketch: Sketch, share: float, lost: int = 0) -> float | None:
    """A quantile, where at least `ENOUGH` packets and one beyond it are expected."""
    needed = max(ENOUGH, math.ceil(round(1 / (1 - share), 6)))
    return sketch.quantile(share, lost) if sketch.n + lost >= needed else None


def ecmp_spread_ns(flows: dict[int, Sketch]) -> float | None:
    """Between the fastest and the slowest flow, by medians; None with fewer than two known."""
    medians = [one.quantile(0.5) for one in flows.values() if one.n >= ENOUGH]
    known = [one for one in medians if one is not None]
    return max(known) - min(known) if len(known) > 1 else None


class LoadFigures(NamedTuple):
    """Median and 95th percentile without and with our own load, nanoseconds; see `Figures`."""

    idle: tuple[float | None, float | None]
    loaded: tuple[float | None, float | None]
    difference: tuple[float | None, float | None]


def load_figures(state: HostState) -> LoadFigures | None:
    """Idle against loaded; None where nothing was sent under load."""
    idle, loaded = state.phases[Phase.IDLE], state.phases[Phase.LOADED]
    if not loaded.answers.n and not loaded.lost:
        return None
    both = (_pair(idle), _pair(loaded))
    p50, p95 = (_difference(before, under) for before, under in zip(*both, strict=True))
    return LoadFigures(*both, (p50, p95))


def _pair(phase: PhaseState) -> tuple[float | None, float | None]:
    return (
        percentile(phase.answers, 0.5, phase.lost),
        percentile(phase.answers, 0.95, phase.lost),
    )


def _difference(idle: float | None, loaded: float | None) -> float | None:
    if idle is None or loaded is None or math.isinf(idle) or math.isinf(loaded):
        return None
    return loaded - idle


def _above(value: float | None, least: int) -> float | None:
    return None if value is None else value - least
