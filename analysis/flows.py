"""What equal-cost paths do: the same delay measured on many flows at once (RFC 2992).

A router picks a path per flow, so flows of one stream may see different paths. The spread is the
true difference between the slowest and the fastest flow's median, a term of its own: no single flow
shows it as variation, and a service whose connection falls on the slow path pays it every time.
"""

from dataclasses import dataclass

import numpy as np

from pathbudget.analysis.packets import Numbers
from pathbudget.analysis.quantiles import (
    Values,
    empirical_quantile,
    independent_size,
    widened_ranks,
)

FLOWS_TO_SEE_TWO_PATHS = 6
"""So many flows miss one of two equally likely paths in 3 % of all cases (Veitch et al. 2009)."""


@dataclass(frozen=True, slots=True)
class Flow:
    """One flow, ns."""

    flow: int
    n: int
    lost: int
    minimum_ns: float
    """``inf`` where nothing was answered."""
    median_ns: float
    low_ns: float
    high_ns: float
    """Interval of the median; all flows' intervals hold together with the confidence asked for."""


@dataclass(frozen=True, slots=True)
class FlowSpread:
    """Difference between the medians of the slowest and the fastest flow, ns."""

    flows: tuple[Flow, ...]
    value_ns: float
    low_ns: float
    """0 where the data cannot tell the flows apart."""
    high_ns: float

    @property
    def is_seen(self) -> bool:
        """Whether the flows surely differ. For flows that do not, false alarms are at most as
        frequent as 1 - confidence."""
        return self.low_ns > 0

    @property
    def may_miss_paths(self) -> bool:
        """Whether there are too few flows to have met both of even two paths."""
        return len(self.flows) < FLOWS_TO_SEE_TWO_PATHS


def flow_spread(
    flows: Numbers, delays_ns: Values, confidence: float = 0.95, finest_ns: float = 0.0
) -> FlowSpread | None:
    """Spread over the flows of a stream in order of sending; None for fewer than two flows.

    Each median gets an order-statistic interval at 1 - alpha / flows (Bonferroni), so all hold at
    once: the spread is at least the largest gap between two intervals and at most the width of all.
    `finest_ns` is the noise floor: a smaller lower end counts as nothing seen. Losses are
    ``inf``, NaN is no sample, and flow -1 is none.
    """
    names = np.unique(flows[(flows >= 0) & ~np.isnan(delays_ns)])
    if len(names) < 2:
        return None
    each = 1 - (1 - confidence) / len(names)
    found = tuple(_flow(int(name), delays_ns[flows == name], each) for name in names)
    medians = np.array([flow.median_ns for flow in found])
    finite = medians[np.isfinite(medians)]
    least = max(flow.low_ns for flow in found) - min(flow.high_ns for flow in found)
    most = max(flow.high_ns for flow in found) - min(flow.low_ns for flow in found)
    return FlowSpread(
        flows=found,
        value_ns=float(np.ptp(finite)) if len(finite) == len(medians) else float("inf"),
        low_ns=least if least > finest_ns else 0.0,
        high_ns=most,
    )


def _flow(name: int, delays: Values, confidence: float) -> Flow:
    delays = delays[~np.isnan(delays)]
    ordered = np.sort(delays)
    lower, upper = widened_ranks(len(ordered), independent_size(delays), 0.5, confidence)
    return Flow(
        flow=name,
        n=len(ordered),
        lost=int(np.count_nonzero(np.isinf(ordered))),
        minimum_ns=float(ordered[0]),
        median_ns=empirical_quantile(ordered, 0.5),
        low_ns=float(ordered[lower - 1]) if lower else 0.0,
        high_ns=float(ordered[upper - 1]) if upper is not None else float("inf"),
    )
