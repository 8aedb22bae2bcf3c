"""Time that a test moves by hand, or that jumps ahead by itself whenever nobody has work to do."""

import asyncio
import heapq
import itertools
from collections.abc import Callable

START_UNIX_NS = 1_790_000_000_000_000_000
START_MONOTONIC_NS = 1_000_000_000_000
IDLE_TURNS = 8
"""Turns of the event loop without a new call before the time jumps."""


class FakeCall:
    """A call in the fake future. See `channels.Cancellable`."""

    def __init__(self, callback: Callable[[], None]) -> None:
        self._callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        """Do not call."""
        self._callback = None

    def run(self) -> None:
        """Call, once."""
        callback, self._callback = self._callback, None
        if callback is not None:
            callback()


class FakeClock:
    """A `Clock` and the calls that wait for it. Both readings move together, but for `step`.

    With `jumps` the time moves to the next call whenever the event loop has nothing else to do, so
    an hour of probing takes as long as its computation. Without, only `advance` moves it.
    """

    def __init__(self, *, jumps: bool = False) -> None:
        self._now_ns = START_MONOTONIC_NS
        self._offset_ns = START_UNIX_NS - START_MONOTONIC_NS
        self._calls: list[tuple[int, int, FakeCall]] = []
        self._order = itertools.count()
        self._jumps = jumps
        self._driver: asyncio.Handle | None = None
        self._idle_turns = 0

    def monotonic_ns(self) -> int:
        """See `clock.Clock.monotonic_ns`."""
        return self._now_ns

    def unix_ns(self) -> int:
        """See `clock.Clock.unix_ns`."""
        return self._now_ns + self._offset_ns

    def step(self, by_ns: int) -> None:
        """Set the wall clock forward or back, as an administrator or NTP would."""
        self._offset_ns += by_ns

    def call_at(self, monotonic_ns: int, callback: Callable[[], None]) -> FakeCall:
        """Call when this clock says so."""
        call = FakeCall(callback)
        heapq.heappush(self._calls, (monotonic_ns, next(self._order), call))
        self._idle_turns = 0
        if self._jumps and self._driver is None:
            self._driver = asyncio.get_running_loop().call_soon(self._drive)
        return call

    def call_in(self, delay_ns: int, callback: Callable[[], None]) -> FakeCall:
        """Call after a while."""
        return self.call_at(self._now_ns + delay_ns, callback)

    def advance(self, by_ns: int) -> None:
        """Move the time, making every call on the way at its time."""
        end = self._now_ns + by_ns
        while self._calls and self._calls[0][0] <= end:
            self._run_next()
        self._now_ns = end

    def stall(self, by_ns: int) -> None:
        """Time passes while the event loop is blocked: nothing that is due gets called."""
        self._now_ns += by_ns

    async def wait_until(self, monotonic_ns: int) -> None:
        """Return when this clock says so."""
        if monotonic_ns <= self._now_ns:
            return
        reached = asyncio.Event()
        call = self.call_at(monotonic_ns, reached.set)
        try:
            await reached.wait()
        finally:
            call.cancel()

    def _run_next(self) -> None:
        due, _, call = heapq.heappop(self._calls)
        self._now_ns = max(self._now_ns, due)
        call.run()

    def _drive(self) -> None:
        self._driver = None
        if not self._calls:
            return
        self._idle_turns += 1
        if self._idle_turns > IDLE_TURNS:
            self._idle_turns = 0
            self._run_next()
        if self._calls and self._driver is None:  # the call may have set a driver going itself
            self._driver = asyncio.get_running_loop().call_soon(self._drive)


class FakeAlarm:
    """What `timer.Alarm` is, on a fake clock."""

    def __init__(self, clock: FakeClock, ring: Callable[[], None]) -> None:
        self._clock = clock
        self._ring = ring
        self._call: FakeCall | None = None

    def set(self, monotonic_ns: int) -> None:
        """Ring then; the setting before is void."""
        self.close()
        self._call = self._clock.call_at(monotonic_ns, self._ring)

    def close(self) -> None:
        """Ring no more."""
        if self._call is not None:
            self._call.cancel()
