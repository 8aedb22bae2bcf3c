"""Which ticket is offered, and why none is."""

import pytest

from pathbudget.probes.tls.client import SslLibrary
from pathbudget.probes.tls.settings import TlsSettings
from pathbudget.probes.tls.tickets import (
    KEPT_PER_SERVER,
    LARGEST_TICKET_BYTES,
    Server,
    Ticket,
    Tickets,
    TicketWord,
)

HERE = Server("one", "site.example", "site.example", "192.0.2.1", 443)
THERE = HERE._replace(address="192.0.2.2")
SECOND = 1_000_000_000
HOUR = 3_600 * SECOND


def ticket(
    name: str, received_s: int = 0, lifetime: int = 7_200, size: int | None = None
) -> Ticket:
    return Ticket(name, received_s * SECOND, lifetime, size_bytes=size)


def test_the_freshest_is_offered_and_only_once() -> None:
    tickets = Tickets()
    tickets.keep(HERE, ticket("a", 1))
    tickets.keep(HERE, ticket("b", 2))
    assert tickets.take(HERE, 3 * SECOND) == ticket("b", 2)
    assert tickets.take(HERE, 3 * SECOND) == ticket("a", 1)
    assert tickets.take(HERE, 3 * SECOND) is TicketWord.NONE
    assert tickets.take(THERE, 3 * SECOND) is TicketWord.NONE


@pytest.mark.parametrize(
    ("lifetime", "age_s", "usable"),
    [(7_200, 7_199, True), (7_200, 7_200, False), (10**9, 604_799, True), (10**9, 604_800, False)],
)
def test_lifetimes_are_honoured_up_to_a_week(lifetime: int, age_s: int, usable: bool) -> None:
    tickets = Tickets()
    tickets.keep(HERE, ticket("a", lifetime=lifetime))
    found = tickets.take(HERE, age_s * SECOND)
    assert isinstance(found, Ticket) == usable
    assert usable or found is TicketWord.EXPIRED


def test_a_fresh_ticket_of_a_short_life_gives_way_to_an_older_one() -> None:
    tickets = Tickets()
    tickets.keep(HERE, ticket("long", 0))
    tickets.keep(HERE, ticket("short", 1, lifetime=5))
    assert tickets.take(HERE, 100 * SECOND) == ticket("long", 0)
    assert tickets.take(HERE, 100 * SECOND) is TicketWord.NONE


def test_reuse_offers_the_same_again() -> None:
    tickets = Tickets(reuse=True)
    tickets.keep(HERE, ticket("a"))
    assert {tickets.take(HERE, SECOND) for _ in range(3)} == {ticket("a")}
    assert not tickets.wanted(HERE)
    tickets.keep(HERE, ticket("b"))
    assert tickets.take(HERE, SECOND) == ticket("a")
    tickets.drop(HERE, ticket("a"))
    tickets.drop(HERE, ticket("a"))
    assert tickets.take(HERE, SECOND) is TicketWord.NONE
    tickets.keep(HERE, ticket("a"))
    assert tickets.take(HERE, 3 * HOUR) is TicketWord.EXPIRED


def test_ripening_tickets_are_not_pushed_out_by_younger_ones() -> None:
    tickets = Tickets(smallest_age_ns=60 * SECOND)
    for number in range(100):
        tickets.keep(HERE, ticket(str(number), number))
    assert not tickets.wanted(HERE)
    assert tickets.take(HERE, 59 * SECOND) is TicketWord.TOO_YOUNG
    assert tickets.take(HERE, 61 * SECOND) == ticket("0", 0)
    assert tickets.take(HERE, 61 * SECOND) == ticket("1", 1)
    assert tickets.take(HERE, 61 * SECOND) is TicketWord.TOO_YOUNG
    assert tickets.wanted(HERE)


def test_one_that_was_not_offered_comes_back_to_its_place() -> None:
    for age, names in ((0, "ba"), (1, "ab")):
        tickets = Tickets(smallest_age_ns=age)
        tickets.keep(HERE, ticket("a", 1))
        tickets.keep(HERE, ticket("b", 2))
        taken = tickets.take(HERE, 9 * SECOND)
        assert isinstance(taken, Ticket)
        tickets.give_back(HERE, taken)
        order = [tickets.take(HERE, 9 * SECOND) for _ in names]
        assert [one.session for one in order if isinstance(one, Ticket)] == list(names)


def test_memory_is_bounded() -> None:
    tickets = Tickets()
    tickets.keep(HERE, ticket("x", size=LARGEST_TICKET_BYTES + 1))
    assert tickets.take(HERE, SECOND) is TicketWord.TOO_LARGE
    for number in range(1_000):
        tickets.keep(HERE, ticket(str(number), number, size=100))
    found = 0
    while isinstance(tickets.take(HERE, 1_000 * SECOND), Ticket):
        found += 1
    assert found == KEPT_PER_SERVER


class TooLong:
    """An `ssl.SSLObject` that has taken a ticket of 65,535 bytes."""

    @property
    def session(self) -> None:
        raise ValueError("i2d() failed")


def test_a_ticket_that_ssl_cannot_write_down_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    client = SslLibrary(TlsSettings(verify=False)).client("site.example", None)
    monkeypatch.setattr(client, "_tls", TooLong())
    assert client.new_ticket(0) is None
