"""A stamped ICMP socket in an asyncio loop: the real `IcmpChannel`. Sockets come from `network`."""

import asyncio
import socket
import time
from collections.abc import Callable, Sequence

from pathbudget.probes.channels import Arrival, IcmpBatch
from pathbudget.probes.failures import from_refused_call
from pathbudget.probes.gathering import PACKET_BYTES, Gathering
from pathbudget.probes.icmp_wire import strip_ipv4
from pathbudget.probes.packets import Packet, Received, SocketAddress, socket_address
from pathbudget.probes.record import AddressFamily, Failure, Stage
from pathbudget.probes.stamped_socket import StampedSocket

__all__ = ["SocketAddress", "StampedIcmpSocket", "socket_address"]

MESSAGE_BYTES = 9_216
"""More than a jumbo frame: no longer request is sent."""
DESTINATIONS_REMEMBERED = 65_536
_new = tuple.__new__  # what a NamedTuple's own constructor calls in the end


class StampedIcmpSocket(StampedSocket):
    """See `channels.IcmpChannel`. Owns the socket."""

    def __init__(
        self,
        sock: socket.socket,
        family: AddressFamily,
        listener: Callable[[IcmpBatch], None],
        *,
        privileged: bool,
    ) -> None:
        super().__init__(
            sock, family, data_bytes=MESSAGE_BYTES, error_queue=not privileged, headers=False
        )
        self._listener = listener
        self._privileged = privileged
        self._identifier = int(sock.getsockname()[1])
        self._strips_header = privileged and family is AddressFamily.IPV4
        self._destinations: dict[str, SocketAddress] = {}
        self._gathering = Gathering(sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF))
        self._alarm: asyncio.TimerHandle | None = None

    @property
    def privileged(self) -> bool:
        """See `channels.IcmpChannel.privileged`."""
        return self._privileged

    @property
    def identifier(self) -> int | None:
        """See `channels.IcmpChannel.identifier`: of an unprivileged socket, its "port"."""
        return None if self._privileged else self._identifier

    def send(self, message: bytes, address: str) -> int | Failure:
        """See `channels.IcmpChannel.send`."""
        return self.send_all(((message, address),))[0]

    def send_all(self, messages: Sequence[tuple[bytes, str]]) -> list[int | Failure]:
        """See `channels.IcmpChannel.send_all`."""
        known = self._destinations
        if len(messages) == 1:
            message, address = messages[0]
            key = self._send_one(message, known.get(address))
            if key is not None:
                return [key]
        packets: list[Packet] = []
        unsendable: list[tuple[int, Failure]] = []
        for index, (message, address) in enumerate(messages):
            try:
                packets.append((message, known.get(address) or self._destination(address), ()))
            except OSError as error:
                failure = from_refused_call(error, Stage.SEND, self._family)
                unsendable.append((index, failure))
        outcomes = self._send_packets(packets)
        if self._gathering.on and packets:
            self._gathering.sent(len(packets), len(packets[0][0]))
        for index, failure in unsendable:
            outcomes.insert(index, failure)
        return outcomes

    def _send_one(self, message: bytes, destination: SocketAddress | None) -> int | None:
        """The short way for one message to an address that is known; None: nothing was sent."""
        if destination is None:
            return None
        try:
            self._socket.sendto(message, destination)
        except OSError as error:
            self._count_anew(error)
            return None
        key = self._count.sent
        self._count.sent = key + 1
        if self._gathering.on:
            self._gathering.sent(1, len(message))
        return key

    def glance(self) -> None:
        """See `channels.IcmpChannel.glance`."""
        gathering = self._gathering
        if not gathering.on or gathering.time_to_read(time.monotonic_ns()):
            self.poll()

    def poll(self) -> None:
        """See `channels.IcmpChannel.poll`."""
        received = self._take_packets()
        sent, errors = self._take_errors()
        arrivals = self._arrivals(received)
        waited_ns = self._decide(received)
        if received or sent or errors:
            self._listener(IcmpBatch(sent, arrivals, errors, waited_ns))

    def close(self) -> None:
        """Give the socket back."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        super().close()

    def _decide(self, received: list[Received]) -> int:
        """When to read next; how long packets had to wait for this time."""
        gathering, now_ns = self._gathering, time.monotonic_ns()
        stamped = None not in [one[6] for one in received]
        gathered = gathering.on
        if gathered:
            size = sum([PACKET_BYTES + 2 * len(one[0]) for one in received])
            waited_ns = gathering.read(now_ns, size, all_stamped=stamped)
            if not gathering.on:
                self._read_at_once()
            return waited_ns
        if gathering.woke(now_ns, len(received), all_stamped=stamped):
            self._gather()
        return 0

    def _gather(self) -> None:
        if self._socket.fileno() >= 0:
            self._loop.remove_reader(self._socket.fileno())
            self._set_alarm()

    def _read_at_once(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if self._socket.fileno() >= 0:
            self._loop.add_reader(self._socket.fileno(), self.poll)

    def _set_alarm(self) -> None:
        self._alarm = self._loop.call_at(self._gathering.latest_ns() / 1e9, self._look)

    def _look(self) -> None:
        """The alarm: read, unless somebody has read meanwhile."""
        self._alarm = None
        if self._gathering.latest_ns() <= time.monotonic_ns():
            self.poll()
        if self._gathering.on and self._alarm is None:
            self._set_alarm()

    def _arrivals(self, received: list[Received]) -> list[Arrival]:
        if not self._strips_header:
            return [
                _new(Arrival, (message, sender, ttl, stamp))
                for message, sender, _, _, ttl, _, stamp in received
            ]
        arrivals: list[Arrival] = []
        for packet, sender, _, _, _, _, stamp in received:
            if len(packet) > 20 and packet[0] == 0x45:  # a header without options
                arrivals.append(_new(Arrival, (packet[20:], sender, packet[8], stamp)))
                continue
            stripped = strip_ipv4(packet)
            if stripped is not None:
                arrivals.append(Arrival(stripped[0], sender, stripped[1], stamp))
        return arrivals

    def _destination(self, address: str) -> SocketAddress:
        """A socket address; a zone index (``fe80::1%eth0``) has to be looked up once."""
        destination = socket_address(address, 0, self._family)
        if len(self._destinations) >= DESTINATIONS_REMEMBERED:
            self._destinations.clear()
        self._destinations[address] = destination
        return destination
