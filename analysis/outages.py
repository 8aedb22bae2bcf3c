"""Outages: so many losses in a row that chance is no explanation.

An outage is only seen through packets: it began after the last send that was answered and not
later than the first that was not. Start and end are therefore intervals, never instants.

The rule is that of `outage_rule`, with what the whole stream usually loses.
"""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from pathbudget.analysis.loss_patterns import Lost, runs
from pathbudget.analysis.outage_rule import FAR_FROM_CHANCE


@dataclass(frozen=True, slots=True)
class Outage:
    """One run of losses. Unix or monotonic ns, whichever the sends were in."""

    last_good_ns: int | None
    """Send time of the last packet before it that was answered; None at the start of the data."""
    first_lost_ns: int
    last_lost_ns: int
    first_good_ns: int | None
    """Send time of the first packet after it that was answered; None where it never ended."""
    lost: int

    @property
    def shortest_ns(self) -> int:
        """It lasted at least from the first lost send to the last one."""
        return self.last_lost_ns - self.first_lost_ns

    @property
    def longest_ns(self) -> int | None:
        """It lasted less than from the last good send to the next; None where one is missing."""
        if self.last_good_ns is None or self.first_good_ns is None:
            return None
        return self.first_good_ns - self.last_good_ns


class OutageEventKind(StrEnum):
    """What a detector reports."""

    BEGAN = "began"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class OutageEvent:
    """The state of an outage when it was noticed, or when it was over."""

    kind: OutageEventKind
    outage: Outage


class OutageDetector:
    """Packets in order of sending in, begin and end of outages out. Constant memory.

    With a probe every 10 ms and 5 % of random loss the rule is 7 losses in a row, so an outage is
    reported 70 ms and one timeout after it began. The timeout of the probe is not part of this:
    feed a loss as soon as it is one.
    """

    def __init__(self, consecutive: int = 7) -> None:
        if consecutive < 1:
            raise ValueError(f"consecutive is {consecutive}; expected 1 or more")
        self.consecutive = consecutive
        self._last_good_ns: int | None = None
        self._first_lost_ns = 0
        self._last_lost_ns = 0
        self._lost = 0

    @property
    def ongoing(self) -> Outage | None:
        """The outage that has not ended yet, if there is one."""
        return self._outage(None) if self._lost >= self.consecutive else None

    def feed(self, sent_ns: int, lost: bool) -> OutageEvent | None:
        """One packet; the event that it completes, if any."""
        if lost:
            return self._feed_loss(sent_ns)
        over = self._outage(sent_ns) if self._lost >= self.consecutive else None
        self._last_good_ns, self._lost = sent_ns, 0
        return None if over is None else OutageEvent(OutageEventKind.ENDED, over)

    def _feed_loss(self, sent_ns: int) -> OutageEvent | None:
        if not self._lost:
            self._first_lost_ns = sent_ns
        self._last_lost_ns = sent_ns
        self._lost += 1
        if self._lost != self.consecutive:
            return None
        return OutageEvent(OutageEventKind.BEGAN, self._outage(None))

    def _outage(self, first_good_ns: int | None) -> Outage:
        return Outage(
            last_good_ns=self._last_good_ns,
            first_lost_ns=self._first_lost_ns,
            last_lost_ns=self._last_lost_ns,
            first_good_ns=first_good_ns,
            lost=self._lost,
        )


def find_outages(
    sent_ns: npt.NDArray[np.int64], lost: Lost, consecutive: int
) -> tuple[Outage, ...]:
    """All outages of a stream in order of sending: the same ones that the detector reports."""
    starts, ends = runs(lost)
    return tuple(
        Outage(
            last_good_ns=int(sent_ns[start - 1]) if start else None,
            first_lost_ns=int(sent_ns[start]),
            last_lost_ns=int(sent_ns[end - 1]),
            first_good_ns=int(sent_ns[end]) if end < len(lost) else None,
            lost=int(end - start),
        )
        for start, end in zip(starts, ends, strict=True)
        if end - start >= consecutive
    )


def usual_loss_ratio(lost: Lost) -> float:
    """Loss ratio outside of long runs: what the path loses when it is well.

    Runs are cut at the median run of losses times four, so that an outage does not excuse itself.
    One loss more than was seen is assumed: a path that lost nothing is not free of loss.
    """
    starts, ends = runs(lost)
    lengths = ends - starts
    ordinary = lengths[lengths <= 4 * np.median(lengths)] if len(lengths) else lengths
    ordinary = ordinary if len(ordinary) > 1 else ordinary[:0]
    sent = len(lost) - int(lengths.sum()) + int(ordinary.sum())
    return min(FAR_FROM_CHANCE, (int(ordinary.sum()) + 1) / (sent + 1))
