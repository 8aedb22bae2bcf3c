"""Deadlines of probes under way: most have the same timeout, so they come in order by themselves.

One queue per length of timeout, each in the order of sending. Entries of probes that have ended are
passed over when they reach the head, so an answer costs nothing here.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence

from pathbudget.probes.contract import Shot
from pathbudget.probes.icmp_flight import Flight


class Deadlines:
    """When the probes of one session time out. `alive` are those that have not ended."""

    def __init__(self) -> None:
        self._queues: dict[int, deque[int]] = {}

    def add_all(self, shots: Sequence[Shot], first: int, alive: Mapping[int, Flight]) -> None:
        """Probes have begun, numbered from `first` on, no earlier than those before them.

        Two that have ended leave for each that comes: where every probe is answered before anybody
        asks for a deadline, a queue would grow for ever otherwise.
        """
        timeout_ns = -1
        queue: deque[int] = deque()
        for number, shot in enumerate(shots, first):
            if shot.timeout_ns != timeout_ns:
                timeout_ns = shot.timeout_ns
                queue = self._queues.setdefault(timeout_ns, deque())
            if queue and queue[0] not in alive:
                queue.popleft()
                if queue and queue[0] not in alive:
                    queue.popleft()
            queue.append(number)

    def __len__(self) -> int:
        """Entries held, those of ended probes among them."""
        return sum(map(len, self._queues.values()))

    def next_ns(self, alive: Mapping[int, Flight]) -> int | None:
        """The next deadline; None where nothing is alive."""
        first = self._first(alive)
        return None if first is None else _deadline(first)

    def due(self, now_ns: int, alive: Mapping[int, Flight]) -> Iterator[Flight]:
        """Whose deadline has come, in order. Each has to have ended before the next is taken."""
        while (first := self._first(alive)) is not None and _deadline(first) <= now_ns:
            yield first

    def _first(self, alive: Mapping[int, Flight]) -> Flight | None:
        earliest: Flight | None = None
        for timeout_ns, queue in tuple(self._queues.items()):
            while queue and queue[0] not in alive:
                queue.popleft()
            if not queue:
                del self._queues[timeout_ns]
                continue
            flight = alive[queue[0]]
            if earliest is None or _deadline(flight) < _deadline(earliest):
                earliest = flight
        return earliest


def _deadline(flight: Flight) -> int:
    return flight.sent.monotonic_ns + flight.shot.timeout_ns
