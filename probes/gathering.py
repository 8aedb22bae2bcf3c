"""When the queues of a stamped socket are read: at once, or gathered for a few milliseconds.

A wake-up costs as much as several packets. The kernel has stamped every packet, so reading it later
changes no number; network drivers do the same with their interrupts (NAPI, ethtool -c). Packets
are gathered only while their stamps are known to come and there are many wake-ups to save.

    at once -> gathering   WAKES wake-ups at ENTER_PER_SECOND or more, all packets stamped
    gathering -> at once   fewer than LEAVE_PER_SECOND, a packet without a stamp, a queue too full

While packets are gathered they are read by whoever sends next after HOLD_NS, and after LONGEST_NS
by an alarm. This module decides; it reads no socket and no clock.
"""

HOLD_NS = 4_000_000
LONGEST_NS = 8_000_000
WAKES = 32
SECOND_NS = 1_000_000_000
ENTER_PER_SECOND, LEAVE_PER_SECOND = 1_000, 400
LOOK_NS = 50_000_000
"""How often the rate is looked at while packets are gathered."""
PACKET_BYTES = 2_048
"""What the kernel charges for a short packet, or its stamp, at most; long ones twice their size."""
SHARE = 4
"""At most this part of the receive buffer is meant to fill up."""


class Gathering:
    """The state of one socket with `buffer_bytes` of receive buffer. All times are monotonic."""

    def __init__(self, buffer_bytes: int) -> None:
        self.on = False
        self._room = buffer_bytes // SHARE
        self._expected = 0
        self._wakes = 0
        self._stamped = 0
        self._since_ns = 0
        self._read_ns = 0
        self._read_by_ns = 0

    def woke(self, now_ns: int, packets: int, *, all_stamped: bool) -> bool:
        """The queues were read at once, for good or in vain; whether to gather from now on."""
        if not all_stamped:
            self._stamped = self._wakes = 0
            self._since_ns = now_ns
            return False
        self._wakes += 1
        self._stamped += packets
        if self._wakes < WAKES:
            return False
        fast = (now_ns - self._since_ns) * ENTER_PER_SECOND <= WAKES * SECOND_NS
        self.on = fast and self._stamped > 0
        self._wakes = self._stamped = 0
        self._since_ns = now_ns
        if self.on:
            self._start_window(now_ns)
        return self.on

    def sent(self, packets: int, packet_bytes: int) -> None:
        """Packets left while others are gathered. It is time to read when their answers and their
        stamps might fill too much of the buffer.
        """
        self._wakes += 1
        self._expected += packets * 2 * (PACKET_BYTES + 2 * packet_bytes)
        if self._expected > self._room:
            self._read_by_ns = 0

    def time_to_read(self, now_ns: int) -> bool:
        """Whether who is awake anyway should read."""
        return now_ns >= self._read_by_ns

    def latest_ns(self) -> int:
        """When the queues have to be read whoever is awake."""
        return self._read_ns + LONGEST_NS

    def read(self, now_ns: int, taken_bytes: int, *, all_stamped: bool) -> int:
        """The queues were read while gathering; for how long packets may have lain there because we
        wanted it so. `on` says whether to go on.
        """
        waited_ns = min(now_ns - self._read_ns, LONGEST_NS)
        if not all_stamped or taken_bytes > self._room:
            self.on = False
        elif now_ns - self._since_ns >= LOOK_NS:
            span_ns = now_ns - self._since_ns
            self.on = self._wakes * SECOND_NS >= LEAVE_PER_SECOND * span_ns
            self._wakes = 0
            self._since_ns = now_ns
        self._start_window(now_ns)
        return waited_ns

    def _start_window(self, now_ns: int) -> None:
        self._expected = 0
        self._read_ns = now_ns
        self._read_by_ns = now_ns + HOLD_NS
