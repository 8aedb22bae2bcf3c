"""Whether this host sends as fast as the plan wants.

One that does not is told of, and every send it makes meanwhile is counted and marked. The schedule
is never thinned: leaving out what comes late would hide exactly the moments that were bad
(coordinated omission).
"""

from pathbudget.probes.record import HOST_BUSY_NS

WINDOWS = 5
"""So many looks in a row, a second apart, make a host that falls behind."""
PROBLEM = (
    f"this host falls behind: half of the probes leave over {HOST_BUSY_NS // 1_000_000} ms late.\n"
    "They are sent, marked and counted (host_busy). Lower the rate, or free a core."
)


class KeepingUp:
    """Told of every send, asked once a second."""

    def __init__(self) -> None:
        self.behind = False
        """Whether more than half of the sends were late, at each of the last looks."""
        self._sends = 0
        self._late = 0
        self._bad_windows = 0

    def note(self, sends: int, late_ns: int) -> None:
        """`sends` left so long after they might have."""
        self._sends += sends
        if late_ns > HOST_BUSY_NS:
            self._late += sends

    def look(self) -> bool:
        """Judge what was sent since the look before; True when the host has just fallen behind."""
        sends, late = self._sends, self._late
        if not sends:  # says nothing: the host may be busy with the batch before
            return False
        self._sends = self._late = 0
        before = self.behind
        self._bad_windows = self._bad_windows + 1 if 2 * late > sends else 0
        self.behind = self._bad_windows >= WINDOWS
        return self.behind and not before
