"""Dumps of whole tables: TABLE_DUMP and TABLE_DUMP_V2 (RFC 6396, 4.2 and 4.3; RFC 8050)."""

from collections.abc import Iterator
from typing import NamedTuple

from pathbudget.probes.bgp.cursor import Cursor
from pathbudget.probes.bgp.identity import Ordinals, digest_of
from pathbudget.probes.bgp.messages import Channel, Heard
from pathbudget.probes.bgp.quarantine import MalformedError, Quarantine
from pathbudget.probes.bgp.record import RouteUpdate, UpdateKind
from pathbudget.probes.bgp.update_wire import (
    IPV4,
    IPV6,
    UNICAST,
    Encoding,
    Nlri,
    parse_attributes,
    parse_prefix,
)

PEER_INDEX_TABLE = 1
RIB_GENERIC, RIB_GENERIC_ADD_PATH = 6, 12


class _Form(NamedTuple):
    """Subtypes of TABLE_DUMP_V2 that hold routes of one family."""

    family: int
    unicast: bool
    add_path: bool


_RIBS = {
    2: _Form(IPV4, unicast=True, add_path=False),
    3: _Form(IPV4, unicast=False, add_path=False),
    4: _Form(IPV6, unicast=True, add_path=False),
    5: _Form(IPV6, unicast=False, add_path=False),
    8: _Form(IPV4, unicast=True, add_path=True),
    9: _Form(IPV4, unicast=False, add_path=True),
    10: _Form(IPV6, unicast=True, add_path=True),
    11: _Form(IPV6, unicast=False, add_path=True),
}
_V1_FAMILIES = {1: (IPV4, 2), 2: (IPV6, 2), 3: (IPV4, 4), 4: (IPV6, 4)}
"""Subtype of TABLE_DUMP to address family and size of AS numbers; 3 and 4 are of Quagga."""
_SIZES = {IPV4: 4, IPV6: 16}
_IPV6_PEER, _AS4_PEER = 0x01, 0x02


class _Peer(NamedTuple):
    address: str
    asn: int


class TableReader:
    """Reads the records of one file; its PEER_INDEX_TABLE numbers the peers of what follows."""

    def __init__(self, channel: Channel, quarantine: Quarantine, ordinals: Ordinals) -> None:
        self._channel = channel
        self._quarantine = quarantine
        self._ordinals = ordinals
        self._peers: list[_Peer] | None = None
        self._peers_record = b""

    def read_v2(
        self, subtype: int, body: Cursor, time_unix_ns: int, arrived_unix_ns: int
    ) -> Iterator[RouteUpdate]:
        """One TABLE_DUMP_V2 record. Raises MalformedError."""
        if subtype == PEER_INDEX_TABLE:
            self._read_peers(body)
            return iter(())
        if subtype in {RIB_GENERIC, RIB_GENERIC_ADD_PATH}:
            return self._generic(subtype, body, time_unix_ns, arrived_unix_ns)
        form = _RIBS.get(subtype)
        if form is None:
            raise MalformedError("an unknown subtype of TABLE_DUMP_V2")
        if not form.unicast:
            self._quarantine.ignore("multicast")
            return iter(())
        digest = digest_of(body.data, self._peers_record)
        body.take(4)  # sequence number
        return self._entries(form, body, time_unix_ns, arrived_unix_ns, digest)

    def read_v1(
        self, subtype: int, body: Cursor, time_unix_ns: int, arrived_unix_ns: int
    ) -> Iterator[RouteUpdate]:
        """One TABLE_DUMP record. Raises MalformedError."""
        if subtype not in _V1_FAMILIES:
            raise MalformedError("an unknown subtype of TABLE_DUMP")
        family, as_size = _V1_FAMILIES[subtype]
        size, digest = _SIZES[family], digest_of(body.data)
        body.take(4)  # view, sequence number
        address = body.take(size)
        prefix, _ = parse_prefix(_as_nlri(address, body.number(1)), 0, family)
        body.take(1 + 4)  # status, time of the last change
        peer = body.take(size)
        if family == IPV6 and not any(peer[4:]):
            peer = peer[:4]  # a peer that is spoken to by IPv4
        heard = self._heard(
            _Peer(Cursor(peer).address(len(peer)), body.number(as_size)),
            time_unix_ns,
            arrived_unix_ns,
            digest,
        )
        data = body.take(body.number(2))
        attributes = parse_attributes(data, Encoding(as_size), of_table=family)
        hop = attributes.mp_next_hop or attributes.next_hop
        return heard.announce((Nlri(prefix),), attributes, hop, UpdateKind.RIB)

    def _read_peers(self, body: Cursor) -> None:
        record = body.data
        self._peers = None
        body.take(4)  # BGP identifier of the collector
        body.take(body.number(2))  # name of the view
        peers: list[_Peer] = []
        for _ in range(body.number(2)):
            kind = body.number(1)
            body.take(4)  # BGP identifier
            address = body.address(16 if kind & _IPV6_PEER else 4)
            peers.append(_Peer(address, body.number(4 if kind & _AS4_PEER else 2)))
        self._peers = peers
        self._peers_record = record

    def _generic(
        self, subtype: int, body: Cursor, time_unix_ns: int, arrived_unix_ns: int
    ) -> Iterator[RouteUpdate]:
        digest = digest_of(body.data, self._peers_record)
        body.take(4)  # sequence number
        family, kind = body.number(2), body.number(1)
        if kind != UNICAST or family not in _SIZES:
            self._quarantine.ignore("other address family")
            return iter(())
        form = _Form(family, unicast=True, add_path=subtype == RIB_GENERIC_ADD_PATH)
        return self._entries(form, body, time_unix_ns, arrived_unix_ns, digest)

    def _entries(
        self, form: _Form, body: Cursor, time_unix_ns: int, arrived_unix_ns: int, digest: str
    ) -> Iterator[RouteUpdate]:
        if self._peers is None:
            raise MalformedError("routes before the table of peers")
        prefix, body.at = parse_prefix(body.data, body.at, form.family)
        for index in range(body.number(2)):
            number = body.number(2)
            body.take(4)  # when it was received
            path_id = body.number(4) if form.add_path else None
            data = body.take(body.number(2))
            if number >= len(self._peers):
                raise MalformedError("a route of a peer that is not in the table of peers")
            peer = self._peers[number]
            heard = self._heard(peer, time_unix_ns, arrived_unix_ns, digest, index)
            attributes = parse_attributes(data, Encoding(4), of_table=form.family)
            hop = attributes.mp_next_hop or attributes.next_hop
            route = (Nlri(prefix, path_id),)
            yield from heard.announce(route, attributes, hop, UpdateKind.RIB)

    def _heard(
        self, peer: _Peer, time_unix_ns: int, arrived_unix_ns: int, digest: str, index: int = 0
    ) -> Heard:
        ordinal = self._ordinals.take(time_unix_ns, peer.address)
        heard = Heard(
            self._channel,
            peer.address,
            peer.asn,
            time_unix_ns,
            arrived_unix_ns,
            ordinal,
            digest,
        )
        heard.index = index
        return heard


def _as_nlri(address: bytes, bits: int) -> bytes:
    """A prefix of full length as the bytes that `parse_prefix` reads."""
    return bytes((bits,)) + address[: (min(bits, 8 * len(address)) + 7) // 8]
