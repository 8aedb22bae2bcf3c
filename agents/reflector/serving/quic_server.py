"""QUIC on the reflector's stamped UDP sockets: which datagram is for which connection, and who may
begin one. The handshake and everything above is `http3.Http3` and aioquic.

No datagram is answered with more than three times its size before its sender has shown to be where
it says (RFC 9000 section 8.1; aioquic counts). With many handshakes under way, or always where that
is asked for, that is shown by a Retry first, which keeps nothing here.
"""

import asyncio
import logging
import os
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from aioquic._buffer import Buffer
from aioquic.h3.connection import H3_ALPN
from aioquic.quic.configuration import SMALLEST_MAX_DATAGRAM_SIZE, QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.packet import (
    QuicHeader,
    QuicPacketType,
    encode_quic_retry,
    encode_quic_version_negotiation,
    pull_quic_header,
)
from aioquic.quic.retry import QuicRetryTokenHandler
from aioquic.tls import SessionTicket

from pathbudget.agents.reflector.options import WILDCARDS, family_of
from pathbudget.agents.reflector.serving.certificates import Shown
from pathbudget.agents.reflector.serving.http3 import Holding, Http3, Left
from pathbudget.agents.reflector.serving.moments import Came, came_now
from pathbudget.agents.reflector.serving.pages import Pages
from pathbudget.agents.reflector.serving.wire import SECOND_NS
from pathbudget.probes.channels import (
    Datagram,
    DatagramBatch,
    DatagramChannel,
    Network,
    Outgoing,
    PacketOptions,
)

CID_BYTES = 8
MOST_TICKETS = 4_096
MOST_STAMPS_AWAITED = 4_096
HELD_BYTES = 128 << 20
"""All connections together may make aioquic keep so much that came out of order."""
QUIC_WINDOW = 4 << 20
"""Flow control: aioquic makes room for all of it when the last byte comes first."""


class Tickets:
    """Tickets that were given out, each good once (RFC 8446 section 8.1); the newest remain."""

    def __init__(self, most: int = MOST_TICKETS) -> None:
        self._kept: OrderedDict[bytes, SessionTicket] = OrderedDict()
        self._most = most

    def keep(self, ticket: SessionTicket) -> None:
        """A ticket is given out."""
        self._kept[ticket.ticket] = ticket
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)

    def take(self, label: bytes) -> SessionTicket | None:
        """A ticket is shown."""
        return self._kept.pop(label, None)


class QuicServer:
    """All connections on all sockets. `admits` is whether an address is answered at all; `refusal`
    says why it may not begin a connection, and counts it in where it may; `leave` is told the
    address when the connection is gone.
    """

    def __init__(
        self,
        pages: Pages,
        shown: Shown,
        admits: Callable[[str], bool],
        refusal: Callable[[str], str],
        leave: Callable[[str], None],
        *,
        retry: bool,
    ) -> None:
        self.pages = pages
        self.open: set[Http3] = set()
        self.by_cid: dict[bytes, Http3] = {}
        self.holding = Holding(HELD_BYTES)
        self.admits = admits
        self.refusal = refusal
        self.leave = leave
        self._tickets = Tickets()
        self._retry_always = retry
        self.retries = QuicRetryTokenHandler()
        self._sockets: list[QuicSocket] = []
        self.configuration = QuicConfiguration(
            alpn_protocols=H3_ALPN,
            is_client=False,
            connection_id_length=CID_BYTES,
            idle_timeout=pages.limits.idle_seconds,
            max_data=QUIC_WINDOW,
            max_stream_data=QUIC_WINDOW,
        )
        self.show(shown)
        # Whatever strangers send would be a line of its log.
        logging.getLogger("quic").setLevel(logging.CRITICAL)

    def listen(self, network: Network, address: str, port: int) -> bool:
        """Open one socket; false where this host has no such family. Raises PrivilegeError."""
        opened = QuicSocket(self, wildcard=address in WILDCARDS)
        channel = network.open_datagrams(
            family_of(address),
            opened.batch,
            port=port,
            packet=PacketOptions(source=address, fragment=False),
        )
        if channel is None:
            return False
        opened.channel = channel
        self._sockets.append(opened)
        return True

    def show(self, shown: Shown) -> None:
        """Show this certificate to who comes from now on."""
        self.configuration.load_cert_chain(shown.certificate, shown.key)

    def close(self) -> None:
        """End everything."""
        for connection in list(self.open):
            connection.abort("stopped")
        for opened in self._sockets:
            opened.channel.close()

    @property
    def wants_retry(self) -> bool:
        """Whether who comes now has to show first that he is there."""
        half_open = sum(not connection.complete for connection in self.open)
        return self._retry_always or half_open >= self.pages.limits.half_open

    def connection(self, cid: bytes, retried: bytes | None) -> QuicConnection:
        """A new connection of who has chosen this id first."""
        return QuicConnection(
            configuration=self.configuration,
            original_destination_connection_id=cid,
            retry_source_connection_id=retried,
            session_ticket_fetcher=self._tickets.take,
            session_ticket_handler=self._tickets.keep,
        )


class QuicSocket:
    """One UDP socket; see `http3.Endpoint`."""

    channel: DatagramChannel

    def __init__(self, server: QuicServer, *, wildcard: bool) -> None:
        self._server = server
        self._pages = server.pages
        self._counts = server.pages.counts
        self._wildcard = wildcard
        self._loop = asyncio.get_running_loop()
        self._awaited: OrderedDict[int, list[Left]] = OrderedDict()
        self._timers: dict[Http3, asyncio.TimerHandle] = {}

    def batch(self, batch: DatagramBatch) -> None:
        """Hand on what came, one by one: each has its own stamp."""
        self._tell(batch.sent)
        for datagram in batch.arrivals:
            self._take(datagram)

    def send(self, payload: bytes, address: tuple[str, int], local: str) -> int | None:
        """See `http3.Endpoint.send`."""
        source = local if self._wildcard else ""
        sent = self.channel.send(Outgoing(payload, address[0], address[1], source))
        if isinstance(sent, int):
            return sent
        self._counts["not_sent"] += 1
        return None

    def when_left(self, key: int, left: Left) -> None:
        """See `http3.Endpoint.when_left`."""
        self._awaited.setdefault(key, []).append(left)
        while len(self._awaited) > MOST_STAMPS_AWAITED:
            self._awaited.popitem(last=False)

    def stamps(self) -> bool:
        """See `http3.Endpoint.stamps`."""
        self._tell(self.channel.sent_stamps())
        return True

    def known_as(self, connection: Http3, cid: bytes) -> None:
        """See `http3.Endpoint.known_as`."""
        connection.cids.add(cid)
        self._server.by_cid[cid] = connection

    def forget(self, cid: bytes) -> None:
        """See `http3.Endpoint.forget`."""
        connection = self._server.by_cid.pop(cid, None)
        if connection is not None:
            connection.cids.discard(cid)

    def gone(self, connection: Http3, reason: str) -> None:
        """See `http3.Endpoint.gone`."""
        self._server.open.discard(connection)
        for cid in connection.cids:
            self._server.by_cid.pop(cid, None)
        if (timer := self._timers.pop(connection, None)) is not None:
            timer.cancel()
        self._counts[f"quic_{reason}"] += 1
        self._server.leave(connection.address)

    def _tell(self, stamps: list[tuple[int, int]]) -> None:
        if self._awaited:
            for key, stamp in stamps:
                for left in self._awaited.pop(key, ()):
                    left(stamp)

    def _take(self, datagram: Datagram) -> None:
        came = came_now(self._pages.clock, datagram.kernel_unix_ns)
        try:
            header = pull_quic_header(Buffer(data=datagram.payload), host_cid_length=CID_BYTES)
        except ValueError:  # BufferReadError is one
            self._counts["no_quic"] += 1
            return
        connection = self._server.by_cid.get(header.destination_cid)
        if connection is None:
            connection = self._begin(datagram, header, came)
        if connection is not None:
            connection.local = datagram.local
            sender = (datagram.sender, datagram.sender_port)
            self._guarded(connection, lambda: connection.receive(datagram.payload, sender, came))

    def _guarded(self, connection: Http3, call: Callable[[], None]) -> None:
        """Whatever a client made the library do is the end of that client alone."""
        try:
            call()
        except Exception:  # noqa: BLE001
            self._counts["faults"] += 1
            connection.abort("faults")
        self._set_timer(connection)

    def _set_timer(self, connection: Http3) -> None:
        due = connection.timer_at
        timer = self._timers.get(connection)
        if timer is not None:
            if due is not None and timer.when() == due:
                return
            timer.cancel()
        if due is None:
            self._timers.pop(connection, None)
        else:
            self._timers[connection] = self._loop.call_at(
                due, self._guarded, connection, connection.tick
            )

    def _begin(self, datagram: Datagram, header: QuicHeader, came: Came) -> Http3 | None:
        """A new connection, or None where it is none, or has to show its address first."""
        full = len(datagram.payload) >= SMALLEST_MAX_DATAGRAM_SIZE
        if header.version is None or not full:
            self._counts["no_connection"] += 1
            return None
        if header.packet_type == QuicPacketType.VERSION_NEGOTIATION:
            self._counts["no_quic"] += 1
            return None
        server = self._server
        if not server.admits(datagram.sender):
            self._counts["not_allowed"] += 1
            return None
        versions = server.configuration.supported_versions
        known = header.version in versions
        if known and header.packet_type != QuicPacketType.INITIAL:
            self._counts["no_connection"] += 1
            return None
        if known and header.token:
            return self._validated(datagram, header, came)
        if known and not server.wants_retry:
            return self._admit(datagram, header.destination_cid, None)
        self._answer(datagram, self._question(datagram, header, came, known=known))
        return None

    def _question(
        self, datagram: Datagram, header: QuicHeader, came: Came, *, known: bool
    ) -> bytes:
        """What keeps nothing here: another version, please (RFC 9000 section 6), or a Retry."""
        if not known:
            self._counts["version_negotiations"] += 1
            return encode_quic_version_negotiation(
                source_cid=header.destination_cid,
                destination_cid=header.source_cid,
                supported_versions=self._server.configuration.supported_versions,
            )
        self._counts["retries"] += 1
        source_cid = os.urandom(CID_BYTES)
        token = self._server.retries.create_token(
            address=(datagram.sender, datagram.sender_port),
            original_destination_connection_id=header.destination_cid,
            retry_source_connection_id=source_cid,
            now=came.monotonic_ns / SECOND_NS,
        )
        assert header.version is not None
        return encode_quic_retry(
            version=header.version,
            source_cid=source_cid,
            destination_cid=header.source_cid,
            original_destination_cid=header.destination_cid,
            retry_token=token,
        )

    def _validated(self, datagram: Datagram, header: QuicHeader, came: Came) -> Http3 | None:
        """Who shows a token of ours; without one that is good, nothing is kept or said."""
        try:
            first = self._server.retries.validate_token(
                address=(datagram.sender, datagram.sender_port),
                destination_cid=header.destination_cid,
                token=header.token,
                now=came.monotonic_ns / SECOND_NS,
            )
        except ValueError:
            self._counts["bad_tokens"] += 1
            return None
        return self._admit(datagram, first, header.destination_cid)

    def _admit(self, datagram: Datagram, cid: bytes, retried: bytes | None) -> Http3 | None:
        if refusal := self._server.refusal(datagram.sender):
            self._counts[refusal] += 1
            return None
        self._counts["quic_connections"] += 1
        server = self._server
        quic: Any = server.connection(cid, retried)
        connection = Http3(self._pages, quic, self, server.holding, datagram.sender)
        server.open.add(connection)
        self.known_as(connection, retried or cid)
        self.known_as(connection, quic.host_cid)
        return connection

    def _answer(self, datagram: Datagram, payload: bytes) -> None:
        self.send(payload, (datagram.sender, datagram.sender_port), datagram.local)
