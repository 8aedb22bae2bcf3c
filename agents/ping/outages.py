"""Outages while they happen: more losses in a row than chance makes.

The same rule as in the analysis of stored samples (analysis/outages.py): a run is an outage when
random loss would make one like it at a given packet with a chance of at most 1e-9. What the path
usually loses is learned here as packets come, since a live view knows no future. Needs nothing
beyond the base install.
"""

import math
from typing import NamedTuple

FALSE_ALARM = 1e-9
FEWEST = 3
"""A shorter run is never an outage, however clean the path is."""
AT_FIRST = 20
"""Packets that one assumed loss weighs against: nothing known means 5 % lost, 7 losses in a row."""
MOST = 0.9


class Outage(NamedTuple):
    """One run of losses, by the times of sending. It began after `last_good_unix_ns` and not later
    than `first_lost_unix_ns`; it ended after `last_lost_unix_ns` and not later than
    `first_good_unix_ns`, which is None while it lasts.
    """

    last_good_unix_ns: int | None
    first_lost_unix_ns: int
    last_lost_unix_ns: int
    first_good_unix_ns: int | None
    lost: int

    @property
    def over(self) -> bool:
        """Whether an answer has come since."""
        return self.first_good_unix_ns is not None


class OutageWatch:
    """Packets in order of sending in, outages out: when one is noticed and when it is over."""

    def __init__(self) -> None:
        self.count = 0
        """Outages so far, the one under way included."""
        self._ordinary = 0
        self._packets = 0
        self._last_good: int | None = None
        self._first_lost = 0
        self._last_lost = 0
        self.run = 0
        """Losses in a row until now."""
        self._needed = self.needed()

    def needed(self) -> int:
        """So many losses in a row are an outage, after what has been seen so far."""
        ratio = min(MOST, (self._ordinary + 1) / (self._packets + AT_FIRST))
        return max(FEWEST, math.ceil(math.log(FALSE_ALARM) / math.log(ratio) - 1e-9))

    @property
    def ongoing(self) -> Outage | None:
        """The outage that has not ended yet, if there is one."""
        return self._outage(None) if self.run >= self._needed else None

    def feed(self, sent_unix_ns: int, *, lost: bool) -> Outage | None:
        """One packet; the outage that it brings to light or to an end, if any."""
        return self._lost(sent_unix_ns) if lost else self._answered(sent_unix_ns)

    def cut(self) -> None:
        """Packets are missing here: what comes next is no continuation of a run."""
        self.run = 0

    def _lost(self, sent_unix_ns: int) -> Outage | None:
        if not self.run:
            self._first_lost, self._needed = sent_unix_ns, self.needed()
        self._last_lost = sent_unix_ns
        self.run += 1
        if self.run != self._needed:
            return None
        self.count += 1
        return self._outage(None)

    def _answered(self, sent_unix_ns: int) -> Outage | None:
        over = self._outage(sent_unix_ns) if self.run >= self._needed else None
        self._packets += 1
        if over is None:
            self._ordinary += self.run
            self._packets += self.run
        self._last_good, self.run = sent_unix_ns, 0
        return over

    def _outage(self, first_good: int | None) -> Outage:
        return Outage(self._last_good, self._first_lost, self._last_lost, first_good, self.run)
