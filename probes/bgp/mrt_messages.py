"""BGP4MP records: messages of peers, and sessions that come and go (RFC 6396, 4.4; RFC 8050)."""

from collections.abc import Iterator
from typing import NamedTuple

from pathbudget.probes.bgp.cursor import Cursor
from pathbudget.probes.bgp.identity import Ordinals, digest_of
from pathbudget.probes.bgp.messages import Channel, Heard, updates_of
from pathbudget.probes.bgp.quarantine import MalformedError, Quarantine
from pathbudget.probes.bgp.record import RouteUpdate, UpdateKind
from pathbudget.probes.bgp.update_wire import (
    IPV4,
    IPV6,
    KEEPALIVE,
    MARKER,
    NOTIFICATION,
    OPEN,
    ROUTE_REFRESH,
    UNICAST,
    UPDATE,
    Encoding,
    Nlri,
    parse_attributes,
    parse_notification,
    parse_prefix,
    parse_update,
    split_message,
)

ESTABLISHED = 6
STATES = {1: "idle", 2: "connect", 3: "active", 4: "open sent", 5: "open confirm", 6: "established"}

STATE_CHANGE, MESSAGE, ENTRY, SNAPSHOT, MESSAGE_AS4, STATE_CHANGE_AS4 = range(6)
OLD_UPDATE, OLD_STATE_CHANGE = 1, 3


class _Form(NamedTuple):
    """Subtypes of BGP4MP that hold a message."""

    encoding: Encoding
    local: bool


_MESSAGES = {
    1: _Form(Encoding(2, add_path=False), local=False),
    4: _Form(Encoding(4, add_path=False), local=False),
    6: _Form(Encoding(2, add_path=False), local=True),
    7: _Form(Encoding(4, add_path=False), local=True),
    8: _Form(Encoding(2, add_path=True), local=False),
    9: _Form(Encoding(4, add_path=True), local=False),
    10: _Form(Encoding(2, add_path=True), local=True),
    11: _Form(Encoding(4, add_path=True), local=True),
}
_ADDRESS_SIZES = {IPV4: 4, IPV6: 16}
_UNINTERESTING = {OPEN: "OPEN", KEEPALIVE: "KEEPALIVE", ROUTE_REFRESH: "ROUTE-REFRESH"}


class MessageReader:
    """Reads the records of one file."""

    def __init__(self, channel: Channel, quarantine: Quarantine, ordinals: Ordinals) -> None:
        self._channel = channel
        self._quarantine = quarantine
        self._ordinals = ordinals

    def read(
        self, subtype: int, body: Cursor, time_unix_ns: int, arrived_unix_ns: int
    ) -> Iterator[RouteUpdate]:
        """One BGP4MP record. Raises MalformedError."""
        if _names_no_peer(body):
            self._quarantine.ignore("peer without a name")
        elif subtype in {STATE_CHANGE, STATE_CHANGE_AS4}:
            heard = self._heard(body, 4 if subtype == STATE_CHANGE_AS4 else 2, time_unix_ns)
            heard.arrived_unix_ns = arrived_unix_ns
            yield from self._state(heard, body.number(2), body.number(2))
        elif subtype in _MESSAGES:
            form = _MESSAGES[subtype]
            heard = self._heard(body, form.encoding.as_size, time_unix_ns)
            heard.arrived_unix_ns = arrived_unix_ns
            if form.local:
                self._quarantine.ignore("sent by the collector")
            else:
                yield from self._message(heard, body.rest(), form.encoding)
        elif subtype == ENTRY:
            heard = self._heard(body, 2, time_unix_ns)
            heard.arrived_unix_ns = arrived_unix_ns
            yield from self._entry(heard, body)
        elif subtype == SNAPSHOT:
            self._quarantine.ignore("BGP4MP_SNAPSHOT")
        else:
            raise MalformedError("an unknown subtype of BGP4MP")

    def read_old(
        self, subtype: int, body: Cursor, time_unix_ns: int, arrived_unix_ns: int
    ) -> Iterator[RouteUpdate]:
        """A record of the deprecated type BGP (MRT type 5). Raises MalformedError."""
        if subtype not in {OLD_UPDATE, OLD_STATE_CHANGE}:
            self._quarantine.ignore("deprecated BGP record")
            return
        data = body.data
        asn, address = body.number(2), body.address(4)
        heard = self._named(address, asn, time_unix_ns, data)
        heard.arrived_unix_ns = arrived_unix_ns
        if subtype == OLD_STATE_CHANGE:
            yield from self._state(heard, body.number(2), body.number(2))
            return
        body.take(6)  # AS number and address of the collector
        yield from updates_of(parse_update(body.rest(), Encoding(2)), heard, self._quarantine)

    def _heard(self, body: Cursor, as_size: int, time_unix_ns: int) -> Heard:
        """The head that all BGP4MP records share, local end included."""
        asn = body.number(as_size)
        body.take(as_size + 2)  # AS number and interface of the collector
        size = _ADDRESS_SIZES.get(body.number(2))
        if size is None:
            raise MalformedError("a peer of an unknown address family")
        address = body.address(size)
        body.take(size)
        return self._named(address, asn, time_unix_ns, body.data)

    def _named(self, address: str, asn: int, time_unix_ns: int, record: bytes) -> Heard:
        ordinal = self._ordinals.take(time_unix_ns, address)
        digest = digest_of(record)
        return Heard(self._channel, address, asn, time_unix_ns, time_unix_ns, ordinal, digest)

    def _state(self, heard: Heard, before: int, after: int) -> Iterator[RouteUpdate]:
        if after == ESTABLISHED and before != ESTABLISHED:
            yield heard.update(UpdateKind.PEER_UP)
        elif before == ESTABLISHED and after != ESTABLISHED:
            state = STATES.get(after, str(after))
            yield heard.update(UpdateKind.PEER_DOWN, f"the session went to state {state}")
        else:
            self._quarantine.ignore("state between down and up")

    def _message(self, heard: Heard, data: bytes, encoding: Encoding) -> Iterator[RouteUpdate]:
        kind, message = split_message(data)
        if kind == UPDATE:
            yield from updates_of(parse_update(message, encoding), heard, self._quarantine)
        elif kind == NOTIFICATION:
            yield heard.update(UpdateKind.PEER_DOWN, parse_notification(message))
        elif kind in _UNINTERESTING:
            self._quarantine.ignore(_UNINTERESTING[kind])
        else:
            raise MalformedError("an unknown BGP message")

    def _entry(self, heard: Heard, body: Cursor) -> Iterator[RouteUpdate]:
        """A route of a table as OpenBGPD dumps it (draft-ietf-grow-mrt, before RFC 6396)."""
        body.take(4 + 4)  # view, status, time of the last change
        family, kind = body.number(2), body.number(1)
        body.take(body.number(1))  # next hop, which the attributes have as well
        if kind != UNICAST or family not in _ADDRESS_SIZES:
            self._quarantine.ignore("other address family")
            return
        prefix, body.at = parse_prefix(body.data, body.at, family)
        attributes = parse_attributes(body.take(body.number(2)), Encoding(2), of_table=family)
        hop = attributes.mp_next_hop or attributes.next_hop
        yield from heard.announce((Nlri(prefix),), attributes, hop, UpdateKind.RIB)


def _names_no_peer(body: Cursor) -> bool:
    """Whether a state or an OPEN follows four zeros: Zebra of the year 2000 left the rest out."""
    begin = body.data[body.at : body.at + 4 + len(MARKER)]
    return begin[:4] == bytes(4) and (len(begin) == 8 or begin[4:] == MARKER)
