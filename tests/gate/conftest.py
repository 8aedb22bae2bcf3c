"""Evaluations for the gate, small enough to know every number."""

import functools
from collections.abc import Callable, Iterable

import msgspec
import pytest
from tests.report.conftest import make_evaluation, make_hostile
from tests.report.evaluation_parts import make_regions, make_sites, make_tiers, verdict_of

from pathbudget.analysis.results import (
    BudgetLine,
    Direction,
    Evaluation,
    Method,
    Mode,
    Verdict,
)

Ends = tuple[float | None, float | None, float | None]
LineFactory = Callable[..., BudgetLine]
OfLines = Callable[..., Evaluation]


def make_line(
    value: float | None = 20.0,
    low: float | None = 19.0,
    high: float | None = 21.0,
    *,
    region: str = "us-south",
    site: str = "dallas",
    tier: str = "voice-ai",
    allowance: float = 25.0,
    percentile: float = 95.0,
    mode: Mode = Mode.WARM,
    n: int = 400,
    n_effective: float | None = None,
    losses: int = 0,
    verdict: Verdict | None = None,
    prompt_bytes: int = 4000,
) -> BudgetLine:
    """One network line; its verdict follows from its interval."""
    judged = verdict_of(low, high, allowance) if n else Verdict.NOT_MEASURED
    return BudgetLine(
        region=region,
        site=site,
        tier=tier,
        direction=Direction.NETWORK,
        mode=mode,
        percentile=percentile,
        value_ms=value if n else None,
        low_ms=low if n else None,
        high_ms=high if n else None,
        n=n,
        n_effective=float(n) if n_effective is None else n_effective,
        losses=losses,
        method=Method.MEASURED if n else None,
        allowance_ms=allowance,
        verdict=verdict or judged,
        reason="because.",
        headline=True,
        prompt_bytes=prompt_bytes,
    )


def make_of_lines(lines: Iterable[BudgetLine], *, confidence: float = 0.95) -> Evaluation:
    """One region, one site and one tier by default, and whatever else the lines name."""
    lines = tuple(lines)
    whole = _smallest()
    names = {line.region for line in lines}, {line.site for line in lines}
    tiers = {line.tier for line in lines}
    return msgspec.structs.replace(
        whole,
        regions=tuple(one for one in make_regions(6) if one.name in names[0]),
        sites=tuple(one for one in make_sites(4) if one.name in names[1]),
        tiers=tuple(one for one in make_tiers(3) if one.name in tiers),
        lines=lines,
        recommendations=(),
        summaries=(),
        findings=(),
        pairs=(),
        provenance=msgspec.structs.replace(whole.provenance, confidence=confidence),
    )


@functools.cache
def _smallest() -> Evaluation:
    return make_evaluation(1, 1, 1, n=20)


@functools.cache
def _usual() -> Evaluation:
    return make_evaluation()


@pytest.fixture
def evaluation() -> Evaluation:
    """Six regions, four sites, three tiers, with recommendations."""
    return _usual()


@pytest.fixture
def hostile() -> Evaluation:
    """An evaluation whose names are markup."""
    return make_hostile()
