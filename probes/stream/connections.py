"""Connections that carry one streamed answer at a time: dialled anew, or kept for the next one."""

from collections import deque
from typing import Protocol

from pathbudget.probes.carriers import (
    AnswerListener,
    HttpConnection,
    HttpDialer,
    Opened,
    Phase,
    Request,
)
from pathbudget.probes.contract import Shot
from pathbudget.probes.record import Failure
from pathbudget.probes.tls.tickets import Server, server_of

KEPT_PER_SERVER = 256


class ConnectionUser(Protocol):
    """Whom a connection tells how it stands while this one uses it."""

    def opened(self, opened: Opened) -> None:
        """See `carriers.OpeningListener.opened`."""

    def not_opened(self, metric: str, failure: Failure, done: tuple[Phase, ...]) -> None:
        """See `carriers.OpeningListener.failed`."""


class HeldConnection:
    """One connection and who uses it now. An `OpeningListener`."""

    def __init__(self, user: ConnectionUser, server: Server) -> None:
        self.user: ConnectionUser | None = user
        self.server = server
        self.connection: HttpConnection | None = None
        self.opened_as: Opened | None = None
        self.broken = False

    @property
    def usable(self) -> bool:
        """Whether it can carry another request."""
        return not self.broken and self.connection is not None and self.connection.usable

    def opened(self, opened: Opened) -> None:
        """See `carriers.OpeningListener.opened`."""
        self.opened_as = opened
        if self.user is not None:
            self.user.opened(opened)

    def failed(self, metric: str, failure: Failure, done: tuple[Phase, ...]) -> None:
        """See `carriers.OpeningListener.failed`; nobody minds where an idle one breaks."""
        self.broken = True
        if self.user is not None:
            self.user.not_opened(metric, failure, done)

    def abandon(self) -> None:
        """Drop it at once."""
        self.user, self.broken = None, True
        if self.connection is not None:
            self.connection.abandon()


class Connections:
    """Dials, and keeps idle connections for the next shot to the same server where `keep` is set.

    What is kept is used at least once more or closed at the end; the one used last comes first.
    """

    def __init__(self, dialer: HttpDialer, *, keep: bool) -> None:
        self._dialer = dialer
        self._keep = keep
        self._idle: dict[Server, deque[HeldConnection]] = {}

    def idle(self, shot: Shot, port: int, user: ConnectionUser) -> HeldConnection | None:
        """A connection that stands, for `user` from now on; None where none does."""
        held = self._idle.get(server_of(shot, port))
        while held:
            one = held.pop()
            if one.usable:
                one.user = user
                return one
            one.abandon()
        return None

    def dial(
        self,
        shot: Shot,
        port: int,
        user: ConnectionUser,
        early: tuple[Request, AnswerListener] | None = None,
    ) -> HeldConnection:
        """Begin a new one; what comes of it is told to `user`. See `carriers.HttpDialer.dial`."""
        held = HeldConnection(user, server_of(shot, port))
        held.connection = self._dialer.dial(shot, held, early)
        return held

    def give_back(self, held: HeldConnection) -> None:
        """Its answer is whole. Keep it, or end it in good order."""
        held.user = None
        if self._keep and held.usable:
            kept = self._idle.setdefault(held.server, deque())
            if len(kept) < KEPT_PER_SERVER:
                kept.append(held)
                return
        if held.connection is not None:
            held.connection.close()

    async def drain(self) -> None:
        """Return when no connection is being opened or is waiting for a ticket."""
        await self._dialer.drain()

    def close(self) -> None:
        """Drop everything."""
        for kept in self._idle.values():
            for held in kept:
                held.abandon()
        self._idle.clear()
        self._dialer.close()
