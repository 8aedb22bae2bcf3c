"""What a server says in clear, read off the wire."""

import contextlib
import ssl

import pytest

from pathbudget.probes.tls.server_hello import (
    ServerHello,
    accepts_early_data,
    read_server_hello,
)


def first_bytes(server: ssl.SSLContext, *, group: str = "") -> tuple[bytes, bytes]:
    """All that a server says up to its flight, in one or (with a retry) two pieces."""
    if group:
        server.set_ecdh_curve(group)
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = client.wrap_bio(to_client, to_server)
    theirs = server.wrap_bio(to_server, to_client, server_side=True)
    said: list[bytes] = []
    for _ in range(2):
        for side in (ours, theirs):
            with contextlib.suppress(ssl.SSLWantReadError):
                side.do_handshake()
        said.append(to_client.read())
        to_client.write(said[-1])
    return said[0], b"".join(said)


def test_a_full_handshake(server_context: ssl.SSLContext) -> None:
    first, _ = first_bytes(server_context)
    assert read_server_hello(first) == ServerHello(False, "X25519", "TLS_AES_256_GCM_SHA384")


def test_a_retry_and_what_follows_it(server_context: ssl.SSLContext) -> None:
    first, whole = first_bytes(server_context, group="secp384r1")
    assert read_server_hello(first) == ServerHello(True, "P-384", "TLS_AES_256_GCM_SHA384")
    assert read_server_hello(whole) == ServerHello(True, "P-384", "TLS_AES_256_GCM_SHA384")


def test_any_cut_of_it_says_all_or_nothing(server_context: ssl.SSLContext) -> None:
    first, _ = first_bytes(server_context)
    found = {read_server_hello(first[:length]) for length in range(len(first))}
    assert found == {ServerHello(), ServerHello(False, "X25519", "TLS_AES_256_GCM_SHA384")}


def hello(extensions: bytes, cipher: int = 0x1399) -> bytes:
    body = b"\x03\x03" + bytes(32) + b"\x00" + cipher.to_bytes(2, "big") + b"\x00"
    body += len(extensions).to_bytes(2, "big") + extensions
    message = b"\x02" + len(body).to_bytes(3, "big") + body
    return b"\x16\x03\x03" + len(message).to_bytes(2, "big") + message


def test_words_for_what_is_not_known_are_its_numbers() -> None:
    share = b"\x00\x33\x00\x04\xab\xcd\x00\x00"
    assert read_server_hello(hello(share)) == ServerHello(False, "0xabcd", "0x1399")


def test_a_ticket_that_was_taken() -> None:
    taken = b"\x00\x29\x00\x02\x00\x00"
    assert read_server_hello(hello(taken, 0x1301)).resumed


@pytest.mark.parametrize(
    ("message", "accepts"),
    [
        (bytes.fromhex("080000060004002a0000"), True),
        (bytes.fromhex("080000020000"), False),
        (bytes.fromhex("0800000a0008000a000400020017"), False),
        (bytes.fromhex("0b000000"), None),
        (b"\x08", False),
        (b"", None),
    ],
)
def test_early_data_in_the_encrypted_extensions(message: bytes, accepts: bool | None) -> None:
    assert accepts_early_data(message) is accepts
