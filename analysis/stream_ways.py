"""The ways of a stream as results: there, back, and the round trip."""

from collections.abc import Callable, Sequence

import numpy as np

from pathbudget.analysis.delay_variation import (
    interarrival_jitter,
    mean_deviation,
    p95_minus_p50,
    smoothed_rtt_variation,
)
from pathbudget.analysis.directions import (
    DirectionLoss,
    Directions,
    Variation,
    ipdv_estimates,
    pdv_estimates,
)
from pathbudget.analysis.one_way import OneWayDelay, one_way_delays
from pathbudget.analysis.packets import STEPPED, Stream
from pathbudget.analysis.quantiles import Estimate, Values, loss_interval
from pathbudget.analysis.reordering import Reordering, reordering
from pathbudget.analysis.series import NS_PER_MS
from pathbudget.analysis.stream_results import Bounded, OneWay, Way
from pathbudget.analysis.stream_results import Variation as VariationResult
from pathbudget.analysis.summary import milliseconds

PDV_SHARES = (0.5, 0.95, 0.99, 0.999)
IPDV_SHARES = (0.01, 0.5, 0.99)


def bounded(estimate: Estimate | None) -> Bounded | None:
    """An estimate in ns as a person reads it."""
    if estimate is None:
        return None
    low, value, high = (milliseconds(x) for x in (estimate.low, estimate.value, estimate.high))
    return Bounded(value_ms=value, low_ms=low, high_ms=high)


def ways_of(
    stream: Stream,
    directions: Directions | None,
    round_trip: Variation | None,
    confidence: float,
) -> tuple[VariationResult, ...]:
    """Every way that the packets tell of. A stream that lost everything has its loss alone."""
    delays = one_way_delays(stream, stepped=is_stepped(stream, directions))
    found: list[VariationResult] = []
    if directions is not None and delays is not None:
        there = _Way(Way.FORWARD, directions.forward_loss, _order_there(stream, directions))
        back = _Way(Way.REVERSE, directions.reverse_loss, _order_back(stream, directions))
        found.append(there.result(stream, directions.forward, delays.forward, confidence))
        found.append(back.result(stream, directions.reverse, delays.reverse, confidence))
    loss = _round_trip_loss(stream, confidence)
    both = _Way(Way.ROUND_TRIP, loss, _order_of_answers(stream))
    return (*found, both.result(stream, round_trip, None, confidence))


def is_stepped(stream: Stream, directions: Directions | None) -> bool:
    """Whether a clock was stepped: seen in the packets, across one, or admitted by this host."""
    noticed = stream.clock_steps > 0 or stream.marked(STEPPED) > 0
    return noticed or bool(directions is not None and directions.steps)


class _Way:
    """Loss and order of one way, waiting for its variation."""

    def __init__(self, way: Way, loss: DirectionLoss, order: Reordering) -> None:
        self.way, self.loss, self.order = way, loss, order

    def result(
        self,
        stream: Stream,
        variation: Variation | None,
        delay: OneWayDelay | None,
        confidence: float,
    ) -> VariationResult:
        pdv: Sequence[Estimate | None] = (None,) * len(PDV_SHARES)
        ipdv: Sequence[Estimate | None] = (None,) * len(IPDV_SHARES)
        if variation is not None:
            pdv = pdv_estimates(variation, PDV_SHARES, confidence) or pdv
            ipdv = ipdv_estimates(variation, IPDV_SHARES, confidence) or ipdv
        middle, seen = pdv[0], self.order.received > 1
        return VariationResult(
            way=self.way,
            sent=self.loss.sent,
            lost=self.loss.lost,
            lost_way_unknown=self.loss.unknown,
            loss_ratio=self.loss.ratio,
            loss_low=self.loss.low,
            loss_high=self.loss.high,
            n=0 if middle is None else middle.n,
            n_effective=0.0 if middle is None else middle.n_effective,
            pdv_p50_ms=bounded(pdv[0]),
            pdv_p95_ms=bounded(pdv[1]),
            pdv_p99_ms=bounded(pdv[2]),
            pdv_p999_ms=bounded(pdv[3]),
            ipdv_p1_ms=bounded(ipdv[0]),
            ipdv_p50_ms=bounded(ipdv[1]),
            ipdv_p99_ms=bounded(ipdv[2]),
            extras={} if variation is None else _extras(stream, variation, self.way),
            reordered=self.order.reordered if seen else None,
            reordered_ratio=self.order.ratio if seen else None,
            reordered_largest_extent=self.order.largest_extent if seen else None,
            reordered_3=self.order.n_reordered if seen else None,
            owd=None if delay is None else _one_way(delay),
        )


def _one_way(delay: OneWayDelay) -> OneWay:
    error = delay.error_ns
    return OneWay(
        owd_ms=delay.value_ns / NS_PER_MS,
        low_ms=delay.low_ns / NS_PER_MS,
        high_ms=delay.high_ns / NS_PER_MS,
        clock_error_ms=None if error is None else error / NS_PER_MS,
        clock_state=str(delay.state),
    )


def _round_trip_loss(stream: Stream, confidence: float) -> DirectionLoss:
    lost = int(np.count_nonzero(stream.lost))
    return DirectionLoss(stream.n, lost, 0, *loss_interval(lost, stream.n, confidence))


def _extras(stream: Stream, variation: Variation, way: Way) -> dict[str, float]:
    """Other people's definitions, in ms, of the delays with skew taken out."""
    delays = variation.delays_ns
    arrived = np.isfinite(delays)
    sent = (stream.sent_unix_ns - stream.sent_unix_ns[0])[arrived].astype(np.float64)
    received = sent + delays[arrived]
    order = np.argsort(received, kind="stable")
    found: dict[str, float | None] = {
        "interarrival_jitter_ms": interarrival_jitter(sent[order], received[order]),
        "mean_deviation_ms": mean_deviation(delays),
        "p95_minus_p50_ms": p95_minus_p50(delays),
    }
    if way is Way.ROUND_TRIP:
        found["smoothed_rtt_variation_ms"] = smoothed_rtt_variation(stream.round_trips_ns)
    return {word: value / NS_PER_MS for word, value in found.items() if value is not None}


def _order_of_answers(stream: Stream) -> Reordering:
    """Sent in which order, answered in which: reordered anywhere on the round trip."""
    answered = np.flatnonzero(np.isfinite(stream.received_ns))
    return _reordering(answered, stream, lambda i: stream.received_ns[i])


def _order_there(stream: Stream, directions: Directions) -> Reordering:
    """In which order the reflector received them, by its own clock with its steps undone."""
    timed = np.flatnonzero(stream.timed)
    unstepped = stream.forward.values_ns - _steps(stream, directions)
    return _reordering(timed, stream, lambda i: unstepped[i])


def _order_back(stream: Stream, directions: Directions) -> Reordering:
    """Sent back in which order (arrival less the time it took), and received in which."""
    timed = np.flatnonzero(stream.timed)
    unstepped = stream.reverse.values_ns + _steps(stream, directions)
    arrived = (stream.sent_unix_ns - stream.sent_unix_ns[0]) + stream.received_ns
    left = arrived[timed] - unstepped[timed]
    numbers = np.argsort(np.argsort(left, kind="stable"), kind="stable")
    return reordering([int(i) for i in numbers[np.argsort(arrived[timed], kind="stable")]])


def _reordering(
    packets: "np.typing.NDArray[np.intp]",
    stream: Stream,
    delay_of: Callable[["np.typing.NDArray[np.intp]"], Values],
) -> Reordering:
    since = stream.sent_unix_ns[packets] - stream.sent_unix_ns[0]
    arrived = since + delay_of(packets)
    return reordering([int(i) for i in np.argsort(arrived, kind="stable")])


def _steps(stream: Stream, directions: Directions) -> Values:
    """Sum of all steps before each packet, ns."""
    total = np.zeros(stream.n)
    for step in directions.steps:
        total[step.at :] += step.step_ns
    return total
