"""What lies between a fake network's host and one address, and who answers there."""

import random
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field

from pathbudget.probes.channels import Segment
from pathbudget.probes.fake_time import FakeClock


def _never(number: int) -> bool:
    return number < 0


@dataclass
class FakePath:
    """Packets are numbered from 0 in the order they are sent to this address.

    `round_trip_ns` may depend on that number. `unreachable` is ICMP type, code and who says so,
    half way. `quotes_bytes` is how much of a request an ICMP error quotes behind the IP header;
    `resets_after` and `closes_after` end a connection after that many bytes from the client; `says`
    is what the other side of a connection answers with, where it does not speak TLS, and `echoes`
    has it answer with what it got.
    """

    round_trip_ns: int | Callable[[int], int] = 10_000_000
    lost: Callable[[int], bool | int] = _never
    duplicates: int = 0
    duplicate_gap_ns: int = 0
    corrupt: Callable[[int], bool | int] = _never
    foreign: int = 0
    """Replies to somebody else's requests that come along with each of ours."""
    ttl: int = 64
    responder: str | None = None
    unreachable: tuple[int, int, str] | None = None
    quotes_bytes: int = 64
    refused: bool = False
    retransmits: int = 0
    resets_after: int | None = None
    closes_after: int | None = None
    says: bytes | None = None
    echoes: bool = False
    tls: ssl.SSLContext | None = None
    sent: int = 0

    def next_number(self) -> int:
        """The number of the packet that is sent now."""
        number, self.sent = self.sent, self.sent + 1
        return number

    def round_trip(self, number: int) -> int:
        """How long this packet takes, there and back."""
        return (
            self.round_trip_ns
            if isinstance(self.round_trip_ns, int)
            else self.round_trip_ns(number)
        )


@dataclass
class FakeHost:
    """The host that a fake network is seen from. Addresses without a path answer nothing.

    `send_stamps` and `receive_stamps` are whether its kernel stamps what is sent and what comes.
    """

    clock: FakeClock
    paths: dict[str, FakePath] = field(default_factory=dict[str, FakePath])
    send_stamps: bool = True
    receive_stamps: bool = True
    sent: list[tuple[str, bytes]] = field(default_factory=list[tuple[str, bytes]])
    """Every ICMP message that was sent, with its address."""
    rng: random.Random = field(default_factory=lambda: random.Random(1))
    hear_resets: list[Callable[[Segment], None]] = field(
        default_factory=list[Callable[[Segment], None]]
    )
    """Whom a RST is told that came, as raw sockets hear it."""
    hear_handshakes: list[Callable[[tuple[str, int], int], None]] = field(
        default_factory=list[Callable[[tuple[str, int], int], None]]
    )
    """Whom a connection is told that was made: place, local port."""

    def path(self, address: str) -> FakePath:
        """The path to an address; one that loses everything where none was given."""
        return self.paths.setdefault(address, FakePath(lost=lambda number: number >= 0))
