"""A connection that carries questions, whatever it is made of: TCP, TLS, HTTP/2 or QUIC."""

from typing import Protocol

from pathbudget.probes.carriers import Moment, OpeningListener
from pathbudget.probes.contract import Shot
from pathbudget.probes.record import Failure


class LinkListener(OpeningListener, Protocol):
    """Whom a link tells what happens. `failed` may come at any time, and is the last."""

    def asked(self, moment: Moment) -> None:
        """The question has left; told again where a better clock saw it."""

    def answered(self, wire: bytes, moment: Moment) -> None:
        """A message came; whether it answers the question is for the listener to see."""

    def broke(self, failure: Failure) -> None:
        """The connection stood, and there will be no answer on it."""


class Link(Protocol):
    """One connection, being opened or open. Carries one question at a time."""

    @property
    def usable(self) -> bool:
        """Whether another question may be asked on it."""
        ...

    def listen(self, listener: LinkListener) -> None:
        """Tell this one from now on."""

    def ask(self, wire: bytes) -> None:
        """Send a question. After `opened`."""

    def close(self) -> None:
        """End it in good order. No more is told."""

    def abandon(self) -> None:
        """Drop it at once. No more is told."""


class LinkDialer(Protocol):
    """Opens links to the server of a shot, and keeps what later ones may use."""

    @property
    def identifiers(self) -> bool:
        """Whether questions are numbered; else the number is 0 (RFC 8484, RFC 9250)."""
        ...

    def dial(self, shot: Shot, listener: LinkListener, early: bytes = b"") -> Link:
        """Begin. The question `early` leaves as soon as it may."""
        ...

    async def drain(self) -> None:
        """Return when no connection is being opened, or waits for a ticket."""

    def close(self) -> None:
        """Drop everything."""
