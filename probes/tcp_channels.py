"""One TCP connection as interfaces; part of `channels`, which has all of these names too."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from pathbudget.probes.tcp_info import TcpInfo

if TYPE_CHECKING:
    from pathbudget.probes.channels import QueuedError


class RoundTrip(NamedTuple):
    """What the kernel knows of a connection's handshake (TCP_INFO)."""

    rtt_ns: int
    retransmits: int


@dataclass(frozen=True, slots=True)
class TcpOptions:
    """What one TCP connection is asked to do beyond carrying bytes. Each costs system calls.

    `segments`: every segment leaves by itself and has a send stamp of its own (else one stamp per
    `send`, of its last byte). `acknowledgements`: the kernel says when that last byte, or each
    segment, was acknowledged, to an `AcknowledgementListener`. `quick_ack`: acknowledge what comes
    at once (TCP_QUICKACK), so that a server whose Nagle waits for it does not stall. `congestion`:
    the congestion control, by the kernel's name for it; empty: that of this host.
    """

    segments: bool = False
    acknowledgements: bool = False
    quick_ack: bool = False
    congestion: str = ""


PLAIN_TCP = TcpOptions()


class TcpListener(Protocol):
    """Whom a TCP channel tells what happens."""

    def connected(self) -> None:
        """The handshake is complete."""

    def failed(self, error: OSError, icmp: "QueuedError | None") -> None:
        """The connection is dead; `icmp` where a router or host said why."""

    def sent(self, last_byte: int, kernel_unix_ns: int) -> None:
        """The byte of this offset has left this host (a second report is a retransmission)."""

    def received(self, data: bytes, kernel_unix_ns: int | None) -> None:
        """Bytes came; the stamp is that of the last one. Empty: the other side has closed."""


@runtime_checkable
class AcknowledgementListener(TcpListener, Protocol):
    """A listener that also hears of acknowledgements, where `TcpOptions` asks for them."""

    def acknowledged(self, last_byte: int, kernel_unix_ns: int) -> None:
        """The acknowledgement of the byte of this offset has come, by the kernel."""


class TcpChannel(Protocol):
    """One TCP connection. After `close` or `finish` the listener hears no more."""

    @property
    def local_port(self) -> int | None:
        """The local port; None where there is none (any more)."""
        ...

    @property
    def sent_ns(self) -> int:
        """Monotonic time just before the connect call."""
        ...

    def round_trip(self) -> RoundTrip | None:
        """TCP_INFO as of now, or as the connection failed; None where the kernel does not say."""
        ...

    def info(self) -> TcpInfo | None:
        """All of TCP_INFO as of now, or as it was last read before the connection ended."""
        ...

    def send(self, data: bytes) -> None:
        """Send all of it, as the kernel takes it."""

    def finish(self) -> None:
        """Close in good order: FIN, then read what still comes for a moment (no reset)."""

    def close(self) -> None:
        """Close at once."""
