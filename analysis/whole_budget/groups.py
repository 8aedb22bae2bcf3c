"""Terms that are known request by request, joined before anything is said of their sum."""

import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pathbudget.analysis.quantiles import Values, independent_size
from pathbudget.analysis.request import Distribution
from pathbudget.analysis.whole_budget.terms import Term, TermName

MODEL_IDS = "model:"
"""Ids that begin so are of no request but of what a model ties together."""

NETWORK = (TermName.NETWORK_IN, TermName.NETWORK_OUT)


@dataclass(frozen=True)
class Group:
    """One summand of the whole: terms whose times belong to the same requests, entry by entry."""

    terms: tuple[Term, ...]
    values_ns: tuple[Values, ...]
    """One array per term, parallel to each other."""
    n_effective: float
    left_out: int = 0
    """Requests that had some of the terms and not all, and failed in none of them."""

    @functools.cached_property
    def sums_ns(self) -> Values:
        """The terms of each request added up; +inf where one of them failed."""
        total: Values = np.sum(self.values_ns, axis=0)
        return total

    @functools.cached_property
    def distribution(self) -> Distribution:
        """The sums in their order, with what they are worth: by their order in time if known."""
        alike = all(term.requests == self.terms[0].requests for term in self.terms)
        if alike and math.isfinite(self.n_effective):
            return self.terms[0].distribution_of(self.sums_ns)
        return Distribution(np.sort(self.sums_ns), self.n_effective)


def grouped(terms: Iterable[Term], *, by_request: bool = False) -> tuple[Group, ...]:
    """The summands: network in and out of the same requests as one, and what a model ties together.

    With `by_request` also all other terms that have ids of requests in common.
    """
    groups: list[list[Term]] = []
    for term in terms:
        home = next((group for group in groups if _belongs(term, group, by_request)), None)
        if home is None:
            groups.append([term])
        else:
            home.append(term)
    return tuple(joined(group) for group in groups)


def _belongs(term: Term, group: Sequence[Term], by_request: bool) -> bool:
    if not term.requests:
        return False
    for other in group:
        if term.requests == other.requests and (_tied(term, other) or by_request):
            return True
        if by_request and not set(term.requests).isdisjoint(other.requests):
            return True
    return False


def _tied(term: Term, other: Term) -> bool:
    """Whether one cannot be told without the other: two ways of a round trip, or one model's."""
    return {term.name, other.name} == set(NETWORK) or term.requests[0].startswith(MODEL_IDS)


def joined(terms: Sequence[Term]) -> Group:
    """Terms request by request, in the order of the first one's requests.

    Raises ValueError for no terms, for several of which one has no ids, and where no request has
    all of them.
    """
    if not terms:
        raise ValueError("no terms to join")
    if len(terms) == 1:
        return Group((terms[0],), (terms[0].values_ns,), terms[0].n_effective)
    for term in terms:
        if not term.requests:
            raise ValueError(f"{term.name} has no ids of requests, so it cannot be joined")
    if all(term.requests == terms[0].requests for term in terms):
        worth = min(term.n_effective for term in terms)
        return Group(tuple(terms), tuple(term.values_ns for term in terms), worth)
    return _by_ids(terms)


def _by_ids(terms: Sequence[Term]) -> Group:
    """Requests with all terms, and those that failed in one and never came to the others."""
    places = [{name: at for at, name in enumerate(term.requests)} for term in terms]
    common = set.intersection(*(set(place) for place in places))
    failed = {name for term in terms for name in _failed(term)}
    every = dict.fromkeys(name for term in terms for name in term.requests)
    order = [name for name in every if name in common or name in failed]
    if not common:
        names = ", ".join(term.name for term in terms)
        raise ValueError(f"no request has all of {names}")
    values = tuple(_values(term, place, order) for term, place in zip(terms, places, strict=True))
    return Group(tuple(terms), values, _worth(terms, values, order), len(every) - len(order))


def _failed(term: Term) -> list[str]:
    return [term.requests[at] for at in np.flatnonzero(np.isinf(term.values_ns))]


def _values(term: Term, place: Mapping[str, int], order: Sequence[str]) -> Values:
    """The times of the requests; +inf for those that failed before they came to this term."""
    return np.array([term.values_ns[place[name]] if name in place else np.inf for name in order])


def _worth(terms: Sequence[Term], values: Sequence[Values], order: Sequence[str]) -> float:
    """What the joined requests are worth: by their own order in time, where that is known."""
    n = len(order)
    shrunk = min(
        n if math.isinf(term.n_effective) else n * term.n_effective / len(term.values_ns)
        for term in terms
    )
    shrunk = min(float(n), shrunk)
    sent: dict[str, int] = {}
    for term in terms:
        sent |= dict(zip(term.requests, term.sent_unix_ns, strict=False))
    if not all(name in sent for name in order):
        return shrunk
    times = np.array([sent[name] for name in order], dtype=np.int64)
    total: Values = np.sum(values, axis=0)
    return min(shrunk, independent_size(total[np.argsort(times, kind="stable")]))
