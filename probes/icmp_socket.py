"""A stamped ICMP socket in an asyncio loop: the real `IcmpChannel`. Sockets come from `network`."""

import socket
from collections.abc import Callable, Sequence

from pathbudget.probes.channels import Arrival, IcmpBatch
from pathbudget.probes.failures import from_refused_call
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
        packets: list[Packet] = []
        unsendable: list[tuple[int, Failure]] = []
        for index, (message, address) in enumerate(messages):
            try:
                packets.append((message, known.get(address) or self._destination(address), ()))
            except OSError as error:
                failure = from_refused_call(error, Stage.SEND, self._family)
                unsendable.append((index, failure))
        outcomes = self._send_packets(packets)
        for index, failure in unsendable:
            outcomes.insert(index, failure)
        return outcomes

    def poll(self) -> None:
        """See `channels.IcmpChannel.poll`."""
        received = self._take_packets()
        sent, errors = self._take_errors()
        if received or sent or errors:
            self._listener(IcmpBatch(sent, self._arrivals(received), errors))

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
