"""The eight terms of one request's budget, each as a distribution that says where it is from.

    L_E2E = network in + gateway + retrieval + tokenization + TTFT + first tokens + guardrail
            + network out

All times are float64 nanoseconds; a request that failed is +inf, as everywhere in the analysis.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from pathbudget.analysis.quantiles import Values
from pathbudget.analysis.request import Distribution, distribution_of
from pathbudget.analysis.track import Track


class TermName(StrEnum):
    """The terms in the order of a request. The network has two; a tier allows them one number."""

    NETWORK_IN = "network_in"
    GATEWAY = "gateway_and_auth"
    RETRIEVAL = "retrieval"
    TOKENIZATION = "tokenization"
    TTFT = "ttft"
    FIRST_TOKENS = "first_10_tokens"
    """N x TPOT: the tokens after the first that the user waits for."""
    GUARDRAIL = "guardrail"
    NETWORK_OUT = "network_out"
    OTHER = "other"
    """What a tier of the user's has beside the eight: its components of other names together."""


class TermSource(StrEnum):
    """Where a term's numbers are from, from the strongest to the weakest."""

    MEASURED = "measured"
    """By our own probes."""
    TRACES = "traces"
    """OpenTelemetry spans of the user's service."""
    FILE = "file"
    """A user's file of samples or quantiles."""
    MODEL = "model"
    """A what-if changed it by a stated assumption."""
    TIER = "tier"
    """The allowance of the tier stands for it: one number that nobody measured."""


@dataclass(frozen=True, slots=True)
class Scope:
    """For which region, site and tier a term holds; empty means for all of them."""

    region: str = ""
    site: str = ""
    tier: str = ""


@dataclass(frozen=True, slots=True)
class Term:
    """One term. `values_ns` in the order of the requests, not sorted; never empty, never NaN."""

    name: TermName
    source: TermSource
    values_ns: Values = field(repr=False)
    n_effective: float
    """What the values are worth after their autocorrelation; inf for an allowance."""
    requests: tuple[str, ...] = field(default=(), repr=False)
    """Ids (of traces) parallel to `values_ns`; empty where the values cannot be joined."""
    origin: str = ""
    """For people: the file, the span name, the probe."""
    scope: Scope = Scope()
    sent_unix_ns: tuple[int, ...] = field(default=(), repr=False)
    """Parallel to `values_ns`, where known: for block lengths and busy hours."""
    stated: tuple[str, ...] = field(default=(), repr=False)
    """Of a distribution that a file states: its lines, from which the values were made."""
    track: Track | None = field(default=None, repr=False)
    """When and from which vantage each was sent, in order of time; of our own probes."""

    @property
    def distribution(self) -> Distribution:
        """The values sorted, with what they are worth."""
        return self.distribution_of(self.values_ns)

    def distribution_of(self, values_ns: Values) -> Distribution:
        """Of other values of the same requests: what they are worth by their order in time."""
        if len(values_ns) == len(self.values_ns) and math.isfinite(self.n_effective):
            if self.track is not None:
                return distribution_of(replace(self.track, values_ns=values_ns))
            if self.sent_unix_ns:
                return distribution_of(_in_time(np.array(self.sent_unix_ns), values_ns))
        return Distribution(np.sort(values_ns), self.n_effective)


def _in_time(sent: npt.NDArray[np.int64], values: Values) -> Track:
    order = np.argsort(sent, kind="stable")
    return Track(sent[order], values[order], np.zeros(len(sent), dtype=np.int64))


Terms = Mapping[TermName, Term]
"""The terms of one (region, site, tier). Terms that a tier does not have are absent."""
