"""What pyOpenSSL has no public name for, reached through its private binding. All of it is here.

`MISSING` says what of it this installation lacks: another version may have dropped a name, and then
what needs it is reported as unavailable, never guessed at. Sessions are kept as bytes, a copy: the
one that a connection holds is spoiled as soon as that is freed without a goodbye.
"""

import ipaddress
from collections.abc import Callable
from typing import Any, NamedTuple

from OpenSSL import SSL

_NAMES = (
    "SSL_write_early_data",
    "SSL_CTX_set_msg_callback",
    "SSL_CTX_set1_curves_list",
    "SSL_SESSION_free",
    "SSL_get0_param",
    "SSL_get1_session",
    "SSL_get_verify_result",
    "SSL_session_reused",
    "SSL_set_session",
    "X509_VERIFY_PARAM_set1_host",
    "X509_VERIFY_PARAM_set1_ip",
    "X509_VERIFY_PARAM_set_hostflags",
    "X509_verify_cert_error_string",
    "BIO_free",
    "BIO_get_mem_data",
    "BIO_new",
    "BIO_s_mem",
    "SSL_get_peer_cert_chain",
    "i2d_X509_bio",
    "sk_X509_num",
    "sk_X509_value",
    "d2i_SSL_SESSION",
    "i2d_SSL_SESSION",
)
_NO_PARTIAL_WILDCARDS = 4
_HANDSHAKE = 22

lib: Any
ffi: Any
try:
    from OpenSSL._util import ffi, lib
except ImportError:
    lib = ffi = None

MISSING = tuple(name for name in _NAMES if not hasattr(lib, name))
"""Names of OpenSSL's that are not to be had here."""


class SessionFacts(NamedTuple):
    """What a saved session says of its ticket."""

    ticket: bytes = b""
    lifetime_seconds: int = 0
    early_data_bytes: int = 0


def set_groups(context: SSL.Context, groups: str) -> bool:
    """Offer these key-share groups, in this order; false where one of them is unknown."""
    done: int = lib.SSL_CTX_set1_curves_list(_inner(context, "_context"), groups.encode())
    lib.ERR_clear_error()
    return done == 1


def expect_name(connection: SSL.Connection, name: str) -> bool:
    """Have the certificate checked for a host name or an address, and send the name (SNI)."""
    parameters = lib.SSL_get0_param(_inner(connection, "_ssl"))
    try:
        packed = ipaddress.ip_address(name).packed
    except ValueError:
        raw = name.encode("ascii" if name.isascii() else "idna")
        connection.set_tlsext_host_name(raw)
        lib.X509_VERIFY_PARAM_set_hostflags(parameters, _NO_PARTIAL_WILDCARDS)
        return bool(lib.X509_VERIFY_PARAM_set1_host(parameters, raw, len(raw)) == 1)
    return bool(lib.X509_VERIFY_PARAM_set1_ip(parameters, packed, len(packed)) == 1)


def write_early_data(connection: SSL.Connection, data: bytes) -> bool:
    """Make the ClientHello and put this behind it; false where OpenSSL refuses."""
    written = ffi.new("size_t *")
    done: int = lib.SSL_write_early_data(_inner(connection, "_ssl"), data, len(data), written)
    lib.ERR_clear_error()
    return done == 1 and written[0] == len(data)


def hear_handshake(context: SSL.Context, hear: Callable[[bytes], None]) -> object:
    """Have `hear` called with every handshake message that comes; keep what is returned."""

    def callback(written: int, _version: int, kind: int, data: Any, size: int, *_: Any) -> None:
        if not written and kind == _HANDSHAKE:
            hear(bytes(ffi.buffer(data, size)))

    kept = ffi.callback("void(int, int, int, void *, size_t, SSL *, void *)", callback)
    lib.SSL_CTX_set_msg_callback(_inner(context, "_context"), kept)
    return kept


def was_resumed(connection: SSL.Connection) -> bool:
    """Whether the server took the session that was offered."""
    return bool(lib.SSL_session_reused(_inner(connection, "_ssl")))


def unread_bytes(connection: SSL.Connection) -> int:
    """How much of what was put in has not been looked at yet."""
    count: int = lib.BIO_get_mem_data(_inner(connection, "_into_ssl"), ffi.new("char **"))
    return count


def chain_bytes(connection: SSL.Connection) -> int:
    """Length of all certificates that the server sent (DER)."""
    chain = lib.SSL_get_peer_cert_chain(_inner(connection, "_ssl"))
    if chain == ffi.NULL:
        return 0
    sink = lib.BIO_new(lib.BIO_s_mem())
    for number in range(lib.sk_X509_num(chain)):
        lib.i2d_X509_bio(sink, lib.sk_X509_value(chain, number))
    count: int = lib.BIO_get_mem_data(sink, ffi.new("char **"))
    lib.BIO_free(sink)
    return count


def why_not_verified(connection: SSL.Connection) -> tuple[int, str]:
    """Number and words of why the server's certificate was refused; 0 where it was not."""
    code: int = lib.SSL_get_verify_result(_inner(connection, "_ssl"))
    words: bytes = ffi.string(lib.X509_verify_cert_error_string(code))
    return code, words.decode("ascii", "replace")


def save_session(connection: SSL.Connection) -> bytes:
    """The session as of now (ASN.1); empty where there is none."""
    session = lib.SSL_get1_session(_inner(connection, "_ssl"))
    if session == ffi.NULL:
        return b""
    try:
        size: int = lib.i2d_SSL_SESSION(session, ffi.NULL)
        if size <= 0:
            return b""
        room = ffi.new("unsigned char[]", size)
        lib.i2d_SSL_SESSION(session, ffi.new("unsigned char **", room))
        return bytes(ffi.buffer(room, size))
    finally:
        lib.SSL_SESSION_free(session)


def offer_session(connection: SSL.Connection, saved: bytes) -> bool:
    """Offer a saved session; false where OpenSSL does not take it."""
    room = ffi.new("unsigned char[]", saved)
    session = lib.d2i_SSL_SESSION(ffi.NULL, ffi.new("unsigned char **", room), len(saved))
    lib.ERR_clear_error()
    if session == ffi.NULL:
        return False
    done: int = lib.SSL_set_session(_inner(connection, "_ssl"), session)
    lib.SSL_SESSION_free(session)
    return done == 1


_LIFETIME, _TICKET, _EARLY_DATA = 0xA9, 0xAA, 0xAF
"""Context tags 9, 10 and 15 of OpenSSL's SSL_SESSION_ASN1."""


def session_facts(saved: bytes) -> SessionFacts:
    """Read what a saved session says. Never raises."""
    fields = _fields(_content(saved, 0)[1])
    lifetime = int.from_bytes(_content(fields.get(_LIFETIME, b""), 0)[1], "big")
    early = int.from_bytes(_content(fields.get(_EARLY_DATA, b""), 0)[1], "big")
    return SessionFacts(_content(fields.get(_TICKET, b""), 0)[1], lifetime, early)


def _fields(content: bytes) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    at = 0
    while at < len(content):
        end, value = _content(content, at)
        found[content[at]] = value
        at = end
    return found


def _content(data: bytes, at: int) -> tuple[int, bytes]:
    """End and content of the DER element at `at`; of none, the end of it all and nothing."""
    if at + 2 > len(data):
        return len(data), b""
    length, start = data[at + 1], at + 2
    if length & 0x80:
        count = length & 0x7F
        length, start = int.from_bytes(data[start : start + count], "big"), start + count
    return start + length, data[start : start + length]


def _inner(outer: Any, name: str) -> Any:
    return getattr(outer, name)
