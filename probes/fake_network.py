"""A network for tests: no sockets, no packets, no waiting. Shipped, so that others can use it too.

    clock = FakeClock(jumps=True)
    network = FakeNetwork(clock)
    network.names["site.example"] = {AddressFamily.IPV4: ("192.0.2.1",)}
    network.paths["192.0.2.1"] = FakePath(round_trip_ns=15_000_000, lost=lambda number: number % 2)

Above the packet everything is real: the same sessions, the same OpenSSL, the same timeouts.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pathbudget.probes.channels import (
    PLAIN,
    PLAIN_TCP,
    Cancellable,
    DatagramBatch,
    Due,
    IcmpBatch,
    LoopbackTest,
    PacketOptions,
    Resolution,
    SegmentBatch,
    TcpListener,
    TcpOptions,
)
from pathbudget.probes.errors import PrivilegeError
from pathbudget.probes.failures import no_address, no_family
from pathbudget.probes.fake_datagrams import FakeDatagramChannel, Services
from pathbudget.probes.fake_icmp import FakeIcmpChannel
from pathbudget.probes.fake_path import FakeHost, FakePath
from pathbudget.probes.fake_paths import FakePathChannel
from pathbudget.probes.fake_segments import FakePorts, FakeSegmentChannel, no_interface
from pathbudget.probes.fake_tcp import FakeTcpChannel
from pathbudget.probes.fake_time import FakeAlarm, FakeClock
from pathbudget.probes.fake_topology import FakeTopology
from pathbudget.probes.pacing import Pacer
from pathbudget.probes.record import AddressFamily, Failure, FailureKind, Stage
from pathbudget.probes.trace.contract import PathListener

__all__ = ["FakeClock", "FakeNetwork", "FakePath"]

RESOLVE_NS = 1_000_000
LOOPBACK_NS = 2_000
FIRST_PORT, LAST_PORT = 32_768, 60_999

Names = dict[str, Mapping[AddressFamily, tuple[str, ...]]]


@dataclass
class FakeNetwork(FakeHost):
    """See `channels.Network`, and `FakeHost` for what else can be set.

    `privileged` is whether raw sockets can be had, None where no ICMP socket can; `families` are
    those that the host has.
    """

    names: Names = field(default_factory=dict[str, Mapping[AddressFamily, tuple[str, ...]]])
    families: frozenset[AddressFamily] = frozenset(AddressFamily)
    privileged: bool | None = True
    resolve_ns: int | None = RESOLVE_NS
    """How long the resolver takes; None: for ever."""
    services: Services = field(default_factory=Services)
    """What listens on UDP ports, by address and port; see `fake_datagrams`."""
    topology: FakeTopology = field(default_factory=FakeTopology)
    """What the packets of traces meet; see `fake_topology`."""
    last_port: int = FIRST_PORT - 1
    """The local port of the latest connection."""

    def close(self) -> None:
        """Nothing is held."""

    def call_at(self, monotonic_ns: int, callback: Callable[[], None]) -> Cancellable:
        """See `channels.Network.call_at`."""
        return self.clock.call_at(monotonic_ns, callback)

    async def wait_until(self, monotonic_ns: int) -> None:
        """See `channels.Network.wait_until`."""
        await self.clock.wait_until(monotonic_ns)

    def pace(
        self,
        due: Iterator[tuple[int, Due]],
        fire: Callable[[Sequence[tuple[int, Due]]], None],
        finished: Callable[[], None],
    ) -> Cancellable:
        """See `channels.Network.pace`."""
        return Pacer(
            due,
            fire,
            finished,
            now_ns=self.clock.monotonic_ns,
            alarm=lambda ring: FakeAlarm(self.clock, ring),
        )

    def look_up(
        self, host: str, family: AddressFamily, done: Callable[[Resolution | Failure], None]
    ) -> None:
        """See `channels.Network.look_up`."""
        if self.resolve_ns is not None:
            self.clock.call_in(self.resolve_ns, lambda: done(self._answer(host, family)))

    async def resolve(self, host: str, family: AddressFamily) -> Resolution | Failure:
        """See `channels.Network.resolve`. Takes no time here."""
        return self._answer(host, family)

    def has_route(self, address: str, family: AddressFamily) -> bool:
        """See `channels.Network.has_route`."""
        del address
        return family in self.families

    def open_icmp(
        self,
        family: AddressFamily,
        listener: Callable[[IcmpBatch], None],
        packet: PacketOptions = PLAIN,
    ) -> FakeIcmpChannel | None:
        """See `channels.Network.open_icmp`."""
        del packet
        if family not in self.families:
            return None
        if self.privileged is None:
            raise PrivilegeError(f"ICMP socket ({family})", "ask whoever made this network")
        return FakeIcmpChannel(self, family, listener, privileged=self.privileged)

    def open_datagrams(
        self,
        family: AddressFamily,
        listener: Callable[[DatagramBatch], None],
        *,
        port: int = 0,
        packet: PacketOptions = PLAIN,
    ) -> FakeDatagramChannel | None:
        """See `channels.Network.open_datagrams`."""
        if family not in self.families:
            return None
        local_port = port or self._next_port()
        return FakeDatagramChannel(self, self.services, family, listener, local_port, packet)

    def connect(
        self,
        address: str,
        port: int,
        family: AddressFamily,
        listener: TcpListener,
        packet: PacketOptions = PLAIN,
        *,
        source_port: int = 0,
        options: TcpOptions = PLAIN_TCP,
    ) -> FakeTcpChannel | Failure:
        """See `channels.Network.connect`."""
        if family not in self.families:
            return no_family(family, Stage.CONNECT)
        if packet.interface:
            return no_interface(packet.interface)
        local_port = source_port or self._next_port()
        place = (address, port)
        return FakeTcpChannel(self, self.path(address), listener, place, local_port, options)

    def reserve_ports(
        self, family: AddressFamily, count: int, packet: PacketOptions = PLAIN
    ) -> FakePorts | Failure:
        """See `channels.Network.reserve_ports`."""
        if family not in self.families:
            return no_family(family, Stage.CONNECT)
        if packet.interface:
            return no_interface(packet.interface)
        return FakePorts([self._next_port() for _ in range(count)])

    def open_segments(
        self,
        family: AddressFamily,
        listener: Callable[[SegmentBatch], None],
        ports: Sequence[int],
        packet: PacketOptions = PLAIN,
    ) -> FakeSegmentChannel | None:
        """See `channels.Network.open_segments`."""
        del packet
        if family not in self.families:
            return None
        if not self.privileged:
            raise PrivilegeError(f"raw TCP socket ({family})", "ask whoever made this network")
        return FakeSegmentChannel(self, family, listener, ports)

    def open_paths(
        self,
        family: AddressFamily,
        listener: PathListener,
        packet: PacketOptions = PLAIN,
        *,
        privileged: bool = True,
    ) -> FakePathChannel | None:
        """See `channels.Network.open_paths`."""
        if family not in self.families:
            return None
        if privileged and not self.privileged:
            raise PrivilegeError(f"raw IP socket ({family})", "ask whoever made this network")
        return FakePathChannel(self, self.topology, family, listener, packet, privileged=privileged)

    def _next_port(self) -> int:
        self.last_port = self.last_port + 1 if self.last_port < LAST_PORT else FIRST_PORT
        return self.last_port

    async def loopback_test(self, packets: int) -> LoopbackTest:
        """See `channels.Network.loopback_test`."""
        spans = (LOOPBACK_NS,) * packets
        received = spans if self.receive_stamps else ()
        return LoopbackTest(received if self.send_stamps else (), received, spans)

    def _answer(self, host: str, family: AddressFamily) -> Resolution | Failure:
        known = self.names.get(host)
        if known is None and host in self.paths:
            known = {family_of(host): (host,)}
        if known is None:
            return Failure(FailureKind.NAME_NOT_FOUND, Stage.RESOLVE, f"{host}: no such name")
        addresses = known.get(family)
        return Resolution(addresses, RESOLVE_NS) if addresses else no_address(host, family)


def family_of(address: str) -> AddressFamily:
    """By how it is written."""
    return AddressFamily.IPV6 if ":" in address else AddressFamily.IPV4
