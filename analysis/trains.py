"""Bursts of packets sent back to back: the queue that they meet, and the one that they make.

Within a train the clocks do not matter and the path does not change: what a packet takes longer
than the first one of its train is queueing. A packet that was lost took longer than any number.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pathbudget.analysis.directions import signed_estimate
from pathbudget.analysis.packets import Numbers, Stream
from pathbudget.analysis.quantiles import Estimate, Values


@dataclass(frozen=True, slots=True)
class TrainPosition:
    """All packets of one place in their trains, counted from 0."""

    position: int
    sent: int
    lost: int
    growth: Estimate | None
    """Median of the delay over that of the first packet of the train, ns; ``inf`` for a loss. None
    for the first, and for a place that is always on another flow than the first."""


@dataclass(frozen=True, slots=True)
class Trains:
    """All trains of one stream. Losses are ``inf`` in every quantile."""

    length: int
    trains: int
    positions: tuple[TrainPosition, ...]
    growth: Estimate | None
    """95th percentile of the delay of the last packet over that of the first, ns."""
    dispersion: Estimate | None
    """Median of how much farther apart neighbours arrive than they were sent, ns per packet."""


def trains_of(stream: Stream, delays_ns: Values, confidence: float = 0.95) -> Trains | None:
    """Trains of a stream whose schedule says that it sends any; None for single packets.

    `delays_ns` has one delay per packet, in one direction or both: ``inf`` lost, NaN no number.
    """
    length = stream.key.train
    if length < 2 or not stream.n:
        return None
    rows = train_numbers(stream.runs, stream.sequence, length)
    places = stream.sequence % length
    delays = _table(rows, places, length, delays_ns)
    lost = _table(rows, places, length, stream.lost.astype(np.float64))
    flows = _table(rows, places, length, stream.flows.astype(np.float64))
    growth = np.where(_on_one_path(flows), _growth(delays), np.nan)
    return Trains(
        length=length,
        trains=len(delays),
        positions=tuple(
            TrainPosition(
                position=place,
                sent=int(np.count_nonzero(~np.isnan(lost[:, place]))),
                lost=int(np.nansum(lost[:, place])),
                growth=_estimate(growth[:, place], 0.5, confidence) if place else None,
            )
            for place in range(length)
        ),
        growth=_estimate(growth[:, -1], 0.95, confidence),
        dispersion=_estimate(growth[:, -1] / (length - 1), 0.5, confidence),
    )


def _table(rows: Numbers, places: Numbers, length: int, values: Values) -> Values:
    """One row per train, one column per position; NaN where there is no number."""
    table = np.full((int(rows.max()) + 1, length), np.nan)
    table[rows, places] = values
    return table


def train_numbers(runs: Numbers, sequence: Numbers, length: int) -> Numbers:
    """Which train each packet is of, from 0, in order of run and of number.

    Numbers tell, not times: trains may overlap. Another run counts from 0 again.
    """
    trains = sequence // length
    _, places = np.unique(runs * (int(trains.max()) + 1) + trains, return_inverse=True)
    numbers: Numbers = places.astype(np.int64)
    return numbers


def _on_one_path(flows: Values) -> npt.NDArray[np.bool_]:
    """Which packets went the way of the first of their train, as far as flows tell.

    A train that is swept over flows may take several paths, and their difference is no queue.
    """
    same: npt.NDArray[np.bool_] = (flows == flows[:, :1]) | np.isnan(flows[:, :1])
    return same


def _growth(delays: Values) -> Values:
    """Delays over that of the first of each train: ``inf`` for a loss.

    NaN where the packet arrived and the first one did not: there is nothing to compare it with.
    """
    first = np.where(np.isfinite(delays[:, :1]), delays[:, :1], np.nan)
    growth: Values = np.where(np.isinf(delays), np.inf, delays - first)
    return growth


def _estimate(values: Values, p: float, confidence: float) -> Estimate | None:
    known = values[~np.isnan(values)]
    return signed_estimate(known, p, confidence) if len(known) else None
