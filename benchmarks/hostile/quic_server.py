"""QUIC servers that go mad: Initial packets of their own making, a flight that is spoiled, or,
behind a handshake that was good, 1-RTT packets with any frames, and bad streams of HTTP/3.

aioquic shakes hands where there is a handshake; it never sends anything again.
"""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from random import Random

from aioquic.buffer import encode_uint_var
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.crypto import CryptoPair
from aioquic.quic.events import HandshakeCompleted, StreamDataReceived
from aioquic.quic.packet import encode_quic_retry, encode_quic_version_negotiation
from aioquic.tls import Epoch, SessionTicket
from hostile.http_server import VALUES, WORDS
from hostile.malice import MS, spoil
from hostile.tls_server import ticket

from pathbudget.probes.channels import Datagram
from pathbudget.probes.fake_time import FakeClock

Reply = Callable[[bytes, int, int], None]
VERSION_1, VERSION_2 = 1, 0x6B3343CF
HALF_NS = 5 * MS
LARGEST = 1_150
TICKETS_KEPT = 20
PEERS_KEPT = 60
"""Connections that probes keep go on from round to round."""
RETRY_RANDOM = bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")
_VALUES = (0, 1, 63, 64, 16_383, 1 << 30, (1 << 62) - 1)


def varint(value: int) -> bytes:
    """RFC 9000, 16."""
    return encode_uint_var(value)


class MadQuic:
    """See `fake_datagrams.FakeService`. `rng` is changed at each round."""

    def __init__(self, folder: Path, *, handshakes: int) -> None:
        """So many of ten connections shake hands."""
        self._handshakes = handshakes
        self._configuration = QuicConfiguration(is_client=False, alpn_protocols=["h3"])
        self._configuration.load_cert_chain(folder / "certificate.pem", folder / "key.pem")
        self.tickets: dict[bytes, SessionTicket] = {}
        self._peers: dict[int, Forger | Server] = {}
        self.rng = Random(1)

    def take(self, datagram: Datagram, clock: FakeClock, reply: Reply) -> None:
        """See `fake_datagrams.FakeService.take`."""
        peer = self._peers.get(datagram.sender_port)
        if peer is None:
            if not datagram.payload[0] & 0x80:
                return  # of a connection that is forgotten
            real = self.rng.randrange(10) < self._handshakes
            peer = Server(self, datagram) if real else Forger(self.rng)
            self._peers[datagram.sender_port] = peer
            while len(self._peers) > PEERS_KEPT:
                del self._peers[next(iter(self._peers))]
        there = peer

        def come() -> None:
            for after_ns, payload in there.take(datagram, clock):
                data = payload[:1_472]
                clock.call_in(HALF_NS + after_ns, lambda data=data: reply(data, 60, 0))  # type: ignore[misc]

        clock.call_in(HALF_NS, come)

    def keep(self, made: SessionTicket) -> None:
        """Of aioquic's tickets the latest few."""
        self.tickets[made.ticket] = made
        while len(self.tickets) > TICKETS_KEPT:
            del self.tickets[next(iter(self.tickets))]

    def forget(self) -> None:
        """All connections: memory is about to be looked at."""
        self._peers.clear()

    def configuration(self) -> QuicConfiguration:
        """Of one connection."""
        return dataclasses.replace(self._configuration)


Out = list[tuple[int, bytes]]


class Forger:
    """Knows the keys of Initial packets, as everybody does."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._number = 0
        self._way = rng.randrange(9)

    def take(self, datagram: Datagram, clock: FakeClock) -> Out:
        """What comes of one datagram of the client."""
        del clock
        rng, first = self._rng, datagram.payload
        if len(first) < 40 or not first[0] & 0x80 or first[5] > 20:
            return []
        there = first[6 : 6 + first[5]]
        at = 6 + first[5]
        own = first[at + 1 : at + 1 + first[at]]
        if self._way == 0:
            return [
                (number * MS, rng.randbytes(rng.choice((0, 1, 40, 1_200)))) for number in range(40)
            ]
        if self._way == 1:
            return [(0, self._negotiate(there, own)) for _ in range(rng.choice((1, 1, 30)))]
        if self._way == 2:
            return [(0, self._retry(there, own)) for _ in range(rng.choice((1, 1, 30)))]
        if self._way == 3:
            return [(0, spoil(rng, first))]
        pair = CryptoPair()
        pair.setup_initial(cid=there, is_client=False, version=VERSION_1)
        out: Out = []
        pause = rng.choice((0, MS, 50 * MS))
        for number in range(rng.choice((1, 2, 8, 40))):
            plain = self._frames(number)
            packet = self._seal(pair, own, plain)
            out.append((number * pause, spoil(rng, packet) if rng.randrange(8) == 0 else packet))
        return out

    def _frames(self, number: int) -> bytes:
        rng = self._rng
        if self._way == 4:  # a hello without end
            data = b"\x02\xff\xff\xff" + bytes(1_000) if not number else bytes(1_004)
            return crypto(number * 1_004, data)
        if self._way == 5:  # holes
            return crypto(rng.choice((*_VALUES[:-1], number * 4_000)), rng.randbytes(600))
        if self._way == 6:
            return crypto(0, spoil(rng, hello(rng)))
        if self._way == 7:
            return b"".join(frame(rng) for _ in range(rng.randint(1, 5)))[:LARGEST]
        return b"\x02" + b"".join(varint(rng.choice(_VALUES)) for _ in range(rng.choice((4, 60))))

    def _seal(self, pair: CryptoPair, own: bytes, plain: bytes) -> bytes:
        plain = plain[:LARGEST] + bytes(max(0, 20 - len(plain)))
        length = (len(plain) + 2 + 16) | 0x4000
        head = b"\xc1\0\0\0\x01" + bytes([len(own)]) + own + b"\x08" + bytes(8) + b"\0"
        head += length.to_bytes(2, "big") + (self._number & 0xFFFF).to_bytes(2, "big")
        sealed = pair.encrypt_packet(head, plain, self._number)
        self._number += 1
        return sealed

    def _retry(self, there: bytes, own: bytes) -> bytes:
        rng = self._rng
        return encode_quic_retry(
            version=VERSION_1,
            source_cid=rng.randbytes(rng.choice((0, 8, 20))),
            destination_cid=own,
            original_destination_cid=there,
            retry_token=rng.randbytes(rng.choice((1, 60, 1_000))),
        )

    def _negotiate(self, there: bytes, own: bytes) -> bytes:
        rng = self._rng
        some = (VERSION_1, VERSION_2, 0x0A0A0A0A, rng.randrange(1 << 32))
        versions = [rng.choice(some) for _ in range(rng.choice((0, 1, 2, 200)))]
        return encode_quic_version_negotiation(
            source_cid=there, destination_cid=own, supported_versions=versions
        )


class Server:
    """A handshake of aioquic's, spoiled, or good with something bad behind it."""

    def __init__(self, maker: MadQuic, datagram: Datagram) -> None:
        rng = self._rng = maker.rng
        self._spoils = rng.randrange(3) == 0
        first = datagram.payload
        self._quic = QuicConnection(
            configuration=maker.configuration(),
            original_destination_connection_id=first[6 : 6 + first[5]],
            session_ticket_fetcher=maker.tickets.get,
            session_ticket_handler=maker.keep,
        )
        self._mad = False

    def take(self, datagram: Datagram, clock: FakeClock) -> Out:
        """What comes of one datagram of the client."""
        rng, now = self._rng, clock.monotonic_ns() / 1e9
        there = (datagram.sender, datagram.sender_port)
        self._quic.receive_datagram(datagram.payload, there, now)
        complete = False
        while (event := self._quic.next_event()) is not None:
            complete = complete or isinstance(event, HandshakeCompleted)
            if isinstance(event, StreamDataReceived) and event.stream_id % 4 == 0:
                self._answer(event.stream_id)
        out: Out = [(0, data) for data, _ in self._quic.datagrams_to_send(now)]
        if self._spoils:
            return [
                (rng.choice((0, 0, 0, 30, 999)) * MS, spoil(rng, data))
                for _, data in out
                if rng.randrange(8)
                for _ in range(rng.choice((1, 1, 1, 3)))
            ]
        if complete and not self._mad:
            self._mad = True
            out += self._go_mad()
        return out

    def _answer(self, stream: int) -> None:
        """To a request of HTTP/3, and beside it on streams of the server's own."""
        rng = self._rng
        try:
            self._quic.send_stream_data(stream, h3_answer(rng), bool(rng.randrange(4)))
            for _ in range(rng.choice((0, 0, 1, 8))):
                own = self._quic.get_next_available_stream_id(is_unidirectional=True)
                kind = rng.choice((0, 1, 2, 3, 33, 1 << 40))
                self._quic.send_stream_data(
                    own, varint(kind) + h3_frames(rng), bool(rng.randrange(2))
                )
            if rng.randrange(12) == 0:
                self._quic.close(rng.randrange(1 << 16), reason_phrase="x" * rng.choice((0, 900)))
        except (AssertionError, ValueError):
            pass

    def _go_mad(self) -> Out:
        rng = self._rng
        if rng.randrange(3) == 0:
            return []
        out: Out = []
        pause, endless = rng.choice((0, MS, 20 * MS)), rng.randrange(6) == 0
        same = frame(rng)[:LARGEST]
        way = rng.randrange(4)
        offset = 0
        for number in range(60 if endless else rng.randint(1, 12)):
            if way == 0:
                plain = same
            elif way == 1:  # a ticket of absurd size, or many, or a message without end
                data = spoil(rng, ticket(rng))[:1_000]
                plain = crypto(offset, data)
                offset += len(data)
            else:
                plain = b"".join(frame(rng) for _ in range(rng.randint(1, 6)))[:LARGEST]
            out.append((MS + number * pause, self._seal(plain)))
        return out

    def _seal(self, plain: bytes) -> bytes:
        quic = self._quic
        number, quic._packet_number = quic._packet_number, quic._packet_number + 1  # noqa: SLF001
        pair = quic._cryptos[Epoch.ONE_RTT]  # noqa: SLF001
        head = bytes([0x41 | pair.key_phase << 2]) + quic._peer_cid.cid  # noqa: SLF001
        head += (number & 0xFFFF).to_bytes(2, "big")
        return pair.encrypt_packet(head, plain + bytes(max(0, 20 - len(plain))), number)


def crypto(offset: int, data: bytes) -> bytes:
    """A CRYPTO frame (RFC 9000, 19.6)."""
    data = data[:1_100]
    return b"\x06" + varint(offset) + varint(len(data)) + data


def hello(rng: Random) -> bytes:
    """A ServerHello, or the one that asks for another ClientHello (RFC 8446, 4.1.3, 4.1.4)."""
    again = rng.randrange(2)
    group = rng.choice((0x001D, 0x0017, 0x0018, 0xFFFF))
    share = group.to_bytes(2, "big") if again else b"\0\x1d\0\x20" + rng.randbytes(32)
    extensions = b"\0\x2b\0\2\3\4" + b"\0\x33" + len(share).to_bytes(2, "big") + share
    body = b"\3\3" + (RETRY_RANDOM if again else rng.randbytes(32)) + b"\0\x13\1\0"
    body += len(extensions).to_bytes(2, "big") + extensions
    return b"\2" + len(body).to_bytes(3, "big") + body


def frame(rng: Random) -> bytes:
    """Any frame of RFC 9000, section 19, with fields of any size."""
    kind = rng.choice((*range(0x1F), 0x30, 0x31, 0x40, (1 << 62) - 1))
    head = varint(kind)

    def some() -> bytes:
        return varint(rng.choice((*_VALUES, rng.randrange(1 << 14), rng.randrange(20))))

    data = rng.randbytes(rng.choice((0, 1, 16, 300, 1_000)))
    if kind in (2, 3):
        ranges = rng.choice((0, 1, 40))
        return head + some() + some() + varint(ranges) + b"".join(some() for _ in range(2 * ranges))
    if kind == 6:
        return head + some() + varint(len(data)) + data
    if kind in (7, 0x31):
        return head + varint(len(data)) + data
    if 8 <= kind <= 15:
        stream = varint(rng.choice((0, 3, 7, 11, 15, 4 * rng.randrange(2_000) + 3, 1)))
        offset = some() if kind & 4 else b""
        return head + stream + offset + (varint(len(data)) if kind & 2 else b"") + data
    if kind == 0x18:
        number = rng.randrange(200)
        size = rng.choice((0, 8, 8, 8, 20, 21))
        prior = varint(rng.choice((0, number, number + 1)))
        return head + varint(number) + prior + bytes([size]) + rng.randbytes(size + 16)
    if kind in (0x1A, 0x1B):
        return head + rng.randbytes(8)
    if kind in (0x1C, 0x1D):
        reason = b"\x1b[2J" * rng.choice((0, 1, 200))
        where = some() if kind == 0x1C else b""
        return head + some() + where + varint(len(reason)) + reason
    counts = {0: 0, 1: 0, 4: 3, 5: 2, 0x11: 2, 0x15: 2, 0x1E: 0}
    return head + b"".join(some() for _ in range(counts.get(kind, 1)))


def h3_frames(rng: Random) -> bytes:
    """Frames of RFC 9114, 7.2, and what is none."""
    made = b""
    for _ in range(rng.choice((0, 1, 3, 30))):
        kind = rng.choice((0, 1, 3, 4, 5, 7, 13, 33, 2, 8, 1 << 30))
        data = rng.randbytes(rng.choice((0, 1, 8, 200, 2_000)))
        size = len(data) if rng.randrange(8) else rng.choice(_VALUES)
        made += varint(kind) + varint(size) + data
    return made


def h3_answer(rng: Random) -> bytes:
    """An answer without the dynamic table (RFC 9204, 4.5.6), good, nearly good, or none at all."""
    fields = b"\0\0" + b"\xd9"  # :status 200
    for _ in range(rng.choice((0, 0, 2, 8, 200))):
        name, value = rng.choice(WORDS), rng.choice(VALUES)
        size = bytes([len(name)]) if len(name) < 7 else bytes([7, len(name) - 7])
        fields += bytes([0x20 | size[0]]) + size[1:] + name + bytes([len(value)]) + value
    body = rng.randbytes(rng.choice((0, 5, 5, 3_000)))
    good = varint(1) + varint(len(fields)) + fields + varint(0) + varint(len(body)) + body
    way = rng.randrange(6)
    if way < 2:
        return good
    if way == 2:  # frames without a head, data without end
        return h3_frames(rng)
    if way == 3:
        return good + h3_frames(rng)
    if way == 4:
        return varint(1) + varint(rng.choice(_VALUES)) + bytes(rng.choice((0, 900, 30_000)))
    return spoil(rng, good)
