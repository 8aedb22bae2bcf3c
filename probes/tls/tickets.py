"""Session tickets, each for one server and one use (RFC 8446, C.4)."""

import ssl
from collections import deque
from typing import NamedTuple

from pathbudget.probes.contract import Shot

KEPT_PER_SERVER = 16


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


class Tickets:
    """The tickets at hand, freshest first out."""

    def __init__(self) -> None:
        self._held: dict[Server, deque[ssl.SSLSession]] = {}

    def keep(self, server: Server, ticket: ssl.SSLSession) -> None:
        """Keep a ticket for later."""
        self._held.setdefault(server, deque(maxlen=KEPT_PER_SERVER)).append(ticket)

    def take(self, server: Server, now_unix_ns: int) -> ssl.SSLSession | None:
        """A ticket that has not run out; it is not held any more."""
        held = self._held.get(server)
        while held:
            ticket = held.pop()
            lifetime = min(ticket.ticket_lifetime_hint, ticket.timeout)
            if now_unix_ns // 1_000_000_000 < ticket.time + lifetime:
                return ticket
        return None
