"""Each direction by itself, as a STAMP reflector lets us see it, without synchronised clocks.

The transit of one direction is its delay plus the offset between two clocks, which drifts. The
drift is taken out as the slope of the line that lies below all transits and closest to them (Moon,
Skelly, Towsley, INFOCOM 1999). The clock error enters the two directions with opposite signs, so
half the difference of both slopes is used: what both directions share is the network's.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from pathbudget.probes.record import Metric

WINDOW = 600
"""Packets that are looked at: a drift is a line for minutes, not for days."""
ENOUGH = 100
"""With fewer, the line below them follows the network and not the clocks."""

FASTEST_DRIFT = 500e-6
"""No clock in use is worse."""

Point = tuple[int, int]
"""(when sent, transit), nanoseconds."""


class Packet(NamedTuple):
    """Both transits of one packet."""

    sent_unix_ns: int
    forward_ns: int
    reverse_ns: int


class DirectionFigures(NamedTuple):
    """Over the last `n` packets, nanoseconds. `pdv_p99_ns` is over the least transit (RFC 5481),
    `ipdv_p95_ns` the 95th percentile of the absolute difference of successive packets (RFC 3393).
    """

    n: int
    pdv_p99_ns: int
    ipdv_p95_ns: int | None
    drift_ppm: float


class Directions:
    """The last packets that have both transits."""

    def __init__(self) -> None:
        self._half: dict[int, tuple[str, int]] = {}
        self._packets: dict[int, Packet] = {}
        self._last: Packet | None = None

    def add(self, seq: int, metric: str, sent_unix_ns: int, transit_ns: int) -> None:
        """Take one transit; the packet counts once both are there."""
        other = self._half.pop(seq, None)
        if other is None or other[0] == metric:
            self._half[seq] = (metric, transit_ns)
            _limit(self._half)
            return
        forward, reverse = (transit_ns, other[1])
        if metric != Metric.TRANSIT_FORWARD:
            forward, reverse = reverse, forward
        packet = Packet(sent_unix_ns, forward, reverse)
        if self._last is not None and another_offset(self._last, packet):
            self.clear()
        self._last = self._packets[seq] = packet
        _limit(self._packets)

    def clear(self) -> None:
        """Forget: a clock was stepped, the offset is another one."""
        self._half.clear()
        self._packets.clear()
        self._last = None

    @property
    def n(self) -> int:
        """Packets with both transits that are looked at."""
        return len(self._packets)

    def figures(self) -> tuple[DirectionFigures, DirectionFigures] | None:
        """Forward and reverse; None while there are too few packets."""
        if len(self._packets) < ENOUGH:
            return None
        packets = sorted(self._packets.items())
        first = packets[0][1][0]
        forward = [(sent - first, one) for _, (sent, one, _) in packets]
        reverse = [(sent - first, one) for _, (sent, _, one) in packets]
        drift = (slope_below(forward) - slope_below(reverse)) / 2
        numbers = [seq for seq, _ in packets]
        return _figures(numbers, forward, drift), _figures(numbers, reverse, -drift)


def another_offset(before: Packet, after: Packet) -> bool:
    """Whether one of the clocks was stepped between two packets, beyond any doubt.

    Half the difference of the transits is the clock offset to within half a round trip, since no
    packet is faster than nothing.
    """
    offsets = [(one.forward_ns - one.reverse_ns) / 2 for one in (before, after)]
    errors = [(one.forward_ns + one.reverse_ns) / 2 for one in (before, after)]
    drift = FASTEST_DRIFT * abs(after.sent_unix_ns - before.sent_unix_ns)
    return abs(offsets[1] - offsets[0]) > sum(errors) + drift


def slope_below(points: Sequence[Point]) -> float:
    """Slope of the line below all points whose summed distance from them is least.

    That line carries the edge of the lower convex hull above the mean of all times.
    """
    hull: list[Point] = []
    for point in sorted(points):
        while len(hull) > 1 and _turns_right(hull[-2], hull[-1], point):
            hull.pop()
        hull.append(point)
    mean = sum(when for when, _ in points) / len(points)
    for before, after in pairwise(hull):
        if after[0] >= mean and after[0] > before[0]:
            return (after[1] - before[1]) / (after[0] - before[0])
    return 0.0


def _turns_right(first: Point, second: Point, third: Point) -> bool:
    """Whether `second` lies on or above the line from `first` to `third`."""
    across = (second[0] - first[0]) * (third[1] - first[1])
    along = (second[1] - first[1]) * (third[0] - first[0])
    return across <= along


def _figures(numbers: Sequence[int], points: Sequence[Point], drift: float) -> DirectionFigures:
    level = [transit - round(when * drift) for when, transit in points]
    steps = [
        abs(level[at] - level[at - 1])
        for at in range(1, len(level))
        if numbers[at] == numbers[at - 1] + 1
    ]
    least = min(level)
    return DirectionFigures(
        n=len(level),
        pdv_p99_ns=_quantile(level, 0.99) - least,
        ipdv_p95_ns=_quantile(steps, 0.95) if steps else None,
        drift_ppm=drift * 1e6,
    )


def _quantile(values: Sequence[int], share: float) -> int:
    return sorted(values)[max(0, -(-round(share * 1000) * len(values) // 1000) - 1)]


def _limit(packets: "dict[int, Packet] | dict[int, tuple[str, int]]") -> None:
    while len(packets) > WINDOW:
        del packets[next(iter(packets))]
