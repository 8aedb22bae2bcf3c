"""Carries out one `DirectionModel` packet by packet. No clock and no socket in here.

`due` takes the time at which a packet enters the link and says when it leaves, or None when the
link loses it. Each direction has a random generator of its own, seeded from the world's seed and
the link, so a run repeats whatever the order of packets on other links.
"""

import hashlib
import math
import random
from collections.abc import Callable

from pathbudget.agents.lab.link import NORMAL_CUT, DirectionModel, Order, Swell, VariationKind

_FLOWS_KEPT = 4096
_ETHERNET = 14
_FCS = 4
"""Octets of the frame check sequence, which the capture does not show."""


class Direction:
    """State of one direction: counters, loss state, queue, last delivery per flow."""

    __slots__ = (
        "_bad", "_before_ns", "_busy_until", "_last", "_over_ns", "_since", "_vary", "dropped",
        "model", "octets", "overflowed", "random", "received",
    )  # fmt: skip

    def __init__(self, model: DirectionModel, seed: str) -> None:
        self.random = random.Random(seed)
        self.received = self.dropped = self.overflowed = self.octets = 0
        self._bad = False
        self._busy_until = 0
        self._last: dict[bytes, int] = {}
        self.model = model
        self.change(model)

    def change(self, model: DirectionModel, now: int = 0, over_ns: int = 0) -> None:
        """Use another definition from the next packet on; its delay is reached within `over_ns`."""
        self._before_ns = self._delay(now) if over_ns else 0
        self._since, self._over_ns = now, over_ns
        self.model = model
        self._vary = _variation(model, self.random)

    def due(self, now: int, length: int, flow: bytes) -> int | None:
        """When a frame of `length` octets that enters at `now` leaves; None: it is lost."""
        model = self.model
        self.received += 1
        self.octets += length
        if self._loses() or (model.largest_octets and length - _ETHERNET > model.largest_octets):
            self.dropped += 1
            return None
        if model.rate_bits:
            queued = self._through_queue(now, length + _FCS)
            if queued is None:
                self.overflowed += 1
                return None
            now = queued
        due = now + (self._delay(now) if self._over_ns else model.delay_ns)
        if self._vary:
            due = max(now, due + self._vary())
        if model.swell:
            due += self._swollen(now, model.swell)
        if model.reorder and self.random.random() < model.reorder:
            return due + model.reorder_by_ns
        if (self._vary or model.swell) and model.order is not Order.FREE:
            due = self._in_order(due, b"" if model.order is Order.LINK else flow)
        return due

    def _delay(self, now: int) -> int:
        """The delay while it is on its way from the former one."""
        gone = (now - self._since) / self._over_ns if self._over_ns else 1.0
        if gone >= 1:
            self._over_ns = 0
            return self.model.delay_ns
        return self._before_ns + int((self.model.delay_ns - self._before_ns) * max(0.0, gone))

    def _swollen(self, now: int, swell: Swell) -> int:
        gone = (now - self._since) / swell.length_ns
        if not 0 < gone < 1:
            return 0
        return int(swell.peak_ns * math.sin(math.pi * gone) ** 2 * self.random.uniform(0.5, 1.5))

    def _loses(self) -> bool:
        model = self.model
        lost = False
        if model.bursts:
            change = model.bursts.to_good if self._bad else model.bursts.to_bad
            if self.random.random() < change:
                self._bad = not self._bad
            share = model.bursts.loss_bad if self._bad else model.bursts.loss_good
            lost = self.random.random() < share
        if model.loss:
            lost = self.random.random() < model.loss or lost
        return lost

    def _through_queue(self, now: int, octets: int) -> int | None:
        """When the last bit of the frame has left a first-in-first-out queue of limited length."""
        rate = self.model.rate_bits or 1
        start = max(now, self._busy_until)
        if start - now > self.model.queue_ns:
            return None
        self._busy_until = start + octets * 8_000_000_000 // rate
        return self._busy_until

    def _in_order(self, due: int, flow: bytes) -> int:
        last = self._last
        if len(last) >= _FLOWS_KEPT:
            self._last = last = {key: when for key, when in last.items() if when > due}
        due = max(due, last.get(flow, 0))
        last[flow] = due
        return due


def _variation(model: DirectionModel, generator: random.Random) -> Callable[[], int] | None:
    """A function that draws the nanoseconds to add to the delay; None when it never varies."""
    variation = model.variation
    scale, share, shape = variation.scale_ns, variation.share, variation.shape
    if variation.kind is VariationKind.NONE or not scale or not share:
        return None
    cut = NORMAL_CUT * scale
    gauss, pareto, uniform = generator.gauss, generator.paretovariate, generator.random

    def normal() -> int:
        return int(max(-cut, min(cut, gauss(0.0, scale))))

    def heavy() -> int:
        return int(scale * (pareto(shape) - 1.0))

    draw = normal if variation.kind is VariationKind.NORMAL else heavy
    if share >= 1:
        return draw
    return lambda: draw() if uniform() < share else 0


def flow_key(frame: bytes) -> bytes:
    """Addresses, protocol and the first four octets behind the IP header of an Ethernet frame."""
    if frame[12:14] == b"\x08\x00":
        start = 14 + 4 * (frame[14] & 15)
        return frame[23:24] + frame[26:34] + frame[start : start + 4]
    return frame[20:21] + frame[22:58]


def member_of(flow: bytes, seed: str, members: int) -> int:
    """Which member of a bundle, or of equally good ways, carries a flow."""
    digest = hashlib.blake2b(flow, digest_size=4, key=seed.encode()[:64]).digest()
    return int.from_bytes(digest, "big") % members
