"""HTTP connections that may outlive the shot that opened them: one is kept for each series."""

from collections import OrderedDict
from typing import Protocol

from pathbudget.probes.carriers import HttpConnection, HttpDialer, Opened, Phase
from pathbudget.probes.contract import Shot
from pathbudget.probes.http.connection import Tried
from pathbudget.probes.record import ConnectionMode, Failure

KEPT_PER_SERIES = 32
"""Mode idle has as many as shots fall into the time for which each is left alone."""


class LinkUser(Protocol):
    """Whom a connection tells how it stands while this one uses it."""

    def link_opened(self, opened: Opened) -> None:
        """See `carriers.OpeningListener.opened`."""

    def link_failed(self, metric: str, failure: Failure, done: tuple[Phase, ...]) -> None:
        """See `carriers.OpeningListener.failed`."""


class Link:
    """One connection, and who uses it now. An `OpeningListener`."""

    def __init__(self, user: LinkUser) -> None:
        self.user: LinkUser | None = user
        self.connection: HttpConnection | None = None
        self.opened_as: Opened | None = None
        self.idle_since_ns = 0
        self._broken = False

    @property
    def usable(self) -> bool:
        """Whether it can carry another request."""
        return not self._broken and self.connection is not None and self.connection.usable

    @property
    def tried_as(self) -> ConnectionMode | None:
        """What it is tried as, where that is known."""
        return self.connection.mode if isinstance(self.connection, Tried) else None

    def opened(self, opened: Opened) -> None:
        """See `carriers.OpeningListener.opened`."""
        self.opened_as = opened
        if self.user is not None:
            self.user.link_opened(opened)

    def failed(self, metric: str, failure: Failure, done: tuple[Phase, ...]) -> None:
        """See `carriers.OpeningListener.failed`; nobody minds where an idle one breaks."""
        self._broken = True
        if self.user is not None:
            self.user.link_failed(metric, failure, done)

    def close(self) -> None:
        """End it in good order."""
        self.user = None
        if self.connection is not None:
            self.connection.close()

    def abandon(self) -> None:
        """Drop it at once."""
        self.user, self._broken = None, True
        if self.connection is not None:
            self.connection.abandon()


class Links:
    """Dials, and keeps connections of a series for its later shots."""

    def __init__(self, dialer: HttpDialer) -> None:
        self.dialer = dialer
        self._kept: dict[int, OrderedDict[Link, None]] = {}

    def take(self, shot: Shot, now_ns: int, idle_ns: int) -> Link | None:
        """A connection that stands: the one used last or, with `idle_ns`, the one left alone the
        longest, if that is long enough. None where there is none.
        """
        kept = self._kept.get(shot.series, OrderedDict())
        for link in [link for link in kept if not link.usable]:
            del kept[link]
            link.abandon()
        if not kept:
            return None
        if idle_ns and now_ns - next(iter(kept)).idle_since_ns < idle_ns:
            return None
        link, _ = kept.popitem(last=not idle_ns)
        return link

    def keep(self, shot: Shot, link: Link, now_ns: int) -> None:
        """It is free for a later shot."""
        link.user, link.idle_since_ns = None, now_ns
        kept = self._kept.setdefault(shot.series, OrderedDict())
        if len(kept) < KEPT_PER_SERIES:
            kept[link] = None
        else:
            link.close()

    def close(self) -> None:
        """End all of them."""
        for kept in self._kept.values():
            for link in kept:
                link.close()
        self._kept.clear()
        self.dialer.close()
