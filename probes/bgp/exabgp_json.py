"""What exabgp 5 writes about a session, line by line: JSON in, updates out.

The JSON of exabgp 4 looks alike and tells AS paths as plain lists, without their segments; it is
refused, with its version named. Families that are not unicast are passed over.
"""

import ipaddress
from collections.abc import Iterator, Mapping
from typing import Any

from pathbudget.probes.bgp import json_words
from pathbudget.probes.bgp.as_path_wire import (
    CONFEDERATION_SEQUENCE,
    CONFEDERATION_SET,
    SEQUENCE,
    SET,
    path_text,
)
from pathbudget.probes.bgp.identity import Ordinals, digest_of
from pathbudget.probes.bgp.messages import Channel, Heard
from pathbudget.probes.bgp.quarantine import MalformedError, Quarantine
from pathbudget.probes.bgp.record import RouteUpdate, UpdateKind
from pathbudget.probes.bgp.update_wire import FAMILY_WORDS, ORIGINS, Attributes, Nlri

OLDEST_MAJOR = 5
UNICAST_FAMILIES = frozenset(FAMILY_WORDS.values())
_SEGMENTS = {
    "as-set": SET,
    "as-sequence": SEQUENCE,
    "confed-sequence": CONFEDERATION_SEQUENCE,
    "as-confed-sequence": CONFEDERATION_SEQUENCE,
    "confed-set": CONFEDERATION_SET,
    "as-confed-set": CONFEDERATION_SET,
}
_MOST_32 = 0xFFFF_FFFF


class ExabgpReader:
    """Reads the lines of one exabgp process, or of a file that they were kept in."""

    def __init__(self, channel: Channel) -> None:
        self.quarantine = Quarantine()
        self._channel = channel
        self._ordinals = Ordinals()
        self._up: set[str] = set()
        self._last_words: dict[str, str] = {}

    def read(self, line: bytes | str, now_unix_ns: int | None = None) -> list[RouteUpdate]:
        """Updates of one line. Never raises because of what is in it.

        `now_unix_ns` None is for a file: its own times count.
        """
        line = line.strip()
        try:
            return list(self._read(json_words.decode(line), line, now_unix_ns))
        except MalformedError as error:
            self.quarantine.add(str(error), line)
            return []

    def _read(
        self, said: Mapping[str, Any], line: bytes | str, now_unix_ns: int | None
    ) -> Iterator[RouteUpdate]:
        _check_version(said)
        kind = json_words.text(said, "type")
        if "neighbor" not in said:
            self.quarantine.ignore("of no neighbor")
            return
        neighbor = json_words.table(said["neighbor"], "neighbor")
        heard = self._heard(said, neighbor, line, now_unix_ns)
        if kind == "state":
            yield from self._state(heard, neighbor)
        elif kind == "notification":
            self._keep_words(heard.peer_address, neighbor)
        elif kind != "update":
            self.quarantine.ignore("open" if kind == "open" else "other message")
        elif neighbor.get("direction") in {"send", "out"}:
            self.quarantine.ignore("sent by us")
        else:
            message = json_words.table(neighbor.get("message"), "message")
            yield from self._message(heard, message)

    def _heard(
        self,
        said: Mapping[str, Any],
        neighbor: Mapping[str, Any],
        line: bytes | str,
        now_unix_ns: int | None,
    ) -> Heard:
        ends = json_words.table(neighbor.get("address"), "address")
        numbers = json_words.table(neighbor.get("asn"), "asn")
        address = json_words.address(json_words.text(ends, "peer"))
        time = json_words.time_unix_ns(said, "time")
        return Heard(
            self._channel,
            address,
            json_words.as_number(numbers.get("peer"), "asn"),
            time,
            time if now_unix_ns is None else now_unix_ns,
            self._ordinals.take(time, address),
            digest_of(
                self._channel.feed.encode(), line.encode() if isinstance(line, str) else line
            ),
        )

    def _state(self, heard: Heard, neighbor: Mapping[str, Any]) -> Iterator[RouteUpdate]:
        state, peer = json_words.text(neighbor, "state"), heard.peer_address
        if state == "up":
            self._up.add(peer)
            self._last_words.pop(peer, None)
            yield heard.update(UpdateKind.PEER_UP)
        elif state == "down" and peer in self._up:
            self._up.discard(peer)
            reason = neighbor.get("reason")
            words = self._last_words.pop(peer, "")
            told = ": ".join(filter(None, (reason if isinstance(reason, str) else "", words)))
            yield heard.update(UpdateKind.PEER_DOWN, told or "the session is down")
        else:
            self.quarantine.ignore("state between down and up")

    def _keep_words(self, peer: str, neighbor: Mapping[str, Any]) -> None:
        notification = neighbor.get("notification")
        words = notification.get("message") if isinstance(notification, dict) else None
        if isinstance(words, str) and words and len(self._last_words) < 1024:
            self._last_words[peer] = words[:200]
        self.quarantine.ignore("notification")

    def _message(self, heard: Heard, message: Mapping[str, Any]) -> Iterator[RouteUpdate]:
        if "eor" in message:
            end = json_words.table(message["eor"], "eor")
            family = f"{end.get('afi')} {end.get('safi')}"
            if family in UNICAST_FAMILIES:
                yield heard.update(UpdateKind.END_OF_RIB, family)
            else:
                self.quarantine.ignore("other address family")
            return
        update = json_words.table(message.get("update"), "update")
        attributes = _attributes(update.get("attribute", {}))
        withdrawn = json_words.table(update.get("withdraw", {}), "withdraw")
        announced = json_words.table(update.get("announce", {}), "announce")
        for family in withdrawn:
            if self._is_ours(family):
                yield from heard.withdraw(_routes(withdrawn[family]))
        for family in announced:
            if self._is_ours(family):
                for hop, routes in json_words.table(announced[family], family).items():
                    next_hop = hop if hop == "" else json_words.address(hop)
                    yield from heard.announce(_routes(routes), attributes, next_hop)

    def _is_ours(self, family: str) -> bool:
        ours = family in UNICAST_FAMILIES
        if not ours:
            self.quarantine.ignore("other address family")
        return ours


def _check_version(said: Mapping[str, Any]) -> None:
    version = said.get("exabgp")
    if not isinstance(version, str):
        raise MalformedError("no line of exabgp")
    major = version.partition(".")[0]
    if not (major.isascii() and major.isdecimal()) or int(major[:9]) < OLDEST_MAJOR:
        shown = "".join(letter for letter in version[:20] if letter.isalnum() or letter in ".-")
        raise MalformedError(f"JSON of exabgp {shown}: exabgp {OLDEST_MAJOR} is needed")


def _attributes(said: object) -> Attributes:
    values = json_words.table(said, "attribute")
    origin = values.get("origin", "")
    if origin not in {"", *ORIGINS}:
        raise MalformedError("an unknown origin")
    return Attributes(
        as_path=_as_path(values.get("as-path")),
        origin=origin,
        med=json_words.whole(values.get("med"), _MOST_32),
        local_preference=json_words.whole(values.get("local-preference"), _MOST_32),
        communities=(
            *_communities(values.get("community"), 2),
            *_communities(values.get("large-community"), 3),
        ),
    )


def _as_path(said: object) -> str:
    if said is None:
        return ""
    if isinstance(said, list):
        raise MalformedError("an AS path as exabgp 4 writes it, without segments")
    segments = json_words.table(said, "as-path")
    found: list[tuple[int, list[int]]] = []
    for _, segment in sorted(segments.items(), key=lambda pair: _place(pair[0])):
        parts = json_words.table(segment, "a segment of the AS path")
        kind = _SEGMENTS.get(str(parts.get("element")))
        if kind is None:
            raise MalformedError("an AS path with an unknown kind of segment")
        numbers = json_words.items(parts.get("value"), "a segment of the AS path")
        found.append((kind, [json_words.as_number(number, "as-path") for number in numbers]))
    return path_text(found)


def _place(key: str) -> int:
    if not (key.isascii() and key.isdecimal() and len(key) < 10):
        raise MalformedError("an AS path whose segments are not numbered")
    return int(key)


def _communities(said: object, size: int) -> list[str]:
    found = [json_words.numbers_text(one, size) for one in json_words.items(said, "community")]
    return [one for one in found if one is not None]


def _routes(said: object) -> list[Nlri]:
    return [_route(one) for one in json_words.items(said, "routes")]


def _route(said: object) -> Nlri:
    values = json_words.table(said, "a route")
    return Nlri(json_words.prefix(json_words.text(values, "nlri")), _path_id(values))


def _path_id(values: Mapping[str, Any]) -> int | None:
    """exabgp writes the number as an IPv4 address."""
    written = values.get("path-information")
    if written is None:
        return None
    try:
        return int(ipaddress.IPv4Address(written))
    except ValueError:
        raise MalformedError("path-information is no path identifier") from None
