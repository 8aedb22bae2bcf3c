"""Does something on the way hold chunks back? Two tests, each with its false-alarm rate. Pure.

A proxy may gather chunks and release them in bursts (ends of buffers), or release them at a pace of
its own, smoother than they were sent. Both raise the time to the first token; the gaps between
tokens then look better than they are. So both tests look at what left the sender.

**Bursts.** Chunks that were sent well apart and arrive together are one *release*. Lost packets
make such releases too: what comes behind a lost one waits for it. So we grant that each release,
and each further `HOLD_UNIT_NS` that its first chunk was held for, was held by something else than a
proxy with probability `GRANTED`, independently. `ALARM` is the chance that as many would be held
then: the test says ``bursts`` only where it is smaller, and ``no`` only where releases held half of
the time would show so few with less than that chance.

**Smoothing.** Without a proxy what the network adds to a gap does not depend on the gap; a proxy
with a pace of its own takes the sender's variation out again: regression of the variation on the
send gap falls to -1. It takes kernel send stamps (the noise of any others does the same to the
regression) and a sender that is not perfectly even.
"""

import math
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

from pathbudget.probes.stream.chunk_times import BURST_GAP_NS, MILLISECOND_NS

ALARM = 0.001
"""Chance that a test raises a false alarm (per stream, or per group of streams, that it is for)."""
GRANTED = 0.1
"""Share of releases that loss and other traffic may hold: that of a path with 2 % loss, about."""
HELD_BY_PROXY = 0.5
"""A buffering proxy holds at least this share of its releases."""
APART_NS = 2 * MILLISECOND_NS
"""Chunks sent closer than this may arrive together by right."""
TOGETHER_PART = 8
"""Chunks arrive together within a millisecond, or within this part of the gap they were sent with:
a slow line draws a burst out.
"""
HOLD_UNIT_NS = 500 * MILLISECOND_NS
"""One lost packet is there again sooner, up to a round trip of some 200 ms; a longer hold takes
further losses of its repetitions, each after twice the time (RFC 6298).
"""
LATE_READ_NS = MILLISECOND_NS
LATE_PART = 4
"""What we read later than this, and than this part of the gap it was sent with, may be together by
our own fault: a host that sleeps over several chunks wakes at any time after the last of them.
"""
UNEVEN_NS = 100_000
"""Standard deviation that send gaps need, for smoothing to be seen beside noise of stamps."""
FEWEST_GAPS = 30
_LAGS = 10
_ROUNDING = 1e-12
HALF_OF_IT = -0.5


class Verdict(StrEnum):
    """What a test says of a stream. ``undecided`` where the data cannot tell."""

    BURSTS = "bursts"
    SMOOTHS = "smooths"
    NO = "no"
    UNDECIDED = "undecided"


class GapPair(NamedTuple):
    """A gap between two chunks: as it arrived and as it was sent. `late_ns` is how long after the
    kernel this host read the later one; None where the kernel did not say.
    """

    received_ns: int
    sent_ns: int
    late_ns: int | None = 0
    kernel_sent: bool = True

    @property
    def late(self) -> bool:
        """Whether this host may have joined the two."""
        if self.late_ns is None:
            return True
        return self.late_ns > max(LATE_READ_NS, self.sent_ns // LATE_PART)


class Releases(NamedTuple):
    """How many releases (and units of further holding) there were, and how many were held."""

    trials: int = 0
    held: int = 0

    def __add__(self, other: object) -> "Releases":
        if not isinstance(other, Releases):
            return NotImplemented
        return Releases(self.trials + other.trials, self.held + other.held)

    @property
    def false_alarm(self) -> float:
        """Chance of as many held releases, or more, with no proxy on the way."""
        return at_least(self.held, self.trials, GRANTED)

    @property
    def verdict(self) -> Verdict:
        """``bursts``, ``no`` or ``undecided``."""
        if self.false_alarm <= ALARM + _ROUNDING:
            return Verdict.BURSTS
        if 1 - at_least(self.held + 1, self.trials, HELD_BY_PROXY) <= ALARM + _ROUNDING:
            return Verdict.NO
        return Verdict.UNDECIDED


def at_least(successes: int, trials: int, p: float) -> float:
    """P(X >= successes) of a binomial. Summed from the far end, so small values stay exact."""
    if successes <= 0:
        return 1.0
    ratio, total = math.log(p / (1 - p)), 0.0
    base = trials * math.log(1 - p)
    for k in range(trials, successes - 1, -1):
        total += math.exp(base + k * ratio + _log_choose(trials, k))
    return min(1.0, total)


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def releases_in(gaps: Iterable[GapPair], least_hold_ns: int = 0) -> Releases:
    """Count the releases of one stream. One that was read late counts neither way, and only a hold
    longer than `least_hold_ns` (the variation of the path, where it is known) counts as one.
    """
    counted = Releases()
    held_ns, late = 0, False
    for gap in gaps:
        if gap.received_ns >= max(BURST_GAP_NS, gap.sent_ns // TOGETHER_PART):
            counted += _release(held_ns, least_hold_ns, late=late)
            held_ns, late = 0, False
        elif gap.sent_ns >= APART_NS or held_ns:
            held_ns += max(0, gap.sent_ns)
        late = late or gap.late
    return counted + _release(held_ns, least_hold_ns, late=late)


def _release(held_ns: int, least_hold_ns: int, *, late: bool) -> Releases:
    if late:
        return Releases()
    if held_ns <= least_hold_ns:
        return Releases(trials=1)
    units = 1 + held_ns // HOLD_UNIT_NS
    return Releases(trials=units, held=units)


class Smoothing(NamedTuple):
    """Regression of what the way added to a gap on the gap as it was sent."""

    verdict: Verdict
    slope: float = math.nan
    false_alarm: float = math.nan
    """Chance of a slope as low without a proxy (one-sided, normal)."""


def smoothing_in(gaps: Sequence[GapPair]) -> Smoothing:
    """Whether the gaps of one stream, in order, arrive smoother than they were sent.

    The error of the correlation allows for that of neighbours in both series (Bartlett): on a fixed
    schedule a late chunk makes one gap long and the next one short.
    """
    if len(gaps) < FEWEST_GAPS or not all(gap.kernel_sent for gap in gaps):
        return Smoothing(Verdict.UNDECIDED)
    sent = _centred([gap.sent_ns for gap in gaps])
    added = _centred([gap.received_ns - gap.sent_ns for gap in gaps])
    power_sent, power_added = _product(sent, sent), _product(added, added)
    if power_sent < UNEVEN_NS**2 * len(gaps) or power_added == 0:
        verdict = Verdict.NO if power_sent >= UNEVEN_NS**2 * len(gaps) else Verdict.UNDECIDED
        return Smoothing(verdict)
    slope = _product(sent, added) / power_sent
    chance = 0.5 * math.erfc(-_z(_ranks(sent), _ranks(added)) / math.sqrt(2))
    if slope <= HALF_OF_IT and chance <= ALARM:
        return Smoothing(Verdict.SMOOTHS, slope, chance)
    z = _z(sent, added)
    error = abs(slope / z) if z else math.inf
    clear = slope - 3.1 * error > HALF_OF_IT  # one-sided 0.1 %
    return Smoothing(Verdict.NO if clear else Verdict.UNDECIDED, slope, chance)


def _z(first: Sequence[float], second: Sequence[float]) -> float:
    """Correlation of two centred series over its error."""
    power = math.sqrt(_product(first, first) * _product(second, second))
    correlation = _product(first, second) / power if power else 0.0
    return correlation / math.sqrt(_variance_of_correlation(first, second)) if power else 0.0


def _ranks(values: Sequence[float]) -> list[float]:
    """Centred ranks: the repetition of one lost packet does not outweigh all other gaps."""
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks = [0.0] * len(values)
    for rank, place in enumerate(order):
        ranks[place] = rank - (len(values) - 1) / 2
    return ranks


def _variance_of_correlation(first: Sequence[float], second: Sequence[float]) -> float:
    n = len(first)
    power, other = _product(first, first), _product(second, second)
    total = 1.0
    for lag in range(1, min(_LAGS, n - 1) + 1):
        total += (
            2 * _product(first[lag:], first[:-lag]) / power
            * _product(second[lag:], second[:-lag]) / other
        )  # fmt: skip
    return max(1.0, total) / n


def _centred(values: Sequence[int]) -> list[float]:
    mean = sum(values) / len(values)
    return [value - mean for value in values]


def _product(first: Sequence[float], second: Sequence[float]) -> float:
    return sum(map(float.__mul__, first, second))


def verdict_of(releases: Releases, smoothing: Smoothing) -> Verdict:
    """One word for both. ``no`` rests on the test for bursts: an even sender cannot be smoothed."""
    if releases.verdict is Verdict.BURSTS:
        return Verdict.BURSTS
    if smoothing.verdict is Verdict.SMOOTHS:
        return Verdict.SMOOTHS
    return releases.verdict
