"""Checks against a baseline: surely slower, gone, or new."""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from pathbudget.analysis.gate.baseline import Baseline, Kept
from pathbudget.analysis.gate.checks import Check, Effect, Numbers, Rule, Subject
from pathbudget.analysis.gate.difference import difference, shown, stretch_for
from pathbudget.analysis.gate.effects import effect_of
from pathbudget.analysis.gate.judging import Judged
from pathbudget.analysis.gate.policy import Policy, Rules
from pathbudget.analysis.gate.subject_words import subject_words
from pathbudget.analysis.report.words import interval, ms
from pathbudget.analysis.results import Mode, TierInfo, Verdict

NO_LIMIT_BEFORE = "not to be compared: the baseline sets no upper limit"


@dataclass(frozen=True, slots=True)
class Comparison:
    """How two measurements of one subject differ."""

    verdict: Verdict
    words: str


def compare(before: Numbers, now: Numbers, tolerance_ms: float, stretch: float = 1.0) -> Comparison:
    """Fail when it is slower by more than the tolerance and the noise floor, with certainty."""
    low, high = difference(before, now, stretch)
    bar = max(tolerance_ms, before.noise_floor_ms, now.noise_floor_ms)
    if low > bar:
        return Comparison(Verdict.FAIL, f"slower by {_by(low, high)}")
    if high < -max(before.noise_floor_ms, now.noise_floor_ms):
        return Comparison(Verdict.PASS, f"quicker by {_by(-high, -low)}")
    if low == -math.inf:
        return Comparison(Verdict.UNDECIDED, NO_LIMIT_BEFORE)
    if low > max(before.noise_floor_ms, now.noise_floor_ms):
        return Comparison(Verdict.PASS, f"slower by {_by(low, high)}, within the tolerance")
    return Comparison(Verdict.PASS, "not told apart")


def _by(low: float, high: float) -> str:
    if math.isinf(low):
        return "more than any limit"
    return f"at least {ms(low)}" if math.isinf(high) else f"{interval(low, high)} ms"


def regression_checks(
    baseline: Baseline, quantities: Iterable[Judged], policy: Policy, tiers: Mapping[str, TierInfo]
) -> Iterator[Check]:
    """One check for every quantity that the policy asks for and that was measured."""
    before = {one.subject: one for one in baseline.kept}
    measured = [one for one in quantities if one.numbers.n]
    both = sum(one.subject in before for one in measured)
    stretch = stretch_for(both, baseline.confidence) if policy.simultaneous else 1.0
    for one in measured:
        rules = policy.rules(tiers[one.subject.tier])
        if kept := before.get(one.subject):
            yield _compared(kept, one, rules, stretch)
        else:
            yield _new(one, rules)


def _compared(kept: Kept, quantity: Judged, rules: Rules, stretch: float) -> Check:
    now, then = quantity.numbers, kept.numbers
    found = compare(then, now, rules.tolerance_ms, stretch)
    words = f"was {_numbers(then)}, is {_numbers(now)}: {found.words}."
    return Check(
        rule=Rule.REGRESSION,
        subject=quantity.subject,
        verdict=found.verdict,
        # More samples of now would not decide what cannot be compared: another baseline would.
        effect=Effect.FAIL if found.verdict is Verdict.FAIL else Effect.PASS,
        severity=rules.severity,
        text=f"{subject_words(quantity.subject)}: {words}",
        now=now,
        before=then,
        difference=shown(then, now, stretch),
    )


def _new(quantity: Judged, rules: Rules) -> Check:
    return Check(
        rule=Rule.NEW,
        subject=quantity.subject,
        verdict=Verdict.PASS,
        effect=Effect.PASS,
        severity=rules.severity,
        text=f"{subject_words(quantity.subject)}: is not in the baseline.",
        now=quantity.numbers,
    )


def vanished_checks(
    baseline: Baseline,
    measured: Collection[Subject],
    asked: Collection[Subject],
    policy: Policy,
    tiers: Mapping[str, TierInfo],
) -> Iterator[Check]:
    """What the baseline checked, or what is asked for now, and nobody measured this time.

    A pair that the policy of now leaves aside has not vanished.
    """
    for kept in baseline.kept:
        subject = kept.subject
        if subject in measured or not (kept.checked or subject in asked):
            continue
        tier = tiers.get(subject.tier)
        if tier is not None and not _asks_for(policy, tier, subject):
            continue
        if policy.takes_tier(subject.tier) and _asks_for_pair(policy, subject):
            yield _vanished(kept, policy, tier)


def _vanished(kept: Kept, policy: Policy, tier: TierInfo | None) -> Check:
    treatment = policy.not_measured if tier is None else policy.rules(tier).not_measured
    words = subject_words(kept.subject)
    return Check(
        rule=Rule.VANISHED,
        subject=kept.subject,
        verdict=Verdict.NOT_MEASURED,
        effect=effect_of(Verdict.NOT_MEASURED, treatment, treatment),
        severity=policy.severity(kept.subject.tier),
        text=f"{words}: was {_numbers(kept.numbers)} in the baseline, and is not measured now.",
        before=kept.numbers,
    )


def _asks_for(policy: Policy, tier: TierInfo, subject: Subject) -> bool:
    if subject.whole:
        return policy.whole
    rules = policy.rules(tier)
    carried = subject.mode is Mode.MIXTURE or subject.transport in rules.transports
    return (
        carried
        and subject.mode in rules.modes
        and subject.percentile in rules.percentiles
        and subject.prompt_bytes in (*rules.prompts, 0)
    )


def _asks_for_pair(policy: Policy, subject: Subject) -> bool:
    is_site = not policy.sites or not subject.site or subject.site in policy.sites
    return is_site and (not policy.regions or subject.region in policy.regions)


def _numbers(numbers: Numbers) -> str:
    return f"{ms(numbers.value_ms)} ({interval(numbers.low_ms, numbers.high_ms)})"
