"""The packets of a sender: under way, by their T1 and by the key of their stamp; and those done."""

from collections import deque

from pathbudget.probes.stamp.flights import Flight

REMEMBERED_NS = 60_000_000_000
"""How long a packet is remembered after its outcome, so that a copy is known as one."""
REMEMBERED = 100_000


class FlightTable:
    """Each packet from its sending until it is forgotten."""

    def __init__(self) -> None:
        self.by_t1: dict[int, Flight] = {}
        self.under_way = 0
        """Number of packets without an outcome."""
        self._by_key: dict[tuple[int, int], Flight] = {}
        self._order: deque[Flight] = deque()
        self._deadlines: dict[int, deque[Flight]] = {}
        """By their timeout: of one and the same, who is sent later times out later."""

    def add(self, flight: Flight) -> None:
        """A packet is about to be sent."""
        self.by_t1[flight.t1] = flight
        self._order.append(flight)
        self.under_way += 1
        timeout_ns = flight.shot.timeout_ns
        queue = self._deadlines.get(timeout_ns)
        if queue is None:
            queue = self._deadlines[timeout_ns] = deque()
        # Two that have ended leave for each that comes, so that it stays short whoever asks or not.
        for _ in range(2):
            if queue and queue[0].done:
                queue.popleft()
        queue.append(flight)

    def sent(self, flight: Flight, channel: int, key: int) -> None:
        """The kernel will report its stamp under this key of this channel."""
        flight.key = (channel, key)
        self._by_key[channel, key] = flight

    def stamped(self, channel: int, key: int, kernel_unix_ns: int) -> None:
        """The kernel has reported it."""
        flight = self._by_key.pop((channel, key), None)
        if flight is not None:
            flight.kernel_sent_unix_ns = kernel_unix_ns

    def next_deadline_ns(self) -> int | None:
        """Monotonic time of the next deadline; None where nothing is under way."""
        first = self._first()
        return None if first is None else first.deadline_ns

    def take_due(self, now_ns: int) -> Flight | None:
        """A packet whose deadline has come."""
        first = self._first()
        if first is None or first.deadline_ns > now_ns:
            return None
        return self._deadlines[first.shot.timeout_ns].popleft()

    def _first(self) -> Flight | None:
        """The packet under way whose deadline comes first."""
        found: Flight | None = None
        for queue in self._deadlines.values():
            while queue and queue[0].done:
                queue.popleft()
            if queue and (found is None or queue[0].deadline_ns < found.deadline_ns):
                found = queue[0]
        return found

    def close(self, flight: Flight) -> None:
        """It has its outcome. Forget those that have had theirs for long."""
        flight.done = True
        self.under_way -= 1
        if flight.key is not None and flight.kernel_sent_unix_ns is None:
            self._by_key.pop(flight.key, None)
        order, flights = self._order, self.by_t1
        before = flight.sent.monotonic_ns - REMEMBERED_NS
        while order[0].done and (order[0].sent.monotonic_ns < before or len(flights) > REMEMBERED):
            del flights[order.popleft().t1]
            if not order:
                return
