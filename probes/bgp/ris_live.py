"""Messages of RIPE's RIS Live, from its WebSocket or from a file of them: JSON in, updates out.

https://ris-live.ripe.net/manual/ is the reference. `subscription` makes what is sent there.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from pathbudget.probes.bgp import json_words
from pathbudget.probes.bgp.as_path_wire import SEQUENCE, SET, path_text
from pathbudget.probes.bgp.identity import digest_of
from pathbudget.probes.bgp.messages import Channel, Heard
from pathbudget.probes.bgp.quarantine import MalformedError, Quarantine
from pathbudget.probes.bgp.record import RouteUpdate, UpdateKind
from pathbudget.probes.bgp.update_wire import ORIGINS, Attributes, Nlri

_SERVICE = frozenset(("pong", "ris_subscribe_ok", "ris_unsubscribe_ok", "ris_rrc_list"))
_SESSION = frozenset(("OPEN", "KEEPALIVE", "STATE"))
_MOST_32 = 0xFFFF_FFFF


def subscription(prefix: str, *, host: str = "", less_specific: bool = False) -> bytes:
    """Ask for everything about a prefix and what lies within it; of one collector, or of all."""
    wanted: dict[str, Any] = {
        "prefix": prefix,
        "moreSpecific": True,
        "lessSpecific": less_specific,
        "socketOptions": {"includeRaw": False, "acknowledge": True},
    }
    if host:
        wanted["host"] = host
    return msgspec.json.encode({"type": "ris_subscribe", "data": wanted})


def ping() -> bytes:
    """A question that the service answers with ``pong``."""
    return b'{"type":"ping"}'


class RisLiveReader:
    """Reads messages of one connection or file."""

    def __init__(self, channel: Channel) -> None:
        self.quarantine = Quarantine()
        self.last_error = ""
        """What the service complained of last, in its own words."""
        self._channel = channel

    def read(self, message: bytes | str, now_unix_ns: int | None = None) -> list[RouteUpdate]:
        """Updates of one message. Never raises because of what is in it.

        `now_unix_ns` None is for a file: its own times count.
        """
        message = message.strip()
        try:
            return list(self._understand(message, now_unix_ns))
        except MalformedError as error:
            self.quarantine.add(str(error), message)
            return []

    def _understand(self, message: bytes | str, now_unix_ns: int | None) -> Iterator[RouteUpdate]:
        said = json_words.decode(message)
        kind = said.get("type")
        if kind == "ris_error":
            self._complaint(said)
        elif kind in _SERVICE:
            self.quarantine.ignore("message of the service")
        elif kind == "ris_message":
            yield from self._read(json_words.table(said.get("data"), "data"), message, now_unix_ns)
        elif "peer" in said and "type" in said:  # as the stream over HTTP writes them
            yield from self._read(said, message, now_unix_ns)
        else:
            raise MalformedError("no message of RIS Live")

    def _complaint(self, said: Mapping[str, Any]) -> None:
        data = said.get("data")
        words = data.get("message") if isinstance(data, dict) else None
        self.last_error = words[:200] if isinstance(words, str) else "an error without words"
        self.quarantine.ignore("error of the service")

    def _read(
        self, data: Mapping[str, Any], message: bytes | str, now_unix_ns: int | None
    ) -> Iterator[RouteUpdate]:
        kind = json_words.text(data, "type")
        if kind in _SESSION:
            self.quarantine.ignore(kind)
            return
        heard = self._heard(data, message, now_unix_ns)
        if kind == "UPDATE":
            yield from self._update(heard, data)
        elif kind == "RIS_PEER_STATE":
            yield from self._state(heard, json_words.text(data, "state"))
        elif kind == "NOTIFICATION":
            yield heard.update(UpdateKind.PEER_DOWN, _why(data.get("notification")))
        else:
            raise MalformedError("an unknown kind of message")

    def _heard(
        self, data: Mapping[str, Any], message: bytes | str, now_unix_ns: int | None
    ) -> Heard:
        address = json_words.address(json_words.text(data, "peer"))
        time = json_words.time_unix_ns(data, "timestamp")
        own = data.get("id")
        raw = own.encode() if isinstance(own, str) and own else _bytes(message)
        collector = json_words.text(data, "host", "").removesuffix(".ripe.net")
        channel = Channel(self._channel.feed, self._channel.kind, collector[:64])
        return Heard(
            channel,
            address,
            json_words.as_number(data.get("peer_asn"), "peer_asn"),
            time,
            time if now_unix_ns is None else now_unix_ns,
            _sequence(own) if isinstance(own, str) else 0,
            digest_of(collector.encode(), address.encode(), raw),
        )

    def _update(self, heard: Heard, data: Mapping[str, Any]) -> Iterator[RouteUpdate]:
        withdrawn = json_words.items(data.get("withdrawals"), "withdrawals")
        announced = json_words.items(data.get("announcements"), "announcements")
        yield from heard.withdraw([_route(one) for one in withdrawn])
        if announced:
            attributes = self._attributes(data)
            for group in announced:
                routes = json_words.table(group, "an announcement")
                found = json_words.items(routes.get("prefixes"), "prefixes")
                hop = _next_hop(json_words.text(routes, "next_hop", ""))
                yield from heard.announce([_route(one) for one in found], attributes, hop)
        elif not withdrawn:
            self.quarantine.ignore("update without routes")

    def _attributes(self, data: Mapping[str, Any]) -> Attributes:
        origin = json_words.text(data, "origin", "").lower()
        if origin not in {"", *ORIGINS}:
            raise MalformedError("an unknown origin")
        med = json_words.whole(data.get("med"), _MOST_32)
        if med is None and data.get("med") is not None:
            self.quarantine.ignore("med that is no number")
        return Attributes(
            as_path=_as_path(data.get("path")),
            origin=origin,
            med=med,
            local_preference=json_words.whole(data.get("local_pref"), _MOST_32),
            communities=(
                *_communities(data.get("community"), 2),
                *_communities(data.get("large_community"), 3),
            ),
        )

    def _state(self, heard: Heard, state: str) -> Iterator[RouteUpdate]:
        if state == "connected":
            yield heard.update(UpdateKind.PEER_UP)
        elif state == "down":
            yield heard.update(UpdateKind.PEER_DOWN, "the collector lost the session")
        else:
            self.quarantine.ignore("state between down and up")


def _bytes(message: bytes | str) -> bytes:
    return message.encode(errors="replace") if isinstance(message, str) else message


def _sequence(own: str) -> int:
    """The end of the service's own id counts the messages of a peer: ``...-01a0af4f173e0006``."""
    tail = own.rpartition("-")[2][-4:]
    try:
        return int(tail, 16)
    except ValueError:
        return 0


def _why(notification: object) -> str:
    if isinstance(notification, dict):
        code, subcode = (json_words.whole(notification.get(k), 255) for k in ("code", "subcode"))
        if code is not None:
            return f"notification {code}/{subcode or 0}"
    return "notification"


def _as_path(said: object) -> str:
    segments: list[tuple[int, list[int]]] = []
    for word in json_words.items(said, "path"):
        if isinstance(word, list):
            numbers = [json_words.as_number(one, "path") for one in word]
            segments.append((SET, numbers))
        else:
            segments.append((SEQUENCE, [json_words.as_number(word, "path")]))
    return path_text(segments)


def _communities(said: object, size: int) -> list[str]:
    found = [json_words.numbers_text(one, size) for one in json_words.items(said, "community")]
    return [one for one in found if one is not None]


def _route(said: object) -> Nlri:
    if not isinstance(said, str):
        raise MalformedError("a prefix that is none")
    return Nlri(json_words.prefix(said))


def _next_hop(written: str) -> str:
    """Of a global and a link-local address the first."""
    first = written.partition(",")[0].strip()
    return json_words.address(first) if first else ""
