"""Pass, fail or undecided, with the one sentence that says why (docs/budget.md)."""

import math
from dataclasses import dataclass

from pathbudget.analysis.quantiles import Estimate, fewest_samples
from pathbudget.analysis.results import Verdict
from pathbudget.analysis.series import NS_PER_MS

TOO_FINE = "finer than the noise floor of the measuring host"
NO_ALLOWANCE = "no allowance of its own: the tier gives one number for ingress and egress."


@dataclass(frozen=True, slots=True)
class Question:
    """What a line is asked: does the quantile stay within the allowance?"""

    percentile: float
    allowance_ms: float | None
    confidence: float
    losses: int
    noise_floor_ms: float
    missing_modes: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """``p95``."""
        return f"p{self.percentile:g}"


def judge(estimate: Estimate, question: Question) -> tuple[Verdict, str]:
    """The verdict on one estimate in ns, and its reason.

    The interval decides, widened by the noise floor of the measuring host: pass when all of it is
    within the allowance, fail when all of it is above, undecided in all other cases.
    """
    allowance = question.allowance_ms
    if allowance is None:
        return Verdict.UNDECIDED, NO_ALLOWANCE
    low, high = estimate.low / NS_PER_MS, estimate.high / NS_PER_MS
    if low > allowance:
        if low - allowance < question.noise_floor_ms:
            return Verdict.UNDECIDED, _too_fine(low, allowance, question)
        return Verdict.FAIL, _above(estimate, low, allowance, question)
    if question.missing_modes:
        return Verdict.UNDECIDED, _missing(question)
    if high > allowance:
        return Verdict.UNDECIDED, _open(estimate, allowance, question)
    if allowance - high < question.noise_floor_ms:
        return Verdict.UNDECIDED, _too_fine(high, allowance, question)
    return Verdict.PASS, _within(estimate, high, allowance, question)


def _within(estimate: Estimate, high: float, allowance: float, question: Question) -> str:
    return (
        f"{question.label} is {_ms(estimate.value)}, at most {high:.2f} ms "
        f"({_interval(question)}), within the allowance of {allowance:g} ms."
    )


def _above(estimate: Estimate, low: float, allowance: float, question: Question) -> str:
    if math.isinf(low):
        share = question.losses / estimate.n
        return (
            f"{question.label} has no limit: {question.losses} of {estimate.n} requests failed "
            f"({share:.1%}), more than {question.label} can bear."
        )
    return (
        f"{question.label} is {_ms(estimate.value)}, at least {low:.2f} ms "
        f"({_interval(question)}), above the allowance of {allowance:g} ms."
    )


def _too_fine(end: float, allowance: float, question: Question) -> str:
    return (
        f"the interval ends {abs(end - allowance):.3f} ms from the allowance of {allowance:g} ms, "
        f"{TOO_FINE} ({question.noise_floor_ms:.3f} ms)."
    )


def _missing(question: Question) -> str:
    modes = " and ".join(question.missing_modes)
    return f"no {modes} connections were measured, and they are part of the tier's mixture."


def _open(estimate: Estimate, allowance: float, question: Question) -> str:
    needed = fewest_samples(question.percentile / 100, question.confidence)
    if math.isinf(estimate.high) and math.floor(estimate.n_effective + 1e-9) < needed:
        return _too_few(estimate, needed, question)
    if math.isinf(estimate.high) and not question.losses:
        return (
            "some connection mode of the mixture has too few samples: "
            f"{question.label} has no upper limit ({_interval(question)})."
        )
    if math.isinf(estimate.high):
        return (
            f"{question.losses} of {estimate.n} requests failed, which leaves "
            f"{question.label} without an upper limit ({_interval(question)})."
        )
    return (
        f"{question.label} is {_ms(estimate.value)}, and its interval from "
        f"{estimate.low / NS_PER_MS:.2f} to {estimate.high / NS_PER_MS:.2f} ms contains the "
        f"allowance of {allowance:g} ms; more samples narrow it."
    )


def _too_few(estimate: Estimate, needed: int, question: Question) -> str:
    samples = "1 sample is" if estimate.n == 1 else f"{estimate.n} samples are"
    worth = f", worth {math.floor(estimate.n_effective)} independent ones"
    correlated = math.floor(estimate.n_effective + 1e-9) < estimate.n
    return (
        f"{samples} too few{worth if correlated else ''}: {question.label} has an upper limit "
        f"from {needed} on ({_interval(question)})."
    )


def _interval(question: Question) -> str:
    return f"{question.confidence:.0%} interval"


def _ms(value_ns: float) -> str:
    return "no limit" if math.isinf(value_ns) else f"{value_ns / NS_PER_MS:.2f} ms"
