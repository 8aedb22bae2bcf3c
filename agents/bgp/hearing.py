"""What feeds give to whoever runs them: updates, and news of the feed itself."""

from collections.abc import Iterable
from typing import Protocol

from pathbudget.probes.bgp.record import RouteUpdate


class Listener(Protocol):
    """Hears all feeds. Methods are quick; SpoolError when the disk takes no more."""

    def hear(self, updates: Iterable[RouteUpdate]) -> None:
        """What peers said."""

    def connected(self, feed: str, detail: str = "") -> None:
        """The feed works (again)."""

    def lost(self, feed: str, why: str) -> None:
        """The feed is away; what happens meanwhile is not heard."""

    def set_aside(self, feed: str, count: int, why: str = "") -> None:
        """So many messages of the feed could not be read until now."""


class Feed(Protocol):
    """One source of BGP news."""

    async def run(self, listener: Listener) -> None:
        """Hear until cancelled; comes back by itself from whatever the network does.

        Raises PathbudgetError for what no waiting mends.
        """
        ...


class BackOff:
    """Waits between tries: 1 s, 2 s, 4 s ... 60 s; from the start again after success."""

    FIRST_S = 1.0
    LONGEST_S = 60.0

    def __init__(self) -> None:
        self._next_s = self.FIRST_S

    def take(self) -> float:
        """Seconds to wait now."""
        wait, self._next_s = self._next_s, min(2 * self._next_s, self.LONGEST_S)
        return wait

    def succeeded(self) -> None:
        """It works."""
        self._next_s = self.FIRST_S
