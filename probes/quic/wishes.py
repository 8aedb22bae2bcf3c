"""What a QUIC connection was wished to be, and what it proved to be."""

from typing import TYPE_CHECKING

from aioquic.quic.events import HandshakeCompleted
from cryptography.hazmat.primitives.serialization import Encoding

from pathbudget.probes.contract import Shot
from pathbudget.probes.failures import early_data_rejected, not_resumed, unavailable
from pathbudget.probes.quic import inside
from pathbudget.probes.quic.packets import VERSION_1, VERSION_2
from pathbudget.probes.quic.settings import QuicSettings
from pathbudget.probes.record import ConnectionMode, Failure, Note
from pathbudget.probes.tls.tickets import Ticket, Tickets, TicketWord, server_of

if TYPE_CHECKING:
    from pathbudget.probes.quic.driver import Driver

_VERSIONS = {VERSION_1: "v1", VERSION_2: "v2"}


class Wish:
    """One connection's ticket and early data, from the wish to the proof."""

    def __init__(self, settings: QuicSettings, tickets: Tickets, shot: Shot) -> None:
        self._settings = settings
        self._tickets = tickets
        port = settings.default_port if shot.target.port is None else shot.target.port
        self._server = server_of(shot, port)
        self._ticket: Ticket | None = None
        self.offered: Ticket | None = None
        self._no_early = ""
        self.token = b""
        """The latest that the server gave us on this connection."""
        self.mode = ConnectionMode.COLD
        self.facts: dict[str, Note] = {}

    @property
    def wants_ticket(self) -> bool:
        """Whether one more ticket is of use to later connections."""
        return self._settings.wants_tickets and self._tickets.wanted(self._server)

    def take_ticket(self, now_ns: int, *, early: bool) -> None:
        """Take one, where there is one to be had; `early` is whether there is a request for it."""
        if not self._settings.wants_tickets:
            return
        found = self._tickets.take(self._server, now_ns)
        if isinstance(found, TicketWord):
            self.facts["ticket"] = found.value
            return
        self._ticket = found
        self.mode = ConnectionMode.RESUMED
        if self._settings.mode is ConnectionMode.EARLY_DATA and early:
            self.mode = ConnectionMode.EARLY_DATA
            if not found.early_data_bytes:
                self._no_early = "the server's tickets allow no early data"

    def offer(self, now_ns: int) -> Ticket | None:
        """The ticket that leaves with the first flight now."""
        ticket, self._ticket = self._ticket, None
        self.offered = ticket
        if ticket is not None:
            self.facts["ticket_age_ms"] = ticket.age_ns(now_ns) // 1_000_000
        return ticket

    @property
    def early(self) -> bool:
        """Whether early data is to leave with it."""
        return self.mode is ConnectionMode.EARLY_DATA and not self._no_early

    def found(self, driver: "Driver", event: HandshakeCompleted) -> dict[str, Note]:
        """The notes of a handshake that is complete."""
        quic = driver.quic
        version = inside.version_of(quic)
        notes: dict[str, Note] = {
            "version": _VERSIONS.get(version, f"{version:#x}"),
            "cipher": inside.cipher(quic),
            "alpn": event.alpn_protocol or "",
            **driver.flight.notes(),
        }
        sent = inside.certificates(quic)
        if sent is not None:
            leaf, chain = sent
            sizes = (len(one.public_bytes(Encoding.DER)) for one in (leaf, *chain))
            notes["certificate_bytes"] = sum(sizes)
        elif event.session_resumed:
            notes["certificate_bytes"] = 0
        if self.offered is not None:
            word = TicketWord.ACCEPTED if event.session_resumed else TicketWord.REFUSED
            notes["ticket"] = word.value
        return {key: value for key, value in notes.items() if value != ""}

    def verdict(self, event: HandshakeCompleted, *, left_early: bool) -> Failure | None:
        """Why it is not what it was tried as; None where it is.

        `left_early` is that the request had left before anything came back: aioquic says that early
        data was accepted also where none was sent.
        """
        if self.mode is ConnectionMode.COLD:
            return None
        if self.mode is ConnectionMode.RESUMED:
            return None if event.session_resumed else not_resumed()
        if self._no_early:
            return unavailable(self._no_early)
        if not event.session_resumed:
            return early_data_rejected("the server did not accept the session ticket")
        if not event.early_data_accepted:
            return early_data_rejected("the server resumed, and did not accept the early data")
        if not left_early:
            return unavailable("the request did not leave with the first flight")
        return None

    def keep(self, ticket: Ticket) -> None:
        """One came."""
        self._tickets.keep(self._server, ticket)

    def give_back(self) -> None:
        """The ticket was not offered."""
        ticket, self._ticket = self._ticket, None
        if ticket is not None:
            self._tickets.give_back(self._server, ticket)
