"""What a lab says about itself: how late it delivered, what it lost, and why.

`error` is actual minus due time of the deliveries to regions and sites, which is all that anybody
can observe: a delivery to a router that comes late is charged back (see `emulator.py`).
"""

import msgspec

BIN_NS = 1024
_FIRST_NS = -256 * BIN_NS
_LINEAR = 2048
BINS = _LINEAR + 20
BUSY_FROM_US = 1000.0
BUSY = "; this host was busy: high percentiles came out too long, by as much as that"
"""Said when one delivery in a hundred was later than `BUSY_FROM_US`."""


def bin_of(error_ns: int) -> int:
    """Bin of one error: about 1 us wide from -0.26 to 1.8 ms, above that each twice as wide."""
    index = (error_ns - _FIRST_NS) // BIN_NS
    if index < _LINEAR:
        return max(0, index)
    return min(BINS - 1, _LINEAR + (index - _LINEAR + 1).bit_length() - 1)


def upper_edge_us(index: int) -> float:
    """The largest error in microseconds that bin `index` holds."""
    cells = index + 1 if index < _LINEAR else _LINEAR + 2 ** (index - _LINEAR + 1) - 1
    return (_FIRST_NS + cells * BIN_NS) / 1000


class Stall(msgspec.Struct, frozen=True):
    """A time in which the lab was late itself (`lateness.py`), by the wall clock."""

    began_unix_ns: int
    ended_unix_ns: int
    deliveries: int
    """To regions and sites, within it."""
    late: int
    """Of these, by more than `lateness.LATE_NS`."""
    largest_ns: int


class DirectionCount(msgspec.Struct, frozen=True):
    """Packets of one direction of a link. `received` is what the sending node put on the link."""

    source: str
    destination: str
    received: int
    sent: int
    dropped_by_model: int
    dropped_by_queue: int
    octets: int
    link: int = 0
    """Which of the links of the world."""


class LabReport(msgspec.Struct, frozen=True):
    """The lab's statement about one run, so far or at its end."""

    scheduler: str
    """``fifo`` (real-time) or ``other`` (the ordinary one; expect rare errors of milliseconds)."""
    error_bins: tuple[int, ...]
    largest_error_ns: int
    directions: tuple[DirectionCount, ...]
    unsent: int = 0
    """Packets that the kernel of the receiving node refused."""
    ring_drops: int = 0
    """Packets lost because the emulator did not keep up. Anything but 0 spoils loss figures."""
    unchained: int = 0
    """Packets of routers whose earlier lateness could not be charged back."""
    clock_steps: int = 0
    kept_back: int = 0
    """Packets that a silent router did not send, and those of a muted session."""
    cpu_seconds: float = 0.0
    stalls: tuple[Stall, ...] = ()
    """When the lab was too slow, in order of time."""

    @property
    def n(self) -> int:
        """Deliveries in the histogram."""
        return sum(self.error_bins)

    @property
    def forwarded(self) -> int:
        """Packets delivered over all links; a packet counts once per link."""
        return sum(direction.sent for direction in self.directions)

    @property
    def dropped_by_model(self) -> int:
        """Packets that links lost because their definition says so."""
        return sum(direction.dropped_by_model for direction in self.directions)

    @property
    def dropped_by_queue(self) -> int:
        """Packets that met a full queue of a rate limit."""
        return sum(direction.dropped_by_queue for direction in self.directions)

    def error_us(self, share: float) -> float:
        """Quantile of the error in us, rounded up to the bin's edge; 0 when nothing was sent."""
        rank = share * self.n
        seen = 0
        for index, count in enumerate(self.error_bins):
            seen += count
            if count and seen >= rank:
                return upper_edge_us(index)
        return 0.0

    @property
    def p50_us(self) -> float:
        """Median error in microseconds."""
        return self.error_us(0.50)

    @property
    def p99_us(self) -> float:
        """99th percentile of the error in microseconds."""
        return self.error_us(0.99)

    @property
    def max_us(self) -> float:
        """Largest error in microseconds. A figure to read, never to assert."""
        return self.largest_error_ns / 1000

    def since(self, earlier: "LabReport") -> "LabReport":
        """What happened after `earlier`; the largest error stays that of the whole run."""
        before = {(d.source, d.link): d for d in earlier.directions}
        return msgspec.structs.replace(
            self,
            error_bins=tuple(
                now - then for now, then in zip(self.error_bins, earlier.error_bins, strict=True)
            ),
            directions=tuple(
                _difference(now, before[now.source, now.link]) for now in self.directions
            ),
            unsent=self.unsent - earlier.unsent,
            ring_drops=self.ring_drops - earlier.ring_drops,
            unchained=self.unchained - earlier.unchained,
            clock_steps=self.clock_steps - earlier.clock_steps,
            kept_back=self.kept_back - earlier.kept_back,
            cpu_seconds=self.cpu_seconds - earlier.cpu_seconds,
            stalls=tuple(one for one in self.stalls if one not in earlier.stalls),
        )

    def __str__(self) -> str:
        return self.sentence()

    def sentence(self) -> str:
        """One line for a person."""
        text = (
            f"lab: {self.forwarded} packets forwarded, own error p50 {self.p50_us:.0f} us, "
            f"p99 {self.p99_us:.0f} us, max {self.max_us:.0f} us ({self.scheduler}), "
            f"{self.dropped_by_model} lost by the model"
        )
        spoiled = {
            "met a full queue": self.dropped_by_queue,
            "lost by the lab itself": self.ring_drops + self.unsent,
            "clock steps": self.clock_steps,
        }
        text += "".join(f", {count} {what}" for what, count in spoiled.items() if count)
        return text + (BUSY if self.p99_us > BUSY_FROM_US else "")


def _difference(now: DirectionCount, then: DirectionCount) -> DirectionCount:
    return DirectionCount(
        now.source,
        now.destination,
        now.received - then.received,
        now.sent - then.sent,
        now.dropped_by_model - then.dropped_by_model,
        now.dropped_by_queue - then.dropped_by_queue,
        now.octets - then.octets,
        now.link,
    )
