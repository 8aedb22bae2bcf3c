"""Answers (RFC 1035): whether one is ours, and what it says. Bytes in, words out; nothing raises.

An answer is ours when it carries back our number and our question, letter by letter. Whatever else
comes is named by one word, and never believed:

    forged        another number or another question than ours
    case_changed  our question, but not with our mixture of letters
    corrupt       nothing that could be a message
"""

import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass

import dns.edns
import dns.exception
import dns.flags
import dns.message
import dns.rcode
import dns.rdata
import dns.rdatatype
import dns.rdtypes.ANY.CNAME
import dns.rdtypes.IN.A
import dns.rdtypes.IN.AAAA
import dns.rrset

from pathbudget.probes.dns.questions import HEADER_BYTES, Question
from pathbudget.probes.record import Failure, FailureKind, Note, Stage

QR_BIT, TC_BIT = 0x80, 0x02
"""In the third octet of a message."""
MOST_ADDRESSES = 8
MOST_NOTE_LETTERS = 100
MOST_RECORDS = 256
"""Reading more would hold up all other measurements."""
MOST_TYPES = 300
LONGEST_TTL_S = (1 << 31) - 1
_ERRORS_WITHOUT_QUESTION = frozenset(
    {dns.rcode.FORMERR, dns.rcode.SERVFAIL, dns.rcode.NOTIMP, dns.rcode.REFUSED}
)
# Else each unknown type of an answer would be looked for as a module on the disk.
dns.rdata.load_all_types()  # type: ignore[no-untyped-call]
ANSWERS = frozenset({"NOERROR", "NXDOMAIN"})
"""What a server can say that is an answer: there is such a name, or there is none."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server said. `ttl_s` is the shortest of what a cache may keep; None: of nothing."""

    rcode: str
    octets: int
    authoritative: bool = False
    authenticated: bool = False
    signed: bool = False
    ttl_s: int | None = None
    addresses: tuple[str, ...] = ()
    alias: str = ""
    nsid: str = ""
    subnet_scope: int | None = None
    reason: str = ""
    """Extended error (RFC 8914)."""

    @property
    def failure(self) -> Failure | None:
        """Why this answers nothing; None where it does."""
        if self.rcode in ANSWERS:
            return None
        detail = f"{self.rcode} ({self.reason})" if self.reason else self.rcode
        return Failure(FailureKind.STATUS, Stage.WAIT, detail=detail)

    def notes(self, *, dnssec: bool) -> dict[str, Note]:
        """What a sample keeps of it."""
        said: dict[str, Note] = {"rcode": self.rcode, "answer_bytes": self.octets}
        if self.ttl_s is not None:
            said["ttl"] = self.ttl_s
        if self.addresses:
            said["addresses"] = " ".join(sorted(self.addresses)[:MOST_ADDRESSES])
            said["address_count"] = len(self.addresses)
        if self.alias:
            said["alias"] = self.alias
        if self.authoritative:
            said["authoritative"] = True
        if dnssec:
            said |= {"authenticated": self.authenticated, "signed": self.signed}
        if self.nsid:
            said["nsid"] = self.nsid
        if self.subnet_scope is not None:
            said["subnet_scope"] = self.subnet_scope
        if self.reason:
            said["reason"] = self.reason
        return said


def refuse(question: Question, wire: bytes) -> str | None:
    """Why this is no answer to the question; None where it is one."""
    if len(wire) < HEADER_BYTES or not wire[2] & QR_BIT:
        return "corrupt"
    if int.from_bytes(wire[:2], "big") != question.identifier:
        return "forged"
    if not int.from_bytes(wire[4:6], "big"):
        # Who cannot read a question may leave it out; that is never taken for a number.
        return None if wire[3] & 0x0F in _ERRORS_WITHOUT_QUESTION else "forged"
    asked = wire[HEADER_BYTES : HEADER_BYTES + len(question.asked)]
    if asked == question.asked and wire[4:6] == b"\x00\x01":
        return None
    return "case_changed" if asked.lower() == question.asked.lower() else "forged"


def is_truncated(wire: bytes) -> bool:
    """Whether the whole answer is to be had over TCP only."""
    return bool(wire[2] & TC_BIT)


def _forget_unknown_types() -> None:
    """dnspython keeps every type it has met, for ever; a server may send any number of them."""
    known = dns.rdata._rdata_classes  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    if len(known) > MOST_TYPES:
        for key in [key for key, kind in known.items() if kind is dns.rdata.GenericRdata]:
            del known[key]


def read_answer(wire: bytes) -> Answer | Failure:
    """What an answer that is ours says."""
    records = sum(int.from_bytes(wire[at : at + 2], "big") for at in (6, 8, 10))
    if records > MOST_RECORDS:
        detail = f"answer with {records} records, over {MOST_RECORDS}"
        return Failure(FailureKind.CORRUPT, Stage.PARSE, detail=detail)
    try:
        return _read(dns.message.from_wire(wire, ignore_trailing=True))
    except (dns.exception.DNSException, ValueError, LookupError, TypeError, ArithmeticError) as one:
        detail = f"answer cannot be read: {type(one).__name__}"
        return Failure(FailureKind.CORRUPT, Stage.PARSE, detail=detail)
    finally:
        _forget_unknown_types()


def _read(message: dns.message.Message) -> Answer:
    rcode = dns.rcode.to_text(message.rcode())
    said = _Options()
    for option in message.options:
        said.take(option)
    return Answer(
        rcode=rcode,
        octets=len(message.wire or b""),
        authoritative=bool(message.flags & dns.flags.AA),
        authenticated=bool(message.flags & dns.flags.AD),
        signed=any(one.rdtype == dns.rdatatype.RRSIG for one in message.answer + message.authority),
        ttl_s=_time_to_live(message),
        addresses=tuple(_addresses(message.answer)),
        alias=_alias(message.answer),
        nsid=said.nsid,
        subnet_scope=said.subnet_scope,
        reason=said.reason,
    )


@dataclass(slots=True)
class _Options:
    """What the EDNS options of an answer say."""

    nsid: str = ""
    subnet_scope: int | None = None
    reason: str = ""

    def take(self, option: dns.edns.Option) -> None:
        if option.otype == dns.edns.OptionType.NSID:
            self.nsid = _printable(option.to_wire() or b"")
        elif isinstance(option, dns.edns.ECSOption):
            self.subnet_scope = int(option.scopelen)
        elif isinstance(option, dns.edns.EDEOption):
            words = option.text or ""
            code = option.code
            known = getattr(code, "name", "").replace("_", " ").lower()
            self.reason = _short(f"{known or int(code)}: {words}" if words else known or str(code))


def _time_to_live(message: dns.message.Message) -> int | None:
    """How long a cache may keep it (RFC 2181, RFC 2308)."""
    if message.answer:
        return min(LONGEST_TTL_S, *(one.ttl for one in message.answer))
    for one in message.authority:
        if one.rdtype == dns.rdatatype.SOA:
            return min(one.ttl, *(int(data.minimum) for data in one), LONGEST_TTL_S)
    return None


def _addresses(answer: list[dns.rrset.RRset]) -> Iterator[str]:
    for one in answer:
        for data in one:
            if isinstance(data, dns.rdtypes.IN.A.A | dns.rdtypes.IN.AAAA.AAAA):
                yield str(ipaddress.ip_address(data.address))


def _alias(answer: list[dns.rrset.RRset]) -> str:
    """The name that the aliases lead to: with a CDN it names the edge."""
    last = ""
    for one in answer:
        for data in one:
            if isinstance(data, dns.rdtypes.ANY.CNAME.CNAME):
                last = str(data.target).lower()  # its letters may be those of our question
    return _short(last)


def _printable(octets: bytes) -> str:
    text = octets.decode("ascii", "replace")
    return _short(text if octets.isascii() and text.isprintable() else octets.hex())


def _short(text: str) -> str:
    shown = "".join(letter if letter.isprintable() else "?" for letter in text)
    return shown[:MOST_NOTE_LETTERS]
