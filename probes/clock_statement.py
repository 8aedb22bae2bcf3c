"""What one source says of the wall clock's error, whatever protocol it said it in."""

import math
from typing import NamedTuple

LARGEST_SECONDS = 1e9
"""An error of thirty years is no statement about a clock."""


class ClockStatement(NamedTuple):
    """`bound_ns` is an error that is not exceeded, `estimated_ns` the one expected, `skew_ppm` how
    wrong the clock's rate may be; each None where the source does not say.
    """

    synchronised: bool
    bound_ns: int | None = None
    estimated_ns: int | None = None
    skew_ppm: float | None = None


UNSYNCHRONISED = ClockStatement(synchronised=False)
"""Of a clock that nobody disciplines, no error can be stated."""


def root_distance(
    *, offset: float, delay: float, dispersion: float, spread: float, skew_ppm: float
) -> ClockStatement | None:
    """From the seconds that NTP daemons keep; None where they cannot be.

    Bound: |offset| + delay / 2 + dispersion. That is RFC 5905's root distance together with what is
    left to correct, and the absolute bound that chronyc(1) gives under `tracking`; it holds if the
    primary server is right. Estimate: |offset| + `spread`, the usual size of offsets.
    """
    numbers = (offset, delay, dispersion, spread, skew_ppm)
    if not all(math.isfinite(one) and abs(one) < LARGEST_SECONDS for one in numbers):
        return None
    if min(delay, dispersion, spread, skew_ppm) < 0:
        return None
    return ClockStatement(
        synchronised=True,
        bound_ns=whole_ns(abs(offset) + delay / 2 + dispersion),
        estimated_ns=whole_ns(abs(offset) + spread),
        skew_ppm=skew_ppm,
    )


def whole_ns(seconds: float) -> int:
    """Nanoseconds, rounded up: a bound is never made smaller."""
    return math.ceil(seconds * 1e9)
