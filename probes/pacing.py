"""Fires thousands of schedules from one alarm: no task, no future and no timer per send.

The rules of `channels.Network.pace`:

- What is due goes out in one call, in the order of `due`; nothing is early, dropped or reordered.
- Calls are at least `GAP_NS` apart, so at tens of thousands of items a second several share one.
- After a stall everything that is late is delivered, at most `AT_ONCE` items a call. Between two
  calls the event loop has its turn, so answers are read while a backlog goes out. How fast a
  backlog may leave is for `due` to say: it is read item by item, and each may name a later time.
- A host that was suspended does not fall behind: CLOCK_MONOTONIC stands still meanwhile.
- When `due` or `fire` raises, what was due before is fired, the pacing ends without `finished`, and
  the exception goes to whoever called back: the exception handler of the event loop.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, Protocol, TypeVar

from pathbudget.probes.timer import Alarm

Due = TypeVar("Due")

AT_ONCE = 64
"""Items a call at most, but for those due at the very same time: they stay together."""
GAP_NS = 100_000
"""No two calls come closer than this, but in a backlog. A wake-up costs as much as several sends,
and what is due meanwhile is late by no more."""
GAP_AFTER_SEVERAL_NS = 150_000
"""The same after a call that had several items. A longer one saves little and shows in the latest
percent of sends."""
READ_AHEAD = 2
"""Items read after a call, so that what it takes to work out a schedule makes no send late."""
AT_THE_START = 1
"""Monotonic time that has always passed: `due` is read in the event loop, not by the caller."""


class AlarmClock(Protocol):
    """Rings once per setting; see `timer.Alarm`."""

    def set(self, monotonic_ns: int) -> None:
        """Ring then, at once where that has passed."""
        ...

    def close(self) -> None:
        """Ring no more."""
        ...


class Pacer(Generic[Due]):
    """One pacing under way. `alarm` gives the clock that calls `ring`, `now_ns` reads it."""

    def __init__(
        self,
        due: Iterator[tuple[int, Due]],
        fire: Callable[[Sequence[tuple[int, Due]]], None],
        finished: Callable[[], None],
        *,
        now_ns: Callable[[], int],
        alarm: Callable[[Callable[[], None]], AlarmClock] = Alarm,
    ) -> None:
        self._due = due
        self._fire = fire
        self._finished = finished
        self._now_ns = now_ns
        self._ahead: deque[tuple[int, Due]] = deque()
        self._broken: BaseException | None = None
        self._over = False
        self._alarm = alarm(self._ring)
        self._alarm.set(AT_THE_START)

    def cancel(self) -> None:
        """Fire nothing more; `finished` is not called."""
        self._over = True
        self._alarm.close()

    def _ring(self) -> None:
        if self._over:
            return
        try:
            self._deliver()
        except BaseException:
            self.cancel()
            raise

    def _deliver(self) -> None:
        batch: list[tuple[int, Due]] = []
        now_ns = self._now_ns()
        try:
            self._collect(batch, now_ns)
        finally:
            if batch:
                self._fire(batch)
        if self._over:  # `fire` has called `cancel`
            return
        while len(self._ahead) < READ_AHEAD and self._read():
            pass
        if self._ahead:
            self._alarm.set(self._wake_at_ns(now_ns, len(batch)))
        elif self._broken is not None:
            raise self._broken
        else:
            self.cancel()
            self._finished()

    def _collect(self, batch: list[tuple[int, Due]], now_ns: int) -> None:
        """Move what is due into `batch`; what is ahead is then not due, or too much at once."""
        ahead = self._ahead
        while ahead:
            if not _belongs(ahead[0], batch, now_ns):
                return
            batch.append(ahead.popleft())
        if self._broken is not None:
            return
        try:
            for item in self._due:
                # `_belongs`, without a call for each item
                if item[0] > now_ns or (len(batch) >= AT_ONCE and item[0] != batch[-1][0]):
                    ahead.append(item)
                    return
                batch.append(item)
        except BaseException as error:  # noqa: BLE001 - raised by `_deliver`
            self._broken = error

    def _read(self) -> bool:
        """Read one item; false at the end. What `due` raises is kept until all before it is out."""
        if self._broken is not None:
            return False
        try:
            item = next(self._due, None)
        except BaseException as error:  # noqa: BLE001 - raised by `_deliver`
            self._broken = error
            return False
        if item is None:
            return False
        self._ahead.append(item)
        return True

    def _wake_at_ns(self, now_ns: int, sent: int) -> int:
        next_ns = self._ahead[0][0]
        if not sent or next_ns <= now_ns:  # a backlog
            return next_ns
        return max(next_ns, now_ns + (GAP_NS if sent == 1 else GAP_AFTER_SEVERAL_NS))


def _belongs(item: tuple[int, Due], batch: Sequence[tuple[int, Due]], now_ns: int) -> bool:
    """Whether an item is due, and still goes into this call."""
    return item[0] <= now_ns and (len(batch) < AT_ONCE or item[0] == batch[-1][0])
