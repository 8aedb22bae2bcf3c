"""The ClientHellos of one handshake, and the time from the first to the server's whole flight.

Where a HelloRetryRequest asks for a second one, our own side is on the path: it makes a key of
another group, and may be busy. That time is taken out by the kernel's stamps of what came and left.
"""

from pathbudget.probes.carriers import Moment, span_between, without
from pathbudget.probes.clock import Reading, StampedInterval, measure_interval


class Hellos:
    """When they left; ends are offsets on the wire."""

    def __init__(self, began: Reading) -> None:
        self.first = Moment(began)
        self.bytes = 0
        self._asked: Moment | None = None
        self._second: Moment | None = None
        self._end = 0

    def leaves(self, reading: Reading, length: int) -> None:
        """The first one is handed to the kernel now."""
        self.first, self.bytes = Moment(reading), length

    def leaves_again(self, asked: Moment, reading: Reading, end: int) -> None:
        """The other one is handed to the kernel now; `asked` is when the server's wish came."""
        self._asked, self._second, self._end = asked, Moment(reading), end

    def sent(self, last_byte: int, kernel_unix_ns: int) -> None:
        """The kernel's stamp of a byte; the first one about a byte counts."""
        if self.first.kernel_unix_ns is None and last_byte >= self.bytes - 1:
            self.first = Moment(self.first.reading, kernel_unix_ns)
        second = self._second
        if second is not None and second.kernel_unix_ns is None and last_byte >= self._end - 1:
            self._second = Moment(second.reading, kernel_unix_ns)

    @property
    def own(self) -> StampedInterval | None:
        """What our side took from the server's wish to the second one; None where there is none."""
        if self._asked is None or self._second is None:
            return None
        return span_between(self._asked, self._second)

    def until(self, now: Moment) -> StampedInterval:
        """From the first one to the arrival of the flight, without what our own side took."""
        first = self.first
        span = measure_interval(
            first.reading, now.reading, first.kernel_unix_ns, now.kernel_unix_ns
        )
        return without(span, self.own)
