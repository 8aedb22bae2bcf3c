"""Does the choice of sites that is built on still stand?"""

from collections.abc import Iterator

from pathbudget.analysis.gate.baseline import Baseline, KeptSites
from pathbudget.analysis.gate.checks import Check, Rule, Subject
from pathbudget.analysis.gate.effects import effect_of
from pathbudget.analysis.gate.policy import Policy
from pathbudget.analysis.report.lookup import Lookup
from pathbudget.analysis.report.words import listed
from pathbudget.analysis.results import Objective, Recommendation, TierInfo, Verdict

NO_CHOICE_YET = "no choice of sites to hold it against: name expected_sites, or use a baseline"


def siting_checks(
    lookup: Lookup, policy: Policy, tiers: list[TierInfo], baseline: Baseline | None
) -> Iterator[Check]:
    """One check for every tier whose choice of sites is known from the policy or the baseline."""
    if policy.siting is False:
        return
    kept = {one.tier: one for one in baseline.choices} if baseline else {}
    for tier in tiers:
        expected = _expected(policy, tier, kept.get(tier.name), lookup)
        if expected is not None:
            yield _check(lookup, policy, tier, expected)
        elif policy.siting:
            yield _made(policy, tier, Verdict.NOT_MEASURED, f"{NO_CHOICE_YET}.")


def _expected(
    policy: Policy, tier: TierInfo, kept: KeptSites | None, lookup: Lookup
) -> KeptSites | None:
    """What is built on: the policy's word before the baseline's."""
    names = policy.rules(tier).expected_sites
    if not names:
        return kept
    chosen = lookup.chosen(tier.name)
    objective = chosen.objective if chosen else Objective.P_MEDIAN
    return KeptSites(
        tier=tier.name,
        objective=objective,
        k=len(names),
        sites=tuple(sorted(names)),
        decided=True,
    )


def _check(lookup: Lookup, policy: Policy, tier: TierInfo, expected: KeptSites) -> Check:
    verdict, words = _judged(_comparable(lookup, tier, expected), expected)
    return _made(policy, tier, verdict, words)


def _comparable(lookup: Lookup, tier: TierInfo, expected: KeptSites) -> Recommendation | None:
    """The choice of as many sites for the same end: another number is another question."""
    choices = [one for one in lookup.recommendations(tier.name) if one.k == expected.k]
    same = [one for one in choices if one.objective is expected.objective]
    return next(iter([*same, *choices]), None)


def _judged(choice: Recommendation | None, expected: KeptSites) -> tuple[Verdict, str]:
    before = listed(expected.sites)
    if choice is None or not choice.sites:
        why = " ".join(choice.reasons) if choice else f"no choice of {expected.k} was computed."
        return Verdict.NOT_MEASURED, f"whether {before} still stands is not known: {why}"
    now = listed(sorted(choice.sites))
    if set(choice.sites) == set(expected.sites):
        return Verdict.PASS, f"the choice of {before} stands."
    if choice.decided:
        return Verdict.FAIL, f"{now} is surely better than {before} now."
    why = choice.why_undecided or "the data cannot tell the two apart."
    return Verdict.UNDECIDED, f"{now} may be better than {before} now: {why}"


def _made(policy: Policy, tier: TierInfo, verdict: Verdict, words: str) -> Check:
    rules = policy.rules(tier)
    return Check(
        rule=Rule.SITES,
        subject=Subject(tier=tier.name),
        verdict=verdict,
        effect=effect_of(verdict, rules.undecided, rules.not_measured),
        severity=rules.severity,
        text=f"{tier.name}: {words}",
    )
