"""What the parts of a trace agree on. No socket, no clock and no asyncio in here.

    FlowPacket   a whole IP packet that carries a probe, ready to be sent
    Answer       what came back for one probe, taken out of whatever packet it came in
    PathChannel  the door: sends whole IP packets, hears ICMP and TCP, with kernel stamps

A *flow* is what load balancers hash (addresses, protocol, ports; for ICMP type, code and checksum).
All probes of one flow keep it constant (Paris traceroute, Augustin et al., IMC 2006); the token of
a probe travels where routers do not hash.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, Protocol

from pathbudget.probes.record import AddressFamily, Failure


class TraceProtocol(StrEnum):
    """What the probes of a trace are."""

    ICMP = "icmp"
    UDP = "udp"
    TCP = "tcp"
    """SYNs of connections that are never opened."""
    SESSION = "session"
    """Segments inside an established TCP connection: firewalls take them for the real flow."""


class AnswerKind(StrEnum):
    """What an answer means for the path."""

    EXCEEDED = "exceeded"
    """A router dropped it because its hop limit was used up: this is a hop."""
    ARRIVED = "arrived"
    """The destination has it: echo reply, port unreachable from itself, SYN-ACK, RST, ACK."""
    UNREACHABLE = "unreachable"
    """Somebody refuses to carry it further (RFC 792 type 3, RFC 4443 type 1)."""
    TOO_BIG = "too_big"
    """It does not fit the next link (RFC 1191, RFC 8201): `Answer.mtu`."""


class Flow(NamedTuple):
    """One flow to one address. `key` is its number in samples (`Sample.flow`).

    UDP and TCP: `key` is the source port, `port` the destination's. ICMP: `key` is the checksum
    that all its echo requests carry, `port` is 0. `label` is the flow label of IPv6 (RFC 6437).
    """

    protocol: TraceProtocol
    family: AddressFamily
    source: str
    destination: str
    key: int
    port: int = 0
    label: int = 0


class FlowPacket(NamedTuple):
    """A whole IP packet, from its IP header on; `token` says which probe it is."""

    data: bytes
    address: str
    token: int


class LabelEntry(NamedTuple):
    """One entry of an MPLS label stack (RFC 3032, quoted by RFC 4950)."""

    label: int
    traffic_class: int
    bottom: bool
    ttl: int


class InterfaceNote(NamedTuple):
    """What RFC 5837 says of an interface. `role`: ``incoming``, ``sub``, ``outgoing``, ``next``."""

    role: str
    number: int | None = None
    address: str = ""
    name: str = ""
    mtu: int | None = None


class Answer(NamedTuple):
    """What one packet that came in says of one probe.

    `token` and `flow_key` are read out of what it quotes (or answers). `ttl` is the hop limit that
    the answer came with, `quoted_ttl` that of the probe as it was dropped (1, or 0 of some
    routers; more behind MPLS without TTL propagation). `checksum` is the quoted transport checksum:
    where it differs from the one sent, somebody translated addresses on the way (Dublin). `stack`,
    `interfaces` and `mtu` where the answer has them.
    """

    kind: AnswerKind
    token: int
    flow_key: int
    responder: str
    icmp_type: int | None
    icmp_code: int | None
    ttl: int | None
    quoted_ttl: int | None
    checksum: int | None
    kernel_unix_ns: int | None
    stack: tuple[LabelEntry, ...] = ()
    interfaces: tuple[InterfaceNote, ...] = ()
    mtu: int | None = None
    word: str = ""
    """As in `HopNote.ICMP`."""
    other: int | None = None
    """Token that a second place of the quote shows, where the two disagree (`matching` knows)."""
    source: str = ""
    destination: str = ""
    """Addresses of the quoted packet; empty where nothing was quoted."""
    quoted: bytes = b""
    """First octets of the quoted transport; of an answer of the destination what it answers."""


class PathArrival(NamedTuple):
    """One packet that came in, from its ICMP or TCP header on; `protocol` as in the IP header."""

    protocol: int
    data: bytes
    sender: str
    ttl: int | None
    kernel_unix_ns: int | None


@dataclass(slots=True)
class PathBatch:
    """What was read at one wake-up. `sent` pairs the key of a send with its kernel stamp."""

    sent: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    arrivals: list[PathArrival] = field(default_factory=list[PathArrival])


class PathChannel(Protocol):
    """Open raw sockets of one address family: whole packets out, ICMP (and TCP) in."""

    @property
    def privileged(self) -> bool:
        """Raw sockets. Otherwise only UDP can be sent, the kernel writes the headers (no DSCP of
        the packet's own, no identification, no flow label, whatever `FlowPacket.data` says), and it
        hands over no quoted headers: quotes are rebuilt from what was sent. So `quoted_ttl` and
        `checksum` of an answer say nothing then, and NAT is not seen.
        """
        ...

    def hear(self, ports: Sequence[int]) -> None:
        """Hear TCP segments to these local ports as well as to those that TCP was sent from."""

    def source_for(self, address: str) -> "str | Failure":
        """The local address that packets to `address` leave from."""
        ...

    def send_all(self, packets: Sequence[FlowPacket]) -> "list[int | Failure]":
        """Send each of them, with as few system calls as possible. The keys of their stamps."""
        ...

    def poll(self) -> None:
        """Report now what has come; used before something is declared lost."""

    def close(self) -> None:
        """Give the sockets back."""


PathListener = Callable[[PathBatch], None]


class HopNote(StrEnum):
    """Keys of `Sample.notes` on the samples of a trace (docs/probes/trace.md)."""

    ICMP = "icmp"
    """Type and code of the answer, as in ``11/0``; ``syn-ack``, ``rst``, ``ack`` of TCP."""
    QUOTED_TTL = "quoted_ttl"
    MPLS = "mpls"
    """Label stack, outermost first: ``24015/0/0/1 16008/0/1/1`` (label/class/bottom/ttl)."""
    INTERFACE = "interface"
    """RFC 5837, one word per part: ``incoming:3:eth0:192.0.2.1``."""
    MTU = "mtu"
    TRANSLATED = "translated"
    """True where the quote shows that addresses or ports were rewritten before this hop."""
    RETURN_HOPS = "return_hops"
    """Hops of the way back, guessed from the hop limit of the answer (initially 64, 128 or 255)."""
    PROTOCOL = "protocol"
    """On the sample of the destination: the `TraceProtocol` that was used."""
    PORT = "port"
    STOPPED = "stopped"
    """On the sample of the destination: why the trace ended: ``arrived``, ``gap``, ``limit``,
    ``unreachable``, ``loop``, ``budget``."""
    CONFIDENCE = "confidence"
    """On the sample of the destination: that of the stopping rule, as in 0.95; absent of one flow.
    """
    COMPLETE = "complete"
    """On the sample of the destination: whether the stopping rule was met at every hop."""
    PATH_MTU = "path_mtu"
    NARROWED_BY = "narrowed_by"
    """On the sample of the destination: who said that longer packets than `PATH_MTU` do not fit."""
    BLACK_HOLE = "black_hole"
    """On the sample of the destination: longer packets than `PATH_MTU` vanish without a word; the
    last hop limit at which one was answered (0: none was)."""
    LIMITED = "limited"
    """On the sample of the destination: hop limits at which answers are rationed or get lost, so
    that silence there is no loss on the path: ``3 7``."""
    PER_PACKET = "per_packet"
    """On the sample of the destination: hop limits at which one flow met several routers."""
    CHANGED = "changed_unix_ns"
    """On the sample of the destination: the path changed under way; samples of this trace that were
    sent before are of a path that is no more."""
    PACKETS = "packets"
    """On the sample of the destination: how many the trace sent."""
    UNPRIVILEGED = "unprivileged"
    """On the sample of the destination: sent by ordinary sockets, quotes were not seen."""
