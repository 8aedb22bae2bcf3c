"""A TLS 1.3 server in memory that goes mad: in its flight, or behind it with records of its own.

OpenSSL shakes hands; what it says then is dropped, and records are sealed here with its traffic
secret: tickets of any size and lifetime, key updates without end, empty and overlong records.
"""

import datetime
import hashlib
import struct
from pathlib import Path
from random import Random

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand
from cryptography.x509.oid import NameOID
from hostile import http_server
from hostile.malice import MS, Step, deliver, endless, spoil
from OpenSSL import SSL

HOST = "site.example"
HANDSHAKE, APPLICATION, ALERT = 22, 23, 21
TICKET, KEY_UPDATE = 4, 24
LARGEST_RECORD = 16_384


def make_certificate(folder: Path) -> None:
    """`certificate.pem` and `key.pem`."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, HOST)])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=9))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(HOST)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    (folder / "certificate.pem").write_bytes(made.public_bytes(pem))
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "key.pem").write_bytes(secret)


class MadTls:
    """Makes peers of one configuration."""

    def __init__(self, folder: Path, body: http_server.Body | None = None) -> None:
        """With `body` most handshakes are followed by an answer of HTTP/1.1."""
        self.body = body
        self.context = SSL.Context(SSL.TLS_SERVER_METHOD)
        self.context.use_certificate_file(str(folder / "certificate.pem"))
        self.context.use_privatekey_file(str(folder / "key.pem"))
        self.context.set_tls13_ciphersuites(b"TLS_AES_128_GCM_SHA256")
        self.context.set_session_cache_mode(SSL.SESS_CACHE_OFF)
        self.context.set_keylog_callback(self._hear)
        self.secret = b""
        self.last_flight = bytes(200)

    def _hear(self, connection: SSL.Connection, line: bytes) -> None:
        del connection
        label, _, secret = line.split()
        if label == b"SERVER_TRAFFIC_SECRET_0":
            self.secret = bytes.fromhex(secret.decode())

    def peer(self, rng: Random) -> "TlsPeer":
        """The other end of a new connection."""
        return TlsPeer(self, rng)


class TlsPeer:
    """See `network.Peer`."""

    def __init__(self, maker: MadTls, rng: Random) -> None:
        self._maker = maker
        self._rng = rng
        self._tls = SSL.Connection(maker.context, None)
        self._tls.set_accept_state()
        self._complete = False
        self._mad_now = rng.randrange(3) == 0
        """Whether the flight itself is bad, and not what follows."""
        self._over = False

    def take(self, data: bytes) -> list[Step]:
        """See `network.Peer.take`."""
        rng = self._rng
        if self._over:
            return []
        if self._mad_now and rng.randrange(6) == 0:
            self._over = True
            return deliver(rng, rng.randbytes(rng.randint(1, 5_000)))
        said = self._answer(data)
        if not self._complete:
            if self._mad_now:
                self._over = True
                before, self._maker.last_flight = self._maker.last_flight, said or bytes(10)
                return deliver(rng, spoil(rng, said, before))
            return [Step(0, said)] if said else []
        self._over = True
        if self._maker.body is not None and rng.randrange(3):
            return self._speak_http(self._maker.body)
        if rng.randrange(4) == 0:
            return deliver(rng, said if rng.randrange(2) else spoil(rng, said))
        return self._go_mad()

    def _answer(self, data: bytes) -> bytes:
        try:
            self._tls.bio_write(data)
            if not self._complete:
                self._tls.do_handshake()
                self._complete = True
        except SSL.Error:
            pass
        try:
            return self._tls.bio_read(1 << 20)
        except SSL.Error:
            return b""

    def _speak_http(self, body: http_server.Body) -> list[Step]:
        """Records whose content is bad, and nothing else."""
        seal = Sealer(self._maker.secret)
        steps = http_server.Http1Peer(self._rng, body).take(b"")
        return [
            Step(step.after_ns, seal.record(APPLICATION, step.data[:LARGEST_RECORD]))
            if step.data
            else step
            for step in steps
        ]

    def _go_mad(self) -> list[Step]:
        """Records of our own, behind a handshake that was good."""
        rng = self._rng
        seal = Sealer(self._maker.secret)
        way = rng.randrange(8)
        if way == 0:  # many tickets
            wire = b"".join(seal.handshake(ticket(rng)) for _ in range(rng.randint(1, 30)))
        elif way == 1:  # one of absurd size, in as many records as it takes
            wire = seal.handshake(ticket(rng, size=rng.choice((0, 8_193, 40_000, 65_535))))
        elif way == 2:  # a message that never ends
            said = seal.handshake(bytes([TICKET]) + b"\xff\xff\xff" + bytes(60_000))
            return [Step(0, said), *(Step(4 * MS, seal.record(HANDSHAKE, bytes(16_000)))
                                     for _ in range(40))]  # fmt: skip
        elif way == 3:
            updates = [seal.key_update(rng.randrange(2)) for _ in range(rng.randint(1, 40))]
            wire = b"".join(updates)
        elif way == 4:  # empty records, and small ones
            kind = rng.choice((APPLICATION, HANDSHAKE, ALERT, 20, 99))
            some = [seal.record(kind, bytes(rng.randrange(3))) for _ in range(rng.randint(1, 60))]
            wire = b"".join(some)
        elif way == 5:  # plain text without end
            return [Step(rng.choice((MS, 9 * MS)), seal.record(APPLICATION, rng.randbytes(900)))
                    for _ in range(120)]  # fmt: skip
        elif way == 6:
            message = spoil(rng, ticket(rng))
            wire = seal.handshake(message)
        else:
            wire = seal.record(ALERT, bytes((rng.randrange(3), rng.randrange(256))))
        steps = deliver(rng, spoil(rng, wire) if rng.randrange(2) else wire)
        return [*steps, *endless(rng, wire)] if rng.randrange(10) == 0 else steps


class Sealer:
    """Records under one traffic secret, with AES-128-GCM and SHA-256 (RFC 8446, 5.2, 7.3)."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._set()

    def _set(self) -> None:
        self._aead = AESGCM(_expand(self._secret, b"key", 16))
        self._iv = _expand(self._secret, b"iv", 12)
        self._number = 0

    def record(self, kind: int, plain: bytes) -> bytes:
        """One record; content beyond what is allowed makes it overlong."""
        nonce = (int.from_bytes(self._iv, "big") ^ self._number).to_bytes(12, "big")
        self._number += 1
        inner = plain + bytes([kind])
        head = b"\x17\x03\x03" + struct.pack(">H", len(inner) + 16)
        return head + self._aead.encrypt(nonce, inner, head)

    def handshake(self, message: bytes) -> bytes:
        """In as many records as it takes."""
        parts = range(0, len(message) or 1, LARGEST_RECORD)
        return b"".join(self.record(HANDSHAKE, message[n : n + LARGEST_RECORD]) for n in parts)

    def key_update(self, asks: int) -> bytes:
        """The next keys (RFC 8446, 4.6.3)."""
        wire = self.record(HANDSHAKE, bytes((KEY_UPDATE, 0, 0, 1, asks)))
        self._secret = _expand(self._secret, b"traffic upd", 32)
        self._set()
        return wire


def ticket(rng: Random, size: int | None = None) -> bytes:
    """A NewSessionTicket (RFC 8446, 4.6.1), with or without early data."""
    size = rng.choice((1, 32, 208, 2_000, 8_000)) if size is None else size
    lifetime = rng.choice((0, 1, 7_200, 604_800, 0xFFFFFFFF))
    nonce = rng.randbytes(rng.choice((0, 8, 255)))
    early = b""
    if rng.randrange(2):
        allowed = rng.choice((0, 1, 16_384, 0xFFFFFFFF))
        early = struct.pack(">HHI", 42, 4, allowed)
    if rng.randrange(6) == 0:
        filler = rng.randbytes(rng.choice((0, 9, 30_000)))
        early += struct.pack(">HH", rng.randrange(1 << 16), len(filler)) + filler
    body = struct.pack(">II", lifetime, rng.randrange(1 << 32)) + bytes([len(nonce)]) + nonce
    body += struct.pack(">H", size) + rng.randbytes(size) + struct.pack(">H", len(early)) + early
    return bytes([TICKET]) + len(body).to_bytes(3, "big") + body


def _expand(secret: bytes, label: bytes, length: int) -> bytes:
    """HKDF-Expand-Label without a context (RFC 8446, 7.1)."""
    assert len(secret) == hashlib.sha256().digest_size
    full = b"tls13 " + label
    info = struct.pack(">HB", length, len(full)) + full + b"\0"
    return HKDFExpand(hashes.SHA256(), length, info).derive(secret)
