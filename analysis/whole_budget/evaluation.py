"""Whole budgets of what an evaluation measured: every region at the sites that were recommended."""

from collections.abc import Iterable, Mapping, Sequence

from pathbudget.analysis.results import BudgetLine, Carriage, Carrier, Recommendation
from pathbudget.analysis.siting.serving import serving
from pathbudget.analysis.whole_budget.network import NetworkChange, NetworkSource
from pathbudget.analysis.whole_budget.question import Request
from pathbudget.analysis.whole_budget.results import Combine, WholeBudget
from pathbudget.analysis.whole_budget.selection import select_terms
from pathbudget.analysis.whole_budget.terms import Term
from pathbudget.analysis.whole_budget.whole import whole_budget
from pathbudget.sites.catalogue import Tier

PairName = tuple[str, str]
"""Region and site."""

Networks = Mapping[PairName, NetworkSource]
"""What was measured between each region and site."""


def whole_budgets(
    recommendations: Iterable[Recommendation],
    lines: Iterable[BudgetLine],
    networks: Networks,
    tiers: Iterable[Tier],
    *,
    confidence: float = 0.95,
    given: Sequence[Term] = (),
) -> tuple[WholeBudget, ...]:
    """One per tier, region and site that some recommendation has serve the region.

    `lines` are headline lines: a region that is given no site is held to the least bad one.
    """
    by_tier: dict[str, list[BudgetLine]] = {}
    for line in lines:
        by_tier.setdefault(line.tier, []).append(line)
    served: dict[str, dict[PairName, None]] = {}
    for choice in recommendations:
        held = serving(choice, by_tier.get(choice.tier, ()))
        served.setdefault(choice.tier, {}).update(dict.fromkeys(held.items()))
    return tuple(
        whole_budget(pair_request(pair, networks.get(pair), tier, confidence, given=given))
        for tier in tiers
        for pair in served.get(tier.name, {})
    )


def pair_request(
    pair: PairName,
    network: NetworkSource | None,
    tier: Tier,
    confidence: float = 0.95,
    *,
    given: Sequence[Term] = (),
    change: NetworkChange | None = None,
    combine: Combine | None = None,
) -> Request:
    """The question of one pair; the network at its allowance where it was not measured."""
    terms = None if network is None else network.terms(tier, confidence, change)
    return Request(
        region=pair[0],
        site=pair[1],
        tier=tier,
        selection=select_terms(*pair, tier, network=terms, given=given),
        combine=combine,
        confidence=confidence,
        noise_floor_ns=0.0 if network is None else float(network.path.noise_floor_ns or 0),
        cautions=() if network is None else _cautions(network, network.weights(tier, change)),
    )


def _cautions(network: NetworkSource, carriages: Iterable[Carriage]) -> tuple[str, ...]:
    """Why a pass could not be believed: the same that keeps a line from passing."""
    path = network.path
    if not (path.refuses_everybody and any(carrier is Carrier.TLS for carrier, _ in carriages)):
        return ()
    why = f"{path.target} refused every one of {path.connects} TCP connects"
    return (f"{why}: the network would do, and no service answers there.",)
