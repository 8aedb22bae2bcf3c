"""How many connection attempts may be without an answer at once.

A server keeps a place in a queue for each SYN that it has answered, and a firewall may take a heap
of unanswered ones for a flood. A shot that would go beyond the bound fails here and now: it is not
delayed (that would bend the schedule) and not dropped (it is a sample, and no loss of the network).
"""

from pathbudget.probes.record import Failure, FailureKind, Stage

Place = tuple[str, int]
"""Address and port."""
MOST_HALF_OPEN = 8_192
"""To all targets together."""


class HalfOpen:
    """Counts what is half open; every `enter` that gave None is paid back with one `leave`."""

    def __init__(self, per_target: int, total: int = MOST_HALF_OPEN) -> None:
        self._per_target = per_target
        self._total = total
        self._open: dict[Place, int] = {}
        self._all = 0

    def enter(self, place: Place) -> Failure | None:
        """Count one attempt in; the failure where that is one too many."""
        here = self._open.get(place, 0)
        if here >= self._per_target:
            return _too_many(f"{here} connects to this target are without an answer")
        if self._all >= self._total:
            return _too_many(f"{self._all} connects are without an answer")
        self._open[place] = here + 1
        self._all += 1
        return None

    def leave(self, place: Place) -> None:
        """One attempt has been answered or given up."""
        self._all -= 1
        here = self._open[place] - 1
        if here:
            self._open[place] = here
        else:
            del self._open[place]


def _too_many(what: str) -> Failure:
    return Failure(FailureKind.LOCAL, Stage.CONNECT, detail=f"not sent: {what} (max_half_open)")
