"""aioquic's connection on a kernel-stamped UDP socket, one datagram at a time.

Everything that aioquic does is computation: datagrams in, datagrams out, a timer. Each datagram is
fed by itself, so that what came of it carries its own stamp. One socket per connection: as with any
client each has a port of its own, which is what load balancers, address translators and equal-cost
paths look at; and an ICMP error belongs to one connection.

Packets that came before the keys they need (the network has reordered them) are kept: aioquic
would drop them, and the handshake would wait for the server's timer.
"""

import logging
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol, TypeVar

from aioquic.quic.connection import QuicConnection
from aioquic.quic.events import QuicEvent

from pathbudget.probes.carriers import Moment, span_between
from pathbudget.probes.channels import (
    Cancellable,
    Datagram,
    DatagramBatch,
    DatagramChannel,
    Network,
    Outgoing,
    QueuedError,
)
from pathbudget.probes.clock import ClockWatcher, Reading, StampedInterval
from pathbudget.probes.quic import inside
from pathbudget.probes.quic.flight import Flight
from pathbudget.probes.quic.outflow import Outflows, SentDatagram
from pathbudget.probes.quic.packets import PacketHead, PacketKind, read_datagram
from pathbudget.probes.record import ClockSource, Failure

PARKED_PACKETS = 32
BEGINNINGS_KEPT = 8
QUOTED_BYTES = 24
AT_ONCE = 16
"""After so many datagrams acknowledge, and let others have the event loop, before reading on."""
WAITING_DATAGRAMS = 8_192
"""More than that at once are lost, as they would be in any queue."""
LARGEST_FLIGHT_BYTES = 262_144
"""No server needs more to say who it is."""
cpu_ns = time.thread_time_ns
Result = TypeVar("Result")

logging.getLogger("quic").addHandler(logging.NullHandler())  # not to the user's terminal


class DriverUser(Protocol):
    """Whom a driver tells what happens. It may call the driver, and detach it, at any time."""

    def before_events(self, moment: Moment) -> None:
        """A datagram has been read, and its acknowledgements with it."""

    def take_event(self, event: QuicEvent, moment: Moment) -> None:
        """Something came of a datagram, or of a timer."""

    def after_datagram(self, moment: Moment) -> None:
        """All events of a datagram have been told."""

    def after_sending(self, reading: Reading) -> None:
        """What could be sent has been."""

    def tell_left(self) -> None:
        """More is known of when datagrams left."""

    def closing(self, closing: inside.Closing) -> None:
        """Either side has closed the connection."""

    def icmp(self, error: QueuedError, *, ours: bool) -> None:
        """Somebody says that datagrams do not arrive; `ours` where it quotes one that we sent."""

    def refused(self, failure: Failure) -> None:
        """This host does not let a datagram leave."""

    def flooded(self, received_bytes: int) -> None:
        """The server sends without end, and no handshake comes of it."""

    def stumbled(self, error: Exception) -> None:
        """aioquic itself has failed."""


class Driver:
    """One connection and its socket."""

    def __init__(
        self,
        user: DriverUser,
        network: Network,
        watcher: ClockWatcher,
        quic: QuicConnection,
        place: tuple[str, int],
    ) -> None:
        self._user = user
        self._network = network
        self._watcher = watcher
        self.quic = quic
        self._place = place
        self._channel: DatagramChannel | None = None
        self._timer: Cancellable | None = None
        self._timer_ns = 0
        self._waiting: deque[Datagram] = deque()
        self._parked: list[tuple[PacketKind, bytes]] = []
        self._restarts = 0
        self.shaking = True
        """Whether the handshake is under way; processor time is counted as long as it is."""
        self.compute_ns = 0
        self.outflows = Outflows()
        self.flight = Flight()
        self.first: SentDatagram | None = None
        """The first datagram of all."""
        self._began_anew: list[tuple[Moment | None, SentDatagram]] = []
        """What the server wished it with came, and our new Initial left."""
        self._begun_with: list[bytes] = []
        """How our first datagrams begin: ICMP errors quote them."""
        self._feeding = self._finished = False

    @property
    def own(self) -> StampedInterval | None:
        """What our side took to begin anew after Retry or Version Negotiation, all in all; None
        where there was none. Of early data that is computing keys, and a busy loop.
        """
        spans = [span_between(came, sent.moment) for came, sent in self._began_anew if came]
        if not spans:
            return None
        ranks = list(ClockSource)
        return StampedInterval(
            sum(max(0, span.value_ns) for span in spans),
            max((span.source for span in spans), key=ranks.index),
            stepped=any(span.stepped for span in spans),
        )

    # What a user calls.

    @property
    def attached(self) -> bool:
        """Whether it has a socket."""
        return self._channel is not None

    def attach(self, channel: DatagramChannel) -> None:
        """The socket to use; its batches go to `read`."""
        self._channel = channel

    def connect(self) -> None:
        """Make the first flight; `flush` sends it."""
        now = self._watcher.read().monotonic_ns / 1e9
        self.counted(lambda: self.quic.connect(self._place, now), None)

    def flush(self) -> None:
        """Send what there is to send; at the end of a batch, where one is being read."""
        if not self._feeding:
            self._transmit()

    def leave(self, code: int) -> None:
        """Close the connection, tell the other end, give the socket back.

        What was written leaves first, and so does our Finished: without it the server's handshake
        would be one that was broken off.
        """
        if not self._finished or inside.has_unsent(self.quic):
            self._transmit()
        self.shaking = False
        self.counted(lambda: self.quic.close(code), None)
        self._transmit()
        self.detach()

    def detach(self) -> None:
        """Give the socket back."""
        channel, self._channel = self._channel, None
        if channel is not None:
            channel.close()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def read(self, batch: DatagramBatch) -> None:
        """What the socket has: stamps first, then errors, then datagrams one by one."""
        if not self.attached:
            return
        self.outflows.stamp(batch.sent)
        self._user.tell_left()
        for error in batch.errors:
            quoted = error.quoted[:QUOTED_BYTES]
            ours = any(one.startswith(quoted) for one in self._begun_with)
            self._user.icmp(error, ours=ours)
        busy = bool(self._waiting)
        room = WAITING_DATAGRAMS - len(self._waiting)
        self._waiting.extend(batch.arrivals[:room])
        if self._waiting and not busy:
            self._take_some()

    def _take_some(self) -> None:
        """Some of what waits; whatever else the event loop has to do comes in between."""
        reading = self._watcher.read()
        for _ in range(min(AT_ONCE, len(self._waiting))):
            self._take(self._waiting.popleft(), reading)
        if not self.attached:
            self._waiting.clear()
            return
        self._transmit()
        if self._waiting:
            self._network.call_at(reading.monotonic_ns, self._take_some)

    # Datagrams

    def _take(self, datagram: Datagram, reading: Reading) -> None:
        place = (datagram.sender, datagram.sender_port)
        if not self.attached or place != self._place:
            return
        moment = Moment(reading, datagram.kernel_unix_ns)
        self._feeding = True
        if self.shaking:
            heads = read_datagram(datagram.payload)
            self.flight.came(heads, len(datagram.payload), moment)
            if self.flight.received_bytes > LARGEST_FLIGHT_BYTES:
                self._user.flooded(self.flight.received_bytes)
            for head in heads:
                self._take_packet(head, datagram.payload, moment)
        else:
            self._feed(datagram.payload, moment)
        self._feeding = False
        if self.attached:
            self._user.after_datagram(moment)
            self._look_for_close()

    def _take_packet(self, head: PacketHead, payload: bytes, moment: Moment) -> None:
        packet = payload[head.start : head.end]
        if inside.has_keys(self.quic, head.kind):
            self._feed(packet, moment)
            self._unpark(moment)
        elif len(self._parked) < PARKED_PACKETS:
            self._parked.append((head.kind, packet))

    def _unpark(self, moment: Moment) -> None:
        """Feed what can be read by now; it counts as come with what made it readable."""
        while self._parked and self.attached:
            ready = [one for one in self._parked if inside.has_keys(self.quic, one[0])]
            if not ready:
                return
            self._parked = [one for one in self._parked if one not in ready]
            for _, packet in ready:
                self._feed(packet, moment)

    def _feed(self, payload: bytes, moment: Moment) -> None:
        if not self.attached:
            return
        now = moment.reading.monotonic_ns / 1e9
        early = inside.unacknowledged(self.quic) if self.shaking else []
        self.counted(lambda: self.quic.receive_datagram(payload, self._place, now), None)
        if early and inside.restarted(self.quic) != self._restarts:
            self._restarts = inside.restarted(self.quic)
            inside.send_again(early)
        self._user.before_events(moment)
        self._tell_events(moment)

    def _tell_events(self, moment: Moment) -> None:
        while self.attached:
            event = self.quic.next_event()
            if event is None:
                return
            self._user.take_event(event, moment)

    def _look_for_close(self) -> None:
        closing = inside.why_closing(self.quic)
        if closing is not None and self.attached:
            self._user.closing(closing)

    # Sending

    def _transmit(self, *, due: float = 0.0) -> None:
        """Send what there is; `due` is the time of the timer that has run out, where one has."""
        channel = self._channel
        if channel is None:
            return
        number = inside.next_packet_number(self.quic)
        reading = self._watcher.read()
        now = max(due, reading.monotonic_ns / 1e9)
        nothing: list[tuple[bytes, object]] = []
        made = self.counted(lambda: self.quic.datagrams_to_send(now), nothing)
        if made:
            self._send(channel, [data for data, _ in made], number, timer=due > 0)
        self._finished = self._finished or not self.shaking
        self._set_timer()
        self._user.after_sending(reading)

    def _send(
        self, channel: DatagramChannel, made: list[bytes], number: int, *, timer: bool
    ) -> None:
        pieces = inside.pieces_since(self.quic, number)
        reading = self._watcher.read()
        keys = channel.send_all([Outgoing(data, *self._place) for data in made])
        at = 0
        for data, key in zip(made, keys, strict=True):
            sent = SentDatagram(reading, early=self.flight.received == 0)
            self.first = self.first or sent
            count = 1
            if self.shaking or data[0] & 0x80:
                heads = read_datagram(data)
                count = len(heads)
                if self.flight.left(heads, len(data), sent.moment, timer=timer):
                    self._began_anew.append((self.flight.heard, sent))
                if len(self._begun_with) < BEGINNINGS_KEPT:
                    self._begun_with.append(data[:QUOTED_BYTES])
            if isinstance(key, Failure):
                self._user.refused(key)
            else:
                self.outflows.sent(key, sent, pieces[at : at + count])
            at += count

    # Time

    def _set_timer(self) -> None:
        due = self.quic.get_timer()
        if due is None or not self.attached:
            return
        due_ns = round(due * 1e9)
        if self._timer is not None:
            if self._timer_ns <= due_ns:
                return  # it will look again then
            self._timer.cancel()
        self._timer_ns = due_ns
        self._timer = self._network.call_at(due_ns, self._ring)

    def _ring(self) -> None:
        self._timer, channel = None, self._channel
        if channel is None:
            return
        # What has come meanwhile and was not read yet may be what the timer is about.
        channel.poll()
        reading = self._watcher.read()
        due = self.quic.get_timer()
        if due is None or not self.attached or self._waiting:
            return
        if round(due * 1e9) > reading.monotonic_ns:
            self._set_timer()
            return
        now = max(due, reading.monotonic_ns / 1e9)
        self.counted(lambda: self.quic.handle_timer(now), None)
        self._tell_events(Moment(reading))
        self._transmit(due=now)
        self._look_for_close()

    def counted(self, call: Callable[[], Result], otherwise: Result) -> Result:
        """Have aioquic compute. Whatever a server makes it raise ends this connection alone."""
        began = cpu_ns() if self.shaking else 0
        try:
            return call()
        except Exception as error:  # noqa: BLE001  # it parses what strangers send
            self._user.stumbled(error)
            return otherwise
        finally:
            if self.shaking:
                self.compute_ns += cpu_ns() - began
