"""The STAMP sender of one address family: its sockets, one per flow, and its alarm."""

import asyncio
from collections.abc import Callable, Sequence

from pathbudget.probes.alarm import Alarm
from pathbudget.probes.channels import (
    DatagramBatch,
    DatagramChannel,
    Outgoing,
    PacketOptions,
)
from pathbudget.probes.clock import ClockWatcher, Reading
from pathbudget.probes.contract import ProbeEnvironment, Shot
from pathbudget.probes.failures import no_family
from pathbudget.probes.flow_book import FlowBook, UsedFlow
from pathbudget.probes.record import AddressFamily, ClockQuality, Failure, Stage, SyncState
from pathbudget.probes.stamp.events import Outcome
from pathbudget.probes.stamp.sender_session import SenderSession

AT_ONCE = 64
"""Requests that leave on one reading of the clocks and, where it can be, in one system call."""
CLOCK_ASKED_NS = 1_000_000_000
"""How often our clock's own word is looked up: by a survey that costs microseconds to look at."""

AskClock = Callable[[], ClockQuality]
"""How right our clock is, at once: see `clock_survey.ClockSurvey.now`."""


class StampFamily:
    """All STAMP sessions of one address family."""

    def __init__(
        self,
        environment: ProbeEnvironment,
        family: AddressFamily,
        session: SenderSession,
        watcher: ClockWatcher,
        ask_clock: AskClock,
        *,
        default_port: int,
        signed: bool,
    ) -> None:
        self._environment = environment
        self._family = family
        self._session = session
        self._ask_clock = ask_clock
        self._default_port = default_port
        self._signed = signed
        self._watcher = watcher
        self._steps = watcher.steps
        self._asked_ns: int | None = None
        self._alarm = Alarm(environment.network, self._expire)
        self._channels: list[DatagramChannel] = []
        self.idle = asyncio.Event()
        self.idle.set()

    def open(self, flows: int, packet: PacketOptions) -> None:
        """Open the sockets. Raises PrivilegeError."""
        for flow in range(flows):
            channel = self._environment.network.open_datagrams(
                self._family, self._listener(flow), packet=packet
            )
            if channel is None:
                return
            self._channels.append(channel)
            self._session.flows[flow] = channel.port
        first = self._channels[0].port
        book = FlowBook.of(self._environment.network)
        book.offer("udp", self._family, self, lambda _, __, port: UsedFlow(first, port))

    def fire_all(self, shots: Sequence[Shot]) -> None:
        """Send them now, in their order."""
        self.idle.clear()
        for start in range(0, len(shots), AT_ONCE):
            self._fire(shots[start : start + AT_ONCE])
        self._report()

    def finish(self) -> None:
        """Every shot has its outcome: count the losses whose direction stays unknown."""
        self._session.finish()
        self._report()

    def close(self) -> None:
        """Give the sockets back."""
        FlowBook.of(self._environment.network).withdraw(self)
        self._alarm.cancel()
        for channel in self._channels:
            channel.close()
        self._channels.clear()

    def _listener(self, flow: int) -> Callable[[DatagramBatch], None]:
        def listen(batch: DatagramBatch) -> None:
            now = self._watcher.read()
            if self._watcher.steps != self._steps:
                self._look_at_clock(now)
            self._session.receive(flow, batch, now)
            self._report()

        return listen

    def _fire(self, shots: Sequence[Shot]) -> None:
        now = self._watcher.read()
        self._look_at_clock(now)
        flows = len(self._channels)
        if flows == 0:
            failure = no_family(self._family, Stage.SEND)
            for shot in shots:
                number, _ = self._session.request(shot, now)
                self._session.refused(number, failure)
            return
        for flow, channel in enumerate(self._channels):
            chosen = shots if flows == 1 else [one for one in shots if one.seq % flows == flow]
            if chosen:
                self._send(flow, channel, chosen, now)

    def _send(
        self, flow: int, channel: DatagramChannel, shots: Sequence[Shot], now: Reading
    ) -> None:
        session, default_port = self._session, self._default_port
        begun = [session.request(shot, now, flow) for shot in shots]
        keys = channel.send_all(
            [
                Outgoing(payload, shot.address, shot.target.port or default_port)
                for shot, (_, payload) in zip(shots, begun, strict=True)
            ]
        )
        for (number, _), key in zip(begun, keys, strict=True):
            if isinstance(key, Failure):
                session.refused(number, key)
            else:
                session.sent(number, flow, key)
        # Most stamps, and on short paths most answers, are there by now: no wake-up is needed.
        channel.poll()

    def _look_at_clock(self, now: Reading) -> None:
        """Keep up what we claim of our clock. Once it was set, what was said of it before counts
        no more, neither in packets nor in samples: before anything else is done with a reading.
        """
        stepped = self._watcher.steps != self._steps
        if stepped:
            self._steps = self._watcher.steps
            if self._signed:
                self._session.clock_stepped()
        due = self._asked_ns is None or now.monotonic_ns - self._asked_ns > CLOCK_ASKED_NS
        if due or stepped:
            self._asked_ns = now.monotonic_ns
            quality = self._ask_clock()
            vouched = quality.sync_state is SyncState.SYNCHRONISED
            self._session.claim_clock(quality.offset_bound_ns if vouched else None)

    def _report(self) -> None:
        """Hand on what has happened, and be woken for the next timeout."""
        emit = self._environment.emit
        for event in self._session.events():
            if isinstance(event, Outcome):
                for sample in event.samples:
                    emit(event.series, sample)
            else:
                self._environment.count(event.series, event.word)
        if self._session.under_way:
            self._alarm.set(self._session.next_deadline_ns())
        else:
            self.idle.set()

    def _expire(self) -> None:
        # What has come meanwhile is not lost, however late this loop is.
        for channel in self._channels:
            channel.poll()
        now = self._watcher.read()
        if self._watcher.steps != self._steps:
            self._look_at_clock(now)
        self._session.expire(now)
        self._report()
