"""The link emulator: one process that carries every packet over every link, each at its time.

Every link is two veth pairs whose inner ends are in this process's namespace. A frame comes in
over the ring with the kernel's stamp, its direction says when it leaves, a heap keeps it until
then, and a send puts it into the next node, whose kernel forwards or answers it.

Lateness must not add up over the hops of a path. The next kernel does its work *inside our send*,
so what it emits is in the ring when the send returns. Such a frame is charged as if it had come at
the moment its cause was due: a path is late once, at its end, however long it is. The lateness
that is left is constant for the most part (the time to wake up), so we learn its median and wake
up that much earlier.

Run as ``python -m pathbudget.agents.lab.emulator DESCRIPTOR``, never forked: a fork would share
event loops and descriptors of its parent. DESCRIPTOR is a stream socket; first line the
configuration, then one line per question and answer (`control.py`).
"""

import gc
import heapq
import ipaddress
import os
import select
import socket
import struct
import sys
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from pathbudget.agents.lab.control import (
    Answer,
    Change,
    DirectionSetup,
    LineSocket,
    Mute,
    Question,
    Setup,
)
from pathbudget.agents.lab.direction import Direction, flow_key, member_of
from pathbudget.agents.lab.frames import TCP, Spots
from pathbudget.agents.lab.hop_work import HopWork, hop_works
from pathbudget.agents.lab.lateness import LatenessWatch
from pathbudget.agents.lab.namespaces import die_with_parent, precise_timers
from pathbudget.agents.lab.report import BINS, DirectionCount, LabReport, bin_of
from pathbudget.agents.lab.ring import Ring, sender
from pathbudget.probes.clock import SystemClock, read_both

PRIORITY = 20
SPIN_NS = 60_000
SPIN_BELOW = 200
"""Packets per window up to which waiting by spinning is cheap. A real-time task that takes over
95 % of a second is stopped by the kernel for 50 ms, so spinning ends long before that."""
WINDOW_NS = 50_000_000
LARGEST_BIAS_NS = 100_000
BIAS_STEP_NS = 50
AGE_LIMIT_NS = 1_000_000_000
"""A frame that is older (or younger) has not waited in the ring: the wall clock was stepped."""


CLOCK = SystemClock()
ICMP, UDP = (1, 58), 17
MULTICAST = 1
"""Bit of the first octet. Links carry no multicast: what kernels chat about when an interface
comes up would shift the dice of a seeded run."""


class Track:
    """One direction with its way out and the nodes at its ends; a bundle has several members."""

    __slots__ = ("members", "send", "sent", "setup")

    def __init__(self, setup: DirectionSetup, send: Callable[[bytes], int]) -> None:
        self.setup = setup
        self.send = send
        self.sent = 0
        self.members = [
            Direction(model, f"{setup.seed} member {number}" if number else setup.seed)
            for number, model in enumerate(setup.models)
        ]

    def due(self, now: int, frame: bytes) -> int | None:
        """When a frame that enters at `now` leaves; None: it is lost."""
        flow = flow_key(frame)
        members = self.members
        if len(members) == 1:
            return members[0].due(now, len(frame), flow)
        return members[member_of(flow, self.setup.seed, len(members))].due(now, len(frame), flow)

    @property
    def lost(self) -> bool:
        """Whether it carries nothing."""
        return all(member.model.loss >= 1 for member in self.members)

    def change(self, change: Change) -> None:
        """Have the members behave otherwise."""
        now = time.monotonic_ns()
        for member, model in zip(self.members, change.models, strict=True):
            if member.model != model:
                member.change(model, now, change.over_ns)

    def count(self) -> DirectionCount:
        """Its counters so far."""
        members = self.members
        return DirectionCount(
            self.setup.source,
            self.setup.destination,
            sum(member.received for member in members),
            self.sent,
            sum(member.dropped for member in members),
            sum(member.overflowed for member in members),
            sum(member.octets for member in members),
            self.setup.link,
        )


class Cause(NamedTuple):
    """A delivery: when it was due, when our send began, to which node, between which addresses."""

    due: int
    began: int
    node: str
    ends: tuple[bytes, bytes]
    link: int | None = None


class Emulator:
    """All links of a lab."""

    def __init__(self, setup: Setup, control: LineSocket) -> None:
        self.control = control
        self.ring = Ring()
        self.tracks = {one.enters: Track(one, sender(one.leaves)) for one in setup.directions}
        self.hops = dict(hop_works(setup.hops))
        self.mutes: dict[tuple[bytes, bytes], Mute] = {}
        self.scheduler = become_real_time() if setup.real_time else "other"
        self._heap: list[tuple[int, int, Track, bytes]] = []
        self._sequence = 0
        self._bias = 0
        self._bins = [0] * BINS
        self._largest = 0
        self._lateness = LatenessWatch(time.time_ns)
        self._unsent = self._unchained = self._clock_steps = self._kept_back = 0
        self._spin = SPIN_NS if self.scheduler == "fifo" else 0
        self._window_end = self._window_count = 0

    def run(self) -> None:
        """Carry packets until the other end of the control socket is closed."""
        watched = [self.ring.socket, self.control.socket]
        while True:
            self._deliver()
            ready = select.select(watched, (), (), self._pause())[0]
            if watched[0] in ready:
                self._take_in(64)
            if watched[1] in ready and not self._converse():
                return

    def _pause(self) -> float:
        """Seconds until shortly before the next packet is due."""
        if not self._heap:
            return 1.0
        now = time.monotonic_ns()
        if now > self._window_end:
            cheap = self.scheduler == "fifo" and self._window_count < SPIN_BELOW
            self._spin = SPIN_NS if cheap else 0
            self._window_end, self._window_count = now + WINDOW_NS, 0
        return max(0, self._heap[0][0] - self._bias - self._spin - now) / 1e9

    def _deliver(self) -> None:
        """Send everything that is due."""
        heap, clock = self._heap, time.monotonic_ns
        now = clock()
        while heap and heap[0][0] - self._bias <= now:
            due, _, track, frame = heapq.heappop(heap)
            try:
                track.send(frame)
                track.sent += 1
            except OSError:
                if track.lost:
                    track.members[0].dropped += 1  # under way when the link went down
                else:
                    self._unsent += 1
            self._window_count += 1
            if not track.setup.into_router:
                self._learn(now - due, now)
            setup = track.setup
            self._take_in(16, Cause(due, now, setup.destination, _ends(frame), setup.link))
            now = clock()

    def _learn(self, error: int, now: int) -> None:
        """Note an error; move the bias towards the median one (a sign-error filter)."""
        self._bins[bin_of(error)] += 1
        self._largest = max(self._largest, error)
        self._lateness.note(error, now)
        step = BIAS_STEP_NS if error > 0 else -BIAS_STEP_NS
        self._bias = min(LARGEST_BIAS_NS, max(0, self._bias + step))

    def _take_in(self, limit: int, cause: Cause | None = None) -> None:
        """Put the frames of the ring on their links; `cause` is the delivery that just ended."""
        # Read tightly: where this process is stopped between the two clocks, packets would come
        # early or late by as long as that.
        paired = read_both(CLOCK)
        now, to_monotonic = paired.monotonic_ns, -paired.offset_ns
        for interface, stamp, frame in self.ring.frames(limit):
            track = self.tracks.get(interface)
            if track is None or frame[0] & MULTICAST:
                continue
            came = stamp + to_monotonic
            if abs(now - came) > AGE_LIMIT_NS:
                came = now
                self._clock_steps += 1
            follows = cause and came <= now and _follows(frame, came, track, cause)
            if cause and follows:
                came = cause.due
            elif track.setup.from_router:
                self._unchained += 1
            if self.hops or self.mutes:
                treated = self._treated(track, frame, cause if follows else None)
                if treated is None:
                    self._kept_back += 1
                    continue
            else:
                treated = track, frame
            due = treated[0].due(came, treated[1])
            if due is not None:
                self._sequence += 1
                heapq.heappush(self._heap, (due, self._sequence, *treated))

    def _treated(
        self, track: Track, frame: bytes, cause: Cause | None
    ) -> tuple[Track, bytes] | None:
        """What routers with peculiarities make of a frame; None: it never got onto the link."""
        if self.mutes and _is_muted(frame, self.mutes):
            return None
        worker = self.hops.get(track.setup.source)
        if worker:
            way = worker.way(frame)
            left = worker.leaving(frame, cause.link if cause else None)
            if left is None:
                return None
            frame = left
            if way is not None:
                track = self.tracks[way]
                frame = track.setup.addresses + frame[12:]
        worker = self.hops.get(track.setup.destination)
        return track, worker.entering(frame) if worker else frame

    def _converse(self) -> bool:
        """Answer the questions that came; False when there is nobody left to answer to."""
        lines = self.control.lines()
        for line in lines or ():
            question = Question.decode(line)
            if question.change:
                self._change(question.change)
            if question.hop:
                self.hops[question.hop.node] = HopWork(question.hop)
            if question.mute:
                self._mute(question.mute)
            self.control.send(Answer(self.report()).encode())
        return lines is not None

    def _change(self, change: Change) -> None:
        for track in self.tracks.values():
            if (track.setup.link, track.setup.source) == (change.link, change.source):
                track.change(change)

    def _mute(self, mute: Mute) -> None:
        key = (ipaddress.ip_address(mute.address).packed, struct.pack("!H", mute.port))
        if mute.muted:
            self.mutes[key] = mute
        else:
            self.mutes.pop(key, None)

    def report(self) -> LabReport:
        """Everything known about this run so far."""
        return LabReport(
            scheduler=self.scheduler,
            error_bins=tuple(self._bins),
            largest_error_ns=self._largest,
            directions=tuple(track.count() for track in self.tracks.values()),
            unsent=self._unsent,
            ring_drops=self.ring.drops(),
            unchained=self._unchained,
            clock_steps=self._clock_steps,
            kept_back=self._kept_back,
            cpu_seconds=time.process_time(),
            stalls=self._lateness.stalls(time.monotonic_ns()),
        )


def _follows(frame: bytes, came: int, track: Track, cause: Cause) -> bool:
    """Whether a node's kernel made a frame out of `cause`: the packet forwarded, or an answer."""
    if track.setup.source != cause.node or came < cause.began:
        return False
    if not track.setup.from_router and _is_of_a_program(frame):
        return False  # it left when its stamp says, however soon after the delivery that was
    return _ends(frame)[1] in cause.ends


def _is_muted(frame: bytes, mutes: Mapping[tuple[bytes, bytes], Mute]) -> bool:
    spots = Spots(frame)
    if spots.protocol != TCP or spots.short:
        return False
    at = spots.transport
    ports = frame[at : at + 2], frame[at + 2 : at + 4]
    return (spots.source_address, ports[0]) in mutes or (
        spots.destination_address,
        ports[1],
    ) in mutes


def _is_of_a_program(frame: bytes) -> bool:
    """No kernel sends echo requests or datagrams by itself, nor answers a datagram with one."""
    if frame[12:14] == b"\x08\x00":
        protocol, kind, request = frame[23], frame[14 + 4 * (frame[14] & 15)], 8
    else:
        protocol, kind, request = frame[20], frame[54], 128
    return protocol == UDP or (protocol in ICMP and kind == request)


def _ends(frame: bytes) -> tuple[bytes, bytes]:
    """Source and destination address of an IPv4 or IPv6 frame."""
    if frame[12:14] == b"\x08\x00":
        return frame[26:30], frame[30:34]
    return frame[22:38], frame[38:54]


def become_real_time() -> str:
    """Ask for the real-time scheduler; the name of the one we have."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
    except OSError:
        return "other"
    return "fifo"


def main() -> None:
    """The process: reads its setup, says it is ready, runs."""
    die_with_parent()
    precise_timers()
    control = LineSocket(socket.socket(fileno=int(sys.argv[1])))
    emulator = Emulator(Setup.decode(control.line()), control)
    gc.collect()
    gc.freeze()
    gc.disable()
    control.send(Answer(emulator.report()).encode())
    emulator.run()


if __name__ == "__main__":
    main()
