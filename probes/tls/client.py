"""`client_side` on Python's own `ssl`: what every installation has.

It can neither send early data nor choose among groups: `ssl` has no words for that.
"""

import contextlib
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pathbudget.probes.errors import ConfigError, Fault
from pathbudget.probes.failures import from_tls, tls_refused_locally
from pathbudget.probes.record import Failure, Stage
from pathbudget.probes.tls.client_side import EarlyData, FirstBytes, Taken, cpu_ns
from pathbudget.probes.tls.server_hello import ServerHello
from pathbudget.probes.tls.settings import TlsSettings
from pathbudget.probes.tls.tickets import Ticket

READ_BYTES = 16_384
LOOKS_FOR_TICKET = 4
"""In Python 3.11 each look at `SSLObject.session` leaks it: some kilobytes with a certificate."""


def client_context(
    *, verify: bool, ca_file: str, alpn: str, certificate: str = "", key: str = ""
) -> ssl.SSLContext:
    """A context for TLS 1.3 and nothing older; `alpn` as in ``h2,http/1.1``.

    Raises:
        ConfigError: a file cannot be used.
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
    if certificate:
        _load_certificate(context, certificate, key)
    if alpn:
        context.set_alpn_protocols([word.strip() for word in alpn.split(",")])
    return context


def _load_authorities(context: ssl.SSLContext, ca_file: str) -> None:
    try:
        context.load_verify_locations(cafile=Path(ca_file))
    except (OSError, ssl.SSLError) as error:
        raise no_authorities(ca_file, (error.strerror or str(error)).lower()) from error


def _load_certificate(context: ssl.SSLContext, certificate: str, key: str) -> None:
    try:
        # Without a password of its own OpenSSL would ask the terminal for one.
        context.load_cert_chain(certificate, key or None, password="")
    except (OSError, ssl.SSLError) as error:
        raise no_certificate(certificate, key, (error.strerror or str(error)).lower()) from error


def no_authorities(ca_file: str, problem: str) -> ConfigError:
    """The file of authorities cannot be used."""
    return ConfigError([Fault(ca_file, "", problem, "a readable file of certificates in PEM form")])


def no_certificate(certificate: str, key: str, problem: str) -> ConfigError:
    """Our own certificate or its key cannot be used."""
    expected = "our certificate and its key, unencrypted, in PEM form"
    return ConfigError([Fault(key or certificate, "", problem, expected)])


class SslLibrary:
    """See `client_side.TlsLibrary`."""

    def __init__(self, settings: TlsSettings) -> None:
        self._context = client_context(
            verify=settings.verify,
            ca_file=settings.ca_file,
            alpn=",".join(settings.alpn),
            certificate=settings.client_certificate,
            key=settings.client_key,
        )

    @property
    def name(self) -> str:
        """See `client_side.TlsLibrary.name`."""
        return " ".join(ssl.OPENSSL_VERSION.split()[:2])

    @property
    def no_early_data(self) -> str:
        """See `client_side.TlsLibrary.no_early_data`."""
        return "Python's ssl module cannot send early data"

    def client(self, server_name: str, ticket: Ticket | None) -> "SslClient":
        """See `client_side.TlsLibrary.client`."""
        session = None if ticket is None else ticket.session
        assert session is None or isinstance(session, ssl.SSLSession)
        return SslClient(self._context, server_name, session)


class SslClient:
    """See `client_side.TlsClient`."""

    early_data = EarlyData.NOT_SENT

    def __init__(
        self,
        context: ssl.SSLContext,
        server_name: str,
        session: ssl.SSLSession | None = None,
        cpu: Callable[[], int] = cpu_ns,
    ) -> None:
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._offered = None if session is None else session.id
        self._cpu_ns = cpu
        self._first_bytes = FirstBytes()
        self._looks_left = LOOKS_FOR_TICKET
        self.compute_ns = 0
        self.flight_bytes = 0
        self.complete = False
        self.ended = False
        self.failure: Failure | None = None
        self._tls: ssl.SSLObject | None = None
        try:
            self._tls = context.wrap_bio(
                self._incoming, self._outgoing, server_hostname=server_name, session=session
            )
        except (TypeError, ValueError, ssl.SSLError) as error:
            self.failure = tls_refused_locally(f"server name {server_name!r}: {error}")

    @property
    def server_hello(self) -> ServerHello:
        """See `client_side.TlsClient.server_hello`."""
        return self._first_bytes.read()

    @property
    def resumed(self) -> bool:
        """See `client_side.TlsClient.resumed`."""
        return self._tls is not None and bool(self._tls.session_reused)

    @property
    def application(self) -> str:
        """See `client_side.TlsClient.application`."""
        return "" if self._tls is None else self._tls.selected_alpn_protocol() or ""

    def certificate_bytes(self) -> int | None:
        """See `client_side.TlsClient.certificate_bytes`. The chain has no public name yet."""
        try:
            inner: Any = self._tls._sslobj  # type: ignore[union-attr]  # noqa: SLF001
            chain = inner.get_unverified_chain() or []
            return sum(len(one.public_bytes(_ENCODING_DER)) for one in chain)
        except (AttributeError, TypeError, ssl.SSLError):
            return None

    def start(self, early: bytes = b"") -> bytes:
        """See `client_side.TlsClient.start`."""
        del early  # cannot be sent here
        return self._shake_hands()

    def receive(self, data: bytes) -> Taken:
        """See `client_side.TlsClient.receive`."""
        if self._tls is None or self.failure is not None:
            return Taken()
        self._incoming.write(data)
        if self.complete:
            plain = self._read(self._tls)
            return Taken(self._outgoing.read() if self._outgoing.pending else b"", plain)
        self._first_bytes.add(data)
        taken = Taken(self._shake_hands())
        # OpenSSL reads record by record: what is left came behind the server's flight.
        left = self._incoming.pending if self._is_complete() else 0
        self.flight_bytes += len(data) - left
        if left:
            taken.plain = self._read(self._tls)
        return taken

    def _is_complete(self) -> bool:
        return self.complete

    def write(self, data: bytes) -> bytes:
        """See `client_side.TlsClient.write`."""
        assert self._tls is not None
        view = memoryview(data)
        try:
            while view and self.failure is None:
                view = view[self._tls.write(view) :]
        except ssl.SSLError as error:
            self.failure = from_tls(error, Stage.SEND)
        return self._outgoing.read()

    def goodbye(self) -> bytes:
        """See `client_side.TlsClient.goodbye`."""
        if self._tls is None or not self.complete:
            return self._outgoing.read()
        with contextlib.suppress(ssl.SSLError):  # the server's own is not waited for
            self._tls.unwrap()
        return self._outgoing.read()

    def new_ticket(self, now_ns: int) -> Ticket | None:
        """See `client_side.TlsClient.new_ticket`."""
        if self._tls is None or not self._looks_left:
            return None
        self._looks_left -= 1
        try:
            session = self._tls.session
        except ValueError:  # a ticket that OpenSSL has taken, and cannot write down
            return None
        if session is None or not session.has_ticket or session.id == self._offered:
            return None
        return Ticket(session, now_ns, min(session.ticket_lifetime_hint, session.timeout))

    def _shake_hands(self) -> bytes:
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

    def _read(self, tls: ssl.SSLObject) -> bytes:
        pieces: list[bytes] = []
        try:
            while piece := tls.read(READ_BYTES):
                pieces.append(piece)
            self.ended = True
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            self.ended = True
        except ssl.SSLError as error:
            self.failure = from_tls(error, Stage.WAIT)
        return b"".join(pieces)


_ENCODING_DER = 2
"""``_ssl.ENCODING_DER``."""
