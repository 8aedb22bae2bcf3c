"""Fuzz targets of what a QUIC server may send. See tests/fuzzing.py."""

from typing import Any

from aioquic.h3.connection import H3Connection
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.crypto import CryptoPair
from tests.quic.conftest import Answered, Heard, environment_of

from pathbudget.probes.carriers import Moment, Request
from pathbudget.probes.channels import Datagram
from pathbudget.probes.clock import Reading
from pathbudget.probes.fake_collector import shot_at
from pathbudget.probes.fake_network import FakeClock, FakeNetwork
from pathbudget.probes.http.http3 import Http3Connection
from pathbudget.probes.http.settings import Limits
from pathbudget.probes.quic.dialer import QuicDialer
from pathbudget.probes.quic.packets import VERSION_1, PacketKind, read_datagram
from pathbudget.probes.quic.settings import QuicSettings

ADDRESS, PORT = "192.0.2.1", 443
NOW = Moment(Reading(0, 1_790_000_000 * 10**9, 100), 1_790_000_000 * 10**9)
SERVER_ID = bytes(8)


def fuzz_one_packets(data: bytes) -> None:
    """Packets lie one behind the other, inside the datagram."""
    at = 0
    for head in read_datagram(data):
        assert head.start == at
        assert at < head.end <= len(data)
        at = head.end


class _Catcher:
    """A service that takes what a client sends, and how answers come back to it."""

    def __init__(self) -> None:
        self.first: bytes = b""
        self.reply: Any = None

    def take(self, datagram: Datagram, clock: FakeClock, reply: Any) -> None:
        del clock
        self.first = self.first or datagram.payload
        self.reply = reply


def _dialled() -> tuple[FakeNetwork, _Catcher, Heard]:
    network, catcher, heard = FakeNetwork(FakeClock()), _Catcher(), Heard()
    network.services[ADDRESS, PORT] = catcher
    environment = environment_of(network, network.clock)
    shot = shot_at(ADDRESS, host="site.example", port=PORT)
    QuicDialer(environment, QuicSettings(verify=False)).dial(shot, heard)
    return network, catcher, heard


def fuzz_one_datagram(data: bytes) -> None:
    """Any bytes as a datagram, alone and behind the ids that our packets have: nothing raises, no
    connection stands, and the deadline holds.
    """
    network, catcher, heard = _dialled()
    own = catcher.first[15 : 15 + catcher.first[14]]
    catcher.reply(data, 64, 0)
    catcher.reply(data[:1] + b"\0\0\0\x01\x08" + own + b"\x08" + SERVER_ID + data[1:], 64, 0)
    _ends(network, heard)


def fuzz_one_initial(data: bytes) -> None:
    """Any bytes as the frames of an Initial packet: everybody on the way can make one that is
    authentic (RFC 9001, 5.2).
    """
    network, catcher, heard = _dialled()
    first = catcher.first
    original, own = first[6 : 6 + first[5]], first[15 : 15 + first[14]]
    pair = CryptoPair()
    pair.setup_initial(cid=original, is_client=False, version=VERSION_1)
    plain = (data or b"\0").ljust(4, b"\0")
    length = (len(plain) + 2 + 16) | 0x4000
    head = b"\xc1\0\0\0\x01\x08" + own + b"\x08" + SERVER_ID + b"\0"
    head += length.to_bytes(2, "big") + b"\0\0"
    packet = pair.encrypt_packet(head, plain, 0)
    assert [one.kind for one in read_datagram(packet)] == [PacketKind.INITIAL]
    catcher.reply(packet, 64, 0)
    _ends(network, heard)


def _ends(network: FakeNetwork, heard: Heard) -> None:
    network.clock.advance(1_100_000_000)
    assert heard.opening is None
    assert heard.failure is not None


class _Streams:
    """As much of `QuicStreams` as HTTP/3 uses."""

    def __init__(self, listener: Http3Connection) -> None:
        configuration = QuicConfiguration(alpn_protocols=["h3"])
        self.quic = QuicConnection(configuration=configuration)
        self.usable = True
        self._listener: Http3Connection | None = listener

    def notes(self) -> dict[str, int]:
        return {}

    def flush(self) -> None:
        """Nothing leaves."""

    def refuse(self, stream: int) -> None:
        """Nobody hears it."""

    def fail(self, failure: Any) -> None:
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.failed("", failure, ())

    def stumbled(self, error: Exception) -> None:
        raise error


def fuzz_one_http3(data: bytes) -> None:
    """Any bytes on the stream of a request, and on those of a server: at most one end is told."""
    answered = Answered()
    connection: Any = Http3Connection(Heard(), Limits(header_bytes=512, body_bytes=4_096))
    streams = _Streams(connection)
    connection._streams, connection._stood = streams, True
    connection._http = H3Connection(streams.quic)
    connection.request(Request("GET", "site.example", "/"), answered)
    half = len(data) // 2
    for stream, piece, fin in ((3, data[:half], False), (0, data[half:], False), (0, b"", True)):
        connection.stream_data(stream, piece, fin, NOW)
    ends = [word for word in answered.words if word in ("complete", "failed")]
    assert len(ends) <= 1
    assert answered.words.count("head") <= 1
