"""A flow sweep: the same probe on many flows in turn, sorted into rounds and blocks.

Flows share links by their hash; which link a flow is on shows in what it loses and how long it
takes, against the others at the same time. So a sweep is cut into *blocks* of time in which every
flow was asked equally often, and what happens to all flows in a block says nothing of any.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pathbudget.analysis.loss_patterns import runs
from pathbudget.analysis.quantiles import Values
from pathbudget.probes.record import FailureKind, Flag, Metric, Sample

Counts = npt.NDArray[np.int64]

OF_THIS_HOST = frozenset(
    {
        *(FailureKind.PERMISSION, FailureKind.LOCAL, FailureKind.UNAVAILABLE),
        *(FailureKind.NAME_NOT_FOUND, FailureKind.NO_ADDRESS, FailureKind.RESOLVER),
    }
)
"""Failures that say nothing of the network (docs/adr/0053)."""

ROUND_TRIPS = frozenset({Metric.RTT, Metric.CONNECT, Metric.ECHO})
BLOCKS = 40
"""So many blocks at most; every one has the same number of packets of each flow, nearly."""
RUN = 4
"""So many losses in a row, over as many flows, are no one flow's."""
LASTING = 0.8
"""Share of the blocks that a flow has to be in: one that was replaced saw another time."""


def is_lost(sample: Sample) -> bool | None:
    """Whether the packet or its answer was lost; None where it says nothing of the network.

    Whoever refuses has answered (RFC 7680 counts packets, not successes). A host whose routing has
    no way there says so itself: nothing arrives, as elsewhere.
    """
    if sample.failure is None:
        return Flag.LATE in sample.flags
    kind = sample.failure.kind
    if kind in OF_THIS_HOST:
        return None
    return kind not in (FailureKind.REFUSED, FailureKind.RESET)


@dataclass(frozen=True, slots=True)
class Sweep:
    """Packets of a sweep by block and flow. Flows stand in the order in which they were asked."""

    flows: tuple[int, ...]
    sent: Counts
    """Blocks x flows."""
    lost: Counts
    lost_alone: Counts
    """Without runs of losses over several flows: those happened to all who were sent just then."""
    rtt_ns: Values
    """Median round trip in each block; NaN where nothing was answered."""
    starts_unix_ns: Counts
    """First send of each block."""
    first_unix_ns: int
    last_unix_ns: int
    in_turn: bool
    """Whether the flows were asked in turn. One after the other tells times apart, not flows."""

    @property
    def per_flow(self) -> int:
        """Packets of the flow that has the fewest."""
        return int(self.sent.sum(axis=0).min()) if self.flows else 0


def sweep_of(samples: Iterable[Sample]) -> Sweep:
    """The round trips among `samples` that name their flow; in any order."""
    kept = [(one, gone) for one in samples if (gone := counts_as_lost(one)) is not None]
    kept.sort(key=lambda pair: (pair[0].sent_unix_ns, pair[0].seq))
    flows = np.array([one.flow for one, _ in kept], dtype=np.int64)
    lost = np.array([gone for _, gone in kept], dtype=np.bool_)
    sent = np.array([one.sent_unix_ns for one, _ in kept], dtype=np.int64)
    rtt = np.array([np.nan if gone else float(one.value_ns or 0) for one, gone in kept])
    return sweep_from_arrays(flows, lost, sent, rtt)


def counts_as_lost(sample: Sample) -> bool | None:
    """Whether a packet of a sweep was lost; None of what is no part of one."""
    if sample.flow is None or sample.metric not in ROUND_TRIPS:
        return None
    refused = sample.failure is not None and sample.value_ns is None
    lost = is_lost(sample)
    return None if refused and lost is False else lost


def sweep_from_arrays(
    flows: Counts, lost: npt.NDArray[np.bool_], sent: Counts, rtt: Values
) -> Sweep:
    """The same of packets in order of sending; `rtt` in ns, NaN where lost."""
    names, firsts, column = np.unique(flows, return_index=True, return_inverse=True)
    per_flow = len(flows) // max(1, len(names))
    blocks = min(BLOCKS, max(1, per_flow))
    block = np.arange(len(flows)) * blocks // max(1, len(flows))
    shape = (blocks, len(names))
    cell = block * len(names) + column
    counted = np.bincount(cell, minlength=blocks * len(names)).reshape(shape)
    gone = np.bincount(cell[lost], minlength=blocks * len(names)).reshape(shape)
    alone = np.bincount(cell[lost & ~in_runs(lost)], minlength=gone.size).reshape(shape)
    lasting = (counted > 0).mean(axis=0) >= LASTING if len(names) else np.zeros(0, np.bool_)
    turn = [int(place) for place in np.argsort(firsts) if lasting[place]]
    edges = np.searchsorted(block, np.arange(blocks))
    return Sweep(
        flows=tuple(int(names[place]) for place in turn),
        sent=counted[:, turn],
        lost=gone[:, turn],
        lost_alone=alone[:, turn],
        rtt_ns=_medians(cell, rtt, shape)[:, turn],
        starts_unix_ns=sent[edges] if len(sent) else np.zeros(0, np.int64),
        first_unix_ns=int(sent[0]) if len(sent) else 0,
        last_unix_ns=int(sent[-1]) if len(sent) else 0,
        in_turn=len(turn) * 2 > len(names),
    )


def in_runs(lost: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Losses in runs of `RUN` and more."""
    starts, ends = runs(lost)
    long = ends - starts >= RUN
    edges = np.zeros(len(lost) + 1, dtype=np.int64)
    edges[starts[long]] += 1
    edges[ends[long]] -= 1
    inside: npt.NDArray[np.bool_] = np.cumsum(edges[:-1]) > 0
    return inside


def _medians(cell: Counts, rtt: Values, shape: tuple[int, int]) -> Values:
    result = np.full(shape[0] * shape[1], np.nan)
    known = ~np.isnan(rtt)
    order = np.lexsort((rtt[known], cell[known]))
    cells, values = cell[known][order], rtt[known][order]
    places, starts, counts = np.unique(cells, return_index=True, return_counts=True)
    lower, upper = starts + (counts - 1) // 2, starts + counts // 2
    result[places] = (values[lower] + values[upper]) / 2
    return result.reshape(shape)
