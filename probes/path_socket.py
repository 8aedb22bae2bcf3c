"""The real `PathChannel`: raw sockets that send whole IP packets and hear what comes of them.

Three sockets of one family serve all traces: one sends (and has the send stamps on its error
queue), one hears ICMP, one hears TCP. What comes is read before the stamps of what was sent, so
that answers never run ahead of them. The first packet after a silence is read at once, those behind
it a millisecond apart: the kernel has stamped them, and waking for each would cost the most of all.
"""

import asyncio
import errno
import select
import socket
from collections.abc import Callable, Collection, Sequence

from pathbudget.probes import kernel_stamps as stamps
from pathbudget.probes.channels import PacketOptions
from pathbudget.probes.errors import PrivilegeError
from pathbudget.probes.failures import from_refused_call
from pathbudget.probes.packets import Packet, Received, SocketAddress, socket_address
from pathbudget.probes.path_filter import Heard
from pathbudget.probes.record import AddressFamily, Failure, Stage
from pathbudget.probes.socket_setup import (
    IP_MTU_DISCOVER,
    IPV6_MTU_DISCOVER,
    apply_packet_options,
    bind_source,
    hear_only_answers,
    refusal,
)
from pathbudget.probes.stamped_socket import StampedSocket
from pathbudget.probes.trace.contract import FlowPacket, PathArrival, PathBatch, PathListener

PACKET_BYTES = 9_216
"""More than a jumbo frame: no longer probe is sent."""
ANSWER_BYTES = 2_048
"""Errors quote 576 octets over IPv4 (RFC 1812 section 4.3.2.3) and 1,280 over IPv6."""
BUFFER_BYTES = 16 << 20
"""3,000 answers at once, as the kernel counts them; where this user may have so much."""
SENT_AT_ONCE = 128
"""So many are sent between two looks at what has come: small buffers do not overflow."""
REST_SECONDS = 0.001
SOURCE_SECONDS = 5.0
DESTINATIONS_REMEMBERED = 65_536
IP_HDRINCL, IPV6_HDRINCL = 3, 36
PMTUDISC_PROBE = 3
ICMP, TCP, ICMPV6 = socket.IPPROTO_ICMP, socket.IPPROTO_TCP, socket.IPPROTO_ICMPV6
ECHO_REQUEST = {AddressFamily.IPV4: 8, AddressFamily.IPV6: 128}
_NO_FAMILY = frozenset({errno.EAFNOSUPPORT, errno.EPROTONOSUPPORT})
_REFUSED = frozenset({errno.EPERM, errno.EACCES})
_new = tuple.__new__


def open_raw_paths(
    family: AddressFamily,
    listener: PathListener,
    packet: PacketOptions,
    source: str,
    find_source: Callable[[str], str],
    remedy: str,
) -> "RawPathChannel | None":
    """All sockets of a channel, or none of them. See `channels.Network.open_paths`."""
    v4 = family is AddressFamily.IPV4
    kind = socket.AF_INET if v4 else socket.AF_INET6
    opened: list[socket.socket] = []
    try:
        protocols = (socket.IPPROTO_RAW, ICMP if v4 else ICMPV6, TCP)
        opened.extend(socket.socket(kind, socket.SOCK_RAW, protocol) for protocol in protocols)
        sender, icmp, tcp = opened
        _prepare_sender(sender, family)
        _prepare_hearers(icmp, tcp, family)
        for sock in opened:
            apply_packet_options(sock, family, packet)
            stamps.enlarge_buffers(sock, BUFFER_BYTES)
            if source:
                bind_source(sock, family, source, 0)
    except OSError as error:
        for sock in opened:
            sock.close()
        if error.errno in _NO_FAMILY:
            return None
        if error.errno in _REFUSED and len(opened) < 3:
            raise PrivilegeError(f"raw IP socket ({family})", remedy) from error
        raise refusal("raw IP", family, packet, source, error) from error
    return RawPathChannel((sender, icmp, tcp), family, listener, find_source, packet.dscp)


def _prepare_sender(sock: socket.socket, family: AddressFamily) -> None:
    """The IP header is ours. What the kernel has learned about path MTUs does not count: it would
    answer in the routers' place.
    """
    if family is AddressFamily.IPV4:
        sock.setsockopt(socket.SOL_IP, IP_HDRINCL, 1)
        sock.setsockopt(socket.SOL_IP, IP_MTU_DISCOVER, PMTUDISC_PROBE)
    else:
        sock.setsockopt(socket.IPPROTO_IPV6, IPV6_HDRINCL, 1)
        sock.setsockopt(socket.IPPROTO_IPV6, IPV6_MTU_DISCOVER, PMTUDISC_PROBE)


def _prepare_hearers(icmp: socket.socket, tcp: socket.socket, family: AddressFamily) -> None:
    hear_only_answers(icmp, family)
    for sock in (icmp, tcp):
        if family is AddressFamily.IPV4:
            sock.setsockopt(socket.SOL_IP, stamps.IP_RECVTTL, 1)
        else:
            sock.setsockopt(socket.IPPROTO_IPV6, stamps.IPV6_RECVHOPLIMIT, 1)


class _Part(StampedSocket):
    """One of the sockets. It wakes nobody: the channel looks at all of them together."""

    def __init__(self, sock: socket.socket, family: AddressFamily, data_bytes: int) -> None:
        super().__init__(sock, family, data_bytes=data_bytes, error_queue=False, headers=False)
        self._loop.remove_reader(sock.fileno())

    def poll(self) -> None:
        """Nobody calls it."""

    def send(self, packets: Sequence[Packet]) -> list[int | Failure]:
        return self._send_packets(packets)

    def take(self) -> list[Received]:
        return self._take_packets()

    def sent(self) -> list[tuple[int, int]]:
        return self._take_errors()[0]


class RawPathChannel:
    """See `trace.contract.PathChannel`. Owns the sockets; `find_source` may raise OSError."""

    def __init__(
        self,
        sockets: tuple[socket.socket, socket.socket, socket.socket],
        family: AddressFamily,
        listener: PathListener,
        find_source: Callable[[str], str],
        dscp: int,
    ) -> None:
        sender, icmp, tcp = sockets
        self._family = family
        self._v4 = family is AddressFamily.IPV4
        self._listener = listener
        self._find_source = find_source
        self._dscp = dscp
        self._sources: dict[str, tuple[float, str]] = {}
        self._there: dict[str, SocketAddress] = {}
        self._replies = Heard(icmp, family, tcp=False)
        self._ports = Heard(tcp, family, tcp=True)
        self._icmp = _Part(icmp, family, ANSWER_BYTES)
        self._tcp = _Part(tcp, family, ANSWER_BYTES)
        self._sender = _Part(sender, family, PACKET_BYTES)
        self._waiting = PathBatch()
        self._loop = asyncio.get_running_loop()
        self._alarm: asyncio.TimerHandle | None = None
        self._events = select.epoll(len(sockets))
        for sock in sockets:  # an error queue that is not empty is an event of any of them
            self._events.register(sock, select.EPOLLIN)
        self._loop.add_reader(self._events.fileno(), self._wake)

    @property
    def privileged(self) -> bool:
        """See `PathChannel.privileged`."""
        return True

    def source_for(self, address: str) -> str | Failure:
        """See `PathChannel.source_for`."""
        now = self._loop.time()
        known = self._sources.get(address)
        if known is not None and known[0] > now:
            return known[1]
        try:
            source = self._find_source(address)
        except OSError as error:
            return from_refused_call(error, Stage.SEND, self._family)
        self._sources[address] = (now + SOURCE_SECONDS, source)
        return source

    def hear(self, ports: Collection[int]) -> None:
        """See `PathChannel.hear`."""
        if not self._events.closed:
            self._ports.add(ports)

    def send_all(self, packets: Sequence[FlowPacket]) -> list[int | Failure]:
        """See `PathChannel.send_all`."""
        if not self._events.closed:
            self._hear_answers_to(packets)
        outcomes: list[int | Failure] = []
        for first in range(0, len(packets), SENT_AT_ONCE):
            outcomes += self._send(packets[first : first + SENT_AT_ONCE])
            if len(outcomes) < len(packets):
                self._gather()
        if self._waiting.sent or self._waiting.arrivals:
            self._loop.call_soon(self.poll)  # not before the caller knows the keys
        return outcomes

    def poll(self) -> None:
        """See `PathChannel.poll`."""
        self._gather()
        batch = self._waiting
        if batch.sent or batch.arrivals:
            self._waiting = PathBatch()
            self._listener(batch)

    def close(self) -> None:
        """See `PathChannel.close`."""
        if self._events.closed:
            return
        if self._alarm is not None:
            self._alarm.cancel()
        if not self._loop.is_closed():
            self._loop.remove_reader(self._events.fileno())
        self._events.close()
        for part in (self._sender, self._icmp, self._tcp):
            part.close()

    def _wake(self) -> None:
        """Something came after a silence: read it, then look again after a rest."""
        self._loop.remove_reader(self._events.fileno())
        self._read_and_rest()

    def _read_and_rest(self) -> None:
        try:
            self.poll()
        finally:  # a listener that raises does not make us deaf
            self._rest()

    def _rest(self) -> None:
        if not self._events.closed:  # the listener may have closed it
            self._alarm = self._loop.call_later(REST_SECONDS, self._look)

    def _look(self) -> None:
        """As long as something comes, rest and look; then be woken."""
        if self._events.poll(0, 1):
            self._read_and_rest()
        else:
            self._alarm = None
            self._loop.add_reader(self._events.fileno(), self._wake)

    def _send(self, packets: Sequence[FlowPacket]) -> list[int | Failure]:
        ready: list[Packet] = []
        unsendable: list[tuple[int, Failure]] = []
        for index, (data, address, _) in enumerate(packets):
            try:
                there = self._there.get(address) or self._destination(address)
            except OSError as error:
                unsendable.append((index, from_refused_call(error, Stage.SEND, self._family)))
                continue
            ready.append((self._marked(data) if self._dscp else data, there, ()))
        outcomes = self._sender.send(ready)
        if any(isinstance(outcome, Failure) for outcome in outcomes):
            self._sources.clear()  # perhaps an address of ours has moved
        for index, failure in unsendable:
            outcomes.insert(index, failure)
        return outcomes

    def _gather(self) -> None:
        """Answers first, then stamps: see above."""
        batch = self._waiting
        self._take(self._icmp.take(), ICMP if self._v4 else ICMPV6, batch.arrivals)
        self._take(self._tcp.take(), TCP, batch.arrivals)
        batch.sent += self._sender.sent()

    def _take(self, received: list[Received], protocol: int, into: list[PathArrival]) -> None:
        if not self._v4:
            into += [
                _new(PathArrival, (protocol, data, sender, ttl, stamp))
                for data, sender, _, _, ttl, _, stamp in received
            ]
            return
        for packet, sender, _, _, _, _, stamp in received:
            start = (packet[0] & 15) * 4 if len(packet) >= 20 else 0
            if start >= 20:
                fields = (protocol, packet[start:], sender, packet[8], stamp)
                into.append(_new(PathArrival, fields))

    def _hear_answers_to(self, packets: Sequence[FlowPacket]) -> None:
        """Their ports and identifiers, before anything can answer."""
        place, start = (9, 20) if self._v4 else (6, 40)
        ports: set[bytes] = set()
        identifiers: set[bytes] = set()
        for data, _, _ in packets:
            protocol = data[place]
            if protocol == TCP:
                ports.add(data[start : start + 2])
            elif protocol in (ICMP, ICMPV6) and data[start] == ECHO_REQUEST[self._family]:
                identifiers.add(data[start + 4 : start + 6])
        if ports:
            self._ports.add([int.from_bytes(port, "big") for port in ports])
        if identifiers:
            self._replies.add([int.from_bytes(one, "big") for one in identifiers])

    def _marked(self, data: bytes) -> bytes:
        """With the traffic class of the channel. The kernel makes the header checksum of IPv4."""
        if self._v4:
            return data[:1] + bytes((self._dscp << 2 | data[1] & 3,)) + data[2:]
        first = int.from_bytes(data[:2], "big") & 0xF03F | self._dscp << 6
        return first.to_bytes(2, "big") + data[2:]

    def _destination(self, address: str) -> SocketAddress:
        if len(self._there) >= DESTINATIONS_REMEMBERED:
            self._there.clear()
        there = self._there[address] = socket_address(address, 0, self._family)
        return there
