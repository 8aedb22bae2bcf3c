"""The clocks. Intervals come from the monotonic one; the wall clock only labels.

Kernel packet stamps are wall-clock times (CLOCK_REALTIME), and the wall clock may be stepped at any
moment. So each of them is paired with a `Reading`: both clocks, read at one instant. On Linux both
clocks are slewed alike (clock_gettime(2)): their difference moves only when the wall clock is
stepped, and a packet between two readings whose offsets differ has straddled a step.
"""

import time
from typing import NamedTuple, Protocol

from pathbudget.probes.record import ClockSource

STEP_TOLERANCE_NS = 20_000
"""An offset that moved by less, beyond the error of the two readings, is no step."""
READING_GOOD_ENOUGH_NS = 2_000
READING_TRIES = 4
ORDER_TOLERANCE_NS = 20_000
"""How much a kernel interval may exceed the user-space one that encloses it."""


class Clock(Protocol):
    """Two readings and nothing else, so that tests can step time by hand."""

    def monotonic_ns(self) -> int:
        """CLOCK_MONOTONIC, nanoseconds. Never steps."""
        ...

    def unix_ns(self) -> int:
        """CLOCK_REALTIME, nanoseconds since 1970 UTC. May step at any time."""
        ...


class SystemClock:
    """The clocks of this host."""

    def monotonic_ns(self) -> int:
        """See `Clock.monotonic_ns`."""
        return time.monotonic_ns()

    def unix_ns(self) -> int:
        """See `Clock.unix_ns`."""
        return time.time_ns()


class Reading(NamedTuple):
    """Both clocks at one instant, to within `error_ns` (the process may be preempted between)."""

    monotonic_ns: int
    unix_ns: int
    error_ns: int

    @property
    def offset_ns(self) -> int:
        """Wall clock minus monotonic clock; moves only when the wall clock is stepped."""
        return self.unix_ns - self.monotonic_ns

    def later(self, monotonic_ns: int) -> "Reading":
        """The same two clocks at another time, had nobody stepped them meanwhile."""
        unix_ns = self.unix_ns + monotonic_ns - self.monotonic_ns
        return Reading(monotonic_ns, unix_ns, self.error_ns)


def read_both(clock: Clock) -> Reading:
    """Read the wall clock between two monotonic readings; the tightest of a few tries."""
    best: Reading | None = None
    for _ in range(READING_TRIES):
        before = clock.monotonic_ns()
        unix = clock.unix_ns()
        error = clock.monotonic_ns() - before
        if best is None or error < best.error_ns:
            best = Reading(before, unix, error)
        if error <= READING_GOOD_ENOUGH_NS:
            break
    assert best is not None
    return best


def step_between(first: Reading, second: Reading) -> int:
    """By how much the wall clock was stepped between two readings, signed; 0 where it was not."""
    moved = second.offset_ns - first.offset_ns
    tolerance = STEP_TOLERANCE_NS + first.error_ns + second.error_ns
    return moved if abs(moved) > tolerance else 0


class ClockWatcher:
    """Counts the steps of the wall clock. Ask it for readings, and none goes unnoticed.

    Two steps that cancel between two readings cannot be seen by anybody.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last = read_both(clock)
        self.steps = 0
        self.largest_step_ns = 0

    def read(self) -> Reading:
        """Both clocks now; notices a step since the reading before."""
        clock = self._clock
        before = clock.monotonic_ns()
        unix = clock.unix_ns()
        error = clock.monotonic_ns() - before
        if error <= READING_GOOD_ENOUGH_NS:
            reading = Reading(before, unix, error)
        else:
            reading = read_both(clock)
        last = self._last
        if abs(reading[1] - last[1] - (reading[0] - last[0])) > STEP_TOLERANCE_NS:
            step = step_between(last, reading)
            if step:
                self.steps += 1
                self.largest_step_ns = max(self.largest_step_ns, abs(step))
        self._last = reading
        return reading


class StampedInterval(NamedTuple):
    """A time span that no clock step has changed.

    `stepped` is true where the wall clock cannot be trusted over the span: the value then comes
    from the monotonic clock, whatever stamps there were.
    """

    value_ns: int
    source: ClockSource
    stepped: bool = False


def measure_interval(
    sent: Reading,
    received: Reading,
    kernel_sent_unix_ns: int | None,
    kernel_received_unix_ns: int | None,
) -> StampedInterval:
    """The time from send to receive, by the best clocks there are.

    `sent` was read before the send call, `received` after the kernel handed the answer over, so the
    kernel's interval lies inside theirs. One that does not (negative, or longer) was measured by a
    clock that jumped, even where the two offsets agree again.
    """
    enclosing = received.monotonic_ns - sent.monotonic_ns
    if step_between(sent, received):
        return StampedInterval(enclosing, ClockSource.USER, stepped=True)
    if kernel_received_unix_ns is None:
        return StampedInterval(enclosing, ClockSource.USER)
    source = ClockSource.KERNEL if kernel_sent_unix_ns is not None else ClockSource.KERNEL_RECEIVE
    began = sent.unix_ns if kernel_sent_unix_ns is None else kernel_sent_unix_ns
    inside = kernel_received_unix_ns - began
    slack = ORDER_TOLERANCE_NS + sent.error_ns + received.error_ns
    if 0 <= inside <= enclosing + slack and began >= sent.unix_ns - slack:
        return StampedInterval(inside, source)
    return StampedInterval(enclosing, ClockSource.USER, stepped=True)
