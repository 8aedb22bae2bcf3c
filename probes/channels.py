"""What a probe may ask of the operating system, as interfaces. No socket in here.

    Network          resolve a name, open a channel, start a TCP connection, call me at a time
    IcmpChannel      sends echo requests; reports stamps, messages and errors in batches
    DatagramChannel  the same for UDP (STAMP)
    TcpChannel       one connection; reports what happens to it, with kernel stamps
    SegmentChannel   sends and hears single TCP segments, with kernel stamps
    PathChannel      sends whole IP packets, hears ICMP and TCP (see `trace.contract`)

`network.py` is the real one, `fake_network.py` one for tests. Everything happens in one event loop;
calls return at once, and what comes of them comes through the listener. A call never raises for
what the network does: it returns a `Failure`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeVar

from pathbudget.probes.record import AddressFamily, Failure
from pathbudget.probes.tcp_channels import (
    PLAIN_TCP,
    AcknowledgementListener,
    RoundTrip,
    TcpChannel,
    TcpListener,
    TcpOptions,
)
from pathbudget.probes.trace.contract import PathBatch, PathChannel, PathListener

__all__ = [
    "PLAIN", "PLAIN_TCP", "AcknowledgementListener", "Arrival", "Cancellable", "Datagram",
    "DatagramBatch", "DatagramChannel", "Due", "IcmpBatch", "IcmpChannel", "LoopbackTest",
    "Network", "Outgoing", "PacketOptions", "PathBatch", "PathChannel", "PathListener",
    "QueuedError", "ReservedPorts", "Resolution", "RoundTrip", "Segment", "SegmentBatch",
    "SegmentChannel", "TcpChannel", "TcpListener", "TcpOptions",
]  # fmt: skip

Due = TypeVar("Due")


@dataclass(frozen=True, slots=True)
class Resolution:
    """A name's addresses in one family, in the resolver's order, and how long that took."""

    addresses: tuple[str, ...]
    duration_ns: int


@dataclass(frozen=True, slots=True)
class PacketOptions:
    """How packets leave this host, beyond where they go.

    `source` is a local address (empty: that of the agent, or the system's choice), `interface` a
    network device or VRF to leave through (SO_BINDTODEVICE), `dscp` 0 to 63 (RFC 2474), `ttl` the
    hop limit where it is not the system's, `fragment` false forbids fragmentation on the way.
    """

    source: str = ""
    interface: str = ""
    dscp: int = 0
    ttl: int | None = None
    fragment: bool = True


PLAIN = PacketOptions()


class Arrival(NamedTuple):
    """One ICMP message, without its IP header. `ttl` is the TTL or hop limit it came with."""

    message: bytes
    sender: str
    ttl: int | None
    kernel_unix_ns: int | None


class QueuedError(NamedTuple):
    """An ICMP error that the kernel reports on the socket's error queue.

    `quoted` is what it quotes of our request, from its ICMP header on; may be cut short.
    """

    icmp_type: int
    icmp_code: int
    responder: str
    destination: str
    quoted: bytes
    kernel_unix_ns: int | None


@dataclass(slots=True)
class IcmpBatch:
    """What was read at one wake-up. `sent` pairs the key of a send with its kernel stamp; for up to
    `waited_ns` packets lay unread because the channel wanted it so (`gathering`).
    """

    sent: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    arrivals: list[Arrival] = field(default_factory=list[Arrival])
    errors: list[QueuedError] = field(default_factory=list[QueuedError])
    waited_ns: int = 0


class IcmpChannel(Protocol):
    """An open ICMP socket of one address family."""

    @property
    def privileged(self) -> bool:
        """A raw socket. Otherwise the kernel chooses the identifier of our requests."""
        ...

    @property
    def identifier(self) -> int | None:
        """The identifier that all requests leave with; None where each keeps its own."""
        ...

    def send(self, message: bytes, address: str) -> "int | Failure":
        """Send one message. Returns the key under which its kernel stamp will be reported."""
        ...

    def send_all(self, messages: Sequence[tuple[bytes, str]]) -> "list[int | Failure]":
        """`send` each (message, address), with as few system calls as possible."""
        ...

    def glance(self) -> None:
        """After sends: `poll`, unless the channel gathers what comes and it is too early."""

    def poll(self) -> None:
        """Report now what has come; used before something is declared lost."""

    def close(self) -> None:
        """Give the socket back."""


class Datagram(NamedTuple):
    """One UDP datagram. `local` is the address of ours that it was sent to, empty where unknown;
    `traffic_class` the whole octet it came with: DSCP in the upper six bits, ECN below.
    """

    payload: bytes
    sender: str
    sender_port: int
    local: str
    ttl: int | None
    traffic_class: int | None
    kernel_unix_ns: int | None


class Outgoing(NamedTuple):
    """One UDP datagram to send; `local` and `dscp` where they are not those of the channel."""

    payload: bytes
    address: str
    port: int
    local: str = ""
    dscp: int | None = None


@dataclass(slots=True)
class DatagramBatch:
    """What was read at one wake-up. `sent` pairs the key of a send with its kernel stamp; `quoted`
    of an error is what it quotes of our payload.
    """

    sent: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    arrivals: list[Datagram] = field(default_factory=list[Datagram])
    errors: list[QueuedError] = field(default_factory=list[QueuedError])


class DatagramChannel(Protocol):
    """An open UDP socket of one address family."""

    @property
    def port(self) -> int:
        """The local port."""
        ...

    def send(self, datagram: Outgoing) -> "int | Failure":
        """Send one datagram. Returns the key under which its kernel stamp will be reported."""
        ...

    def send_all(self, datagrams: Sequence[Outgoing]) -> "list[int | Failure]":
        """`send` each of them, with as few system calls as possible."""
        ...

    def poll(self) -> None:
        """Report now what has come; used before something is declared lost."""

    def sent_stamps(self) -> list[tuple[int, int]]:
        """Read the kernel stamps of what has left until now, instead of waiting for a batch: who
        tells them to others cannot wait. ICMP errors read on the way come with the next batch.
        """
        ...

    def close(self) -> None:
        """Give the socket back."""


class Segment(NamedTuple):
    """One TCP segment, from its TCP header on; `local` is where it was sent, or empty."""

    data: bytes
    sender: str
    local: str
    ttl: int | None
    kernel_unix_ns: int | None


@dataclass(slots=True)
class SegmentBatch:
    """See `IcmpBatch`; `quoted` of an error begins with the TCP header of our segment."""

    sent: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    arrivals: list[Segment] = field(default_factory=list[Segment])
    errors: list[QueuedError] = field(default_factory=list[QueuedError])


class SegmentChannel(Protocol):
    """An open raw TCP socket of one address family. Hears answers to SYNs, nothing else."""

    def source_for(self, address: str) -> "str | Failure":
        """The local address that a segment to `address` leaves from: its checksum covers it."""
        ...

    def send_all(self, segments: Sequence[tuple[bytes, str, str]]) -> "list[int | Failure]":
        """Send each (segment, address, source); the keys as of `IcmpChannel.send_all`."""
        ...

    def poll(self) -> None:
        """Report now what has come; used before something is declared lost."""

    def close(self) -> None:
        """Give the socket back."""


class ReservedPorts(Protocol):
    """Local TCP ports that the system gives to nobody else until `close`."""

    @property
    def ports(self) -> Sequence[int]:
        """The ports, each once."""
        ...

    def close(self) -> None:
        """Let others have them."""


class Cancellable(Protocol):
    """A call in the future."""

    def cancel(self) -> None:
        """Do not call."""


class LoopbackTest(NamedTuple):
    """What the stamps of this host are like where there is no network: `spans_ns` of a packet from
    one local socket to another, by kernel stamps, by kernel receive stamps alone, by user clock.
    """

    kernel_ns: tuple[int, ...]
    kernel_receive_ns: tuple[int, ...]
    user_ns: tuple[int, ...]


class Network(Protocol):
    """The one door to the operating system."""

    def call_at(self, monotonic_ns: int, callback: Callable[[], None]) -> Cancellable:
        """Call when the monotonic clock says so, to about a millisecond."""
        ...

    async def wait_until(self, monotonic_ns: int) -> None:
        """Return when the monotonic clock says so, as precisely as this host can."""

    def look_up(
        self, host: str, family: AddressFamily, done: Callable[["Resolution | Failure"], None]
    ) -> None:
        """Resolve through the system's resolver; `done` is called in the event loop."""

    async def resolve(self, host: str, family: AddressFamily) -> "Resolution | Failure":
        """Resolve through the system's resolver. Never blocks the loop, never raises."""
        ...

    def has_route(self, address: str, family: AddressFamily) -> bool:
        """Whether the routing table has a way there. Sends nothing."""
        ...

    def pace(
        self,
        due: Iterator[tuple[int, Due]],
        fire: Callable[[Sequence[tuple[int, Due]]], None],
        finished: Callable[[], None],
    ) -> Cancellable:
        """Call `fire` with everything that is due, each time something is: one timer for all.

        `due` yields (monotonic_ns, what) in ascending order and is read only as far as needed;
        `finished` is called once, when it has ended. Late items are delivered, never dropped.
        """
        ...

    def open_icmp(
        self,
        family: AddressFamily,
        listener: Callable[[IcmpBatch], None],
        packet: PacketOptions = PLAIN,
    ) -> IcmpChannel | None:
        """Open a raw socket, or the unprivileged kind; None where the family does not exist here.

        Raises:
            PrivilegeError: the kernel allows neither.
            NotOnThisHostError: no such interface or source address.
        """
        ...

    def open_datagrams(
        self,
        family: AddressFamily,
        listener: Callable[[DatagramBatch], None],
        *,
        port: int = 0,
        packet: PacketOptions = PLAIN,
    ) -> DatagramChannel | None:
        """Open a UDP socket, on a port of the system's choice where `port` is 0; None where the
        family does not exist here.

        Raises:
            PrivilegeError: the kernel does not allow it, or the port is taken.
            NotOnThisHostError: no such interface or source address.
        """
        ...

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
    ) -> "TcpChannel | Failure":
        """Start a TCP connection; from a reserved port, which `close` then frees with a reset."""
        ...

    def reserve_ports(
        self, family: AddressFamily, count: int, packet: PacketOptions = PLAIN
    ) -> "ReservedPorts | Failure":
        """Keep `count` local TCP ports for `open_segments` or `connect`."""
        ...

    def open_segments(
        self,
        family: AddressFamily,
        listener: Callable[[SegmentBatch], None],
        ports: Sequence[int],
        packet: PacketOptions = PLAIN,
    ) -> SegmentChannel | None:
        """Open a raw TCP socket that hears SYN-ACK and RST to these ports; without ports, every RST
        with ACK. None where the family does not exist here. Raises PrivilegeError.
        """
        ...

    def open_paths(
        self,
        family: AddressFamily,
        listener: PathListener,
        packet: PacketOptions = PLAIN,
        *,
        privileged: bool = True,
    ) -> PathChannel | None:
        """Open the sockets of traces; None where the family does not exist here.

        Without `privileged` they are those that everybody may have; it is never chosen for you.

        Raises:
            PrivilegeError: the kernel does not allow it; with the remedy.
            NotOnThisHostError: no such interface or source address.
        """
        ...

    async def loopback_test(self, packets: int) -> LoopbackTest:
        """Send packets to ourselves and look at the stamps."""
        ...
