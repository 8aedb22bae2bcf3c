"""Questions on the wire (RFC 1035, RFC 6891). dnspython builds each kind once; then octets change.

A question carries secrets that whoever is not on the path cannot know: its number, the mixture of
capital and small letters of its name (draft-vixie-dnsext-dns0x20), and of a new name its label.
"""

import ipaddress
import random
from collections.abc import Callable
from dataclasses import dataclass

import dns.edns
import dns.exception
import dns.message
import dns.name
import dns.rdatatype

from pathbudget.probes.dns.settings import DnsSettings, fault
from pathbudget.probes.errors import ConfigError, Fault

HEADER_BYTES = 12
LABEL_LETTERS = 24
"""Of a new name: 24 of 32 letters are 120 bits. Nobody has asked for it before."""
_ALPHABET = b"abcdefghijklmnopqrstuvwxyz234567"
_UPPER = {letter: letter - 32 for letter in range(ord("a"), ord("z") + 1)}


@dataclass(frozen=True, slots=True)
class Question:
    """One message to send, and what an answer to it must carry back: `asked`, octet by octet."""

    wire: bytes
    asked: bytes
    identifier: int


class QuestionTemplate:
    """Makes questions of one kind. `fresh` names have a label of dice in front of the zone."""

    def __init__(self, settings: DnsSettings, rng: random.Random, *, fresh: bool) -> None:
        self._rng = rng
        self._fresh = fresh
        self._mixed = settings.mixed_case
        kind = "A" if fresh else settings.kind
        name = _name("zone" if fresh else "name", settings.zone if fresh else settings.name)
        if fresh:
            name = _with_label(name)
        message = dns.message.make_query(
            name,
            _kind(kind),
            use_edns=0,
            want_dnssec=settings.dnssec,
            payload=settings.payload,
            options=_edns_options(settings),
            id=0,
        )
        wire = message.to_wire()
        self._name_end = wire.index(0, HEADER_BYTES) + 1
        self._asked_end = self._name_end + 4
        self._head, self._name = wire[2:HEADER_BYTES], wire[HEADER_BYTES : self._name_end]
        self._tail = wire[self._name_end :]
        # The octets that count a label's letters are 63 at most: none looks like a letter.
        self._letters = [at for at, octet in enumerate(self._name) if octet in _UPPER]

    def question(self, identifier: int, before: Question | None = None) -> Question:
        """A question with this number; 0 where the transport wants it so (RFC 8484, RFC 9250).
        For the same name as the one `before`, with another mixture of letters.
        """
        name = bytearray(self._name if before is None else before.asked[:-4].lower())
        if self._fresh and before is None:
            name[1 : 1 + LABEL_LETTERS] = bytes(self._rng.choices(_ALPHABET, k=LABEL_LETTERS))
        if self._mixed:
            dice = self._rng.getrandbits(len(name))
            for at in self._letters:
                if dice >> at & 1:
                    name[at] = _UPPER.get(name[at], name[at])  # a new label has digits too
        wire = b"".join((identifier.to_bytes(2, "big"), self._head, name, self._tail))
        return Question(wire, wire[HEADER_BYTES : self._asked_end], identifier)


def question_faults(name: str, kind: str, zone: str) -> list[Fault]:
    """Every fault in what is to be asked; empty words are not looked at."""
    faults: list[Fault] = []
    looks: list[Callable[[], object]] = []
    if name:
        looks.append(lambda: _name("name", name))
    if kind:
        looks.append(lambda: _kind(kind))
    if zone:
        looks.append(lambda: _with_label(_name("zone", zone)))
    for look in looks:
        try:
            look()
        except ConfigError as error:
            faults += error.faults
    return faults


def _name(option: str, text: str) -> dns.name.Name:
    try:
        return dns.name.from_text(text)
    except dns.exception.DNSException as error:
        problem = f"{text!r}: {str(error).rstrip('.')}"
        raise ConfigError([fault(option, problem, "a domain name")]) from error


def _with_label(zone: dns.name.Name) -> dns.name.Name:
    try:
        return dns.name.Name((b"a" * LABEL_LETTERS, *zone.labels))
    except dns.exception.DNSException as error:
        problem = f"too long for another {LABEL_LETTERS + 1} octets ({error})"
        raise ConfigError([fault("zone", problem, "a shorter name")]) from error


def _kind(text: str) -> dns.rdatatype.RdataType:
    try:
        kind = dns.rdatatype.from_text(text)
    except (dns.exception.DNSException, ValueError) as error:
        raise ConfigError(
            [fault("type", f"{text!r}: {str(error).rstrip('.')}", "A, AAAA, NS ...")]
        ) from error
    if dns.rdatatype.is_metatype(kind) and kind is not dns.rdatatype.ANY:
        raise ConfigError([fault("type", f"{text!r} is no data", "A, AAAA, NS ...")])
    return kind


def _edns_options(settings: DnsSettings) -> list[dns.edns.Option]:
    options: list[dns.edns.Option] = []
    if settings.nsid:
        options.append(dns.edns.GenericOption(dns.edns.NSID, b""))
    if settings.client_subnet:
        network = ipaddress.ip_network(settings.client_subnet)
        options.append(dns.edns.ECSOption(str(network.network_address), network.prefixlen))
    return options
