"""Session tickets: whose they are, how old, and why one is not at hand (RFC 8446, 4.6.1)."""

import contextlib
from collections import deque
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from pathbudget.probes.contract import Shot

KEPT_PER_SERVER = 16
LONGEST_LIFETIME_SECONDS = 604_800
"""Seven days, whatever a server says (RFC 8446, 4.6.1)."""
LARGEST_TICKET_BYTES = 8_192
"""A larger one would make the ClientHello that offers it an upload; it is not used."""


class Server(NamedTuple):
    """Whom a ticket belongs to: one target at one address."""

    target: str
    host: str
    server_name: str
    address: str
    port: int


def server_of(shot: Shot, port: int) -> Server:
    """The server that a shot goes to."""
    target = shot.target
    name = target.server_name or target.host
    return Server(target.name, target.host, name, shot.address, port)


class TicketWord(StrEnum):
    """What became of the ticket of one connection."""

    ACCEPTED = "accepted"
    NONE = "none at hand"
    EXPIRED = "expired"
    TOO_YOUNG = "too young"
    TOO_LARGE = "too large"
    REFUSED = "refused by the server"


@dataclass(frozen=True, slots=True)
class Ticket:
    """One ticket, as the library that took it keeps it."""

    session: object
    received_ns: int
    """Monotonic."""
    lifetime_seconds: int
    early_data_bytes: int | None = None
    """How much early data it allows; None where the library cannot tell."""
    size_bytes: int | None = None

    def age_ns(self, now_ns: int) -> int:
        """How long it has been held, by the monotonic clock."""
        return now_ns - self.received_ns

    def expired(self, now_ns: int) -> bool:
        """Whether the server has said not to use it any more."""
        seconds = min(self.lifetime_seconds, LONGEST_LIFETIME_SECONDS)
        return self.age_ns(now_ns) >= seconds * 1_000_000_000


class Tickets:
    """The tickets at hand, freshest first out; of those that must be of some age, the oldest.

    `reuse` keeps a ticket that was taken, `smallest_age_ns` holds back younger ones.
    """

    def __init__(self, *, reuse: bool = False, smallest_age_ns: int = 0) -> None:
        self._reuse = reuse
        self._smallest_age_ns = smallest_age_ns
        self._held: dict[Server, deque[Ticket]] = {}
        self._too_large: set[Server] = set()

    def wanted(self, server: Server) -> bool:
        """Whether another ticket is of use: one that is used again needs no second, and those that
        ripen make no room for younger ones.
        """
        held = len(self._held.get(server, ()))
        if self._reuse:
            return not held
        return not self._smallest_age_ns or held < KEPT_PER_SERVER

    def keep(self, server: Server, ticket: Ticket) -> None:
        """Keep a ticket for later, where it is of use."""
        if ticket.size_bytes is not None and ticket.size_bytes > LARGEST_TICKET_BYTES:
            self._too_large.add(server)
            return
        self._too_large.discard(server)
        held = self._held.setdefault(server, deque(maxlen=KEPT_PER_SERVER))
        if self.wanted(server):
            held.append(ticket)

    def give_back(self, server: Server, ticket: Ticket) -> None:
        """It was taken, and not offered to anybody."""
        held = self._held.setdefault(server, deque(maxlen=KEPT_PER_SERVER))
        if ticket in held:
            return
        if self._smallest_age_ns:
            held.appendleft(ticket)
        else:
            held.append(ticket)

    def drop(self, server: Server, ticket: Ticket) -> None:
        """The server refused it: no reason to offer it again."""
        with contextlib.suppress(KeyError, ValueError):
            self._held[server].remove(ticket)

    def take(self, server: Server, now_ns: int) -> Ticket | TicketWord:
        """A ticket to offer, which is not held any more; the word for why there is none."""
        held = self._held.get(server)
        if not held:
            return TicketWord.TOO_LARGE if server in self._too_large else TicketWord.NONE
        while held and held[0].expired(now_ns):
            held.popleft()
        place = 0 if self._smallest_age_ns else -1
        if not held:
            return TicketWord.EXPIRED
        ticket = held[place]
        if ticket.expired(now_ns):  # lifetimes differ: a younger one may end first
            del held[place]
            return self.take(server, now_ns) if held else TicketWord.EXPIRED
        if ticket.age_ns(now_ns) < self._smallest_age_ns:
            return TicketWord.TOO_YOUNG
        if not self._reuse:
            del held[place]
        return ticket
