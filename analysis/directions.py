"""Each direction by itself, out of a reflector's stamps, without synchronised clocks.

The variation of a direction is exact: the unknown offset of the clocks cancels against the minimum,
their skew and steps are found and taken out (`clock_fit`). Its constant part is not to be had
without clocks that agree (`one_way`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pathbudget.analysis.clock_fit import ClockFit, Cut, fit_clocks
from pathbudget.analysis.delay_variation import ipdv
from pathbudget.analysis.level_segments import block_edges, block_minima
from pathbudget.analysis.packets import LOST_FORWARD, LOST_REVERSE, Stream
from pathbudget.analysis.quantiles import (
    Estimate,
    Values,
    empirical_quantile,
    independent_size,
    loss_interval,
    widened_ranks,
)

SKEW_SHARE = 0.2
"""Share of the permitted error that the skew gets; order statistics get the rest."""

MINIMA_GROUPS = 16


@dataclass(frozen=True, slots=True)
class DirectionLoss:
    """Loss of one direction. What no end could place may be either way: the interval holds both."""

    sent: int
    """Packets that began this way: for the way back, those not lost on the way there."""
    lost: int
    unknown: int
    """Lost packets of which neither end can tell where."""
    low: float
    high: float

    @property
    def ratio(self) -> float:
        """Share that is known to be lost this way."""
        return self.lost / self.sent if self.sent else 0.0


@dataclass(frozen=True, slots=True)
class Variation:
    """Variation of one direction. Arrays have one entry per packet sent, in order of sending."""

    delays_ns: Values
    """D - min(D) of its path epoch, skew taken out. ``inf`` where the packet was lost (either way),
    NaN where it has no number."""
    leaned: tuple[Values, Values]
    """The same with every skew wrong by its error, one way and the other."""
    epochs: "np.typing.NDArray[np.int64]"
    """Number of the epoch of every packet; pairs across two epochs mean nothing."""
    gap_ns: float
    """How far the true minimum may lie below the smallest delay seen."""
    grain_ns: float = 0.0
    """How far a delay may be off because a clock jumped by more than a float64 has nanoseconds."""

    @property
    def pdv_ns(self) -> Values:
        """PDV of the packets that have one (RFC 5481), in order of sending."""
        return self.delays_ns[np.isfinite(self.delays_ns)]

    @property
    def ipdv_ns(self) -> Values:
        """IPDV of packets sent one after another (RFC 3393)."""
        return _within_epochs(self.delays_ns, self.epochs, ipdv)


@dataclass(frozen=True, slots=True)
class Directions:
    """Both directions of one stream."""

    forward: Variation
    reverse: Variation
    forward_loss: DirectionLoss
    reverse_loss: DirectionLoss
    fit: ClockFit
    cuts: tuple[Cut, ...]
    """Cuts with `at` counted in packets sent."""

    @property
    def steps(self) -> tuple[Cut, ...]:
        """Steps of one clock against the other."""
        return tuple(cut for cut in self.cuts if cut.is_clock_step)

    def levels_ns(self) -> tuple[Values, Values]:
        """How far each packet's path is above the shortest one seen, there and back.

        Only path changes count: a clock step moves no packet.
        """
        count = len(self.forward.delays_ns)
        there, back = np.zeros(count), np.zeros(count)
        for cut in self.path_changes:
            there[cut.at :] += cut.forward_ns
            back[cut.at :] += cut.reverse_ns
        shortest = int(np.argmin(there + back))
        return there - there[shortest], back - back[shortest]

    @property
    def path_changes(self) -> tuple[Cut, ...]:
        """Changes of the base of the round trip."""
        return tuple(cut for cut in self.cuts if cut.is_path_change)


def directions_of(stream: Stream, confidence: float = 0.95) -> Directions | None:
    """Both directions; None where no packet has a transit time each way."""
    timed = np.flatnonzero(stream.timed)
    if not len(timed):
        return None
    forward, reverse = stream.forward.values_ns[timed], stream.reverse.values_ns[timed]
    skew_confidence = 1 - (1 - confidence) * SKEW_SHARE
    fit = fit_clocks(stream.sent_unix_ns[timed], forward, reverse, skew_confidence)
    return Directions(
        forward=_variation(stream, timed, forward, fit, 1.0),
        reverse=_variation(stream, timed, reverse, fit, -1.0),
        forward_loss=forward_loss(stream, confidence),
        reverse_loss=reverse_loss(stream, confidence),
        fit=fit,
        cuts=_counted_in(timed, fit.cuts),
    )


def round_trip_variation(stream: Stream) -> tuple[Variation, tuple[Cut, ...]] | None:
    """Variation of the round trip, one path epoch at a time; None where nothing was answered."""
    timed = np.flatnonzero(np.isfinite(stream.round_trips_ns))
    if not len(timed):
        return None
    half = stream.round_trips_ns[timed] / 2
    fit = fit_clocks(stream.sent_unix_ns[timed], half, half, one_clock=True)
    variation = _variation(stream, timed, stream.round_trips_ns[timed], fit, 0.0)
    return variation, _counted_in(timed, fit.cuts)


def _counted_in(timed: "np.typing.NDArray[np.intp]", cuts: tuple[Cut, ...]) -> tuple[Cut, ...]:
    return tuple(
        Cut(int(timed[cut.at]), cut.forward_ns, cut.reverse_ns, cut.error_ns) for cut in cuts
    )


def _variation(
    stream: Stream, timed: "np.typing.NDArray[np.intp]", raw: Values, fit: ClockFit, sign: float
) -> Variation:
    flat = raw - sign * fit.drift()
    bases = _bases(flat, fit, sign)
    kept = flat >= bases - 0.5  # a packet at a cut that may belong to either side has no number
    epochs = np.full(stream.n, -1, dtype=np.int64)
    for number, piece in enumerate(fit.pieces):
        epochs[timed[piece.first : piece.end]] = number

    def spread(values: Values) -> Values:
        result = np.where(stream.lost, np.inf, np.nan)
        result[timed[kept]] = np.maximum(values[kept], 0.0)
        return result

    leaned = [_lean(raw - sign * fit.drift(tilt), fit, kept) for tilt in (-1.0, 1.0)]
    return Variation(
        delays_ns=spread(flat - bases),
        leaned=(spread(leaned[0]), spread(leaned[1])),
        epochs=epochs,
        gap_ns=_gap(np.where(kept, flat - bases, np.inf), fit),
        grain_ns=_grain(raw),
    )


def _grain(raw: Values) -> float:
    """Twice the distance of neighbouring floats at the largest time, ns: 0 below 52 days."""
    distance = 2 * float(np.spacing(np.abs(raw).max()))
    return distance if distance > 1 else 0.0


def _bases(flat: Values, fit: ClockFit, sign: float) -> Values:
    """The base that the fit found for each packet's piece: blocks at a cut had no say in it."""
    result = np.empty(len(flat))
    for piece in fit.pieces:
        base = piece.forward_base if sign >= 0 else piece.reverse_base
        result[piece.first : piece.end] = 2 * base if sign == 0 else base
    if len(fit.pieces) == 1 and len(flat):
        result[:] = flat.min()
    return result


def _lean(flat: Values, fit: ClockFit, kept: "np.typing.NDArray[np.bool_]") -> Values:
    """Delays over the minimum of each piece, as they are under another skew."""
    for piece in fit.pieces:
        mine = slice(piece.first, piece.end)
        flat[mine] -= flat[mine][kept[mine]].min() if kept[mine].any() else 0.0
    return flat


def _gap(delays: Values, fit: ClockFit) -> float:
    """How far below the smallest delay seen the true minimum may be, in the worst piece.

    The typical minimum of a sixteenth of the packets is above the smallest of all by about as much
    as that one is above what there is, for delays whose density falls off to nothing there, and by
    far more for all others.
    """
    gaps = [0.0]
    for piece in fit.pieces:
        mine = delays[piece.first : piece.end]
        if len(mine):
            minima = block_minima(mine, block_edges(len(mine), fewest=5, most=MINIMA_GROUPS))
            gaps.append(float(np.median(minima) - minima.min()))
    return max(gap for gap in gaps if np.isfinite(gap))


def _within_epochs(
    values: Values, epochs: "np.typing.NDArray[np.int64]", function: Callable[[Values], Values]
) -> Values:
    """`function` of each run of packets of one epoch. Losses belong to the epoch around them."""
    known = np.flatnonzero(epochs >= 0)
    if not len(known):
        return values[:0]
    starts = known[np.flatnonzero(np.diff(epochs[known])) + 1]
    return np.concatenate([function(part) for part in np.split(values, starts)])


def signed_estimate(
    values: Values, p: float, confidence: float, n_effective: float | None = None
) -> Estimate:
    """Quantile `p` of numbers of either sign, in order of time; unbounded ends are infinite.

    Sorted values may be given with what they are worth, `n_effective`.
    """
    worth = independent_size(values) if n_effective is None else n_effective
    ordered = np.sort(values) if n_effective is None else values
    lower, upper = widened_ranks(len(ordered), worth, p, confidence)
    return Estimate(
        value=empirical_quantile(ordered, p),
        low=float(ordered[lower - 1]) if lower else -np.inf,
        high=np.inf if upper is None else float(ordered[upper - 1]),
        n=len(ordered),
        n_effective=worth,
    )


def pdv_estimates(
    variation: Variation, shares: Sequence[float], confidence: float = 0.95
) -> tuple[Estimate, ...]:
    """Quantiles of the PDV of the packets that arrived, in ns; none where none did.

    The interval holds the order statistics for every skew within its error, and at its upper end
    the chance that the smallest delay seen is not the smallest there is.
    """
    pdv = variation.pdv_ns
    if not len(pdv):
        return ()
    worth = independent_size(pdv)
    ordered = [np.sort(x[np.isfinite(x)]) for x in (variation.delays_ns, *variation.leaned)]
    ranks_confidence = 1 - (1 - confidence) * (1 - SKEW_SHARE)
    found: list[Estimate] = []
    for p in shares:
        every = [signed_estimate(x, p, ranks_confidence, worth) for x in ordered]
        low = max(0.0, min(one.low for one in every) - variation.grain_ns)
        high = max(one.high for one in every) + variation.gap_ns + variation.grain_ns
        found.append(replace(every[0], low=low, high=high))
    return tuple(found)


def ipdv_estimates(
    variation: Variation, shares: Sequence[float], confidence: float = 0.95
) -> tuple[Estimate, ...]:
    """Quantiles of the signed IPDV, in ns; none for fewer than two packets in a row."""
    differences = variation.ipdv_ns
    if not len(differences):
        return ()
    worth, ordered = independent_size(differences), np.sort(differences)
    found = (signed_estimate(ordered, p, confidence, worth) for p in shares)
    grain = variation.grain_ns
    return tuple(replace(one, low=one.low - grain, high=one.high + grain) for one in found)


def forward_loss(stream: Stream, confidence: float = 0.95) -> DirectionLoss:
    """Loss on the way there: by the reflector's own numbering where it keeps one (RFC 8762)."""
    there, _, unknown = placed_losses(stream)
    return _loss(stream.n, there, unknown, confidence)


def reverse_loss(stream: Stream, confidence: float = 0.95) -> DirectionLoss:
    """Loss on the way back, of the packets that were not lost before."""
    there, back, unknown = placed_losses(stream)
    return _loss(stream.n - there, back, unknown, confidence)


def _loss(sent: int, lost: int, unknown: int, confidence: float) -> DirectionLoss:
    low, _ = loss_interval(lost, sent, confidence)
    _, high = loss_interval(min(sent, lost + unknown), sent, confidence)
    return DirectionLoss(sent, lost, unknown, low, high)


def placed_losses(stream: Stream) -> tuple[int, int, int]:
    """Packets lost there, lost back, and lost somewhere.

    The reflector's counts may know of losses that no single packet could be charged with.
    """
    lost = int(np.count_nonzero(stream.lost))
    there = max(stream.marked(LOST_FORWARD), stream.counters["lost_forward"])
    back = max(stream.marked(LOST_REVERSE), stream.counters["lost_reverse"])
    there = min(there, lost)
    back = min(back, lost - there)
    return there, back, lost - there - back
