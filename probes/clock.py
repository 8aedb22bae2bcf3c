"""The clocks. Intervals come from the monotonic one; the wall clock only labels."""

import time
from typing import Protocol


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
