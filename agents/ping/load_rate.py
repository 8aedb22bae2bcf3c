"""How fast our own load may be: no faster than it is answered. Pure: what was sent and came, in.

A reflector answers so many packets a second and no more, and the measured packets draw on the same
allowance: a load beyond it would take their answers away, and that would look like a loss on the
path. So the load begins low and doubles while nearly all of it is answered. Where answers are
missing it falls back for the rest of the run and says so.
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

FIRST_BITS_PER_SECOND = 1_000_000
LEAST_BITS_PER_SECOND = 100_000
STEP_NS = 250_000_000
"""A rate is judged by what was sent in this time."""
PATIENCE_NS = 250_000_000
"""A packet is taken for unanswered after this and two round trips of the load."""
NEARLY_ALL = 0.98
FEW = 2
"""So many unanswered packets of a step say nothing."""
RATED_NS = 1_000_000_000
"""Reflectors count by the second: what they answer is the most of a second, not of a step."""
PROVEN = 4
"""After a fall the rate is found once so many steps, a second, were answered."""
BELOW_LIMIT = 0.8
"""Of what a reflector answers, so that the measured packets find room."""
KEEPS_UP = 0.9
"""A host that sends less than this of a rate is too slow for it."""
QUEUE_RATIO, QUEUE_NS = 1.25, 3_000_000
"""Round trips grow by this and by so much: a queue was filled, that is the path's own limit."""


class OurLoad(NamedTuple):
    """What was asked for and what came of it, bits per second of UDP payload one way.

    `sent` and `answered` are packets in all; the rates are those once the rate was found, None
    while none is known. `limited` says why it is less than was asked for.
    """

    asked_bps: int
    sent_bps: int | None
    answered_bps: int | None
    sent: int
    answered: int
    limited: str


class Step:
    """Packets that were sent at one rate, from the number `first` on."""

    __slots__ = ("answered", "began_ns", "ended_ns", "first", "least_ns", "rate", "sent", "steady")

    def __init__(self, first: int, began_ns: int, rate: int, *, steady: bool) -> None:
        self.first = first
        self.began_ns = began_ns
        self.ended_ns = began_ns
        self.rate = rate
        self.steady = steady
        self.sent = self.answered = 0
        self.least_ns: int | None = None


class LoadRate:
    """`sent`, `answered` and `judge` as things happen; `now` is the rate to send at."""

    def __init__(self, asked_bps: int, octets: int) -> None:
        self.now = min(asked_bps, FIRST_BITS_PER_SECOND)
        self.limited = ""
        """Why it is not what was asked for, once that is so."""
        self.exhausted = False
        """Not even the least load is answered."""
        self._asked = asked_bps
        self._bits = 8 * octets
        self._steps: list[Step] = []
        self._firsts: list[int] = []
        self._judged = 0
        self._latest = -1
        self._good = 0
        self._open = False
        self._last_ns = 0
        self._closed_ns: int | None = None
        self._least_ns: int | None = None

    @property
    def steady(self) -> bool:
        """Whether the rate has been found: nobody tries a higher one any more."""
        return self._good >= PROVEN if self.limited else self.now >= self._asked

    def sent(self, number: int, now_ns: int) -> None:
        """One packet leaves. Numbers count up."""
        if not self._open or now_ns - self._steps[-1].began_ns >= STEP_NS:
            self.pause(now_ns)
            self._steps.append(Step(number, now_ns, self.now, steady=self.steady))
            self._firsts.append(number)
            self._open = True
        self._steps[-1].sent += 1

    def pause(self, now_ns: int) -> None:
        """The step is over: another begins, or the load rests."""
        if self._open:
            self._steps[-1].ended_ns = now_ns
            self._open = False

    def close(self, now_ns: int) -> None:
        """Nothing comes any more: what is out now is neither answered nor unanswered."""
        self.pause(now_ns)
        self._closed_ns = now_ns

    def answered(self, number: int, round_trip_ns: int) -> None:
        """One of them came back."""
        step = self._steps[bisect_right(self._firsts, number) - 1]
        step.answered += 1
        self._latest = max(self._latest, number)
        self._last_ns = round_trip_ns
        step.least_ns = min(step.least_ns or round_trip_ns, round_trip_ns)
        self._least_ns = min(self._least_ns or round_trip_ns, round_trip_ns)

    def judge(self, now_ns: int, usual_loss: float = 0.0) -> None:
        """Change the rate by what has come back. `usual_loss` is the path's without a load.

        While nothing at all comes back, nobody knows whether anybody is there: next to nothing is
        sent until it does (a reflector begins a new count) or the load is given up.
        """
        for step in self._settled(now_ns, self._judged):
            self._judged += 1
            expected = step.sent * (1 - usual_loss)
            if step.answered < NEARLY_ALL * expected - FEW:
                if self._latest < step.first + step.sent:
                    self._judged -= 1
                    self.now = LEAST_BITS_PER_SECOND
                else:
                    self._fall_back(step, now_ns)
                return
            if step.rate == self.now:
                self._good += 1
                if not self.limited:
                    self.now = min(self._asked, 2 * self.now)

    def report(self, now_ns: int) -> OurLoad:
        """What came of it so far."""
        known = self._settled(now_ns if self._closed_ns is None else self._closed_ns)
        steady = [one for one in known if one.steady]
        found = steady or known
        sent_bps = self._bps(found, sum(one.sent for one in found))
        limited = self.limited
        if steady and sent_bps is not None and sent_bps < KEEPS_UP * self.now:
            limited = f"{limited} This host sends only {megabits(sent_bps)} Mbit/s of load.".strip()
        return OurLoad(
            self._asked,
            sent_bps,
            self._bps(found, sum(one.answered for one in found)),
            sum(one.sent for one in self._steps),
            sum(one.answered for one in self._steps),
            limited,
        )

    def _settled(self, now_ns: int, first: int = 0) -> Sequence[Step]:
        """Steps from `first` on of which every answer should be here."""
        until_ns = now_ns - PATIENCE_NS - 2 * self._last_ns
        closed = self._steps[first : len(self._steps) - self._open]
        return [one for one in closed if one.ended_ns <= until_ns]

    def _bps(self, steps: Sequence[Step], packets: int) -> int | None:
        span_ns = sum(one.ended_ns - one.began_ns for one in steps)
        return round(packets * self._bits * 10**9 / span_ns) if span_ns else None

    def _fall_back(self, step: Step, now_ns: int) -> None:
        """Below what is answered; what is under way at the old rate says nothing new."""
        answered = min(step.rate, self._answered_bps(step))
        queue = self._fills_a_queue(step)
        self._good = 0
        self.now = round(answered * (1 if queue and answered < step.rate else BELOW_LIMIT))
        who = "the path carries" if queue else "the reflector answers"
        much = (
            f"only {megabits(answered)} of"
            if megabits(answered) != megabits(step.rate)
            else "not all of"
        )
        self.limited = (
            f"Load held at {megabits(self.now)} Mbit/s: {who} {much} {megabits(step.rate)} Mbit/s."
        )
        if self.now < LEAST_BITS_PER_SECOND:
            self.exhausted = True
        self.pause(now_ns)
        self._judged = len(self._steps)
        for one in self._steps:
            one.steady = False

    def _answered_bps(self, step: Step) -> int:
        """Over the second up to the end of the step, as far as there was a load."""
        from_ns = step.ended_ns - RATED_NS
        recent = [
            one for one in self._steps if from_ns <= one.began_ns and one.ended_ns <= step.ended_ns
        ]
        return self._bps(recent, sum(one.answered for one in recent)) or 0

    def _fills_a_queue(self, step: Step) -> bool:
        """Whether even the fastest of its round trips was longer than without a queue."""
        if step.least_ns is None or self._least_ns is None:
            return False
        longer = max(QUEUE_RATIO * self._least_ns, self._least_ns + QUEUE_NS)
        return step.least_ns >= longer


def megabits(bits_per_second: int) -> str:
    """``0.25``, ``9.8``, ``22``: enough to compare."""
    value = bits_per_second / 1e6
    return f"{value:.2f}" if value < 1 else f"{value:.1f}" if value < 99.95 else f"{value:.0f}"
