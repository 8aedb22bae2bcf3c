"""The path channel of the fake network: whole packets out into a `FakeTopology`, answers back."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from pathbudget.probes import fake_packets as wire
from pathbudget.probes.channels import PLAIN, PacketOptions
from pathbudget.probes.fake_packets import FakePacket
from pathbudget.probes.fake_path import FakeHost
from pathbudget.probes.fake_topology import (
    HOST_TTL,
    ROUTER_TTL,
    FakeLink,
    FakeRouter,
    FakeTopology,
)
from pathbudget.probes.record import AddressFamily, Failure, FailureKind, Stage
from pathbudget.probes.tcp_wire import ACK, SYN
from pathbudget.probes.trace.contract import FlowPacket, PathArrival, PathBatch, PathListener

HERE = {AddressFamily.IPV4: "192.0.2.254", AddressFamily.IPV6: "2001:db8::fe"}
SERVER_SEQUENCE, OUR_SEQUENCE = 0x51000000, 0x0C000000
"""Where the connections of the fake network begin to count, there and here."""
PORT_UNREACHABLE = {AddressFamily.IPV4: 3, AddressFamily.IPV6: 4}
FRAGMENTATION_NEEDED = 4
_SEQUENCES = 1 << 32
_TCP = struct.Struct("!HHIIBBH")


@dataclass
class _Way:
    """A packet that has come to `router`, and how."""

    packet: FakePacket
    router: FakeRouter
    hops: int
    ttl: int
    delay_ns: int
    original: FakePacket


class FakeWorld:
    """Carries packets through a topology. Time is a number here."""

    def __init__(self, topology: FakeTopology) -> None:
        self.topology = topology

    def carry(self, data: bytes, now_ns: int) -> tuple[int, PathArrival] | None:
        """What comes back for one packet, and how long after; None: nothing ever does."""
        packet = wire.read_packet(data)
        way = _Way(packet, self.topology.here, 0, packet.ttl, 0, packet)
        while True:
            link = self.topology.next_link(way.router, way.packet, packet.destination)
            if link is None:
                return self._at_host(way, now_ns)
            if self._too_long(link, way):
                return self._too_big(link, way, now_ns)
            if link.lost and self.topology.rng.random() < link.lost:
                return None
            self._step(link, way)
            stopped, answer = self._at_router(way, now_ns)
            if stopped:
                return answer

    def _step(self, link: FakeLink, way: _Way) -> None:
        way.router = link.router
        way.delay_ns += link.delay_ns
        if link.variation_ns:
            way.delay_ns += self.topology.rng.randrange(link.variation_ns)
        way.hops += 1

    def _at_router(self, way: _Way, now_ns: int) -> tuple[bool, tuple[int, PathArrival] | None]:
        """Whether the packet goes no further than here, and what is said of it."""
        router, packet = way.router, way.packet
        goes_on = packet.destination in router.to
        if not goes_on:
            return False, None
        if not router.hidden:
            if way.ttl <= 1:
                return True, self._error(way, wire.EXCEEDED, 0, now_ns)
            way.ttl -= 1
        if router.passes is not None and not router.passes(packet):
            return True, None
        if router.refuses is not None:
            return True, self._error(way, wire.UNREACHABLE, router.refuses, now_ns)
        if router.nat is not None:
            port = None
            if router.nat.port_shift and packet.protocol in (wire.TCP, wire.UDP):
                port = (packet.ports[0] + router.nat.port_shift) & 0xFFFF
            way.packet = wire.translated(packet, router.nat.public, port=port)
        return False, None

    def _too_long(self, link: FakeLink, way: _Way) -> bool:
        return (
            link.mtu is not None
            and len(way.packet.data) > link.mtu
            and wire.fragments_forbidden(way.packet)
        )

    def _too_big(self, link: FakeLink, way: _Way, now_ns: int) -> tuple[int, PathArrival] | None:
        assert link.mtu is not None
        if way.router is self.topology.here or not way.router.tells_too_big:
            return None
        code = FRAGMENTATION_NEEDED if way.packet.family is AddressFamily.IPV4 else 0
        return self._error(way, wire.TOO_BIG, code, now_ns, mtu=link.mtu)

    def _error(
        self, way: _Way, kind: str, code: int, now_ns: int, *, mtu: int = 0
    ) -> tuple[int, PathArrival] | None:
        router = way.router
        host = way.packet.destination not in router.to
        if not router.may_answer(now_ns + way.delay_ns):
            return None
        ttl = way.ttl if router.quoted_ttl is None else router.quoted_ttl
        quoted = wire.with_ttl(way.packet, ttl)
        if way.packet.source != way.original.source:
            port = way.original.ports[0] if _has_ports(way.original) else None
            seen = way.packet._replace(data=quoted)
            quoted = wire.untranslated(seen, way.original.source, port=port)
        quoted = quoted[: way.packet.start + router.quotes]
        objects = wire.mpls_object(router.labels) if router.labels else b""
        message = wire.icmp_error(way.packet.family, kind, code, quoted, mtu=mtu, objects=objects)
        v4 = way.packet.family is AddressFamily.IPV4
        protocol = wire.ICMP if v4 else wire.ICMPV6
        return self._back(way, protocol, message, HOST_TTL if host else ROUTER_TTL, now_ns)

    def _back(
        self, way: _Way, protocol: int, message: bytes, initial: int, now_ns: int
    ) -> tuple[int, PathArrival] | None:
        router = way.router
        if router.answers_lost and self.topology.rng.random() < router.answers_lost:
            return None
        ttl = initial - (way.hops - 1) - router.returns
        after = 2 * way.delay_ns + router.answer_ns
        return after, PathArrival(protocol, message, router.address, ttl, now_ns + after)

    def _at_host(self, way: _Way, now_ns: int) -> tuple[int, PathArrival] | None:
        packet, router = way.packet, way.router
        if router.address != packet.destination or not wire.transport_holds(packet):
            return None
        if router.passes is not None and not router.passes(packet):
            return None
        if packet.protocol == wire.UDP:
            code = PORT_UNREACHABLE[packet.family]
            return self._error(way, wire.UNREACHABLE, code, now_ns)
        if packet.protocol == wire.TCP:
            # The answer goes where the packet says that it is from: back through all translation.
            answer = self._of_tcp(way.original, router)
        else:
            answer = wire.echo_reply(packet)
        if answer is None or not router.may_answer(now_ns + way.delay_ns):
            return None
        return self._back(way, packet.protocol, answer, HOST_TTL, now_ns)

    def _of_tcp(self, packet: FakePacket, router: FakeRouter) -> bytes | None:
        open_port = packet.ports[1] in router.open_ports
        answer = wire.syn_answer(packet, open_port=open_port, sequence=SERVER_SEQUENCE)
        return answer or _duplicate(packet, router)


def _has_ports(packet: FakePacket) -> bool:
    return packet.protocol in (wire.TCP, wire.UDP)


def _duplicate(packet: FakePacket, router: FakeRouter) -> bytes | None:
    """An established connection acknowledges once more what it has, and says what came twice."""
    here, there, sequence, _, offset, flags, _ = _TCP.unpack_from(packet.transport)
    length = len(packet.transport) - (offset >> 4 << 2)
    if not flags & ACK or there not in router.open_ports:
        return None
    end = (sequence + length) % _SEQUENCES
    wanted = OUR_SEQUENCE + 1
    if not length or not 0 <= (wanted - end) % _SEQUENCES < 1 << 16:
        return None
    block = b"\x01\x01\x05\x0a" + struct.pack("!II", sequence, end) if router.selective else b""
    fields = (there, here, SERVER_SEQUENCE + 1, wanted, ACK)
    return wire.segment(packet, fields, block)


class FakePathChannel:
    """See `trace.contract.PathChannel`. The keys of sends are 0, 1, 2 ..."""

    def __init__(
        self,
        host: FakeHost,
        topology: FakeTopology,
        family: AddressFamily,
        listener: PathListener,
        packet: PacketOptions = PLAIN,
        *,
        privileged: bool = True,
    ) -> None:
        self._host = host
        self._world = FakeWorld(topology)
        self._family = family
        self._listener: PathListener | None = listener
        self._privileged = privileged
        self._source = packet.source or HERE[family]
        self._ports: set[int] = set()
        self._waiting = PathBatch()
        self._calls = False
        self.sent: list[FlowPacket] = []
        """All that was sent, in its order."""
        host.hear_handshakes.append(self._handshake)

    @property
    def privileged(self) -> bool:
        """See `PathChannel.privileged`."""
        return self._privileged

    def source_for(self, address: str) -> str | Failure:
        """See `PathChannel.source_for`."""
        del address
        return self._source

    def hear(self, ports: Sequence[int]) -> None:
        """See `PathChannel.hear`."""
        self._ports.update(ports)

    def send_all(self, packets: Sequence[FlowPacket]) -> list[int | Failure]:
        """See `PathChannel.send_all`."""
        return [self._send(one) for one in packets]

    def poll(self) -> None:
        """See `PathChannel.poll`."""
        batch, self._waiting = self._waiting, PathBatch()
        if self._listener is not None and (batch.sent or batch.arrivals):
            self._listener(batch)

    def close(self) -> None:
        """See `PathChannel.close`."""
        self._listener = None
        if self._handshake in self._host.hear_handshakes:
            self._host.hear_handshakes.remove(self._handshake)

    def _send(self, packet: FlowPacket) -> int | Failure:
        read = wire.read_packet(packet.data)
        if not self._privileged and read.protocol != wire.UDP:
            detail = f"{packet.address}: only UDP leaves from here without CAP_NET_RAW"
            return Failure(FailureKind.PERMISSION, Stage.SEND, detail=detail)
        if read.protocol == wire.TCP:
            self._ports.add(read.ports[0])
        key = len(self.sent)
        self.sent.append(packet)
        clock = self._host.clock
        if self._host.send_stamps:
            self._waiting.sent.append((key, clock.unix_ns()))
            self._poll_soon()
        came = self._world.carry(packet.data, clock.unix_ns())
        if came is not None:
            after, arrival = came
            clock.call_in(after, lambda: self._arrive(arrival))
        return key

    def _arrive(self, arrival: PathArrival) -> None:
        if not self._host.receive_stamps:
            arrival = arrival._replace(kernel_unix_ns=None)
        self._waiting.arrivals.append(arrival)
        self._poll_soon()

    def _poll_soon(self) -> None:
        """What comes at the same instant is told together."""
        if not self._calls:
            self._calls = True
            self._host.clock.call_in(0, self._poll_now)

    def _poll_now(self) -> None:
        self._calls = False
        self.poll()

    def _handshake(self, place: tuple[str, int], local_port: int) -> None:
        """A connection of this host was made: raw sockets hear the SYN-ACK, if they listen."""
        address, port = place
        router = self._world.topology.routers.get(address)
        if router is None or local_port not in self._ports or (":" in address) != self._v6:
            return
        options = b"\x04\x02\x01\x01" if router.selective else b""
        to = FakePacket(b"", self._family, self._source, address, wire.TCP, 0, 0)
        fields = (port, local_port, SERVER_SEQUENCE, OUR_SEQUENCE + 1, SYN | ACK)
        data = wire.segment(to, fields, options)
        stamp = self._host.clock.unix_ns()
        self._arrive(PathArrival(wire.TCP, data, address, HOST_TTL, stamp))

    @property
    def _v6(self) -> bool:
        return self._family is AddressFamily.IPV6
