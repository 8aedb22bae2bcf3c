"""One epoll for all TCP connections of an agent, and one reader of the event loop for that epoll.

A connection that lives for two wake-ups is cheap only where it costs few system calls: one to be
watched, and none to be forgotten (closing does that).
"""

import asyncio
import select
from collections.abc import Callable

EVENTS_PER_WAKE = 512
READ = select.EPOLLIN
READ_WRITE = select.EPOLLIN | select.EPOLLOUT


class TcpReactor:
    """Calls what is ready. Lives in the loop that it was made in."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self._epoll = select.epoll()
        self._ready: dict[int, Callable[[int], None]] = {}
        self.loop.add_reader(self._epoll.fileno(), self._wake)

    def add(self, descriptor: int, ready: Callable[[int], None]) -> None:
        """Call `ready` with what epoll says, now and whenever it can be read or written."""
        self._epoll.register(descriptor, READ_WRITE)
        self._ready[descriptor] = ready

    def watch(self, descriptor: int, events: int) -> None:
        """From now on call only for these events (errors always)."""
        self._epoll.modify(descriptor, events)

    def forget(self, descriptor: int) -> None:
        """The descriptor is about to be closed."""
        self._ready.pop(descriptor, None)

    def close(self) -> None:
        """Watch nothing any more."""
        if self._epoll.closed:
            return
        if not self.loop.is_closed():
            self.loop.remove_reader(self._epoll.fileno())
        self._epoll.close()
        self._ready.clear()

    def _wake(self) -> None:
        for descriptor, events in self._epoll.poll(0, EVENTS_PER_WAKE):
            ready = self._ready.get(descriptor)
            if ready is not None:  # an earlier one of this wake-up may have closed it
                ready(events)
