"""Bursts of packets sent back to back: the queue that they meet, and the one that they make.

Within a train the clocks do not matter and the path does not change: what a packet takes longer
than the first one of its train is queueing.
"""

from dataclasses import dataclass

import numpy as np

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
    """Median of the delay over that of the first packet of the train, ns; None for the first."""


@dataclass(frozen=True, slots=True)
class Trains:
    """All trains of one stream."""

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
    delays = _table(stream, np.where(np.isfinite(delays_ns), delays_ns, np.nan))
    sent = _table(stream, (stream.sent_unix_ns - stream.sent_unix_ns[0]).astype(np.float64))
    lost = _table(stream, stream.lost.astype(np.float64))
    growth = delays - delays[:, :1]
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
        dispersion=_estimate(_dispersion(sent, delays), 0.5, confidence),
    )


def _table(stream: Stream, values: Values) -> Values:
    """One row per train, one column per position; NaN where there is no number."""
    length = stream.key.train
    rows = train_numbers(stream.sequence, length)
    table = np.full((int(rows[-1]) + 1, length), np.nan)
    table[rows, stream.sequence % length] = values
    return table


def train_numbers(sequence: Numbers, length: int) -> Numbers:
    """Which train each packet is of, from 0: a new one begins with every multiple of `length`.

    Packets in order of sending; numbers that start again (another run) begin a train as well.
    """
    new = np.diff(sequence // length) != 0
    new |= np.diff(sequence) <= 0
    return np.concatenate(([0], np.cumsum(new)))


def _dispersion(sent: Values, delays: Values) -> Values:
    """Per train: arrivals' spacing less the sends', over its first and last packet."""
    between: Values = delays[:, -1] - delays[:, 0]
    whole = np.isfinite(between) & np.isfinite(sent[:, 0] + sent[:, -1])
    spacing: Values = between[whole] / (delays.shape[1] - 1)
    return spacing


def _estimate(values: Values, p: float, confidence: float) -> Estimate | None:
    known = values[np.isfinite(values)]
    return signed_estimate(known, p, confidence) if len(known) else None
