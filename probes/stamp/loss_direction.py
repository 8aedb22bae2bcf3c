"""On which way was it lost? What the numbers of a stateful reflector tell (RFC 8762 section 4.3).

A stateful reflector numbers its replies, so a gap between two answers says how many of the packets
in between it has answered: those were lost on the way back, the others on the way there. Where all
went the same way there is no doubt about any of them; where not, only the two counts are certain.

Both numbers are followed beyond 2 ** 32. Near packets that overtook each other on the way there, or
that were doubled there with a copy lost, the numbers prove nothing: what was lost near them stays
unknown. So does what was lost while a reflector began again.

A reflector without state sends our own number back, as one with state does while nothing was lost.
Our first packet therefore has number 1 (docs/adr/0083): number 0 was "lost" on the way there.
"""

from bisect import bisect_left
from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

from pathbudget.probes.record import Direction
from pathbudget.probes.stamp.wire import SEQUENCES

FIRST_NUMBER = 1
NEAR = 16
"""Answers on either side of a gap that must be in order for the gap to prove anything."""
KEPT = 32
"""Answers that are kept however old they are."""
SLACK = 128
"""Numbers that a reflector may be ahead by copies of packets, or behind by reordering."""
UNDECIDED = 4_096
"""Lost packets that wait for an answer after them; of more, the oldest stay unknown."""

UNSENT = 4_096
"""Packets that are remembered as never arrived; what was lost near older ones stays unknown."""

Count = Callable[[int, Direction | None], None]
"""Told the series of a packet that is lost, and on which way; None where that stays unknown."""


_Answered = tuple[int, int, int]
"""Our number, the reflector's followed beyond 2 ** 32, and when the answer came."""


class _Gap(NamedTuple):
    """Between two answers: packets without one, and how many of them were replied to. None missing
    stands for a gap that proves nothing.
    """

    low: int
    high: int
    missing: int
    replied: int

    @property
    def direction(self) -> Direction | None:
        """Where all of them were lost; None where some here and some there."""
        if self.replied == 0:
            return Direction.FORWARD
        return Direction.REVERSE if self.replied == self.missing else None


class LossDirection:
    """The losses of one session. Times are those of any clock that does not step."""

    def __init__(self, count: Count) -> None:
        self.stateful: bool | None = None
        """Whether the reflector numbers its replies; None before the first answer."""
        self._count = count
        self._answers: list[_Answered] = [(FIRST_NUMBER - 1, -1, 0)]
        self._highest = -1
        self._never_arrived: dict[int, None] = {}
        self._forgotten = -1
        """The highest number that is no more in it, though no answer after it has come."""
        self._undecided: dict[int, int] = {}
        self._reverse: dict[int, int] = {}
        """By the lower border of a mixed gap: how many were counted as lost on the way back."""

    def answered(self, number: int, reflector_sequence: int, now_ns: int, keep_ns: int) -> None:
        """A packet came back. What came more than `keep_ns` ago may be forgotten."""
        if not self.stateful:
            self.stateful = reflector_sequence != number % SEQUENCES
            if not self.stateful:
                return
        answers = self._answers
        sent, ahead = number - answers[-1][0], reflector_sequence - self._highest & SEQUENCES - 1
        if 0 < ahead <= sent:  # nothing but losses since the highest: so it is nearly always
            self._highest += ahead
            answers.append((number, self._highest, now_ns))
        elif not self._out_of_order(number, reflector_sequence, now_ns):
            return
        if len(answers) > 2 * KEPT and answers[KEPT][2] < now_ns - keep_ns:
            self._forget(now_ns - keep_ns)
        if self._undecided:
            self._decide()

    def never_arrived(self, number: int) -> None:
        """A packet is known not to have reached the reflector, and is no loss (ICMP error, refused
        by our own kernel).
        """
        if self.stateful is not False:
            self._never_arrived[number] = None
            if len(self._never_arrived) > UNSENT:
                oldest = next(iter(self._never_arrived))
                del self._never_arrived[oldest]
                self._forgotten = max(self._forgotten, oldest)

    def lost(self, number: int, series: int) -> Direction | None:
        """A packet is given up: on which way it was lost, where there is no doubt now. It is
        counted as soon as the counts are certain.
        """
        if not self.stateful and self.stateful is not None:
            self._count(series, None)
            return None
        gap = self._gap(number)
        if gap is None:
            self._wait(number, series)
            return None
        return self._settle(series, gap)

    def finish(self) -> None:
        """No answer will come any more: what is undecided stays unknown."""
        for series in self._undecided.values():
            self._count(series, None)
        self._undecided.clear()

    def _out_of_order(self, number: int, reflector_sequence: int, now_ns: int) -> bool:
        """Take what was overtaken, came twice, or comes from a reflector that began again."""
        answers = self._answers
        ahead = (reflector_sequence - self._highest + SEQUENCES // 2) % SEQUENCES - SEQUENCES // 2
        answer = (number, self._highest + ahead, now_ns)
        sent = number - answers[-1][0]
        if sent > 0 and self._began_again(answer[1], sent):
            self.finish()
            self._answers = [(number, reflector_sequence, now_ns)]
            self._highest = reflector_sequence
            self._reverse.clear()
            self._never_arrived.clear()
            return False
        answers.insert(bisect_left(answers, answer), answer)
        self._undecided.pop(number, None)
        self._highest = max(self._highest, answer[1])
        return True

    def _wait(self, number: int, series: int) -> None:
        self._undecided[number] = series
        if len(self._undecided) > UNDECIDED:
            self._count(self._undecided.pop(next(iter(self._undecided))), None)

    def _settle(self, series: int, gap: _Gap) -> Direction | None:
        if gap.missing <= 0 or gap.replied > gap.missing:
            self._count(series, None)
            return None
        direction = gap.direction
        if direction is None:
            # Which is which cannot be known, how many is: the first ones stand for the way back.
            counted = self._reverse.get(gap.low, 0)
            self._reverse[gap.low] = counted + 1
            back = counted < gap.replied
            self._count(series, Direction.REVERSE if back else Direction.FORWARD)
        else:
            self._count(series, direction)
        return direction

    def _decide(self) -> None:
        """An answer has come: settle what it closes."""
        waiting, self._undecided = self._undecided, {}
        gap: _Gap | None = None
        for number, series in waiting.items():
            if gap is None or not gap.low < number < gap.high:
                gap = self._gap(number)
            if gap is None:
                self._undecided[number] = series
            else:
                self._settle(series, gap)

    def _gap(self, number: int) -> _Gap | None:
        """The gap that a packet without an answer lies in; None where it is still open."""
        answers = self._answers
        place = bisect_left(answers, (number,))
        if place in (0, len(answers)):
            return None
        (low, low_own, _), (high, high_own, _) = answers[place - 1], answers[place]
        near = answers[max(0, place - NEAR) : place + NEAR]
        if low < self._forgotten or not all(_follows(*pair) for pair in pairwise(near)):
            return _Gap(low, high, 0, 0)
        unsent = sum(low < one < high for one in self._never_arrived)
        missing = high - low - 1 - unsent
        return _Gap(low, high, missing, high_own - low_own - 1)

    def _began_again(self, own: int, sent: int) -> bool:
        """Whether the reflector's number cannot follow from those before; `sent` is by how many
        numbers this packet is ahead of ours.
        """
        ahead = own - self._highest
        if ahead > 0:
            return ahead > sent + SLACK
        near = [one for _, one, _ in self._answers[-NEAR:]]
        return -ahead > SLACK or own < min(near) or own in near

    def _forget(self, before_ns: int) -> None:
        answers = self._answers
        old = KEPT
        while len(answers) - old > KEPT and answers[old][2] < before_ns:
            old += 1
        del answers[:old]
        first = answers[0][0]
        self._never_arrived = {one: None for one in self._never_arrived if one > first}
        self._reverse = {low: count for low, count in self._reverse.items() if low > first}


def _follows(one: _Answered, other: _Answered) -> bool:
    """Whether nothing was overtaken or doubled between two answers, as far as they show."""
    sent, ahead = other[0] - one[0], other[1] - one[1]
    return ahead > 0 and (sent == 0 or ahead <= sent)
