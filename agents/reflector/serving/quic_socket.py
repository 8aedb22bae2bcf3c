"""One UDP socket of the QUIC server: which datagram is for which connection, and who is told what
of a stranger. See `quic_server`.
"""

import asyncio
import os
from collections import OrderedDict
from collections.abc import Callable
from typing import Protocol

from aioquic._buffer import Buffer
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

from pathbudget.agents.reflector.serving.http3 import Holding, Http3
from pathbudget.agents.reflector.serving.http3_stream import Left
from pathbudget.agents.reflector.serving.moments import Came, came_now
from pathbudget.agents.reflector.serving.pages import Pages
from pathbudget.agents.reflector.serving.wire import SECOND_NS
from pathbudget.probes.channels import Datagram, DatagramBatch, DatagramChannel, Outgoing

CID_BYTES = 8
MOST_STAMPS_AWAITED = 4_096


class Connections(Protocol):
    """All connections of a server, as its sockets see them; `quic_server.QuicServer` is one."""

    pages: Pages
    open: set[Http3]
    by_cid: dict[bytes, Http3]
    holding: Holding
    configuration: QuicConfiguration
    retries: QuicRetryTokenHandler

    @property
    def wants_retry(self) -> bool:
        """Whether who comes now has to show first that he is there."""
        ...

    def admits(self, address: str) -> bool:
        """Whether an address is answered at all."""
        ...

    def refusal(self, address: str) -> str:
        """Why it may not begin a connection; where it may, it counts as in."""
        ...

    def leave(self, address: str) -> None:
        """A connection from there is gone."""

    def connection(self, cid: bytes, retried: bytes | None) -> QuicConnection:
        """A new connection of who has chosen this id first."""
        ...


class QuicSocket:
    """One UDP socket; see `http3.Endpoint`."""

    channel: DatagramChannel

    def __init__(self, server: Connections, *, wildcard: bool) -> None:
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
        quic = server.connection(cid, retried)
        connection = Http3(self._pages, quic, self, server.holding, datagram.sender)
        server.open.add(connection)
        self.known_as(connection, retried or cid)
        self.known_as(connection, quic.host_cid)
        return connection

    def _answer(self, datagram: Datagram, payload: bytes) -> None:
        self.send(payload, (datagram.sender, datagram.sender_port), datagram.local)
