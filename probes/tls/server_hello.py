"""What a server says in clear of a TLS 1.3 handshake (RFC 8446, 4.1.3). Bytes in, facts out.

Read off the wire, so that it is the same whatever library does the cryptography.
"""

from collections.abc import Iterator
from typing import NamedTuple

RECORD_HEADER_BYTES = 5
MESSAGE_HEADER_BYTES = 4
HANDSHAKE, CHANGE_CIPHER_SPEC = 22, 20
SERVER_HELLO, ENCRYPTED_EXTENSIONS = 2, 8
PRE_SHARED_KEY, EARLY_DATA, KEY_SHARE = 41, 42, 51
KEPT_BYTES = 4_096
"""More than a HelloRetryRequest and a ServerHello with a post-quantum key share take together."""
_RETRY_RANDOM = bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")
"""The random by which a ServerHello says that it is a HelloRetryRequest (RFC 8446, 4.1.3)."""
_GROUPS = {
    0x0017: "P-256",
    0x0018: "P-384",
    0x0019: "P-521",
    0x001D: "X25519",
    0x001E: "X448",
    0x0100: "ffdhe2048",
    0x0101: "ffdhe3072",
    0x0102: "ffdhe4096",
    0x11EB: "SecP256r1MLKEM768",
    0x11EC: "X25519MLKEM768",
    0x11ED: "SecP384r1MLKEM1024",
}
"""IANA TLS Supported Groups."""
_CIPHERS = {
    0x1301: "TLS_AES_128_GCM_SHA256",
    0x1302: "TLS_AES_256_GCM_SHA384",
    0x1303: "TLS_CHACHA20_POLY1305_SHA256",
    0x1304: "TLS_AES_128_CCM_SHA256",
    0x1305: "TLS_AES_128_CCM_8_SHA256",
}


class ServerHello(NamedTuple):
    """What the clear part of the server's answers says; empty where it did not come to that."""

    retry: bool = False
    """It asked for another ClientHello first: one more round trip."""
    group: str = ""
    cipher: str = ""
    resumed: bool = False
    """It took the ticket (RFC 8446, 4.2.11)."""


def read_server_hello(first_bytes: bytes) -> ServerHello:
    """Read the first bytes that a server sent, as far as they go. Never raises."""
    found = ServerHello()
    for message in _messages(_clear_bytes(first_bytes)):
        found = _read_one(message, found)
    return found


def accepts_early_data(message: bytes) -> bool | None:
    """Whether a handshake message, header and all, says that early data was accepted.

    The server says so in EncryptedExtensions (RFC 8446, 4.2.10); None of any other message.
    """
    if not message or message[0] != ENCRYPTED_EXTENSIONS:
        return None
    block = message[MESSAGE_HEADER_BYTES + 2 :]
    return any(kind == EARLY_DATA for kind, _ in _extensions(block))


def _clear_bytes(data: bytes) -> bytes:
    """The handshake messages in clear, without record headers."""
    clear = bytearray()
    at = 0
    while at + RECORD_HEADER_BYTES <= len(data):
        kind, length = data[at], int.from_bytes(data[at + 3 : at + 5], "big")
        at += RECORD_HEADER_BYTES
        if kind == HANDSHAKE:
            clear += data[at : at + length]
        elif kind != CHANGE_CIPHER_SPEC:
            break
        at += length
    return bytes(clear)


def _messages(clear: bytes) -> Iterator[bytes]:
    """The whole ServerHello messages."""
    at = 0
    while at + MESSAGE_HEADER_BYTES <= len(clear) and clear[at] == SERVER_HELLO:
        end = at + MESSAGE_HEADER_BYTES + int.from_bytes(clear[at + 1 : at + 4], "big")
        if end > len(clear):
            return
        yield clear[at + MESSAGE_HEADER_BYTES : end]
        at = end


def _read_one(message: bytes, before: ServerHello) -> ServerHello:
    at = 35 + message[34] if len(message) > 34 else len(message)
    if at + 5 > len(message):
        return before
    cipher = int.from_bytes(message[at : at + 2], "big")
    group, resumed = before.group, False
    for kind, value in _extensions(message[at + 5 :]):
        if kind == KEY_SHARE and len(value) >= 2:
            number = int.from_bytes(value[:2], "big")
            group = _GROUPS.get(number, f"0x{number:04x}")
        resumed = resumed or kind == PRE_SHARED_KEY
    retry = before.retry or message[2:34] == _RETRY_RANDOM
    return ServerHello(retry, group, _CIPHERS.get(cipher, f"0x{cipher:04x}"), resumed)


def _extensions(block: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + 4 <= len(block):
        length = int.from_bytes(block[at + 2 : at + 4], "big")
        yield int.from_bytes(block[at : at + 2], "big"), block[at + 4 : at + 4 + length]
        at += 4 + length
