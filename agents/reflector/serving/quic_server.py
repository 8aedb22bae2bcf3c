"""QUIC on the reflector's stamped UDP sockets: which datagram is for which connection, and who may
begin one. The handshake and everything above is `http3.Http3` and aioquic.

No datagram is answered with more than three times its size before its sender has shown to be where
it says (RFC 9000 section 8.1; aioquic counts). With many handshakes under way, or always where that
is asked for, that is shown by a Retry first, which keeps nothing here.
"""

import logging
from collections import OrderedDict
from collections.abc import Callable

from aioquic.h3.connection import H3_ALPN
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.retry import QuicRetryTokenHandler
from aioquic.tls import SessionTicket

from pathbudget.agents.reflector.options import WILDCARDS, family_of
from pathbudget.agents.reflector.serving.certificates import Shown
from pathbudget.agents.reflector.serving.http3 import Holding, Http3
from pathbudget.agents.reflector.serving.pages import Pages
from pathbudget.agents.reflector.serving.quic_socket import CID_BYTES, QuicSocket
from pathbudget.probes.channels import Network, PacketOptions

MOST_TICKETS = 4_096
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
        self.gone = 0
        """Connections that have ended since somebody set it to 0."""
        self._admits = admits
        self._refusal = refusal
        self._leave = leave
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

    def admits(self, address: str) -> bool:
        """See `quic_socket.Connections.admits`."""
        return self._admits(address)

    def refusal(self, address: str) -> str:
        """See `quic_socket.Connections.refusal`."""
        return self._refusal(address)

    def leave(self, address: str) -> None:
        """See `quic_socket.Connections.leave`."""
        self.gone += 1
        self._leave(address)

    def connection(self, cid: bytes, retried: bytes | None) -> QuicConnection:
        """A new connection of who has chosen this id first."""
        return QuicConnection(
            configuration=self.configuration,
            original_destination_connection_id=cid,
            retry_source_connection_id=retried,
            session_ticket_fetcher=self._tickets.take,
            session_ticket_handler=self._tickets.keep,
        )
