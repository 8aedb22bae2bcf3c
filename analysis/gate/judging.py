"""One quantity against its allowance: the verdict of the evaluation, or a new one where the policy
has another allowance.
"""

import math
from dataclasses import dataclass, replace

from pathbudget.analysis.finding_kinds import FindingKind
from pathbudget.analysis.gate.checks import Numbers, Subject
from pathbudget.analysis.gate.places import subject_of
from pathbudget.analysis.report.words import counted, given
from pathbudget.analysis.results import (
    BudgetLine,
    Direction,
    Evaluation,
    Mode,
    Verdict,
)
from pathbudget.sites.tiers import mixture_keys

STRADDLES = "the interval straddles the allowance."
PairName = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Judged:
    """A quantity with its verdict and the sentence that says why."""

    subject: Subject
    numbers: Numbers
    allowance_ms: float | None
    verdict: Verdict
    reason: str
    cannot_pass: str = ""
    """Why no allowance at all would let it pass; empty where one would."""
    note: str = ""
    """A further sentence that a reader must not miss."""


class Judge:
    """Turns lines into judged quantities; knows what the lines alone do not say."""

    def __init__(self, evaluation: Evaluation) -> None:
        self._tiers = {tier.name: tier for tier in evaluation.tiers}
        self._floors = _noise_floors(evaluation)
        self._refused = {
            (one.region, one.site): one.text
            for one in evaluation.findings
            if one.kind is FindingKind.REFUSED
        }
        self._measured = {
            (line.tier, line.region, line.site, line.transport, line.mode)
            for line in evaluation.lines
            if line.direction is Direction.NETWORK and line.n
        }

    def judged(self, line: BudgetLine, allowance_ms: float | None = None) -> Judged:
        """A line, by the allowance of its tier or by another one."""
        numbers = Numbers(
            value_ms=line.value_ms,
            low_ms=line.low_ms,
            high_ms=line.high_ms,
            n=line.n,
            n_effective=line.n_effective,
            losses=line.losses,
            noise_floor_ms=self._floors.get((line.region, line.site), 0.0),
        )
        own = Judged(
            subject_of(line),
            numbers,
            line.allowance_ms,
            line.verdict,
            line.reason,
            cannot_pass=self._doubt(line),
        )
        if allowance_ms is None or allowance_ms == line.allowance_ms or not line.n:
            return own
        return judged_anew(own, allowance_ms)

    def _doubt(self, line: BudgetLine) -> str:
        """Why the line must not pass, however short its interval is."""
        if missing := self._missing_modes(line):
            modes = " and ".join(missing)
            return f"no {modes} connections were measured, and they are part of the mixture."
        is_clear = line.verdict is Verdict.PASS
        return "" if is_clear else self._refused.get((line.region, line.site), "")

    def _missing_modes(self, line: BudgetLine) -> list[str]:
        tier = self._tiers.get(line.tier)
        if line.mode is not Mode.MIXTURE or tier is None:
            return []
        meaning = mixture_keys(tier.transport)
        return [
            key
            for key, share in tier.mixture.items()
            if share > 0
            and key in meaning
            and (line.tier, line.region, line.site, *meaning[key]) not in self._measured
        ]


def judged_anew(quantity: Judged, allowance_ms: float) -> Judged:
    """The verdict under another allowance, by the rule of docs/budget.md: the whole interval,
    widened by the noise floor, must lie on one side.
    """
    numbers = quantity.numbers
    low, high = (math.inf if end is None else end for end in (numbers.low_ms, numbers.high_ms))
    floor, allowed = numbers.noise_floor_ms, given(allowance_ms)
    if low > allowance_ms and low - allowance_ms >= floor:
        verdict, reason = Verdict.FAIL, _above(numbers, allowed)
    elif low > allowance_ms or abs(allowance_ms - high) < floor:
        near = f"the interval ends within the noise floor ({floor:.3f} ms) of {allowed} ms."
        verdict, reason = Verdict.UNDECIDED, near
    elif quantity.cannot_pass:
        verdict, reason = Verdict.UNDECIDED, quantity.cannot_pass
    elif high > allowance_ms:
        verdict, reason = Verdict.UNDECIDED, _open(numbers)
    else:
        verdict, reason = Verdict.PASS, f"all of it is within the allowance of {allowed} ms."
    return replace(quantity, allowance_ms=allowance_ms, verdict=verdict, reason=reason)


def _above(numbers: Numbers, allowed: str) -> str:
    if numbers.low_ms is None:
        return f"no limit: {_failed(numbers)}, more than the percentile can bear."
    return f"all of it is above the allowance of {allowed} ms."


def _open(numbers: Numbers) -> str:
    if numbers.high_ms is not None:
        return STRADDLES
    if numbers.losses:
        return f"{_failed(numbers)}, which leaves no upper limit."
    return f"{counted(numbers.n, 'sample')}, worth {numbers.n_effective:,.0f}, set no upper limit."


def _failed(numbers: Numbers) -> str:
    return f"{numbers.losses:,} of {numbers.n:,} requests failed"


def _noise_floors(evaluation: Evaluation) -> dict[PairName, float]:
    """Largest noise floor of what was measured between two places without load of ours."""
    floors: dict[PairName, float] = {}
    for one in evaluation.summaries:
        if not one.loaded and one.noise_floor_ms is not None:
            pair = one.region, one.site
            floors[pair] = max(floors.get(pair, 0.0), one.noise_floor_ms)
    return floors
