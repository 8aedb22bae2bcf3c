"""The client side of one TLS 1.3 handshake (RFC 8446). Bytes in, bytes out; no socket, no timer.

OpenSSL works on memory buffers, so that whoever owns the socket knows when each byte left and came.
"""

import contextlib
import ssl
import time
from collections.abc import Callable
from pathlib import Path

from pathbudget.probes.errors import ConfigError, Fault
from pathbudget.probes.failures import from_tls, tls_refused_locally
from pathbudget.probes.record import Failure

_HANDSHAKE_RECORD, _SERVER_HELLO = 22, 2
_RANDOM = slice(11, 43)
"""Where the random of a ServerHello is: behind record header (5), message header (4), version."""
_RETRY_RANDOM = bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")
"""The random by which a ServerHello says that it is a HelloRetryRequest (RFC 8446, 4.1.3)."""
READ_BYTES = 16_384


def client_context(*, verify: bool, ca_file: str, alpn: str) -> ssl.SSLContext:
    """A context for TLS 1.3 and nothing older.

    Raises:
        ConfigError: the file of certificate authorities cannot be used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif ca_file:
        _load_authorities(context, ca_file)
    else:
        context.load_default_certs()
    if alpn:
        context.set_alpn_protocols([word.strip() for word in alpn.split(",")])
    return context


def _load_authorities(context: ssl.SSLContext, ca_file: str) -> None:
    try:
        context.load_verify_locations(cafile=Path(ca_file))
    except (OSError, ssl.SSLError) as error:
        problem = (error.strerror or str(error)).lower()
        fault = Fault(ca_file, "", problem, "a readable file of certificates in PEM form")
        raise ConfigError([fault]) from error


def is_hello_retry_request(first_bytes: bytes) -> bool:
    """Whether the server's first message asks for another ClientHello (one more round trip)."""
    if len(first_bytes) < _RANDOM.stop:
        return False
    is_hello = first_bytes[0] == _HANDSHAKE_RECORD and first_bytes[5] == _SERVER_HELLO
    return is_hello and first_bytes[_RANDOM] == _RETRY_RANDOM


class TlsClient:
    """One handshake and, after it, one wait for a ticket.

    `failure` is set when it has failed, `complete` when it is done; `compute_ns` is the processor
    time that our own side has spent in it.
    """

    def __init__(
        self,
        context: ssl.SSLContext,
        server_name: str,
        session: ssl.SSLSession | None = None,
        cpu_ns: Callable[[], int] = time.thread_time_ns,
    ) -> None:
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._offered = None if session is None else session.id
        self._cpu_ns = cpu_ns
        self._first_bytes = b""
        self.compute_ns = 0
        self.complete = False
        self.failure: Failure | None = None
        self._tls: ssl.SSLObject | None = None
        try:
            self._tls = context.wrap_bio(
                self._incoming, self._outgoing, server_hostname=server_name, session=session
            )
        except (TypeError, ValueError, ssl.SSLError) as error:
            self.failure = tls_refused_locally(f"server name {server_name!r}: {error}")

    @property
    def resumed(self) -> bool:
        """Whether the server took the ticket (RFC 8446, 2.2)."""
        return self._tls is not None and bool(self._tls.session_reused)

    @property
    def hello_retry_request(self) -> bool:
        """Whether the server asked for a second ClientHello."""
        return is_hello_retry_request(self._first_bytes)

    def start(self) -> bytes:
        """The ClientHello."""
        return self._step()

    def receive(self, data: bytes) -> bytes:
        """Take bytes of the server; returns what is to be sent, an alert where it has failed."""
        if len(self._first_bytes) < _RANDOM.stop:
            self._first_bytes += data[: _RANDOM.stop]
        self._incoming.write(data)
        return self._step()

    def take_ticket(self, data: bytes) -> ssl.SSLSession | None:
        """Take bytes that came after the handshake; a ticket that was not there before."""
        if self._tls is None:
            return None
        self._incoming.write(data)
        if not self._incoming.pending:
            return None
        try:
            while self._tls.read(READ_BYTES):
                pass
        except ssl.SSLError:
            pass  # nothing more to read yet, or an alert: the ticket is there or it is not
        session = self._tls.session
        if session is None or not session.has_ticket or session.id == self._offered:
            return None
        return session

    def goodbye(self) -> bytes:
        """What ends the session in good order (close_notify)."""
        if self._tls is None or not self.complete:
            return self._outgoing.read()
        with contextlib.suppress(ssl.SSLError):  # the server's own is not waited for
            self._tls.unwrap()
        return self._outgoing.read()

    def _step(self) -> bytes:
        if self._tls is None or self.failure is not None:
            return b""
        began = self._cpu_ns()
        try:
            self._tls.do_handshake()
            self.complete = True
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError as error:
            self.failure = from_tls(error)
        self.compute_ns += self._cpu_ns() - began
        return self._outgoing.read()
