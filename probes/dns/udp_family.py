"""Questions over UDP of one address family: its socket, its alarm, and TCP where cut short."""

import asyncio

import msgspec

from pathbudget.probes.alarm import Alarm
from pathbudget.probes.carriers import Moment, Opened, Phase
from pathbudget.probes.channels import (
    DatagramBatch,
    DatagramChannel,
    Outgoing,
    PacketOptions,
)
from pathbudget.probes.clock import ClockWatcher
from pathbudget.probes.contract import ProbeEnvironment, Shot
from pathbudget.probes.dns.events import Outcome
from pathbudget.probes.dns.links import Link, LinkDialer
from pathbudget.probes.dns.questions import Question
from pathbudget.probes.dns.udp_flights import Flight
from pathbudget.probes.dns.udp_session import UdpSession
from pathbudget.probes.failures import no_family
from pathbudget.probes.record import AddressFamily, Failure, Stage


class UdpFamily:
    """All questions of one address family."""

    def __init__(
        self,
        environment: ProbeEnvironment,
        watcher: ClockWatcher,
        family: AddressFamily,
        session: UdpSession,
        tcp: LinkDialer,
    ) -> None:
        self._environment = environment
        self._watcher = watcher
        self._family = family
        self._session = session
        self._tcp = tcp
        self._channel: DatagramChannel | None = None
        self._again: set[AgainOverTcp] = set()
        self._alarm = Alarm(environment.network, self._expire)
        self.idle = asyncio.Event()
        self.idle.set()

    def open(self, packet: PacketOptions) -> None:
        """Open the socket. Raises PrivilegeError."""
        network = self._environment.network
        self._channel = network.open_datagrams(self._family, self._heard, packet=packet)
        if self._channel is not None:
            self._session.local_port = self._channel.port

    def fire(self, shot: Shot) -> None:
        """Ask now."""
        self.idle.clear()
        self._session.begin(shot, self._watcher.read())
        self._send()
        if self._channel is not None:
            # On short paths stamp and answer are there by now: no wake-up is needed.
            self._channel.poll()
        self._report()

    def close(self) -> None:
        """Give the socket back."""
        self._alarm.cancel()
        for again in tuple(self._again):
            again.drop()
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    def ended(self, again: "AgainOverTcp") -> None:
        """A question has been asked again over TCP, and something came of it."""
        self._again.discard(again)
        self._report()

    def _heard(self, batch: DatagramBatch) -> None:
        self._session.receive(batch, self._watcher.read())
        self._send()
        self._report()

    def _send(self) -> None:
        session, channel = self._session, self._channel
        for flight in session.outgoing():
            now = self._watcher.read()
            if channel is None:
                session.refused(flight, no_family(self._family, Stage.SEND), now)
                continue
            sending = session.send(flight, now)
            if sending is None:
                continue
            server = flight.server
            shot_address = flight.shot.address  # with its zone
            key = channel.send(Outgoing(sending.question.wire, shot_address, server.port))
            if isinstance(key, Failure):
                session.refused(flight, key, now)
            else:
                session.sent(sending, key)

    def _report(self) -> None:
        """Hand on what has happened, ask again what was cut short, be woken for the next alarm."""
        for flight in self._session.cut_short():
            question = self._session.question(flight, self._environment.rng.randrange(1 << 16))
            again = AgainOverTcp(self, self._session, self._watcher, flight, question)
            self._again.add(again)
            again.start(self._tcp)
        for event in self._session.events():
            if isinstance(event, Outcome):
                self._environment.emit(event.series, event.sample)
            else:
                self._environment.count(event.series, event.word)
        due_ns = self._session.next_alarm_ns()
        if due_ns is None:
            self.idle.set()
        else:
            self._alarm.set(due_ns)

    def _expire(self) -> None:
        if self._channel is not None:
            self._channel.poll()  # what has come is not lost, however late this loop is
        self._session.expire(self._watcher.read())
        for again in [one for one in self._again if one.pointless]:
            again.drop()
            self._again.discard(again)
        self._send()
        self._report()


class AgainOverTcp:
    """One question whose answer did not fit a datagram. A `links.LinkListener`."""

    def __init__(
        self,
        family: UdpFamily,
        session: UdpSession,
        watcher: ClockWatcher,
        flight: Flight,
        question: Question,
    ) -> None:
        self._family = family
        self._session = session
        self._watcher = watcher
        self._flight = flight
        self._question = question
        self._link: Link | None = None

    @property
    def pointless(self) -> bool:
        """The question has been given up."""
        return self._flight.done

    def start(self, tcp: LinkDialer) -> None:
        """Dial."""
        # The server's address is known: resolving its name is no part of this.
        shot = msgspec.structs.replace(self._flight.shot, resolve=False)
        self._link = tcp.dial(shot, self)

    def drop(self) -> None:
        """Nobody waits for it any more."""
        if self._link is not None:
            self._link.abandon()

    def opened(self, opened: Opened) -> None:
        """See `carriers.OpeningListener.opened`."""
        del opened
        if self._link is not None:
            self._link.ask(self._question.wire)

    def failed(self, metric: str, failure: Failure, done: tuple[Phase, ...]) -> None:
        """See `carriers.OpeningListener.failed`."""
        del metric, done
        self.broke(failure)

    def broke(self, failure: Failure) -> None:
        """See `links.LinkListener.broke`."""
        detail = f"over TCP, after a truncated answer: {failure.detail}"
        whole = Failure(failure.kind, failure.stage, detail)
        self._session.broke(self._flight, whole, self._watcher.read())
        self._family.ended(self)

    def asked(self, moment: Moment) -> None:
        """See `links.LinkListener.asked`: the clock runs since the question over UDP."""

    def answered(self, wire: bytes, moment: Moment) -> None:
        """See `links.LinkListener.answered`."""
        self._session.whole(self._flight, wire, moment, self._question)
        if self._link is not None:
            self._link.close()
        self._family.ended(self)
