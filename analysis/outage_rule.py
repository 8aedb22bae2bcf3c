"""When losses in a row are an outage: one rule, for stored samples and for packets as they come.

The rule: so many losses in a row that random loss would begin such a run at a given packet with a
chance of at most `FALSE_ALARM`. Over n packets the expected number of false alarms is below
n * p0 ** consecutive, as long as losses are independent of one another; where they are not, a
report is still true to the letter: for so long nothing came back.

Needs nothing beyond the base install: the live views use it.
"""

import math
from typing import NamedTuple

FALSE_ALARM = 1e-9
"""Chance that a given packet begins a run that is taken for an outage: one in 115 days at 100/s."""
FEWEST = 3
"""A shorter run is never an outage, however clean the path is."""
FAR_FROM_CHANCE = 0.9
"""Nothing is known of a path that loses more than this: every run may be chance."""
AT_FIRST = 20
"""Packets that one assumed loss weighs against: nothing known means 5 % lost, 7 losses in a row."""
NS_PER_DAY = 86_400 * 10**9


def consecutive_losses(loss_ratio: float, false_alarm: float = FALSE_ALARM) -> int:
    """Smallest k with loss_ratio ** k <= false_alarm, at least 3. Losses taken as independent.

    Use the upper end of what the path loses when it is well. Raises ValueError outside [0, 1).
    """
    if not 0 <= loss_ratio < 1:
        raise ValueError(f"loss ratio is {loss_ratio}; expected 0 to below 1")
    if loss_ratio <= false_alarm:
        return FEWEST
    ratio = min(loss_ratio, FAR_FROM_CHANCE)
    return max(FEWEST, math.ceil(math.log(false_alarm) / math.log(ratio) - 1e-9))


def false_alarms_per_day(loss_ratio: float, consecutive: int, interval_ns: int) -> float:
    """Expected false outages a day of a path that loses so much at random."""
    return NS_PER_DAY / interval_ns * (1 - loss_ratio) * loss_ratio**consecutive


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
    """Packets in order of sending in, outages out: when one is noticed and when it is over.

    What the path usually loses is learned as packets come, since a live view knows no future.
    """

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
        return consecutive_losses((self._ordinary + 1) / (self._packets + AT_FIRST))

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
