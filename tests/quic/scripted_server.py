"""aioquic's server on the fake network: exact round trips, packets lost and late as a test wants.

It answers HTTP/3 with what `answer` says, and any other protocol with an echo.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from aioquic._buffer import Buffer
from aioquic.h3.connection import H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.events import ProtocolNegotiated, QuicEvent, StreamDataReceived
from aioquic.quic.packet import (
    QuicPacketType,
    QuicProtocolVersion,
    encode_quic_retry,
    encode_quic_version_negotiation,
    pull_quic_header,
)
from aioquic.quic.retry import QuicRetryTokenHandler
from aioquic.tls import SessionTicket

from pathbudget.probes.channels import Datagram
from pathbudget.probes.fake_time import FakeCall, FakeClock

Reply = Callable[[bytes, int, int], None]
CLIENT_ID_BYTES = 8


@dataclass
class ScriptedServer:
    """See `fake_datagrams.FakeService`. One-way delays are half a round trip."""

    folder: Path
    round_trip_ns: int = 40_000_000
    alpn: tuple[str, ...] = ("h3", "echo")
    retry: bool = False
    versions: tuple[int, ...] = (QuicProtocolVersion.VERSION_1,)
    certificate: str = "certificate.pem"
    resumes: bool = True
    max_data: int = 1 << 20
    lost: Callable[[int], bool] = lambda _: False
    """Of the datagrams that the client sends, by their number from 0."""
    answers_lost: Callable[[int], bool] = lambda _: False
    late_ns: Callable[[int], int] = lambda _: 0
    """How much later than the others a datagram of the server arrives, by its number."""
    answer: bytes = b"hello"
    raw_answer: bytes | None = None
    """What a stream of HTTP/3 is answered with instead, as it is."""
    more_headers: int = 0
    closes_with: tuple[int, str] | None = None
    """Code and reason of a server that closes instead of answering."""
    requests: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    bodies: dict[int, int] = field(default_factory=dict[int, int])
    tickets: dict[bytes, SessionTicket] = field(default_factory=dict[bytes, SessionTicket])
    connections: list[QuicConnection] = field(default_factory=list[QuicConnection])
    heard: int = 0
    said: int = 0
    heard_bytes: int = 0

    def __post_init__(self) -> None:
        self._peers: dict[int, _Peer] = {}
        self.tokens = QuicRetryTokenHandler()

    def take(self, datagram: Datagram, clock: FakeClock, reply: Reply) -> None:
        """See `fake_datagrams.FakeService.take`."""
        number = self.heard
        self.heard += 1
        self.heard_bytes += len(datagram.payload)
        if self.lost(number):
            return

        def come() -> None:
            self._receive(datagram, clock, reply)

        clock.call_in(self.round_trip_ns // 2, come)

    def send(self, payload: bytes, clock: FakeClock, reply: Reply) -> None:
        """Half a round trip back, unless it is lost."""
        number = self.said
        self.said += 1
        if not self.answers_lost(number):
            delay = self.round_trip_ns - self.round_trip_ns // 2 + self.late_ns(number)
            clock.call_in(delay, lambda: reply(payload, 64, 0))

    def _receive(self, datagram: Datagram, clock: FakeClock, reply: Reply) -> None:
        peer = self._peers.get(datagram.sender_port)
        if peer is None:
            peer = self._greet(datagram, clock, reply)
            if peer is None:
                return
            self._peers[datagram.sender_port] = peer
        peer.reply = reply
        peer.receive(datagram)

    def _greet(self, datagram: Datagram, clock: FakeClock, reply: Reply) -> "_Peer | None":
        header = pull_quic_header(Buffer(data=datagram.payload), host_cid_length=CLIENT_ID_BYTES)
        there = (datagram.sender, datagram.sender_port)
        if header.version not in self.versions:
            said = encode_quic_version_negotiation(
                source_cid=header.destination_cid,
                destination_cid=header.source_cid,
                supported_versions=list(self.versions),
            )
            self.send(said, clock, reply)
            return None
        if header.packet_type is not QuicPacketType.INITIAL:
            return None
        original, retried = header.destination_cid, None
        if self.retry and not header.token:
            own = os.urandom(CLIENT_ID_BYTES)
            said = encode_quic_retry(
                version=header.version or 0,
                source_cid=own,
                destination_cid=header.source_cid,
                original_destination_cid=header.destination_cid,
                retry_token=self.tokens.create_token(
                    address=there,
                    original_destination_connection_id=header.destination_cid,
                    retry_source_connection_id=own,
                    now=clock.monotonic_ns() / 1e9,
                ),
            )
            self.send(said, clock, reply)
            return None
        if self.retry:
            retried = header.destination_cid
            original = self.tokens.validate_token(
                address=there,
                destination_cid=retried,
                token=header.token,
                now=clock.monotonic_ns() / 1e9,
            )
        return _Peer(self, clock, reply, original, retried)

    def configuration(self) -> QuicConfiguration:
        """That of one connection."""
        made = QuicConfiguration(
            is_client=False,
            alpn_protocols=list(self.alpn),
            max_data=self.max_data,
            max_stream_data=self.max_data,
            supported_versions=list(self.versions),
        )
        made.load_cert_chain(self.folder / self.certificate, self.folder / "key.pem")
        return made


class _Peer:
    """One connection."""

    def __init__(
        self,
        server: ScriptedServer,
        clock: FakeClock,
        reply: Reply,
        original: bytes,
        retried: bytes | None,
    ) -> None:
        self._server = server
        self._clock = clock
        self.reply = reply
        self._quic = QuicConnection(
            configuration=server.configuration(),
            original_destination_connection_id=original,
            retry_source_connection_id=retried,
            session_ticket_fetcher=self._fetch,
            session_ticket_handler=lambda ticket: server.tickets.update({ticket.ticket: ticket}),
        )
        server.connections.append(self._quic)
        self._http: H3Connection | None = None
        self._timer: FakeCall | None = None

    def _fetch(self, label: bytes) -> SessionTicket | None:
        if not self._server.resumes:
            return None
        return self._server.tickets.pop(label, None)

    def receive(self, datagram: Datagram) -> None:
        """A datagram of the client arrives."""
        there = (datagram.sender, datagram.sender_port)
        self._quic.receive_datagram(datagram.payload, there, self._now())
        self._go_on(self._now())

    def _now(self) -> float:
        return self._clock.monotonic_ns() / 1e9

    def _go_on(self, now: float) -> None:
        event = self._quic.next_event()
        while event is not None:
            self._take(event)
            event = self._quic.next_event()
        for payload, _ in self._quic.datagrams_to_send(now):
            self._server.send(payload, self._clock, self.reply)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due = self._quic.get_timer()
        if due is not None:
            self._timer = self._clock.call_at(round(due * 1e9), self._ring)

    def _ring(self) -> None:
        now = self._now() + 1e-6  # what is due now is past then, however it is rounded
        self._quic.handle_timer(now)
        self._go_on(now)

    def _take(self, event: QuicEvent) -> None:
        if isinstance(event, ProtocolNegotiated) and event.alpn_protocol == "h3":
            self._http = H3Connection(self._quic)
        if self._http is None:
            if isinstance(event, StreamDataReceived):
                self._quic.send_stream_data(event.stream_id, event.data, event.end_stream)
            return
        for one in self._http.handle_event(event):
            if isinstance(one, HeadersReceived):
                headers = {name.decode(): value.decode() for name, value in one.headers}
                self._server.requests.append(headers)
            if isinstance(one, DataReceived):
                size = self._server.bodies.get(one.stream_id, 0) + len(one.data)
                self._server.bodies[one.stream_id] = size
            if isinstance(one, HeadersReceived | DataReceived) and one.stream_ended:
                self._answer(self._http, one.stream_id)

    def _answer(self, http: H3Connection, stream: int) -> None:
        if self._server.closes_with is not None:
            code, reason = self._server.closes_with
            self._quic.close(code, reason_phrase=reason)
            return
        if self._server.raw_answer is not None:
            self._quic.send_stream_data(stream, self._server.raw_answer, end_stream=True)
            return
        status = [(b":status", b"200"), (b"server", b"scripted")]
        status += [(b"more-%d" % number, b"1") for number in range(self._server.more_headers)]
        http.send_headers(stream, status, end_stream=not self._server.answer)
        if self._server.answer:
            http.send_data(stream, self._server.answer, end_stream=True)
