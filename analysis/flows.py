"""What equal-cost paths do: the same delay measured on many flows at once (RFC 2992).

A router picks a path per flow, so flows of one stream may see different paths. The spread is the
true difference between the slowest and the fastest flow's median, a term of its own: no single flow
shows it as variation, and a service whose connection falls on the slow path pays it every time.

Only flows of one measurement are compared, which sends on all of them in turn: what two runs see at
different hours differs for many reasons.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pathbudget.analysis.packets import Numbers, Stream
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


def stream_flow_spread(
    stream: Stream, delays_ns: Values, confidence: float = 0.95, finest_ns: float = 0.0
) -> FlowSpread | None:
    """Spread in that measurement of a stream which shows the most; None where none has two flows.

    Its lower end is the largest; where all are 0, its upper end is the smallest. The intervals of
    all measurements hold together (Bonferroni), so this choice among them costs no confidence.
    """
    sweeps = list(_sweeps(stream, delays_ns))
    each = 1 - (1 - confidence) / max(1, len(sweeps))
    found = (flow_spread(flows, delays, each, finest_ns) for flows, delays in sweeps)
    known = [spread for spread in found if spread is not None]
    return max(known, key=lambda spread: (spread.low_ns, -spread.high_ns), default=None)


def _sweeps(stream: Stream, delays_ns: Values) -> Iterator[tuple[Numbers, Values]]:
    """Flows and delays of each measurement, of the packets with both, where there are two flows."""
    order = np.argsort(stream.runs, kind="stable")
    ends = np.cumsum(np.bincount(stream.runs))[:-1]
    for mine in np.split(order, ends):
        known = mine[(stream.flows[mine] >= 0) & ~np.isnan(delays_ns[mine])]
        flows = stream.flows[known]
        lasting = np.isin(flows, _lasting(flows))
        if len(np.unique(flows[lasting])) > 1:
            yield flows[lasting], delays_ns[known[lasting]]


def _lasting(flows: Numbers) -> Numbers:
    """Flows with packets in the first and in the last quarter (or in as many as there are flows).

    The others were replaced half-way (a port or an identifier that somebody else took): what they
    saw was another time, not another path.
    """
    quarter = max(-(-len(flows) // 4), len(np.unique(flows)))
    return np.intersect1d(flows[:quarter], flows[::-1][:quarter])


def flow_spread(
    flows: Numbers, delays_ns: Values, confidence: float = 0.95, finest_ns: float = 0.0
) -> FlowSpread | None:
    """Spread over the flows of one sweep in order of sending; None for fewer than two flows.

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
