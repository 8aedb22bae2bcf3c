"""Opens QUIC connections, and keeps what later ones may use.

dialer = QuicDialer(environment, quic_settings(options, mode=..., alpn=("doq",)))
streams = dialer.dial(shot, listener)       # listener.opened(...), then streams.open_stream(...)
"""

import asyncio

from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.tls import SessionTicket

from pathbudget.probes.clock import ClockWatcher, Reading
from pathbudget.probes.contract import ProbeEnvironment, Shot
from pathbudget.probes.quic.inside import ClientConnection
from pathbudget.probes.quic.opening import QuicListener
from pathbudget.probes.quic.settings import QUIC_OPTIONS, QuicSettings, quic_settings
from pathbudget.probes.quic.streams import Early, QuicStreams
from pathbudget.probes.quic.tickets import Kept, keep, to_offer
from pathbudget.probes.quic.verifying import Authorities, load_own_certificate
from pathbudget.probes.quic.wishes import Wish
from pathbudget.probes.tls.tickets import Tickets

__all__ = [
    "QUIC_OPTIONS",
    "QuicDialer",
    "QuicListener",
    "QuicSettings",
    "QuicStreams",
    "quic_settings",
]

INITIAL_ROUND_TRIP_SECONDS = 0.333
"""What the first timer goes by (RFC 9002, 6.2.2)."""
WINDOW_BYTES = 4 << 20
"""What a server may send before we read it: of one stream, and of all of them."""
NO_VERIFICATION = 0
"""``ssl.CERT_NONE``: see `verifying`."""


class QuicDialer:
    """Raises ConfigError where a file cannot be used."""

    def __init__(self, environment: ProbeEnvironment, settings: QuicSettings) -> None:
        self.environment = environment
        self.settings = settings
        self.watcher = ClockWatcher(environment.clock)
        self.authorities = Authorities(settings.ca_file) if settings.verify else None
        self._own = load_own_certificate(settings)
        self.tickets = Tickets(reuse=settings.ticket_reuse, smallest_age_ns=settings.ticket_age_ns)
        self._alive: set[QuicStreams] = set()
        self._unsettled: set[QuicStreams] = set()
        self._idle = asyncio.Event()
        self._idle.set()

    def dial(
        self, shot: Shot, listener: QuicListener, *, early: Early | None = None
    ) -> QuicStreams:
        """Begin. `early` is called with the connection before the first datagram leaves: what it
        writes leaves with it where a ticket allows that, else right after the handshake.
        """
        streams = self.prepare(shot, listener, early=early)
        streams.begin()
        return streams

    def prepare(
        self, shot: Shot, listener: QuicListener, *, early: Early | None = None
    ) -> QuicStreams:
        """As `dial`, without its `begin`: for a listener that must know its connection first."""
        wish = Wish(self.settings, self.tickets, shot)
        streams = QuicStreams(self, shot, listener, early, wish)
        self._alive.add(streams)
        self.unsettle(streams)
        return streams

    def make_quic(self, streams: QuicStreams, server_name: str, now: Reading) -> QuicConnection:
        """See `streams.Owner.make_quic`."""
        wish = streams.wish
        held = wish.offer(now.monotonic_ns)
        offered = None
        if held is not None:
            offered = to_offer(held, now.monotonic_ns, early=wish.early)
        configuration = QuicConfiguration(
            alpn_protocols=list(self.settings.alpn) or None,
            server_name=server_name,
            session_ticket=offered,
            token=held.session.token if held and isinstance(held.session, Kept) else b"",
            initial_rtt=INITIAL_ROUND_TRIP_SECONDS,
            max_data=WINDOW_BYTES,
            max_stream_data=WINDOW_BYTES,
            verify_mode=NO_VERIFICATION,
        )
        if self._own is not None:
            configuration.certificate = self._own.certificate
            configuration.certificate_chain = self._own.certificate_chain
            configuration.private_key = self._own.private_key
        if not self.settings.wants_tickets:
            return ClientConnection(configuration=configuration)

        def take(ticket: SessionTicket) -> None:
            streams.take_ticket(keep(ticket, wish.token, self.watcher.read().monotonic_ns))

        def take_token(token: bytes) -> None:
            wish.token = token

        return ClientConnection(
            configuration=configuration, session_ticket_handler=take, token_handler=take_token
        )

    def settle(self, streams: QuicStreams) -> None:
        """See `streams.Owner.settle`."""
        self._unsettled.discard(streams)
        if not self._unsettled:
            self._idle.set()

    def unsettle(self, streams: QuicStreams) -> None:
        """See `streams.Owner.unsettle`."""
        self._unsettled.add(streams)
        self._idle.clear()

    def forget(self, streams: QuicStreams) -> None:
        """See `streams.Owner.forget`."""
        self._alive.discard(streams)
        self.settle(streams)

    async def drain(self) -> None:
        """Return when no connection is being opened or is waiting for a ticket."""
        while self._unsettled:
            await self._idle.wait()

    def close(self) -> None:
        """Drop everything."""
        for streams in tuple(self._alive):
            streams.abandon()
