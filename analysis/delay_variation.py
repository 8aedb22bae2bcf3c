"""Delay variation, by the definitions that have a name. No two of them are the same number.

    PDV                  delay minus the smallest delay of the interval        RFC 5481
    IPDV                 delay minus the delay of the packet sent before       RFC 3393
    interarrival_jitter  smoothed mean of |IPDV| in order of arrival           RFC 3550
    mean_deviation, p95_minus_p50, smoothed_rtt_variation    what other tools print

Delays are one-dimensional float64 in any one unit, in order of sending, ``+inf`` for a lost packet
and NaN for one without a number; results have the unit of the delays. Functions that need two
delays give None (or nothing) for fewer.
"""

from collections.abc import Sequence

import numpy as np

from pathbudget.analysis.quantiles import Values, empirical_quantile

SMOOTHING = 16
"""Gain parameter of RFC 3550 section 6.4.1: each packet moves the estimate by a sixteenth."""


def pdv(delays: Values) -> Values:
    """Packet delay variation of what arrived: D - min(D), never negative (RFC 5481 section 3.1).

    Lost packets have none: the distribution is that of the packets that arrived, and loss is
    reported beside it. One path epoch at a time: a path change moves the minimum.
    """
    arrived = delays[np.isfinite(delays)]
    return arrived - arrived.min() if len(arrived) else arrived


def ipdv(delays: Values) -> Values:
    """Inter-packet delay variation: D(i) - D(i-1), signed, of packets sent one after another.

    RFC 3393 with the selection function *consecutive sent packets*. A loss breaks both of its
    pairs; nothing is bridged. Fewer than two delays give no value at all.
    """
    arrived = np.isfinite(delays)
    pairs = arrived[1:] & arrived[:-1]
    return delays[1:][pairs] - delays[:-1][pairs]


def interarrival_jitter(sent: Values, received: Values) -> float | None:
    """J of RFC 3550 section 6.4.1 after the last packet: J += (|D| - J) / 16, from J = 0.

    `sent` and `received` are of the packets that arrived, in order of arrival, in one unit. An
    exponential mean that the last fifty packets or so decide: a labelled extra, never the answer.
    """
    if len(received) < 2:
        return None
    estimate = 0.0
    for difference in np.abs(np.diff(received) - np.diff(sent)):
        estimate += (float(difference) - estimate) / SMOOTHING
    return estimate


def interarrival_jitter_integers(transits: Sequence[int]) -> list[int]:
    """The integer form of RFC 3550 appendix A.8 after every packet: what RTCP reports carry.

    `transits` are arrival minus RTP timestamp, in timestamp units, in order of arrival. The
    accumulator is sixteen times too large; the number to report is ``accumulator >> 4``.
    """
    return [accumulator >> 4 for accumulator in _accumulators(transits)]


def _accumulators(transits: Sequence[int]) -> list[int]:
    states: list[int] = []
    accumulator = 0
    for i, transit in enumerate(transits):
        if i:
            difference = abs(transit - transits[i - 1])
            accumulator += difference - ((accumulator + 8) >> 4)
        states.append(accumulator)
    return states


def mean_deviation(delays: Values) -> float | None:
    """Mean of |D - mean(D)|: what ThousandEyes calls jitter."""
    arrived = delays[np.isfinite(delays)]
    return float(np.mean(np.abs(arrived - arrived.mean()))) if len(arrived) > 1 else None


def p95_minus_p50(delays: Values) -> float | None:
    """95th percentile less the median of what arrived: what perfSONAR calls jitter."""
    arrived = np.sort(delays[np.isfinite(delays)])
    if len(arrived) < 2:
        return None
    return empirical_quantile(arrived, 0.95) - empirical_quantile(arrived, 0.5)


def smoothed_rtt_variation(round_trips: Values) -> float | None:
    """RTTVAR of TCP after the last round trip (RFC 6298: gains 1/4 and 1/8)."""
    arrived = [float(value) for value in round_trips[np.isfinite(round_trips)]]
    if len(arrived) < 2:
        return None
    smoothed, variation = arrived[0], arrived[0] / 2
    for value in arrived[1:]:
        variation += (abs(smoothed - value) - variation) / 4
        smoothed += (value - smoothed) / 8
    return variation
