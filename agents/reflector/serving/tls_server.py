"""The server's side of TLS 1.3 with early data (RFC 8446), over memory: records in, records out.

pyOpenSSL has no call for early data, but the OpenSSL that it is bound to does, and exports it:
`SSL_read_early_data` and `SSL_write_early_data` (SSL_read_early_data(3)). Only this module knows.

With early data allowed OpenSSL keeps every ticket itself and takes it once, so that nothing can be
replayed to it (RFC 8446 section 8.1). A connection that is freed without a goodbye takes its
session along: `close` says the goodbye, whatever became of the other side.
"""

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from OpenSSL import SSL
from OpenSSL._util import ffi, lib

from pathbudget.probes.errors import ReflectorError

BOTH_GOODBYES = int(SSL.SENT_SHUTDOWN) | int(SSL.RECEIVED_SHUTDOWN)
for _call in ("SSL_read_early_data", "SSL_write_early_data", "SSL_CTX_set_max_early_data"):
    if not hasattr(lib, _call):
        raise ImportError(f"this cryptography has no {_call}")
SUCCESS, FINISHED = 1, 2
"""What SSL_read_early_data returns, beside 0."""
PIECE = 16_384
PROTOCOLS = (b"h2", b"http/1.1")
RESUMABLE_BY = b"pathbudget reflector"


class TlsError(Exception):
    """The other side does not speak TLS as it should; an alert may be waiting to be sent."""


def server_context(certificate: Path, key: Path, early_bytes: int) -> SSL.Context:
    """A context for servers, TLS 1.3 alone. Raises ReflectorError with what is wrong."""
    context = SSL.Context(SSL.TLS_SERVER_METHOD)
    context.set_min_proto_version(SSL.TLS1_3_VERSION)
    context.set_mode(lib.SSL_MODE_RELEASE_BUFFERS)
    context.set_session_id(RESUMABLE_BY)
    context.set_alpn_select_callback(_select)
    lib.SSL_CTX_set_max_early_data(_pointer(context), early_bytes)
    try:
        context.use_certificate_chain_file(str(certificate))
        context.use_privatekey_file(str(key))
        context.check_privatekey()
    except SSL.Error as error:
        raise ReflectorError(_unusable(certificate, key, error)) from error
    return context


def _unusable(certificate: Path, key: Path, error: SSL.Error) -> str:
    for file in (certificate, key):
        try:
            file.open("rb").close()
        except OSError as refused:
            return f"{file}: {refused.strerror}"
    words = "; ".join(str(part[-1]) for part in error.args[0]) if error.args else "unusable"
    return f"{certificate}, {key}: no certificate with its key: {words}"


def _pointer(owner: Any) -> Any:
    return owner._context if isinstance(owner, SSL.Context) else owner._ssl  # noqa: SLF001


def _select(_connection: SSL.Connection, offered: list[bytes]) -> bytes:
    """HTTP/2 where the client can, HTTP/1.1 else. Where it wants neither the exception becomes the
    alert that is due then (RFC 7301 section 3.2).
    """
    for protocol in PROTOCOLS:
        if protocol in offered:
            return protocol
    raise SSL.Error("no common application protocol")


class TlsServer:
    """One connection. `feed` takes records, `outgoing` is to be sent after every call."""

    def __init__(self, context: SSL.Context) -> None:
        self._tls = SSL.Connection(context, None)
        self._tls.set_accept_state()
        self._buffer = ffi.new("char[]", PIECE)
        self._taken = ffi.new("size_t *")
        self._reading_early = True
        self.open = False
        """Whether the handshake is complete."""
        self.early = False
        """Whether early data was accepted and there was some."""
        self.ended = False
        """Whether the other side has said goodbye."""

    @property
    def resumed(self) -> bool:
        """Whether a ticket was taken."""
        return bool(lib.SSL_session_reused(_pointer(self._tls)))

    @property
    def protocol(self) -> bytes:
        """What ALPN has chosen; nothing where the client asked for nothing."""
        return self._tls.get_alpn_proto_negotiated()

    @property
    def may_write(self) -> bool:
        """Whether application data can be sent: after the handshake, or in answer to early data."""
        return self.open or self.early

    def feed(self, records: bytes) -> bytes:
        """Take whole records; the application data in them. Raises TlsError."""
        self._tls.bio_write(records)
        early = b""
        try:
            if not self.open:
                early = self._shake_hands()
            return early + self._read() if self.open else early
        except SSL.ZeroReturnError:
            self.ended = True
            return early
        except SSL.Error as error:
            raise TlsError(str(error)) from error

    def write(self, data: bytes) -> None:
        """Send application data; only where `may_write`. Raises TlsError."""
        try:
            if self.open:
                self._send(data)
                return
            for start in range(0, len(data), PIECE):
                piece = data[start : start + PIECE]
                result = lib.SSL_write_early_data(
                    _pointer(self._tls), piece, len(piece), self._taken
                )
                if result != SUCCESS:
                    self._tls._raise_ssl_error(_pointer(self._tls), result)  # noqa: SLF001
        except SSL.Error as error:
            raise TlsError(str(error)) from error

    def outgoing(self) -> bytes:
        """Records that are to be sent."""
        found = bytearray()
        with contextlib.suppress(SSL.WantReadError):
            while True:
                found += self._tls.bio_read(65_536)
        return bytes(found)

    def close(self, *, politely: bool) -> None:
        """Say goodbye (see `outgoing`), or only let OpenSSL believe that we did."""
        if politely and self.open:
            with contextlib.suppress(SSL.Error):
                self._tls.shutdown()
        self._tls.set_shutdown(BOTH_GOODBYES)

    def _shake_hands(self) -> bytes:
        early = bytearray()
        with contextlib.suppress(SSL.WantReadError):
            while self._reading_early:
                early += self._read_early()
            self._tls.do_handshake()
            self.open = True
        return bytes(early)

    def _read_early(self) -> bytes:
        pointer = _pointer(self._tls)
        result = lib.SSL_read_early_data(pointer, self._buffer, PIECE, self._taken)
        if result not in (SUCCESS, FINISHED):
            self._tls._raise_ssl_error(pointer, result)  # noqa: SLF001
        self._reading_early = result != FINISHED
        found = bytes(ffi.buffer(self._buffer, self._taken[0])) if result == SUCCESS else b""
        self.early = self.early or bool(found)
        return found

    def _read(self) -> bytes:
        found = bytearray()
        with contextlib.suppress(SSL.WantReadError):
            while True:
                found += self._tls.recv(PIECE)
        return bytes(found)

    def _send(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[self._tls.send(view[:PIECE]) :]


ContextSource = Callable[[], SSL.Context]
