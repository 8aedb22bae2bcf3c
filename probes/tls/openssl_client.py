"""`client_side` on pyOpenSSL, with the OpenSSL that cryptography brings: early data and groups.

Whether early data was accepted is the server's own word, the extension early_data in its
EncryptedExtensions (RFC 8446, 4.2.10); the status call of OpenSSL is not bound.
"""

import contextlib
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from OpenSSL import SSL

from pathbudget.probes.errors import ConfigError, Fault
from pathbudget.probes.failures import certificate_refused, tls_refused_locally
from pathbudget.probes.record import ConnectionMode, Failure, FailureKind, Stage
from pathbudget.probes.tls import openssl_binding as binding
from pathbudget.probes.tls.client import no_authorities, no_certificate
from pathbudget.probes.tls.client_side import EarlyData, FirstBytes, Taken, cpu_ns
from pathbudget.probes.tls.server_hello import ServerHello, accepts_early_data
from pathbudget.probes.tls.settings import TlsSettings
from pathbudget.probes.tls.tickets import Ticket

READ_BYTES = 65_536
USUAL_GROUPS = "X25519:P-256:P-384"
"""What `ssl` offers first too: a ClientHello of one segment, and the same in every mode."""
_NAME_MISMATCH = frozenset({62, 64})
"""X509_V_ERR_HOSTNAME_MISMATCH and X509_V_ERR_IP_ADDRESS_MISMATCH."""


class OpenSslLibrary:
    """See `client_side.TlsLibrary`."""

    def __init__(self, settings: TlsSettings) -> None:
        if binding.MISSING and settings.mode is not ConnectionMode.EARLY_DATA:
            problem = f"this version of pyOpenSSL does not reach {binding.MISSING[0]}"
            raise ConfigError([Fault("tls", "", problem, "pyOpenSSL 25.1 or newer")])
        self.name = " ".join(SSL.OpenSSL_version(SSL.OPENSSL_VERSION).decode().split()[:2])
        self.messages: list[bytes] = []
        """The latest handshake messages, where early data is to be sent."""
        self._kept: object = None
        if not binding.MISSING:
            self.context = _context(settings)
            if settings.mode is ConnectionMode.EARLY_DATA:
                self._kept = binding.hear_handshake(self.context, self.messages.append)

    @property
    def no_early_data(self) -> str:
        """See `client_side.TlsLibrary.no_early_data`."""
        if not binding.MISSING:
            return ""
        return f"this version of pyOpenSSL does not reach {binding.MISSING[0]}"

    def client(self, server_name: str, ticket: Ticket | None) -> "OpenSslClient":
        """See `client_side.TlsLibrary.client`."""
        return OpenSslClient(self, server_name, ticket)


def _context(settings: TlsSettings) -> SSL.Context:
    context = SSL.Context(SSL.TLS_CLIENT_METHOD)
    context.set_min_proto_version(SSL.TLS1_3_VERSION)
    context.set_verify(SSL.VERIFY_PEER if settings.verify else SSL.VERIFY_NONE)
    if settings.verify:
        _load_authorities(context, settings.ca_file)
    if settings.client_certificate:
        _load_certificate(context, settings.client_certificate, settings.client_key)
    if settings.alpn:
        context.set_alpn_protos([word.encode() for word in settings.alpn])
    if not binding.set_groups(context, settings.groups or USUAL_GROUPS):
        problem = f"OpenSSL does not know all of {settings.groups}"
        expected = "names of groups with colons between, as in X25519MLKEM768:X25519"
        raise ConfigError([Fault("tls", "groups", problem, expected)])
    return context


def _load_authorities(context: SSL.Context, ca_file: str) -> None:
    if not ca_file:
        context.set_default_verify_paths()
        return
    try:
        Path(ca_file).read_bytes()  # OpenSSL does not say why it cannot
        context.load_verify_locations(ca_file)
    except OSError as error:
        raise no_authorities(ca_file, (error.strerror or str(error)).lower()) from error
    except SSL.Error as error:
        raise no_authorities(ca_file, _words(error)) from error


def _load_certificate(context: SSL.Context, certificate: str, key: str) -> None:
    try:
        secret = load_pem_private_key(Path(key or certificate).read_bytes(), None)
        Path(certificate).read_bytes()
        context.use_certificate_chain_file(certificate)
        context.use_privatekey(secret)  # type: ignore[arg-type]
        context.check_privatekey()
    except OSError as error:
        raise no_certificate(certificate, key, (error.strerror or str(error)).lower()) from error
    except SSL.Error as error:
        raise no_certificate(certificate, key, _words(error)) from error
    except (TypeError, ValueError, UnsupportedAlgorithm) as error:
        problem = str(error).splitlines()[0].lower()
        raise no_certificate(certificate, key, problem) from error


class OpenSslClient:
    """See `client_side.TlsClient`."""

    def __init__(self, library: OpenSslLibrary, server_name: str, ticket: Ticket | None) -> None:
        self._library = library
        self._server_name = server_name
        self._connection = SSL.Connection(library.context, None)
        self._connection.set_connect_state()
        self._first_bytes = FirstBytes()
        self._offered = ticket
        self.early_data = EarlyData.NOT_SENT
        self.flight_bytes = 0
        self.compute_ns = 0
        self.complete = False
        self.ended = False
        self.failure = self._prepare()

    def _prepare(self) -> Failure | None:
        name, ticket = self._server_name, self._offered
        try:
            named = bool(name) and "\0" not in name and not name.startswith(".")
            named = named and binding.expect_name(self._connection, name)
        except (UnicodeError, SSL.Error):
            named = False
        if not named:
            return tls_refused_locally(f"server name {name!r}: cannot be one")
        if ticket is None:
            return None
        saved = ticket.session
        if not isinstance(saved, bytes) or not binding.offer_session(self._connection, saved):
            return tls_refused_locally("OpenSSL does not take the session ticket back")
        return None

    @property
    def server_hello(self) -> ServerHello:
        """See `client_side.TlsClient.server_hello`."""
        return self._first_bytes.read()

    @property
    def resumed(self) -> bool:
        """See `client_side.TlsClient.resumed`."""
        return binding.was_resumed(self._connection)

    @property
    def application(self) -> str:
        """See `client_side.TlsClient.application`."""
        return self._connection.get_alpn_proto_negotiated().decode("ascii", "replace")

    def certificate_bytes(self) -> int | None:
        """See `client_side.TlsClient.certificate_bytes`."""
        return binding.chain_bytes(self._connection)

    def start(self, early: bytes = b"") -> bytes:
        """See `client_side.TlsClient.start`."""
        if self.failure is not None:
            return b""
        if early:
            began = cpu_ns()
            sent = binding.write_early_data(self._connection, early)
            self.compute_ns += cpu_ns() - began
            if not sent:
                self.failure = tls_refused_locally("OpenSSL did not take the early data")
                return b""
            self.early_data = EarlyData.PENDING
        return self._shake_hands()

    def receive(self, data: bytes) -> Taken:
        """See `client_side.TlsClient.receive`."""
        if self.failure is not None:
            return Taken()
        connection = self._connection
        connection.bio_write(data)
        if self.complete:
            plain = self._read()
            return Taken(self._outgoing(), plain)
        self._first_bytes.add(data)
        taken = Taken(self._shake_hands())
        left = binding.unread_bytes(connection) if self.complete else 0
        self.flight_bytes += len(data) - left
        if left:
            taken.plain = self._read()
        return taken

    def write(self, data: bytes) -> bytes:
        """See `client_side.TlsClient.write`."""
        view = memoryview(data)
        try:
            while view and self.failure is None:
                view = view[self._connection.send(view) :]
        except SSL.Error as error:
            self.failure = Failure(FailureKind.PROTOCOL, Stage.SEND, detail=_words(error))
        return self._outgoing()

    def goodbye(self) -> bytes:
        """See `client_side.TlsClient.goodbye`."""
        if self.complete:
            with contextlib.suppress(SSL.Error):  # the server's own is not waited for
                self._connection.shutdown()
        return self._outgoing()

    def new_ticket(self, now_ns: int) -> Ticket | None:
        """See `client_side.TlsClient.new_ticket`."""
        saved = binding.save_session(self._connection)
        facts = binding.session_facts(saved)
        if not facts.ticket or (self._offered is not None and self._same(facts.ticket)):
            return None
        size = len(facts.ticket)
        return Ticket(saved, now_ns, facts.lifetime_seconds, facts.early_data_bytes, size)

    def _same(self, ticket: bytes) -> bool:
        before = None if self._offered is None else self._offered.session
        return isinstance(before, bytes) and binding.session_facts(before).ticket == ticket

    def _shake_hands(self) -> bytes:
        if self.failure is not None:
            return b""
        began = cpu_ns()
        self._library.messages.clear()
        try:
            self._connection.do_handshake()
            self.complete = True
        except SSL.WantReadError:
            pass
        except SSL.Error as error:
            self.failure = self._explain(error)
        if self.early_data is EarlyData.PENDING:
            self._learn_of_early_data()
        self.compute_ns += cpu_ns() - began
        return self._outgoing()

    def _learn_of_early_data(self) -> None:
        for message in self._library.messages:
            accepted = accepts_early_data(message)
            if accepted is not None:
                self.early_data = EarlyData.ACCEPTED if accepted else EarlyData.REJECTED

    def _read(self) -> bytes:
        pieces: list[bytes] = []
        try:
            while True:
                pieces.append(self._connection.recv(READ_BYTES))
        except SSL.WantReadError:
            pass
        except SSL.ZeroReturnError:
            self.ended = True
        except SSL.Error as error:
            self.failure = Failure(FailureKind.PROTOCOL, Stage.WAIT, detail=_words(error))
        return b"".join(pieces)

    def _outgoing(self) -> bytes:
        pieces: list[bytes] = []
        try:
            while True:
                piece = self._connection.bio_read(READ_BYTES)
                pieces.append(piece)
                if len(piece) < READ_BYTES:
                    break
        except SSL.WantReadError:
            pass
        return b"".join(pieces)

    def _explain(self, error: SSL.Error) -> Failure:
        code, words = binding.why_not_verified(self._connection)
        if "certificate verify failed" in _words(error):
            if code in _NAME_MISMATCH:
                words = f"the certificate is not valid for {self._server_name!r}"
            return certificate_refused(words or "certificate refused")
        return Failure(FailureKind.PROTOCOL, Stage.HANDSHAKE, detail=_words(error))


def _words(error: SSL.Error) -> str:
    """The reason that OpenSSL gives, in its own words."""
    said: object = error.args[0] if error.args else ""
    if isinstance(said, list) and said:
        entry: object = said[-1]
        said = entry[-1] if isinstance(entry, tuple) else entry
    return str(said or error).lower()
