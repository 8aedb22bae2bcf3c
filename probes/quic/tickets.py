"""What a QUIC client keeps for later: the session ticket, and what else the server gave it.

The ticket of aioquic holds the server's transport parameters, which early data needs (RFC 9000,
7.4.1), and dates of the wall clock, which somebody may set. Its age is told to the server (RFC
8446, 4.2.11.1), so the dates are worked out again from the monotonic clock at every use.
"""

import dataclasses
import datetime
from dataclasses import dataclass

from aioquic.tls import SessionTicket, utcnow

from pathbudget.probes.tls.tickets import Ticket


@dataclass(frozen=True, slots=True)
class Kept:
    """The `session` of a `Ticket`. `token` proves our address to the server (RFC 9000, 8.1.3)."""

    ticket: SessionTicket
    token: bytes = b""


def keep(ticket: SessionTicket, token: bytes, now_ns: int) -> Ticket:
    """A ticket that came; `now_ns` is monotonic."""
    lifetime = ticket.not_valid_after - ticket.not_valid_before
    return Ticket(
        Kept(ticket, token),
        now_ns,
        round(lifetime.total_seconds()),
        early_data_bytes=ticket.max_early_data_size or 0,
        size_bytes=len(ticket.ticket),
    )


def to_offer(held: Ticket, now_ns: int, *, early: bool) -> SessionTicket:
    """The ticket as it is to be offered; without `early` no early data is announced with it."""
    assert isinstance(held.session, Kept)
    ticket = held.session.ticket
    # aioquic subtracts from its own clock, a moment later.
    received = utcnow() - datetime.timedelta(microseconds=held.age_ns(now_ns) // 1_000)
    return dataclasses.replace(
        ticket,
        not_valid_before=received,
        not_valid_after=received + datetime.timedelta(seconds=held.lifetime_seconds),
        max_early_data_size=ticket.max_early_data_size if early else None,
    )
