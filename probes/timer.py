"""A precise alarm clock for asyncio, which itself rounds every wait up to a millisecond.

A timerfd wakes the loop within tens of microseconds on a quiet host. Python 3.13 has
``os.timerfd_create``; before, libc is called directly. Where neither works, the loop's own timer.
"""

import asyncio
import contextlib
import ctypes
import functools
import heapq
import itertools
import os
import struct
import time
from collections.abc import Callable

SECOND_NS = 1_000_000_000
CLOCK_MONOTONIC = 1
TFD_CLOEXEC, TFD_NONBLOCK = 0o2000000, 0o4000
TFD_TIMER_ABSTIME = 1
_TIMER_SPEC = struct.Struct("@llll")
"""struct itimerspec: interval and value, each in seconds and nanoseconds."""


def timerfd_works() -> bool:
    """Whether this host has timerfd."""
    descriptor = _open_timerfd()
    if descriptor is None:
        return False
    os.close(descriptor)
    return True


def _open_timerfd() -> int | None:
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        descriptor = int(libc.timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK))
    except (AttributeError, OSError):
        return None
    return descriptor if descriptor >= 0 else None


@functools.cache
def _settime() -> Callable[[int, int, int, None], int]:
    """timerfd_settime(2), with its arguments declared: that halves what a call costs."""
    call = ctypes.CDLL(None, use_errno=True).timerfd_settime
    call.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    return call


class Alarm:
    """One timerfd in one event loop; the loop's own timer where there is none.

    `ring` is called in the loop, once per setting.
    """

    def __init__(self, ring: Callable[[], None]) -> None:
        self.loop = asyncio.get_running_loop()
        self._ring = ring
        self._setting = bytearray(_TIMER_SPEC.size)
        # The export keeps the address valid for as long as this object lives.
        self._export = ctypes.c_char.from_buffer(self._setting)
        self._address = ctypes.addressof(self._export)
        self._set_again = False
        self._fallback: asyncio.TimerHandle | None = None
        self._descriptor = _open_timerfd()
        if self._descriptor is not None:
            self._settime = _settime()
            self.loop.add_reader(self._descriptor, self._rings)

    @property
    def precise(self) -> bool:
        """Whether there is a timerfd."""
        return self._descriptor is not None

    def set(self, monotonic_ns: int) -> None:
        """Ring when CLOCK_MONOTONIC says so, at once where it has; the setting before is void."""
        if self._descriptor is None:
            self._set_in_loop(monotonic_ns)
            return
        # a time of zero would switch the timer off
        seconds, nanoseconds = divmod(monotonic_ns if monotonic_ns > 0 else 1, SECOND_NS)
        _TIMER_SPEC.pack_into(self._setting, 0, 0, 0, seconds, nanoseconds)
        self._settime(self._descriptor, TFD_TIMER_ABSTIME, self._address, None)
        self._set_again = True

    def close(self) -> None:
        """Ring no more, and give the descriptor back. Twice does no harm."""
        if self._fallback is not None:
            self._fallback.cancel()
        if self._descriptor is not None:
            if not self.loop.is_closed():
                self.loop.remove_reader(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = None

    def _set_in_loop(self, monotonic_ns: int) -> None:
        if self._fallback is not None:
            self._fallback.cancel()
        # asyncio's clock is CLOCK_MONOTONIC in seconds
        self._fallback = self.loop.call_at(monotonic_ns / 1e9, self._ring)

    def _rings(self) -> None:
        self._set_again = False
        try:
            self._ring()
        finally:
            # A new setting takes back what was not read: a system call less for each ring.
            if not self._set_again and self._descriptor is not None:
                with contextlib.suppress(BlockingIOError):
                    os.read(self._descriptor, 8)


class PreciseTimer:
    """Any number of waits on one alarm; lives in one event loop."""

    def __init__(self) -> None:
        self._waits: list[tuple[int, int, asyncio.Future[None]]] = []
        self._order = itertools.count()
        self._armed: int | None = None
        self._alarm = Alarm(self._ring)
        self.loop = self._alarm.loop

    @property
    def precise(self) -> bool:
        """Whether there is a timerfd."""
        return self._alarm.precise

    async def wait_until(self, monotonic_ns: int) -> None:
        """Return when CLOCK_MONOTONIC has reached `monotonic_ns`; at once where it has."""
        if monotonic_ns <= time.monotonic_ns():
            return
        future = self.loop.create_future()
        heapq.heappush(self._waits, (monotonic_ns, next(self._order), future))
        self._arm()
        await future

    def close(self) -> None:
        """Give the descriptor back. Waits under way are cancelled."""
        if not self.loop.is_closed():
            for _, _, future in self._waits:
                future.cancel()
        self._waits.clear()
        self._alarm.close()

    def _arm(self) -> None:
        while self._waits and self._waits[0][2].done():
            heapq.heappop(self._waits)
        if self._waits and self._waits[0][0] != self._armed:
            self._armed = self._waits[0][0]
            self._alarm.set(self._armed)

    def _ring(self) -> None:
        now = time.monotonic_ns()
        while self._waits and self._waits[0][0] <= now:
            future = heapq.heappop(self._waits)[2]
            if not future.done():
                future.set_result(None)
        self._armed = None
        self._arm()
