"""The echo session of one address family, its sockets and its alarm."""

import asyncio
from collections.abc import Sequence

from pathbudget.probes.channels import Cancellable, IcmpBatch, IcmpChannel, PacketOptions
from pathbudget.probes.clock import ClockWatcher
from pathbudget.probes.contract import ProbeEnvironment, Shot
from pathbudget.probes.errors import PrivilegeError
from pathbudget.probes.failures import no_family
from pathbudget.probes.flow_book import FlowBook, UsedFlow
from pathbudget.probes.icmp_session import Counted, Event, IcmpSession, Outcome
from pathbudget.probes.record import AddressFamily, Stage
from pathbudget.probes.trace.ip_headers import ICMPV6, pseudo_sum

RETIRED_NS = 10_000_000_000
"""How long a socket whose identifier was given up still hears late answers."""
AT_ONCE = 64
"""Requests that leave on one reading of the clocks and, where it can be, in one system call."""


class IcmpFamily:
    """All echo probes of one address family.

    A raw socket carries all flows. An unprivileged one is an identifier, so each flow has its own.
    """

    def __init__(
        self,
        environment: ProbeEnvironment,
        family: AddressFamily,
        session: IcmpSession,
        packet: PacketOptions,
    ) -> None:
        self._environment = environment
        self._family = family
        self._session = session
        self._packet = packet
        self._watcher = ClockWatcher(environment.clock)
        self._alarm: Cancellable | None = None
        self._alarm_ns = 0
        self._retired: list[tuple[int, IcmpChannel, Cancellable]] = []
        self._opened = 0
        self._channels: list[tuple[int, IcmpChannel]] = []
        self._busy = False
        self.idle = asyncio.Event()
        self.idle.set()

    def open(self, flows: int) -> None:
        """Open the sockets. Raises PrivilegeError."""
        book = FlowBook.of(self._environment.network)
        book.offer("icmp", self._family, self, self._used_flow)
        for index in range(flows):
            opened = self._open(index)
            if opened is None:
                return
            self._channels.append(opened)
            if opened[1].privileged:
                return

    def fire_all(self, shots: Sequence[Shot]) -> None:
        """Send them now, in their order."""
        if not self._busy:
            self._busy = True
            self.idle.clear()
        if len(shots) <= AT_ONCE:
            self._fire(shots)
        else:
            for start in range(0, len(shots), AT_ONCE):
                self._fire(shots[start : start + AT_ONCE])
        self._report(self._session.events())

    def close(self) -> None:
        """Give the sockets back."""
        FlowBook.of(self._environment.network).withdraw(self)
        if self._alarm is not None:
            self._alarm.cancel()
        for _, channel, alarm in self._retired:
            alarm.cancel()
            channel.close()
        for _, channel in self._channels:
            channel.close()
        self._retired.clear()
        self._channels.clear()

    def _used_flow(self, source: str, address: str, port: int) -> UsedFlow:
        """What a trace has to send to be balanced alike. Its identifier is its own: answers to it
        would be taken for damaged ones to us.
        """
        checksum = self._session.flows.of(address, 0).checksum
        if self._family is AddressFamily.IPV6:  # what the kernel makes of it
            pseudo = pseudo_sum(source, address, ICMPV6) + self._session.message_bytes
            checksum = (checksum - pseudo) % 0xFFFF or 0xFFFF
        return UsedFlow(checksum, port)

    def _fire(self, shots: Sequence[Shot]) -> None:
        session = self._session
        now = self._watcher.read()
        begun = session.request_all(shots, now)
        if self._alarm is not None:
            self._mind_the_alarm(shots, self._alarm_ns - now.monotonic_ns)
        if not self._channels:
            failure = no_family(self._family, Stage.SEND)
            for number, _ in begun:
                session.refused(number, failure, now)
        elif len(self._channels) == 1:
            self._send(0, shots, begun)
        else:
            # Looked up before anything is sent: an answer may end a probe at once.
            flows = [session.flow_index(number) for number, _ in begun]
            for index in range(len(self._channels)):
                chosen = [n for n, flow in enumerate(flows) if flow == index]
                if chosen:
                    self._send(index, [shots[n] for n in chosen], [begun[n] for n in chosen])

    def _send(self, index: int, shots: Sequence[Shot], begun: list[tuple[int, bytes]]) -> None:
        number_of_channel, channel = self._channels[index]
        session = self._session
        messages = [(one[1], shot.address) for one, shot in zip(begun, shots, strict=True)]
        refused = session.all_sent(begun, number_of_channel, channel.send_all(messages))
        if refused:
            now = self._watcher.read()
            for number, failure in refused:
                session.refused(number, failure, now)
        # Most stamps, and on short paths most answers, are there by now: no wake-up is needed.
        channel.glance()

    def _open(self, index: int) -> tuple[int, IcmpChannel] | None:
        self._opened += 1
        number = self._opened

        def listen(batch: IcmpBatch) -> None:
            session = self._session
            session.receive(number, batch, self._watcher.read())
            waited = self._environment.waited
            waited(batch.waited_ns)
            self._report(session.events())
            waited(0)

        channel = self._environment.network.open_icmp(self._family, listen, self._packet)
        if channel is None:
            return None
        self._session.flows.socket_has(index, channel.identifier)
        return number, channel

    def _report(self, events: Sequence[Event]) -> None:
        """Hand on what has happened, and be woken for the next timeout."""
        if events:
            emit = self._environment.emit
            for event in events:
                if isinstance(event, Outcome):
                    emit(event[0], event[1])
                else:
                    self._counted(event)
            if self._session.flows.rotated:
                self._renew_all()
        if not self._session.under_way:
            self._busy = False
            self.idle.set()
        elif self._alarm is None:
            self._set_alarm()

    def _counted(self, event: Counted) -> None:
        self._environment.count(event.series, event.word)

    def _renew_all(self) -> None:
        """An unprivileged socket is its identifier: a new one takes a new socket."""
        flows = self._session.flows
        while flows.rotated:
            index = flows.rotated.pop()
            if index < len(self._channels):
                self._renew(index)

    def _renew(self, index: int) -> None:
        try:
            opened = self._open(index)
        except PrivilegeError:
            return  # out of sockets: the old one is better than none
        if opened is None:
            return
        old_number, old = self._channels[index]
        self._channels[index] = opened
        later = self._environment.clock.monotonic_ns() + RETIRED_NS
        alarm = self._environment.network.call_at(later, self._retire)
        self._retired.append((old_number, old, alarm))

    def _retire(self) -> None:
        number, channel, _ = self._retired.pop(0)
        channel.close()
        self._session.channel_closed(number)

    def _mind_the_alarm(self, shots: Sequence[Shot], rings_in_ns: int) -> None:
        """Give up an alarm that would come too late for one of these."""
        for shot in shots:
            if shot.timeout_ns < rings_in_ns:
                assert self._alarm is not None
                self._alarm.cancel()
                self._alarm = None
                return

    def _set_alarm(self) -> None:
        """Be woken for the next timeout."""
        due_ns = self._session.next_deadline_ns()
        if due_ns is not None:
            self._alarm_ns = due_ns
            self._alarm = self._environment.network.call_at(due_ns, self._expire)

    def _expire(self) -> None:
        self._alarm = None
        # What has come meanwhile is not lost, however late this loop is.
        for _, channel in self._channels:
            channel.poll()
        for _, channel, _ in self._retired:
            channel.poll()
        self._session.expire(self._watcher.read())
        self._report(self._session.events())
