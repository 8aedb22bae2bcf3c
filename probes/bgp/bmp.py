"""BMP, what a router tells of its BGP sessions (RFC 7854; Loc-RIB as in RFC 9069).

Bytes of one connection in, updates out. A router may show a peer before its import policy, after
it, or both: the view that the first route of a peer comes by is taken, unless one is asked for, so
that no two tables are mixed into one. Adj-RIB-Out (RFC 8671) and route mirroring are passed over.

Peers whose session has add-path are refused: how their routes are written then is up to the router
(RFC 7854 leaves it to the OPEN messages, which some forge), and a wrong guess reads as prefixes
that nobody announced.

Known of FRR: 8.4 and its neighbours put their own AS in front of every path, and with
``pre-policy`` but without ``soft-reconfiguration inbound`` send announcements as withdrawals; ask
for ``post-policy`` there.
"""

from collections.abc import Iterator
from enum import StrEnum

from pathbudget.probes.bgp.bmp_peer import Peer, PeerKey, opened_with_add_path, read_peer
from pathbudget.probes.bgp.cursor import Cursor
from pathbudget.probes.bgp.identity import Ordinals, digest_of
from pathbudget.probes.bgp.messages import Channel, Heard, updates_of
from pathbudget.probes.bgp.quarantine import MalformedError, Quarantine
from pathbudget.probes.bgp.record import RouteUpdate, UpdateKind
from pathbudget.probes.bgp.update_wire import (
    UPDATE,
    Encoding,
    parse_notification,
    parse_update,
    split_message,
)

VERSION = 3
HEADER_SIZE = 6
LARGEST_MESSAGE = 1 << 20
MOST_PEERS = 65_536

ROUTE_MONITORING, STATISTICS, PEER_DOWN, PEER_UP, INITIATION, TERMINATION, MIRRORING = range(7)
_IGNORED = {STATISTICS: "statistics", MIRRORING: "route mirroring", TERMINATION: "termination"}
_SYSTEM_NAME = 2
_REASONS = {
    1: "closed by the router",
    2: "closed by the router without a notification",
    3: "closed by the peer",
    4: "closed by the peer without a notification",
    5: "no longer monitored",
    6: "the table of the router is no longer monitored",
}


class View(StrEnum):
    """Which table of a peer a route is in."""

    PRE_POLICY = "pre-policy"
    POST_POLICY = "post-policy"
    LOC_RIB = "loc-rib"


class BmpReader:
    """Reads one connection of one router. `router` names it where it does not name itself."""

    def __init__(self, channel: Channel, router: str, *, view: View | None = None) -> None:
        self.quarantine = Quarantine()
        self.router = router
        self.messages = 0
        self.broken = ""
        """Why nothing more is read; the connection is of no use any more."""
        self._channel = channel
        self._view = view
        self._waiting = bytearray()
        self._ordinals = Ordinals()
        self._up: dict[PeerKey, Peer] = {}
        self._refused: set[PeerKey] = set()
        self._views: dict[PeerKey, View] = {}

    @property
    def refused_peers(self) -> int:
        """Peers that have add-path."""
        return len(self._refused)

    def feed(self, data: bytes, now_unix_ns: int) -> Iterator[RouteUpdate]:
        """Updates of every message that is whole now. Never raises because of what is in it.

        The iterator must be used up before the next call.
        """
        waiting, at = self._waiting, 0
        if not self.broken:
            waiting += data
        while not self.broken and len(waiting) - at >= HEADER_SIZE:
            size = int.from_bytes(waiting[at + 1 : at + 5], "big")
            if waiting[at] != VERSION or not HEADER_SIZE <= size <= LARGEST_MESSAGE:
                known = waiting[at] in {1, 2}
                self.broken = f"BMP version {waiting[at]}" if known else "no BMP message"
                self.quarantine.add(self.broken, bytes(waiting[at : at + 64]))
                break
            if len(waiting) - at < size:
                break
            yield from self._message(bytes(waiting[at : at + size]), now_unix_ns)
            at += size
        del waiting[: len(waiting) if self.broken else at]

    def end(self, now_unix_ns: int, why: str) -> Iterator[RouteUpdate]:
        """The connection is gone: what its peers said is void."""
        if self._waiting:
            self.quarantine.add("a last message that is cut off", bytes(self._waiting))
            self._waiting.clear()
        for key, peer in list(self._up.items()):
            heard = self._heard(peer, b"end" + why.encode(), now_unix_ns, now_unix_ns)
            yield heard.update(UpdateKind.PEER_DOWN, why)
            self._forget(key)

    def _message(self, message: bytes, now_unix_ns: int) -> Iterator[RouteUpdate]:
        self.messages += 1
        try:
            found = list(self._read(message[5], Cursor(message[HEADER_SIZE:]), now_unix_ns))
        except MalformedError as error:
            self.quarantine.add(str(error), message)
        else:
            yield from found

    def _read(self, kind: int, body: Cursor, now_unix_ns: int) -> Iterator[RouteUpdate]:
        if kind in _IGNORED:
            self.quarantine.ignore(_IGNORED[kind])
            return
        if kind == INITIATION:
            self._read_name(body)
            return
        if kind > MIRRORING:
            raise MalformedError("an unknown BMP message")
        peer = read_peer(body)
        if peer.adj_rib_out:
            self.quarantine.ignore("Adj-RIB-Out")
            return
        heard = self._heard(peer, body.data, peer.time_unix_ns or now_unix_ns, now_unix_ns)
        if kind == PEER_UP:
            yield from self._peer_up(peer, body, heard)
        elif kind == PEER_DOWN:
            yield from self._peer_down(peer, body, heard)
        else:
            yield from self._routes(peer, body, heard)

    def _heard(self, peer: Peer, data: bytes, time: int, now_unix_ns: int) -> Heard:
        collector = f"{self.router} {peer.table}".strip()
        return Heard(
            Channel(self._channel.feed, self._channel.kind, collector),
            peer.address,
            peer.asn,
            time,
            now_unix_ns,
            self._ordinals.take(time, f"{peer.key}"),
            digest_of(self._channel.feed.encode(), self.router.encode(), data),
        )

    def _peer_up(self, peer: Peer, body: Cursor, heard: Heard) -> Iterator[RouteUpdate]:
        if len(self._up) >= MOST_PEERS and peer.key not in self._up:
            raise MalformedError("more peers than any router has")
        body.take(20)  # local address, both ports
        if opened_with_add_path(body, own_table=peer.own_table):
            self._refused.add(peer.key)
            raise MalformedError("a peer with add-path: refused, not misread")
        self._refused.discard(peer.key)
        if peer.key not in self._up:
            self._up[peer.key] = peer
            yield heard.update(UpdateKind.PEER_UP)

    def _peer_down(self, peer: Peer, body: Cursor, heard: Heard) -> Iterator[RouteUpdate]:
        reason = body.number(1)
        why = _REASONS.get(reason, f"reason {reason}")
        if reason in {1, 3}:
            _, message = split_message(body.rest())
            why += f", {parse_notification(message)}"
        was_up = peer.key in self._up
        self._forget(peer.key)
        if was_up:
            yield heard.update(UpdateKind.PEER_DOWN, why)
        else:
            self.quarantine.ignore("down of a peer that was not up")

    def _forget(self, key: PeerKey) -> None:
        self._up.pop(key, None)
        self._views.pop(key, None)
        self._refused.discard(key)

    def _routes(self, peer: Peer, body: Cursor, heard: Heard) -> Iterator[RouteUpdate]:
        if peer.key in self._refused:
            raise MalformedError("routes of a peer with add-path: refused, not misread")
        if peer.key not in self._up:
            raise MalformedError("routes of a peer that did not come up")
        kind, message = split_message(body.rest())
        if kind != UPDATE:
            raise MalformedError("a route that is no UPDATE")
        if not self._wanted(peer):
            self.quarantine.ignore("another view of the peer")
            return
        update = parse_update(message, Encoding(2 if peer.old_as_path else 4))
        yield from updates_of(update, heard, self.quarantine)

    def _wanted(self, peer: Peer) -> bool:
        view = View.LOC_RIB if peer.own_table else View.PRE_POLICY
        if peer.post_policy:
            view = View.POST_POLICY
        return view is (self._view or self._views.setdefault(peer.key, view))

    def _read_name(self, body: Cursor) -> None:
        while body.left:
            kind, value = body.number(2), body.take(body.number(2))
            name = value.decode(errors="replace").strip()
            if kind == _SYSTEM_NAME and name and name.isprintable():
                self.router = name[:64]
