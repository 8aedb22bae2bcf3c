"""The client's side of one TLS 1.3 connection, whatever library does the cryptography.

Sans-IO: bytes in, bytes out; no socket, no timer. `client.py` has the one that every installation
has, `openssl_client.py` the one that can send early data and choose groups.
"""

import time
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from pathbudget.probes.record import Failure
from pathbudget.probes.tls.server_hello import KEPT_BYTES, ServerHello, read_server_hello
from pathbudget.probes.tls.tickets import Ticket


class EarlyData(StrEnum):
    """What became of the data that a client may send with its ClientHello (RFC 8446, 4.2.10)."""

    NOT_SENT = "not sent"
    PENDING = "sent"
    ACCEPTED = "accepted"
    REJECTED = "rejected"


@dataclass(slots=True)
class Taken:
    """What came of bytes that the server sent."""

    answer: bytes = b""
    """To be sent; an alert where the connection has failed."""
    plain: bytes = b""


class TlsClient(Protocol):
    """One connection. `failure` is set when it has failed, `complete` when the handshake is done,
    `ended` when the server has said goodbye. `compute_ns` is the processor time that our own side
    has spent in the handshake, `flight_bytes` what the server sent up to the end of its flight.
    """

    flight_bytes: int
    complete: bool
    ended: bool
    failure: Failure | None
    compute_ns: int

    def start(self, early: bytes = b"") -> bytes:
        """The ClientHello, and behind it `early` where the ticket allows it (see `early_data`)."""
        ...

    def receive(self, data: bytes) -> Taken:
        """Take bytes of the server."""
        ...

    def write(self, data: bytes) -> bytes:
        """Encrypt. After the handshake only; of one that has failed nothing comes but an alert."""
        ...

    def goodbye(self) -> bytes:
        """What ends the session in good order (close_notify), and whatever was left to send."""
        ...

    def new_ticket(self, now_ns: int) -> Ticket | None:
        """A ticket that came on this connection, as soon as there is one."""
        ...

    @property
    def server_hello(self) -> ServerHello:
        """What the server said in clear."""
        ...

    @property
    def resumed(self) -> bool:
        """Whether the server took the ticket (RFC 8446, 2.2)."""
        ...

    @property
    def early_data(self) -> EarlyData:
        """What became of it, by the server's own word."""
        ...

    @property
    def application(self) -> str:
        """ALPN that the server chose (RFC 7301)."""
        ...

    def certificate_bytes(self) -> int | None:
        """Length of all certificates that the server sent (DER); None where it cannot be told."""
        ...


class TlsLibrary(Protocol):
    """Makes clients that share their configuration."""

    @property
    def name(self) -> str:
        """Which library and version: ``OpenSSL 3.0.19``."""
        ...

    @property
    def no_early_data(self) -> str:
        """Why it cannot send early data; empty where it can."""
        ...

    def client(self, server_name: str, ticket: Ticket | None) -> TlsClient:
        """A new connection."""
        ...


class FirstBytes:
    """Keeps what the server says in clear, and no more."""

    def __init__(self) -> None:
        self._kept = b""
        self._read: ServerHello | None = None

    def add(self, data: bytes) -> None:
        """More came."""
        if len(self._kept) < KEPT_BYTES:
            self._kept += data[:KEPT_BYTES]
            self._read = None

    def read(self) -> ServerHello:
        """What it says."""
        if self._read is None:
            self._read = read_server_hello(self._kept)
        return self._read


cpu_ns = time.thread_time_ns
"""The clock of `compute_ns`."""
