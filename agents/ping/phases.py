"""When our own load is on the path: samples are sorted by the time they were sent. Pure."""

from collections import deque
from enum import StrEnum

SETTLES_NS = 500_000_000
"""After a load the queues that it filled drain: what is sent then is neither idle nor loaded."""
REMEMBERED = 64


class Phase(StrEnum):
    """What else was on the path when a packet was sent."""

    IDLE = "idle"
    LOADED = "loaded"
    SETTLING = "settling"


class Phases:
    """The loaded stretches of time, wall clock."""

    def __init__(self) -> None:
        self._loaded: deque[tuple[int, int | None]] = deque(maxlen=REMEMBERED)

    def begin(self, unix_ns: int) -> None:
        """The load is on."""
        self._loaded.append((unix_ns, None))

    def end(self, unix_ns: int) -> None:
        """It is off. Without effect where it was not on."""
        if self._loaded and self._loaded[-1][1] is None:
            self._loaded[-1] = (self._loaded[-1][0], unix_ns)

    def phase_at(self, unix_ns: int) -> Phase:
        """Of a packet sent then."""
        for began, ended in reversed(self._loaded):
            if unix_ns < began:
                continue
            if ended is None or unix_ns < ended:
                return Phase.LOADED
            return Phase.SETTLING if unix_ns < ended + SETTLES_NS else Phase.IDLE
        return Phase.IDLE
