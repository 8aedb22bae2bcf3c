"""From one BGP message of a peer to `RouteUpdate`s: what MRT and BMP have in common."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from msgspec.structs import replace

from pathbudget.probes.bgp.identity import update_id
from pathbudget.probes.bgp.quarantine import Quarantine
from pathbudget.probes.bgp.record import FeedKind, RouteUpdate, UpdateKind
from pathbudget.probes.bgp.update_wire import Attributes, Nlri, Update


@dataclass(frozen=True, slots=True)
class Channel:
    """Which feed the news comes by."""

    feed: str
    kind: FeedKind
    collector: str = ""


@dataclass(slots=True)
class Heard:
    """Who said something, when, and what its updates are called."""

    channel: Channel
    peer_address: str
    peer_asn: int
    time_unix_ns: int
    arrived_unix_ns: int
    ordinal: int
    digest: str
    index: int = 0
    """Of the next update made from the message."""

    def update(self, kind: UpdateKind, detail: str = "") -> RouteUpdate:
        """News of the session, or of a prefix that the caller fills in."""
        name = update_id(self.time_unix_ns, self.ordinal, self.index, self.digest)
        self.index += 1
        return RouteUpdate(
            id=name,
            feed=self.channel.feed,
            feed_kind=self.channel.kind,
            peer_address=self.peer_address,
            peer_asn=self.peer_asn,
            kind=kind,
            time_unix_ns=self.time_unix_ns,
            arrived_unix_ns=self.arrived_unix_ns,
            collector=self.channel.collector,
            detail=detail,
        )

    def withdraw(self, routes: Iterable[Nlri]) -> Iterator[RouteUpdate]:
        """Routes that are gone."""
        for route in routes:
            yield self._of_route(UpdateKind.WITHDRAW, route, _NOTHING, "")

    def announce(
        self,
        routes: Iterable[Nlri],
        attributes: Attributes,
        next_hop: str,
        kind: UpdateKind = UpdateKind.ANNOUNCE,
    ) -> Iterator[RouteUpdate]:
        """Routes that are there."""
        for route in routes:
            yield self._of_route(kind, route, attributes, next_hop)

    def _of_route(
        self,
        kind: UpdateKind,
        route: Nlri,
        said: Attributes,
        next_hop: str,
    ) -> RouteUpdate:
        return replace(
            self.update(kind),
            prefix=route.prefix,
            as_path=said.as_path,
            origin=said.origin,
            next_hop=next_hop,
            local_preference=said.local_preference,
            med=said.med,
            communities=said.communities,
            path_id=route.path_id,
        )


def updates_of(update: Update, heard: Heard, quarantine: Quarantine) -> Iterator[RouteUpdate]:
    """Withdrawals first: a route in both is announced (RFC 4271, 4.3)."""
    attributes = update.attributes
    yield from heard.withdraw((*update.withdrawn, *attributes.withdrawn))
    yield from heard.announce(update.announced, attributes, attributes.next_hop)
    yield from heard.announce(attributes.announced, attributes, attributes.mp_next_hop)
    if attributes.other_families:
        quarantine.ignore("other address family")
    elif update.end_of_rib:
        yield heard.update(UpdateKind.END_OF_RIB, update.family)


_NOTHING = Attributes()
