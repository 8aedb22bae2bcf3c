"""The gate itself: every check that a policy asks for, and what they come to together."""

from collections.abc import Iterator, Sequence

import msgspec

from pathbudget.analysis.gate.baseline import (
    Baseline,
    refuse_other_definitions,
    refuse_other_percentiles,
)
from pathbudget.analysis.gate.checks import (
    EXIT_CODES,
    Check,
    Outcome,
    Rule,
    Subject,
)
from pathbudget.analysis.gate.effects import effect_of
from pathbudget.analysis.gate.ending import counts_of, ending_of, ordered
from pathbudget.analysis.gate.further import fewest, further_samples
from pathbudget.analysis.gate.judging import STRADDLES, Judge, Judged
from pathbudget.analysis.gate.known import refuse_unknown_words
from pathbudget.analysis.gate.places import Place, Places
from pathbudget.analysis.gate.policy import Policy
from pathbudget.analysis.gate.quantities import all_quantities
from pathbudget.analysis.gate.regression import regression_checks, vanished_checks
from pathbudget.analysis.gate.siting_checks import siting_checks
from pathbudget.analysis.gate.subject_words import subject_words, visible
from pathbudget.analysis.gate.whole import NOTHING, whole_quantities
from pathbudget.analysis.report.lookup import Lookup
from pathbudget.analysis.report.words import given, interval, listed, ms
from pathbudget.analysis.results import Evaluation, TierInfo, Verdict

KEYS = {
    Rule.ALLOWANCE: ("allowances_ms", "allowance_ms"),
    Rule.WHOLE: ("target_ms", "whole"),
    Rule.REGRESSION: ("tolerance_ms", "regression"),
    Rule.VANISHED: ("not_measured",),
    Rule.NEW: (),
    Rule.SITES: ("expected_sites", "siting"),
}
"""Of a policy, that say most about a rule."""


def check(
    evaluation: Evaluation,
    policy: Policy,
    baseline: Baseline | None = None,
    *,
    baseline_file: str = "baseline",
) -> Outcome:
    """Hold an evaluation against a policy, and against a baseline where there is one.

    Raises ConfigError where the policy names what the evaluation does not know, and where the
    baseline is of other definitions, so that its numbers mean something else.
    """
    return _Gate(evaluation, policy, baseline, baseline_file).outcome()


class _Gate:
    """One evaluation under one policy."""

    def __init__(
        self, evaluation: Evaluation, policy: Policy, baseline: Baseline | None, file: str
    ) -> None:
        refuse_unknown_words(evaluation, policy)
        self.evaluation, self.policy, self.baseline = evaluation, policy, baseline
        self.lookup, self.judge = Lookup(evaluation), Judge(evaluation)
        self.tiers = {one.name: one for one in evaluation.tiers if policy.takes_tier(one.name)}
        self.confidence = evaluation.provenance.confidence
        if baseline is not None:
            tiers = list(self.tiers.values())
            refuse_other_definitions(baseline, evaluation, tiers, file)
            asked = {p for tier in tiers for p in policy.rules(tier).percentiles}
            refuse_other_percentiles(baseline, asked, file)

    def outcome(self) -> Outcome:
        """All checks, the worst first."""
        quantities = list(self._quantities())
        checks = [self._against_allowance(one) for one in quantities]
        if self.baseline is not None:
            checks += regression_checks(self.baseline, quantities, self.policy, self.tiers)
            asked = {one.subject for one in quantities}
            measured = {one.subject for one in all_quantities(self.evaluation) if one.numbers.n}
            checks += vanished_checks(self.baseline, measured, asked, self.policy, self.tiers)
        checks += siting_checks(self.lookup, self.policy, list(self.tiers.values()), self.baseline)
        return self._outcome([self._located(one) for one in ordered(checks)])

    def _quantities(self) -> Iterator[Judged]:
        """What the policy asks for, measured or not, judged by its allowances."""
        places = Places(self.lookup, self.policy, _usual(self.baseline))
        seen: dict[Subject, None] = {}
        for tier in self.tiers.values():
            for place in places.wanted(tier):
                if place.subject not in seen:
                    seen[place.subject] = None
                    yield self._judged(tier, place)
        pairs = dict.fromkeys((one.tier, one.region, one.site) for one in seen)
        yield from whole_quantities(self.evaluation, self.policy, self.tiers, pairs)

    def _judged(self, tier: TierInfo, place: Place) -> Judged:
        if place.line is not None:
            allowance = self.policy.rules(tier).allowance(place.line.percentile)
            return self.judge.judged(place.line, allowance)
        why = "there is no such line; nothing that it could rest on was measured."
        if not place.subject.site:
            why = f"no site is chosen: {self.lookup.no_recommendation(tier.name) or 'no data.'}"
        return Judged(place.subject, NOTHING, None, Verdict.NOT_MEASURED, why)

    def _against_allowance(self, quantity: Judged) -> Check:
        rules = self.policy.rules(self.tiers[quantity.subject.tier])
        effect = effect_of(quantity.verdict, rules.undecided, rules.not_measured)
        more = self._further(quantity)
        return Check(
            rule=Rule.WHOLE if quantity.subject.whole else Rule.ALLOWANCE,
            subject=quantity.subject,
            verdict=quantity.verdict,
            effect=effect,
            severity=rules.severity,
            text=f"{subject_words(quantity.subject)}: {_sentence(quantity, more)}",
            allowance_ms=quantity.allowance_ms,
            now=quantity.numbers,
            further_samples=more,
        )

    def _further(self, quantity: Judged) -> int | None:
        """How many more samples would decide it; None where none would, or nothing is open."""
        if quantity.verdict is Verdict.NOT_MEASURED and quantity.subject.percentile:
            return fewest(quantity.subject.percentile, self.confidence)
        is_open = quantity.verdict is Verdict.UNDECIDED and not quantity.cannot_pass
        if not is_open or quantity.allowance_ms is None:
            return None
        return further_samples(
            quantity.numbers, quantity.allowance_ms, quantity.subject.percentile, self.confidence
        )

    def _located(self, one: Check) -> Check:
        """The check with the place in the policy file that asks for it, in visible letters."""
        one = msgspec.structs.replace(one, text=visible(one.text))
        if not self.policy.file:
            return one
        own = f"tier.{one.subject.tier}"
        keys = (*(f"{own}.{key}" for key in KEYS[one.rule]), own, *KEYS[one.rule], "tiers")
        lines = (self.policy.lines.get(key) for key in keys)
        line = next((line for line in lines if line), None)
        return msgspec.structs.replace(one, file=self.policy.file, line=line)

    def _outcome(self, checks: Sequence[Check]) -> Outcome:
        ending = ending_of(checks)
        provenance = self.evaluation.provenance
        return Outcome(
            ending=ending,
            exit_code=EXIT_CODES[ending],
            counts=counts_of(checks),
            checks=tuple(checks),
            title=self.evaluation.title,
            campaigns=provenance.campaigns,
            started_unix_ns=provenance.started_unix_ns,
            ended_unix_ns=provenance.ended_unix_ns,
            confidence=provenance.confidence,
            policy=msgspec.structs.replace(self.policy, lines={}),
            baseline=_of_baseline(self.baseline),
        )


def _usual(baseline: Baseline | None) -> dict[str, dict[str, str]]:
    """Where each region was served when the baseline was written, by tier."""
    found: dict[str, dict[str, str]] = {}
    for one in () if baseline is None else baseline.kept:
        if one.checked and one.subject.site:
            found.setdefault(one.subject.tier, {}).setdefault(one.subject.region, one.subject.site)
    return found


def _of_baseline(baseline: Baseline | None) -> str:
    if baseline is None:
        return ""
    return listed(baseline.campaigns, "a baseline of no campaign")


def _sentence(quantity: Judged, further: int | None) -> str:
    """The numbers, and what is open. The reason alone where there is no number."""
    numbers = quantity.numbers
    note = f" {quantity.note}" if quantity.note else ""
    if not numbers.n or (quantity.verdict is Verdict.FAIL and numbers.low_ms is None):
        return f"{quantity.reason}{note}"
    allowed = "" if quantity.allowance_ms is None else f", allowed {given(quantity.allowance_ms)}"
    said = f"{ms(numbers.value_ms)} ({interval(numbers.low_ms, numbers.high_ms)}){allowed}"
    if quantity.verdict is not Verdict.UNDECIDED:
        return f"{said}.{note}"
    reason = STRADDLES if _straddles(quantity) else quantity.reason
    more = f" About {further:,} more samples would decide it." if further else ""
    if reason is STRADDLES and not further:
        more = " The value is too near to it: no number of samples would decide it."
    return f"{said}: {reason}{more}"


def _straddles(quantity: Judged) -> bool:
    """Whether the numbers themselves say why nothing is decided."""
    low, high, allowed = quantity.numbers.low_ms, quantity.numbers.high_ms, quantity.allowance_ms
    if low is None or high is None or allowed is None or quantity.cannot_pass:
        return False
    return low <= allowed < high
