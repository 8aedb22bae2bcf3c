"""UDP on the fake network: services that answer, ports where nobody listens, hosts that are silent.

    network.services["192.0.2.1", 8620] = FakeReflector(...)     # probes/stamp/fake_reflector.py
    network.paths["192.0.2.2"] = FakePath(unreachable=(3, 3, "192.0.2.2"))

An address with neither loses everything.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from pathbudget.probes.channels import Datagram, DatagramBatch, Outgoing, PacketOptions, QueuedError
from pathbudget.probes.fake_path import FakeHost, FakePath
from pathbudget.probes.fake_time import FakeClock
from pathbudget.probes.record import AddressFamily, Failure

LOCAL = {AddressFamily.IPV4: "192.0.2.100", AddressFamily.IPV6: "2001:db8::100"}
"""Addresses of the host that a fake network is seen from."""


class FakeService(Protocol):
    """What listens on one address and port."""

    def take(
        self, datagram: Datagram, clock: FakeClock, reply: Callable[[bytes, int, int], None]
    ) -> None:
        """A datagram was sent. Call `reply(payload, ttl, traffic_class)` when, and as often as, an
        answer reaches the host; delays are made with `clock.call_in`.
        """
        ...


Services = dict[tuple[str, int], FakeService]


class FakeDatagramChannel:
    """See `channels.DatagramChannel`."""

    def __init__(
        self,
        host: FakeHost,
        services: Services,
        family: AddressFamily,
        listener: Callable[[DatagramBatch], None],
        port: int,
        packet: PacketOptions,
    ) -> None:
        self._host = host
        self._services = services
        self._listener = listener
        self._port = port
        self._packet = packet
        self._local = packet.source or LOCAL[family]
        self._keys = 0
        self._waiting = DatagramBatch()
        self._open = True

    @property
    def port(self) -> int:
        """See `channels.DatagramChannel.port`."""
        return self._port

    def send(self, datagram: Outgoing) -> int | Failure:
        """See `channels.DatagramChannel.send`."""
        key = self._keys
        self._keys += 1
        host, clock = self._host, self._host.clock
        host.sent.append((datagram.address, datagram.payload))
        if host.send_stamps:
            self._waiting.sent.append((key, clock.unix_ns()))
            clock.call_in(0, self.poll)
        service = self._services.get((datagram.address, datagram.port))
        if service is None:
            self._unanswered(host.path(datagram.address), datagram)
            return key
        dscp = self._packet.dscp if datagram.dscp is None else datagram.dscp
        there = Datagram(
            datagram.payload, datagram.local or self._local, self._port, datagram.address,
            self._packet.ttl or 64, dscp << 2, None,
        )  # fmt: skip

        def reply(payload: bytes, ttl: int, traffic_class: int) -> None:
            self._arrive(datagram, payload, ttl, traffic_class)

        service.take(there, clock, reply)
        return key

    def send_all(self, datagrams: Sequence[Outgoing]) -> list[int | Failure]:
        """See `channels.DatagramChannel.send_all`."""
        return [self.send(one) for one in datagrams]

    def poll(self) -> None:
        """See `channels.DatagramChannel.poll`."""
        batch, self._waiting = self._waiting, DatagramBatch()
        if self._open and (batch.sent or batch.arrivals or batch.errors):
            self._listener(batch)

    def sent_stamps(self) -> list[tuple[int, int]]:
        """See `channels.DatagramChannel.sent_stamps`."""
        sent, self._waiting.sent = self._waiting.sent, []
        return sent

    def close(self) -> None:
        """See `channels.DatagramChannel.close`."""
        self._open = False

    def inject(self, datagram: Datagram) -> None:
        """Have something come that nobody sent as an answer: a forgery, somebody else's packet."""
        self._waiting.arrivals.append(datagram)
        self._host.clock.call_in(0, self.poll)

    def inject_error(self, error: QueuedError) -> None:
        """Have an ICMP error come."""
        self._waiting.errors.append(error)
        self._host.clock.call_in(0, self.poll)

    def _arrive(self, sent: Outgoing, payload: bytes, ttl: int, traffic_class: int) -> None:
        stamp = self._host.clock.unix_ns() if self._host.receive_stamps else None
        self.inject(
            Datagram(payload, sent.address, sent.port, self._local, ttl, traffic_class, stamp)
        )

    def _unanswered(self, path: FakePath, datagram: Outgoing) -> None:
        number = path.next_number()
        if path.unreachable is None or path.lost(number):
            return
        icmp_type, code, responder = path.unreachable
        quoted = datagram.payload[: path.quotes_bytes]

        def come() -> None:
            stamp = self._host.clock.unix_ns() if self._host.receive_stamps else None
            self.inject_error(
                QueuedError(icmp_type, code, responder, datagram.address, quoted, stamp)
            )

        self._host.clock.call_in(path.round_trip(number) // 2, come)
