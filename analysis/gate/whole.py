"""Whole budgets of an evaluation as quantities that can be judged and compared."""

from collections.abc import Collection, Iterator, Mapping

from pathbudget.analysis.gate.checks import Numbers, Subject
from pathbudget.analysis.gate.judging import Judged, judged_anew
from pathbudget.analysis.gate.policy import Policy
from pathbudget.analysis.report.words import counted
from pathbudget.analysis.results import Evaluation, TierInfo, Verdict
from pathbudget.analysis.whole_budget.results import WholeBudget

NONE_THERE = "there is no whole budget of it in this run; there is one of each recommended site."
NOTHING_SAMPLED = "all terms stand at the tier's allowances; nothing of it was measured."
NOTHING = Numbers(value_ms=None, low_ms=None, high_ms=None, n=0)

Pairs = Collection[tuple[str, str, str]]
"""Tier, region and site."""


def every_whole(evaluation: Evaluation) -> Iterator[Judged]:
    """Each whole budget against its target."""
    yield from map(_judged, evaluation.whole_budgets)


def whole_quantities(
    evaluation: Evaluation, policy: Policy, tiers: Mapping[str, TierInfo], pairs: Pairs
) -> Iterator[Judged]:
    """Those of the pairs that the policy asks for, and those of them that are missing."""
    if not policy.whole:
        return
    found = {(one.subject.tier, *_pair(one)): one for one in every_whole(evaluation)}
    for pair in pairs:
        target = policy.rules(tiers[pair[0]]).target_ms
        if one := found.get(pair):
            yield one if target is None or not one.numbers.n else judged_anew(one, target)
        else:
            subject = Subject(tier=pair[0], region=pair[1], site=pair[2], whole=True)
            yield Judged(subject, NOTHING, target, Verdict.NOT_MEASURED, NONE_THERE)


def _pair(quantity: Judged) -> tuple[str, str]:
    return quantity.subject.region, quantity.subject.site


def _judged(whole: WholeBudget) -> Judged:
    verdict, reason = Verdict(whole.verdict), whole.reason
    if not whole.n:
        verdict, reason = Verdict.NOT_MEASURED, NOTHING_SAMPLED
    within = whole.high_ms is not None and whole.high_ms <= whole.target_ms
    return Judged(
        subject=Subject(
            tier=whole.tier,
            region=whole.region,
            site=whole.site,
            percentile=whole.percentile,
            whole=True,
        ),
        numbers=Numbers(
            value_ms=whole.value_ms,
            low_ms=whole.low_ms,
            high_ms=whole.high_ms,
            n=whole.n,
            n_effective=whole.n_effective or 0.0,
            losses=0,
        ),
        allowance_ms=whole.target_ms,
        verdict=verdict,
        reason=reason,
        cannot_pass=reason if verdict is Verdict.UNDECIDED and within else "",
        note=_assumed(whole),
    )


def _assumed(whole: WholeBudget) -> str:
    """What of it nobody measured."""
    if not whole.assumed:
        return ""
    many = counted(len(whole.assumed), "term stands", "terms stand")
    return f"{many} at the tier's allowance."
