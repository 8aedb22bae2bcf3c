"""When our own load is on the path: samples are sorted by the time they were sent. Pure."""

from collections import deque
from enum import StrEnum

SETTLES_NS = 1_000_000_000
"""After a load the queues that it filled drain, and reflectors that count by the second begin a new
count: what is sent then is neither idle nor loaded."""
REMEMBERED = 128


class Phase(StrEnum):
    """What else was on the path when a packet was sent."""

    IDLE = "idle"
    RAMPING = "ramping"
    """A load, but its rate is still sought: too little of it, or too much."""
    LOADED = "loaded"
    SETTLING = "settling"


OWN_LOAD = frozenset({Phase.RAMPING, Phase.LOADED})
OURS = OWN_LOAD | {Phase.SETTLING}
"""What is lost then is not the path's alone, so it is no outage of the path."""


class Phases:
    """The stretches of time with a load, wall clock."""

    def __init__(self) -> None:
        self._changes: deque[tuple[int, Phase]] = deque(maxlen=REMEMBERED)

    def begin(self, unix_ns: int, phase: Phase = Phase.LOADED) -> None:
        """The load is on. Without effect where that phase is on already."""
        if not self._changes or self._changes[-1][1] is not phase:
            self._changes.append((unix_ns, phase))

    def end(self, unix_ns: int) -> None:
        """It is off. Without effect where it was not on."""
        if self._changes:
            self.begin(unix_ns, Phase.IDLE)

    def phase_at(self, unix_ns: int) -> Phase:
        """Of a packet sent then."""
        for began, phase in reversed(self._changes):
            if unix_ns < began:
                continue
            if phase is Phase.IDLE and unix_ns < began + SETTLES_NS:
                return Phase.SETTLING
            return phase
        return Phase.IDLE
