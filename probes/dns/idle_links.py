"""Connections that lie open until the next question, each noticed when the other side ends it."""

from pathbudget.probes.carriers import Moment, Opened, Phase
from pathbudget.probes.dns.links import Link
from pathbudget.probes.dns.udp_flights import Server
from pathbudget.probes.record import Failure

KEPT_PER_SERVER = 4


class _Watch:
    """Listens to a connection that nobody uses. A `links.LinkListener`."""

    def __init__(self, links: "IdleLinks", server: Server) -> None:
        self._links = links
        self._server = server

    def opened(self, opened: Opened) -> None:
        """Long since."""

    def failed(self, metric: str, failure: Failure, done: tuple[Phase, ...]) -> None:
        """See `carriers.OpeningListener.failed`."""
        del metric, failure, done
        self._links.forget(self._server, self)

    def broke(self, failure: Failure) -> None:
        """See `links.LinkListener.broke`."""
        del failure
        self._links.forget(self._server, self)

    def asked(self, moment: Moment) -> None:
        """A stamp that came after the answer."""

    def answered(self, wire: bytes, moment: Moment) -> None:
        """Another answer: nobody waits for it."""


class IdleLinks:
    """The connections at hand, by server; the latest used first."""

    def __init__(self) -> None:
        self._held: dict[Server, dict[_Watch, Link]] = {}

    def keep(self, server: Server, link: Link) -> None:
        """Keep it for the next question."""
        held = self._held.setdefault(server, {})
        watch = _Watch(self, server)
        held[watch] = link
        link.listen(watch)
        if len(held) > KEPT_PER_SERVER:
            held.pop(next(iter(held))).close()

    def take(self, server: Server) -> Link | None:
        """One that can be used; it is not held any more."""
        held = self._held.get(server)
        while held:
            _, link = held.popitem()
            if link.usable:
                return link
            link.abandon()
        return None

    def forget(self, server: Server, watch: _Watch) -> None:
        """The other side has ended it."""
        link = self._held.get(server, {}).pop(watch, None)
        if link is not None:
            link.abandon()

    def close(self) -> None:
        """End them all."""
        for held in self._held.values():
            for link in held.values():
                link.close()
        self._held.clear()
