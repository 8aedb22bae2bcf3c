"""Which numbers stand for each term of one (region, site, tier).

Our own probes for the network, then traces, then a file; for everything else the allowance of the
tier, which nobody measured. A term made for this very region, site and tier goes before one for all
of them.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from pathbudget.analysis.series import NS_PER_MS
from pathbudget.analysis.whole_budget.groups import NETWORK
from pathbudget.analysis.whole_budget.network import NetworkTerms
from pathbudget.analysis.whole_budget.terms import Scope, Term, TermName, TermSource
from pathbudget.sites.catalogue import Tier
from pathbudget.sites.tiers import NETWORK as NETWORK_COMPONENT

STRENGTH = {source: place for place, source in enumerate(TermSource)}


@dataclass(frozen=True, slots=True)
class Selection:
    """The terms of one budget in the order of a request, and what is to be said of them."""

    terms: tuple[Term, ...]
    notes: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    """Connection modes of the network's mixture that nobody measured."""


def select_terms(
    region: str,
    site: str,
    tier: Tier,
    *,
    network: NetworkTerms | None = None,
    given: Sequence[Term] = (),
) -> Selection:
    """The terms of one (region, site, tier). Those that the tier does not have come from `given`.

    A network term assumed at the allowance is one term, `network_in`: the tier has one number for
    both ways.
    """
    here = [term for term in given if _holds(term.scope, Scope(region, site, tier.name))]
    chosen = {name: best for name in TermName if (best := _best(here, name)) is not None}
    notes = [*_unused(here, chosen.values())]
    allowed = allowances(tier)
    if network is not None:
        notes += [
            f"{name}: measured by our probes, not as given." for name in NETWORK if name in chosen
        ]
        chosen |= dict(zip(NETWORK, (network.incoming, network.outgoing), strict=True))
        notes += network.notes
    elif len(one := [name for name in NETWORK if name in chosen]) == 1:
        notes.append(f"only {one[0]} is given: the allowance for both ways stands for the other.")
    absent = [name for name in allowed if name not in chosen]
    if all(name in chosen for name in NETWORK):
        absent = [name for name in absent if name is not TermName.NETWORK_IN]
    elif TermName.NETWORK_IN in chosen:
        chosen[TermName.NETWORK_OUT] = assumed(
            TermName.NETWORK_OUT, tier.network_allowance_ms, tier
        )
    chosen |= {name: assumed(name, allowed[name], tier) for name in absent}
    return Selection(
        terms=tuple(chosen[name] for name in TermName if name in chosen),
        notes=tuple(notes),
        missing=network.missing if network else (),
    )


def allowances(tier: Tier) -> dict[TermName, float]:
    """What the tier allows each term, in ms; both ways of the network stand at the first."""
    found: dict[TermName, float] = {}
    others: list[float] = []
    for name, allowed in tier.components.items():
        if name == NETWORK_COMPONENT:
            found[TermName.NETWORK_IN] = allowed
        elif name in (*NETWORK, TermName.OTHER) or name not in list(TermName):
            others.append(allowed)
        else:
            found[TermName(name)] = allowed
    if others:
        found[TermName.OTHER] = math.fsum(others)
    return found


def assumed(name: TermName, allowed_ms: float, tier: Tier) -> Term:
    """The allowance of a tier as a term: one number that nobody measured."""
    return Term(
        name=name,
        source=TermSource.TIER,
        values_ns=np.array([allowed_ms * NS_PER_MS]),
        n_effective=math.inf,
        origin=f"allowance of {tier.name}",
    )


def _holds(scope: Scope, here: Scope) -> bool:
    return (
        scope.region in ("", here.region)
        and scope.site in ("", here.site)
        and scope.tier in ("", here.tier)
    )


def _best(terms: Iterable[Term], name: TermName) -> Term | None:
    """The one made for the narrowest scope, of the strongest source; the first of equals."""

    def rank(term: Term) -> tuple[int, int]:
        words = (term.scope.region, term.scope.site, term.scope.tier)
        return sum(not word for word in words), STRENGTH[term.source]

    return min((term for term in terms if term.name is name), key=rank, default=None)


def _unused(here: Iterable[Term], chosen: Iterable[Term]) -> list[str]:
    """What was given twice, and which of the two stands."""
    standing = {term.name: term for term in chosen}
    return [
        f"{term.name}: {standing[term.name].origin or standing[term.name].source} stands, not "
        f"{term.origin or term.source}."
        for term in here
        if standing[term.name] is not term
    ]
