"""Bytes over TLS 1.3 over TCP (or over TCP alone): the `carriers.StreamDialer` of this product.

    dialer = TlsStreamDialer(environment, TlsSettings(ca_file=..., alpn=("h2",)))
    stream = dialer.dial(shot, listener)      # listener.opened(...), then stream.write(...)

Times are those of the kernel: encrypted offsets of its send stamps are told as plain ones, and
plain bytes that came carry the stamp of the packet that completed them. Tickets are kept for later
dials to the same target and address.
"""

import asyncio
from collections.abc import Mapping
from typing import Protocol

from pathbudget.probes.carriers import Moment, Opened, Phase, StreamListener
from pathbudget.probes.clock import ClockWatcher, Reading, StampedInterval
from pathbudget.probes.contract import ProbeEnvironment, Shot
from pathbudget.probes.failures import closed, unavailable
from pathbudget.probes.record import (
    ClockSource,
    ConnectionMode,
    Flag,
    Metric,
    Note,
    Stage,
    Transport,
)
from pathbudget.probes.tls.client_side import EarlyData, TlsClient, TlsLibrary
from pathbudget.probes.tls.hellos import Hellos
from pathbudget.probes.tls.library import choose_library
from pathbudget.probes.tls.opening import Opening
from pathbudget.probes.tls.records import Offsets
from pathbudget.probes.tls.settings import TLS_OPTIONS, TlsSettings, tls_settings
from pathbudget.probes.tls.tickets import Tickets
from pathbudget.probes.tls.wishes import Flight, Wish

__all__ = ["TLS_OPTIONS", "TlsSettings", "TlsStream", "TlsStreamDialer", "tls_settings"]

TICKET_WAIT_NS = 300_000_000
"""How long a ticket is waited for after the handshake, at least; 4 handshakes where longer."""


class _Owner(Protocol):
    """What a stream uses of its dialer."""

    environment: ProbeEnvironment
    watcher: ClockWatcher
    settings: TlsSettings
    library: TlsLibrary | None
    tickets: Tickets

    def settle(self, stream: "TlsStream") -> None:
        """It is neither being opened nor waiting for a ticket."""

    def unsettle(self, stream: "TlsStream") -> None:
        """It waits for a ticket."""

    def forget(self, stream: "TlsStream") -> None:
        """It is gone."""


class TlsStream(Opening):
    """See `carriers.SecureStream`. `facts` are the notes of its opening, as far as it came."""

    def __init__(self, owner: _Owner, shot: Shot, listener: StreamListener, early: bytes) -> None:
        super().__init__(owner.environment, owner.watcher, owner.settings, shot, listener)
        self._owner = owner
        self._early = early
        self._wish = Wish(owner.settings, owner.library, owner.tickets, shot, self._port)
        self._wish.take_ticket(self._phase_began.monotonic_ns, early)
        self.facts: dict[str, Note] = {}
        self._client: TlsClient | None = None
        self._offsets = Offsets()
        self._wire_bytes = 0
        self._held = b""
        self._told_sent = self._told_acknowledged = -1
        self._flight = Flight()
        self._hellos = Hellos(self._phase_began)
        self._handshake_ns = 0
        self._ticket_taken = not owner.settings.wants_tickets
        self._goodbye_came = False
        self._lingers = False

    @property
    def mode(self) -> ConnectionMode:
        """What it is tried as."""
        return self._wish.mode

    # SecureStream

    def write(self, data: bytes) -> int:
        """See `carriers.SecureStream.write`."""
        if data and self._channel is not None:
            self._send(b"")  # what is held back, so that offsets and stamps are of the data alone
            reading = self._watcher.read()
            if self._client is None:
                self._offsets.wrote_clear(data, self._wire_bytes, reading)
                self._send(data)
            else:
                wire = self._client.write(data)
                self._offsets.wrote(wire, len(data), self._wire_bytes, reading)
                self._send(wire)
        return self._offsets.plain_bytes - 1

    def notes(self) -> Mapping[str, Note]:
        """See `carriers.SecureStream.notes`."""
        info = None if self._channel is None else self._channel.info()
        found = {} if info is None else info.notes()
        if self._goodbye_came:
            found["close_notify"] = True
        return found

    def close(self) -> None:
        """See `carriers.SecureStream.close`."""
        listener, self._listener = self._listener, None
        if self._stood:
            self._linger()
        elif listener is not None:
            self.abandon()  # else it has failed, and stays as long as it is of use

    def abandon(self) -> None:
        """See `carriers.SecureStream.abandon`."""
        self._listener = None
        self._alarm.cancel()
        self._wish.give_back()
        channel, self._channel = self._channel, None
        if channel is not None:
            channel.close()
        self._owner.forget(self)

    # Opening

    def begin(self) -> None:
        """See `Opening.begin`."""
        if self._wish.impossible:
            self._stage = Stage.HANDSHAKE
            self.fail(unavailable(self._wish.impossible))
        else:
            super().begin()

    def after_connect(self, now: Reading) -> None:
        """See `Opening.after_connect`."""
        if self._owner.library is None:
            self._stood_up(Opened(Transport.TCP, ConnectionMode.COLD, self.began, self._done()))
            return
        client, wire, early = self._wish.begin(now.monotonic_ns)
        self.facts |= self._wish.facts
        if client.failure is not None:
            self.fail(client.failure)
            return
        self._client = client
        self._hellos.leaves(self._watcher.read(), len(wire))
        if client.early_data is EarlyData.PENDING:
            self._offsets.wrote(wire, len(early), 0, self._hellos.first.reading)
        self._send(wire)

    def after_failure(self) -> None:
        """See `Opening.after_failure`."""
        self._wish.give_back()
        client = self._client
        if client is not None and client.complete and client.failure is None:
            self._linger()  # of use to later ones all the same
            return
        if self._channel is not None:
            self._channel.finish()
        self._owner.forget(self)

    # TcpListener

    def sent(self, last_byte: int, kernel_unix_ns: int) -> None:
        """See `channels.TcpListener.sent`."""
        self._hellos.sent(last_byte, kernel_unix_ns)
        found = self._offsets.at(last_byte)
        if found is not None and found[0] > self._told_sent:
            self._told_sent = found[0]
            if self._listener is not None:
                self._listener.sent(found[0], Moment(found[1], kernel_unix_ns))

    def acknowledged(self, last_byte: int, kernel_unix_ns: int) -> None:
        """See `channels.AcknowledgementListener.acknowledged`."""
        found = self._offsets.at(last_byte)
        if found is not None and found[0] > self._told_acknowledged:
            self._told_acknowledged = found[0]
            if self._listener is not None:
                moment = Moment(self._watcher.read(), kernel_unix_ns)
                self._listener.acknowledged(found[0], moment)

    def received(self, data: bytes, kernel_unix_ns: int | None) -> None:
        """See `channels.TcpListener.received`."""
        now = Moment(self._watcher.read(), kernel_unix_ns)
        client = self._client
        if not data:
            self._other_side_ended()
        elif client is None:
            self._deliver(data, now)
        elif client.complete:
            self._take_more(client, data, now)
        else:
            self._take_flight(client, data, now)

    def _take_flight(self, client: TlsClient, data: bytes, now: Moment) -> None:
        taken = client.receive(data)
        self._flight.came(now, asked_again=bool(taken.answer) and not client.complete)
        if not client.complete:
            if taken.answer and client.failure is None:
                end = self._wire_bytes + len(taken.answer)
                self._hellos.leaves_again(now, self._watcher.read(), end)
            self._send(taken.answer)
            if client.failure is not None:
                self.fail(client.failure)
            return
        self._held = taken.answer  # where nothing else is to be said, it leaves with the goodbye
        self._stand(client, now)
        self._send(b"")
        if taken.plain:
            self._deliver(taken.plain, now)
        self._after_data(client)

    def _take_more(self, client: TlsClient, data: bytes, now: Moment) -> None:
        taken = client.receive(data)
        self._send(taken.answer)
        if taken.plain:
            self._deliver(taken.plain, now)
        self._after_data(client)

    def _after_data(self, client: TlsClient) -> None:
        if not self._ticket_taken and self._channel is not None:
            self._look_for_ticket(client)
        if client.failure is not None and self._listener is not None:
            self.fail(client.failure)
        elif client.ended or client.failure is not None:
            if client.failure is not None and self._stood:
                # A certificate of ours that was refused shows only now (RFC 8446, 4.4.2.4).
                self._environment.count(self._shot.series, "failed_after_handshake")
            self._goodbye_came = client.ended
            self._other_side_ended()

    # Steps

    def _stand(self, client: TlsClient, now: Moment) -> None:
        """The server's flight is in: everything is known."""
        span, own = self._hellos.until(now), self._hellos.own
        if own is not None:
            self.facts["own_us"] = own.value_ns // 1_000
        self._handshake_ns = span.value_ns
        trip = self._phases[-1].span.value_ns
        flags = self._flight.flags(client, span.value_ns, trip)
        self.facts |= self._wish.found(client, self._hellos.bytes, self._early)
        failure = self._wish.verdict(client)
        if failure is not None:
            self.fail(failure)
            return
        if not self._settings.verify:
            flags = (Flag.UNVERIFIED, *flags)
        handshake = Phase(Metric.TLS_HANDSHAKE, self._hellos.first, span, flags, now)
        computed = StampedInterval(client.compute_ns, ClockSource.USER)
        beside = [Phase(Metric.CLIENT_COMPUTE, self._hellos.first, computed)]
        if self.mode is ConnectionMode.EARLY_DATA:
            beside.insert(0, handshake)
        else:
            self._phases.append(handshake)
        self._stood_up(
            Opened(
                Transport.TLS,
                self.mode,
                self.began,
                self._done(),
                tuple(beside),
                self.facts,
                client.application,
            )
        )

    def _stood_up(self, opened: Opened) -> None:
        self._stood, self._stage = True, Stage.WAIT
        self._alarm.cancel()
        if self._early and not self._offsets.plain_bytes:
            self.write(self._early)
        self._early = b""
        if self._listener is not None:
            self._listener.opened(opened)
        if not self._lingers:  # else who drains must go on waiting
            self._owner.settle(self)

    def _done(self) -> tuple[Phase, ...]:
        return tuple(self._phases)

    def _deliver(self, data: bytes, now: Moment) -> None:
        if self._listener is not None:
            self._listener.received(data, now)

    def _send(self, data: bytes) -> None:
        data, self._held = self._held + data, b""
        if data and self._channel is not None:
            self._wire_bytes += len(data)
            self._channel.send(data)

    def _look_for_ticket(self, client: TlsClient) -> None:
        ticket = client.new_ticket(self._watcher.read().monotonic_ns)
        if ticket is None:
            return
        self._ticket_taken = True
        self._wish.keep(ticket)
        if self._listener is None:
            self._leave()

    def _other_side_ended(self) -> None:
        if not self._stood:
            if self._listener is not None:
                self.fail(closed(self._stage))
            else:
                self._leave()
            return
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.ended()
        self._leave()

    def _linger(self) -> None:
        """Stay for the ticket, where one is of use; never part of any number."""
        if self._channel is None:
            self._owner.forget(self)
        elif self._ticket_taken or not self._wish.wants_ticket:
            self._leave()
        else:
            wait = min(max(TICKET_WAIT_NS, 4 * self._handshake_ns), self._shot.timeout_ns)
            self._lingers = True
            self._owner.unsettle(self)
            due = self._watcher.read().monotonic_ns + wait
            self._alarm = self._environment.network.call_at(due, self._leave)

    def _leave(self) -> None:
        """Say goodbye and go."""
        self._alarm.cancel()
        channel = self._channel
        if channel is not None:
            if self._client is not None:
                self._send(self._client.goodbye())
            self._channel = None
            channel.finish()
        self._owner.forget(self)


class TlsStreamDialer:
    """See `carriers.StreamDialer`. Raises ConfigError where a file or a library cannot be used."""

    def __init__(self, environment: ProbeEnvironment, settings: TlsSettings) -> None:
        self.environment = environment
        self.settings = settings
        self.watcher = ClockWatcher(environment.clock)
        self.library = choose_library(settings) if settings.tls else None
        self.tickets = Tickets(reuse=settings.ticket_reuse, smallest_age_ns=settings.ticket_age_ns)
        self._alive: set[TlsStream] = set()
        self._unsettled: set[TlsStream] = set()
        self._idle = asyncio.Event()
        self._idle.set()

    def dial(self, shot: Shot, listener: StreamListener, *, early: bytes = b"") -> TlsStream:
        """See `carriers.StreamDialer.dial`."""
        stream = self.prepare(shot, listener, early=early)
        stream.begin()
        return stream

    def prepare(self, shot: Shot, listener: StreamListener, *, early: bytes = b"") -> TlsStream:
        """As `dial`, without its `begin`: for a listener that must know its stream first."""
        stream = TlsStream(self, shot, listener, early)
        self._alive.add(stream)
        self._unsettled.add(stream)
        self._idle.clear()
        return stream

    def settle(self, stream: TlsStream) -> None:
        """See `_Owner.settle`."""
        self._unsettled.discard(stream)
        if not self._unsettled:
            self._idle.set()

    def unsettle(self, stream: TlsStream) -> None:
        """See `_Owner.unsettle`."""
        self._unsettled.add(stream)
        self._idle.clear()

    def forget(self, stream: TlsStream) -> None:
        """See `_Owner.forget`."""
        self._alive.discard(stream)
        self.settle(stream)

    async def drain(self) -> None:
        """See `carriers.StreamDialer.drain`."""
        while self._unsettled:  # one that settles may begin to wait for its ticket right after
            await self._idle.wait()

    def close(self) -> None:
        """See `carriers.StreamDialer.close`."""
        for stream in tuple(self._alive):
            stream.abandon()
