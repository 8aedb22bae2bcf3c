"""One-way delay (RFC 7679) between two clocks, with the error that the clocks themselves state.

A transit time is a one-way delay only as far as the clocks agree. It is shown as it was read, below
zero if need be; what is possible is its interval: the stated error, cut to what physics allows,
which is that no way takes less than nothing or more than the whole round trip.
"""

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from pathbudget.analysis.packets import Stream
from pathbudget.analysis.quantiles import Values


class ClockState(StrEnum):
    """What a one-way delay is worth."""

    SYNCHRONISED = "synchronised"
    """Both clocks state an error, and nothing seen contradicts it."""
    UNSYNCHRONISED = "unsynchronised"
    """Nobody vouches for one of the clocks."""
    STEPPED = "stepped"
    """A clock was stepped during the measurement: before or after it, it was wrong."""
    CONTRADICTED = "contradicted"
    """The stated error does not reach the possible: one of the clocks is wrong and says it is not.
    """


@dataclass(frozen=True, slots=True)
class OneWayDelay:
    """Delay of the packet with the shortest round trip, ns: the constant part of one direction."""

    state: ClockState
    value_ns: float
    """As read from the two clocks; may be below zero."""
    low_ns: float
    high_ns: float
    error_ns: float | None
    """Stated error of both clocks together; None where nobody states one."""

    @property
    def is_known(self) -> bool:
        """Whether the clocks say more than that it is somewhere between nothing and the RTT."""
        return self.state is ClockState.SYNCHRONISED


@dataclass(frozen=True, slots=True)
class OneWayDelays:
    """Both directions of one packet; they sum to its round trip."""

    forward: OneWayDelay
    reverse: OneWayDelay


def one_way_delays(stream: Stream, *, stepped: bool) -> OneWayDelays | None:
    """The constant parts of both directions; None where no packet has both transit times."""
    timed = np.flatnonzero(stream.timed)
    if not len(timed):
        return None
    nearest = int(timed[np.argmin(stream.round_trips_ns[timed])])
    error = _stated_error(stream.forward.errors_ns[timed], stream.reverse.errors_ns[timed])
    return bounded(
        stream.forward.whole_ns(nearest),
        stream.reverse.whole_ns(nearest),
        error,
        stepped=stepped,
    )


def _stated_error(forward: Values, reverse: Values) -> float | None:
    """The largest error stated; None when for any packet nobody vouches."""
    largest = float(np.max(np.concatenate((forward, reverse))))
    return None if math.isnan(largest) else largest


def bounded(
    forward_ns: float, reverse_ns: float, error_ns: float | None, *, stepped: bool
) -> OneWayDelays:
    """Both directions of one packet with the interval that error and physics leave.

    One offset is wrong in both, with opposite signs, so what bounds one way bounds the other.
    """
    whole = forward_ns + reverse_ns
    state = ClockState.SYNCHRONISED
    low, high = 0.0, whole
    if stepped:
        state = ClockState.STEPPED
    elif error_ns is None:
        state = ClockState.UNSYNCHRONISED
    elif forward_ns + error_ns < 0 or reverse_ns + error_ns < 0:
        state = ClockState.CONTRADICTED
    else:
        low, high = max(low, forward_ns - error_ns), min(high, forward_ns + error_ns)
    return OneWayDelays(
        OneWayDelay(state, forward_ns, low, high, error_ns),
        OneWayDelay(state, reverse_ns, whole - high, whole - low, error_ns),
    )
