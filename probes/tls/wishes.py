"""What a connection was wished to be, and what it proved to be."""

from pathbudget.probes.carriers import Moment
from pathbudget.probes.contract import Shot
from pathbudget.probes.failures import early_data_rejected, not_resumed, unavailable
from pathbudget.probes.record import ConnectionMode, Failure, Flag, Note
from pathbudget.probes.tls.client_side import EarlyData, TlsClient, TlsLibrary
from pathbudget.probes.tls.settings import TlsSettings
from pathbudget.probes.tls.tickets import (
    LARGEST_TICKET_BYTES,
    Ticket,
    Tickets,
    TicketWord,
    server_of,
)

INITIAL_WINDOW_BYTES = 14_600
"""Ten segments of 1460 bytes (RFC 6928)."""
USUAL_HELLO_BYTES = 2_048
"""More than a ClientHello without a ticket takes, post-quantum key share and all."""


class Flight:
    """How the server's flight arrived."""

    def __init__(self) -> None:
        self._latest_ns: int | None = None
        self._longest_gap_ns = 0

    def came(self, now: Moment, *, asked_again: bool) -> None:
        """Some of it arrived; `asked_again` where our own answer is what comes next."""
        if self._latest_ns is not None:
            self._longest_gap_ns = max(self._longest_gap_ns, now.unix_ns - self._latest_ns)
        self._latest_ns = now.unix_ns
        if asked_again:
            self._latest_ns, self._longest_gap_ns = None, 0

    def flags(self, client: TlsClient, span_ns: int, trip_ns: int) -> tuple[str, ...]:
        """What it cost beyond one round trip, where that shows.

        A flight beyond the initial window stops until we have acknowledged: more bytes than fit,
        and a pause in the middle of about a round trip (or nearly two for all of it, where a busy
        host has read both parts at once).
        """
        retry = client.server_hello.retry
        flags = (Flag.HELLO_RETRY,) if retry else ()
        paused = self._longest_gap_ns * 2 >= trip_ns
        long = span_ns * 10 >= trip_ns * (29 if retry else 19)
        if client.flight_bytes > INITIAL_WINDOW_BYTES and trip_ns > 0 and (paused or long):
            return (*flags, Flag.SECOND_FLIGHT)
        return flags


class Wish:
    """One connection's ticket and early data, from the wish to the proof."""

    def __init__(
        self,
        settings: TlsSettings,
        library: TlsLibrary | None,
        tickets: Tickets,
        shot: Shot,
        port: int,
    ) -> None:
        self._settings = settings
        self._library = library
        self._tickets = tickets
        self._server = server_of(shot, port)
        self._ticket: Ticket | None = None
        self._offered: Ticket | None = None
        self._early = b""
        self._no_early = ""
        self.mode = ConnectionMode.COLD
        self.facts: dict[str, Note] = {}
        early = library is not None and settings.mode is ConnectionMode.EARLY_DATA
        self.impossible = library.no_early_data if early and library is not None else ""
        """Why it cannot be had at all."""

    @property
    def wants_ticket(self) -> bool:
        """Whether one more ticket is of use to later connections."""
        return self._settings.wants_tickets and self._tickets.wanted(self._server)

    def take_ticket(self, now_ns: int, early: bytes) -> None:
        """Take one, where there is one to be had."""
        if not self._settings.wants_tickets:
            return
        found = self._tickets.take(self._server, now_ns)
        if isinstance(found, TicketWord):
            self.facts["ticket"] = found.value
            return
        self._ticket = found
        if self._settings.mode is ConnectionMode.EARLY_DATA and early:
            self.mode = ConnectionMode.EARLY_DATA
            self._no_early = _why_no_early(found, len(early))
        else:
            self.mode = ConnectionMode.RESUMED
        self._early = early

    def begin(self, now_ns: int) -> tuple[TlsClient, bytes, bytes]:
        """The client's side of the connection, its ClientHello with what is to leave with it, and
        that by itself.
        """
        assert self._library is not None
        ticket, self._ticket = self._ticket, None
        name = self._server.server_name
        client = self._library.client(name, ticket)
        with_early = self.mode is ConnectionMode.EARLY_DATA and not self._no_early
        early = self._early if with_early else b""
        wire = client.start(early)
        if ticket is None:
            return client, wire, early
        if len(wire) > LARGEST_TICKET_BYTES + USUAL_HELLO_BYTES + 2 * len(early):
            self.mode, self.facts["ticket"] = ConnectionMode.COLD, TicketWord.TOO_LARGE.value
            client = self._library.client(name, None)
            return client, client.start(), b""
        self._offered = ticket
        self.facts["ticket_age_ms"] = ticket.age_ns(now_ns) // 1_000_000
        return client, wire, early

    def found(self, client: TlsClient, hello_bytes: int, early: bytes) -> dict[str, Note]:
        """The notes of a handshake that is complete."""
        hello = client.server_hello
        certificates = 0 if client.resumed else client.certificate_bytes()
        notes: dict[str, Note] = {
            "group": hello.group,
            "cipher": hello.cipher,
            "alpn": client.application,
            "hello_bytes": hello_bytes,
            "flight_bytes": client.flight_bytes,
            "library": "" if self._library is None else self._library.name,
        }
        if certificates is not None:
            notes["certificate_bytes"] = certificates
        if client.early_data is not EarlyData.NOT_SENT:
            notes["early_bytes"] = len(early)
        if self._offered is not None:
            if not client.resumed:
                self._tickets.drop(self._server, self._offered)
            word = TicketWord.ACCEPTED if client.resumed else TicketWord.REFUSED
            notes["ticket"] = word.value
        return {key: value for key, value in notes.items() if value != ""}

    def verdict(self, client: TlsClient) -> Failure | None:
        """Why it is not what it was tried as; None where it is."""
        if self.mode is ConnectionMode.COLD:
            return None
        if self.mode is ConnectionMode.RESUMED:
            return None if client.resumed else not_resumed()
        if not client.resumed:
            return early_data_rejected("the server did not accept the session ticket")
        if client.early_data is EarlyData.ACCEPTED:
            return None
        if client.early_data is EarlyData.NOT_SENT:
            return unavailable(self._no_early or "the library did not send the early data")
        if client.server_hello.retry:
            return early_data_rejected("the server asked for another ClientHello")
        return early_data_rejected("the server resumed, and did not accept the early data")

    def keep(self, ticket: Ticket) -> None:
        """One came."""
        self._tickets.keep(self._server, ticket)

    def give_back(self) -> None:
        """The ticket was not offered."""
        ticket, self._ticket = self._ticket, None
        if ticket is not None:
            self._tickets.give_back(self._server, ticket)


def _why_no_early(ticket: Ticket, count: int) -> str:
    allowed = ticket.early_data_bytes or 0
    if not allowed:
        return "the server's tickets allow no early data"
    if count > allowed:
        return f"the ticket allows {allowed} bytes of early data, the request has {count}"
    return ""
