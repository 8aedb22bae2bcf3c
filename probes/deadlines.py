"""Deadlines of probes under way: most have the same timeout, so they come in order by themselves.

One queue per length of timeout, each in the order of sending; probes with successive numbers are
one entry. Those that have ended are passed over when they reach the head, so an answer costs
nothing here.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence

from pathbudget.probes.contract import Shot
from pathbudget.probes.icmp_flight import Flight

_Span = tuple[int, int]
"""First number, and the one after the last."""


class Deadlines:
    """When the probes of one session time out. `alive` are those that have not ended."""

    def __init__(self) -> None:
        self._queues: dict[int, deque[_Span]] = {}

    def add_all(self, shots: Sequence[Shot], first: int, alive: Mapping[int, Flight]) -> None:
        """Probes have begun, numbered from `first` on, no earlier than those before them."""
        timeout_ns, start = shots[0].timeout_ns, first
        for number, shot in enumerate(shots, first):
            if shot.timeout_ns != timeout_ns:
                self._add(timeout_ns, start, number, alive)
                timeout_ns, start = shot.timeout_ns, number
        self._add(timeout_ns, start, first + len(shots), alive)

    def __len__(self) -> int:
        """Probes held, ended ones among them."""
        return sum(end - start for queue in self._queues.values() for start, end in queue)

    def next_ns(self, alive: Mapping[int, Flight]) -> int | None:
        """The next deadline; None where nothing is alive."""
        first = self._first(alive)
        return None if first is None else _deadline(first)

    def due(self, now_ns: int, alive: Mapping[int, Flight]) -> Iterator[Flight]:
        """Whose deadline has come, in order. Each has to have ended before the next is taken."""
        while (first := self._first(alive)) is not None and _deadline(first) <= now_ns:
            yield first

    def _add(self, timeout_ns: int, start: int, end: int, alive: Mapping[int, Flight]) -> None:
        """Two that have ended leave for each that comes: where every probe is answered before
        anybody asks for a deadline, a queue would grow for ever otherwise.
        """
        queue = self._queues.get(timeout_ns)
        if queue is None:
            queue = self._queues[timeout_ns] = deque()
        _pass_over(queue, 2 * (end - start), alive)
        if queue and queue[-1][1] == start:
            start = queue.pop()[0]
        queue.append((start, end))

    def _first(self, alive: Mapping[int, Flight]) -> Flight | None:
        earliest: Flight | None = None
        for timeout_ns, queue in tuple(self._queues.items()):
            while queue and queue[0][0] not in alive:
                _pass_over(queue, queue[0][1] - queue[0][0], alive)
            if not queue:
                del self._queues[timeout_ns]
                continue
            flight = alive[queue[0][0]]
            if earliest is None or _deadline(flight) < _deadline(earliest):
                earliest = flight
        return earliest


def _pass_over(queue: deque[_Span], most: int, alive: Mapping[int, Flight]) -> None:
    """Drop ended probes from the head, `most` of them at most."""
    while queue and most > 0:
        start, end = queue[0]
        until = min(end, start + most)
        number = start
        while number < until and number not in alive:
            number += 1
        most -= number - start
        if number == end:
            queue.popleft()
            continue
        if number > start:
            queue[0] = number, end
        return


def _deadline(flight: Flight) -> int:
    return flight.sent.monotonic_ns + flight.shot.timeout_ns
