"""When the lab itself was too slow: times in which packets came later than their links say.

What a busy host does to a lab looks from outside as if the network had done it: variation and
longer round trips of whoever had packets under way. Whoever judges what others say about a lab has
to know when it was so (`Ledger.stalls`).
"""

from collections.abc import Callable

from pathbudget.agents.lab.report import Stall

WINDOW_NS = 250_000_000
LATE_NS = 100_000
"""Later than this is late: the smallest change that anybody reports (docs/routes-method.md)."""
LATE_SHARE = 0.1
"""Share of late deliveries from which on a window is a stall: fewer move no median and no quantile
that is looked at."""
MOST_STALLS = 1_000
"""Beyond these the last one grows: every answer of the emulator carries them, and it carries no
packets while it writes one.
"""


class LatenessWatch:
    """Counts late deliveries in windows, and keeps the windows in which they were many."""

    def __init__(self, unix_ns: Callable[[], int]) -> None:
        """`unix_ns` is asked once a window at most."""
        self._unix_ns = unix_ns
        self._began_ns: int | None = None
        self._count = self._late = self._largest_ns = 0
        self._stalls: list[Stall] = []

    def note(self, error_ns: int, now_ns: int) -> None:
        """One delivery, by how much it was late, and when (monotonic)."""
        if self._began_ns is None or now_ns - self._began_ns >= WINDOW_NS:
            self._close(now_ns)
            self._began_ns = now_ns
        self._count += 1
        if error_ns > LATE_NS:
            self._late += 1
            self._largest_ns = max(self._largest_ns, error_ns)

    def stalls(self, now_ns: int) -> tuple[Stall, ...]:
        """All so far, in order of time; neighbouring windows are one."""
        self._close(now_ns)
        self._began_ns = None
        return tuple(self._stalls)

    def _close(self, now_ns: int) -> None:
        if self._began_ns is not None and self._late > LATE_SHARE * self._count:
            # From the due time of what was late first: packets missed it from there on.
            to_unix = self._unix_ns() - now_ns
            began = self._began_ns - self._largest_ns + to_unix
            ended = min(now_ns, self._began_ns + WINDOW_NS) + to_unix
            self._keep(Stall(began, ended, self._count, self._late, self._largest_ns))
        self._count = self._late = self._largest_ns = 0

    def _keep(self, stall: Stall) -> None:
        last = self._stalls[-1] if self._stalls else None
        near = last is not None and stall.began_unix_ns - last.ended_unix_ns <= WINDOW_NS
        if last is not None and (near or len(self._stalls) >= MOST_STALLS):
            self._stalls[-1] = Stall(
                last.began_unix_ns,
                stall.ended_unix_ns,
                last.deliveries + stall.deliveries,
                last.late + stall.late,
                max(last.largest_ns, stall.largest_ns),
            )
        else:
            self._stalls.append(stall)
