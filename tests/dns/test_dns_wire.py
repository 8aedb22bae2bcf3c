"""Questions and answers on the wire; dnspython itself is the oracle."""

import random
import sys

import dns.edns
import dns.flags
import dns.message
import dns.name
import dns.rcode
import dns.rdata
import dns.rdatatype
import dns.rrset
import pytest

from pathbudget.probes.dns.answers import Answer, is_truncated, read_answer, refuse
from pathbudget.probes.dns.caches import AGED, AUTHORITATIVE, REFILLED, SYNTHESISED, Caches
from pathbudget.probes.dns.probe import DNS
from pathbudget.probes.dns.questions import Question, QuestionTemplate
from pathbudget.probes.dns.settings import OPTIONS, DnsSettings, read_settings
from pathbudget.probes.dns.stream_link import FrameReader, frame
from pathbudget.probes.errors import ConfigError
from pathbudget.probes.fake_collector import Collector
from pathbudget.probes.record import Failure, FailureKind

SECOND = 1_000_000_000


def settings(**given: str | int) -> DnsSettings:
    return read_settings({name: option.default for name, option in OPTIONS.items()} | given)


def ask(*, fresh: bool = False, **given: str | int) -> Question:
    template = QuestionTemplate(settings(**given), random.Random(1), fresh=fresh)
    return template.question(0x1234)


def answer(question: Question, *records: str, rcode: dns.rcode.Rcode = dns.rcode.NOERROR) -> bytes:
    made = dns.message.make_response(dns.message.from_wire(question.wire))
    made.set_rcode(rcode)
    for record in records:
        name, ttl, kind, data = record.split(maxsplit=3)
        section = made.authority if kind == "SOA" else made.answer
        section.append(dns.rrset.from_text(name, int(ttl), "IN", kind, data))
    return made.to_wire(max_size=65_535)


def read(wire: bytes) -> Answer:
    found = read_answer(wire)
    assert isinstance(found, Answer)
    return found


def test_a_question_is_what_dnspython_reads() -> None:
    question = ask(name="www.example.org", type="AAAA", dnssec=True, client_subnet="192.0.2.0/24")
    message = dns.message.from_wire(question.wire)
    (asked,) = message.question
    assert message.id == 0x1234
    assert asked.name == dns.name.from_text("www.example.org")
    assert dns.rdatatype.to_text(asked.rdtype) == "AAAA"
    assert message.flags & dns.flags.RD
    assert message.ednsflags & dns.flags.DO
    assert message.payload == 1232
    nsid, subnet = message.options
    assert nsid.otype == dns.edns.NSID
    assert isinstance(subnet, dns.edns.ECSOption)
    assert (subnet.address, subnet.srclen) == ("192.0.2.0", 24)


def test_without_a_name_the_servers_of_the_root_are_asked_for() -> None:
    (asked,) = dns.message.from_wire(ask().wire).question
    assert asked.to_text() == ". IN NS"


def test_every_question_has_another_mixture_of_letters() -> None:
    template = QuestionTemplate(settings(name="a-long.name.example"), random.Random(1), fresh=False)
    asked = {template.question(1).asked for _ in range(64)}
    assert len(asked) > 60
    assert {one.lower() for one in asked} == {ask(name="a-long.name.example").asked.lower()}
    plain = QuestionTemplate(
        settings(name="A.Example", mixed_case=False), random.Random(1), fresh=False
    )
    assert plain.question(1).asked == plain.question(2).asked


def test_a_new_name_is_new_and_the_repeated_question_is_for_the_same() -> None:
    template = QuestionTemplate(settings(zone="wild.example"), random.Random(1), fresh=True)
    first, second = template.question(1), template.question(2)
    again = template.question(3, first)
    assert first.asked.lower() != second.asked.lower()
    assert again.asked.lower() == first.asked.lower()
    (asked,) = dns.message.from_wire(first.wire).question
    assert asked.name.parent() == dns.name.from_text("wild.example")
    assert len(asked.name.labels[0]) == 24


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"name": "a..b"}, "name"),
        ({"name": "x" * 64}, "name"),
        ({"zone": ".".join(["x" * 50] * 5)[:240]}, "zone"),
        ({"type": "NOSUCH"}, "type"),
        ({"type": "AXFR"}, "type"),
        ({"client_subnet": "192.0.2.1/24"}, "client_subnet"),
        ({"mode": "resumed"}, "mode"),
        ({"mode": "early_data", "transport": "doh"}, "mode"),
        ({"retries": 1, "transport": "tcp"}, "retries"),
        ({"path": "dns query"}, "path"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_asked_is_told(given: dict[str, str | int], word: str) -> None:
    with pytest.raises(ConfigError) as told:
        QuestionTemplate(settings(**given), random.Random(1), fresh="zone" in given)
    assert [fault.where for fault in told.value.faults] == [word]


def test_an_answer_carries_our_question_back() -> None:
    question = ask(name="www.example.org")
    ours = answer(question, "www.example.org. 60 A 192.0.2.1")
    assert refuse(question, ours) is None
    assert refuse(question, b"\x00\x00" + ours[2:]) == "forged"
    assert refuse(question, question.wire) == "corrupt"  # our own words
    assert refuse(question, ours[:11]) == "corrupt"
    swapped = question.asked.swapcase()
    assert refuse(question, ours.replace(question.asked, swapped)) == "case_changed"
    other = ask(name="www.example.net")
    assert refuse(question, answer(other, "www.example.net. 60 A 192.0.2.1")) == "forged"


@pytest.mark.parametrize(
    ("rcode", "word"), [(0, "forged"), (3, "forged"), (1, None), (2, None), (5, None)]
)
def test_only_errors_may_leave_our_question_out(rcode: int, word: str | None) -> None:
    bare = b"\x12\x34\x80" + bytes([rcode]) + bytes(8)
    assert refuse(ask(name="www.example.org"), bare) == word


def test_what_an_answer_says() -> None:
    question = ask(name="www.example.org", dnssec=True)
    made = dns.message.from_wire(
        answer(
            question,
            "www.example.org. 300 CNAME Edge.example.net.",
            "edge.example.net. 60 A 192.0.2.20",
            "edge.example.net. 60 A 192.0.2.3",
        )
    )
    made.flags |= dns.flags.AD
    said: list[dns.edns.Option] = [
        dns.edns.NSIDOption(b"fra-1"),
        dns.edns.ECSOption("192.0.2.0", 24, 20),
        dns.edns.EDEOption(dns.edns.EDECode.STALE_ANSWER, "old"),
    ]
    made.use_edns(0, options=said)
    wire = made.to_wire()
    assert read(wire).notes(dnssec=True) == {
        "rcode": "NOERROR",
        "answer_bytes": len(wire),
        "ttl": 60,
        "addresses": "192.0.2.20 192.0.2.3",
        "address_count": 2,
        "alias": "edge.example.net.",
        "authenticated": True,
        "signed": False,
        "nsid": "fra-1",
        "subnet_scope": 20,
        "reason": "stale answer: old",
    }


def test_many_addresses_are_bounded() -> None:
    question = ask(name="www.example.org")
    records = [f"www.example.org. 60 A 192.0.2.{number}" for number in range(1, 41)]
    notes = read(answer(question, *records)).notes(dnssec=False)
    assert notes["address_count"] == 40
    assert len(str(notes["addresses"]).split()) == 8


def test_no_such_name_is_an_answer_and_an_error_is_none() -> None:
    question = ask(name="www.example.org")
    soa = "example.org. 900 SOA ns.example.org. admin.example.org. 1 2 3 4 60"
    none = read(answer(question, soa, rcode=dns.rcode.NXDOMAIN))
    assert (none.failure, none.ttl_s) == (None, 60)  # RFC 2308: the smaller of the two
    for rcode in (dns.rcode.SERVFAIL, dns.rcode.REFUSED):
        failure = read(answer(question, rcode=rcode)).failure
        assert failure is not None
        assert failure.kind is FailureKind.STATUS
        assert failure.detail == rcode.name


def test_a_damaged_answer_is_a_failure() -> None:
    question = ask(name="www.example.org")
    whole = answer(question, "www.example.org. 60 A 192.0.2.1")
    failure = read_answer(whole[:-20])
    assert isinstance(failure, Failure)
    assert failure.kind is FailureKind.CORRUPT


def test_an_answer_of_too_many_records_is_not_read() -> None:
    question = ask(name="www.example.org")
    records = [f"www.example.org. 60 A 192.0.{n // 250}.{n % 250}" for n in range(300)]
    failure = read_answer(answer(question, *records))
    assert isinstance(failure, Failure)
    assert failure.detail == "answer with 301 records, over 256"


def test_types_that_nobody_knows_are_not_kept() -> None:
    question = ask(name="www.example.org")
    wire = bytearray(answer(question, "www.example.org. 60 A 192.0.2.1"))
    place = wire.index(b"\xc0\x0c\x00\x01\x00\x01") + 4
    for number in range(500):
        wire[place : place + 2] = (0x1000 + number).to_bytes(2, "big")  # its class
        assert isinstance(read_answer(bytes(wire)), Answer)
    assert len(dns.rdata._rdata_classes) < 302


def test_truncation_is_seen_in_the_header() -> None:
    question = ask(name="www.example.org")
    made = dns.message.from_wire(answer(question))
    assert not is_truncated(made.to_wire())
    made.flags |= dns.flags.TC
    assert is_truncated(made.to_wire())


@pytest.mark.parametrize("piece", [1, 3, 1000])
def test_frames_come_whole_however_the_stream_is_cut(piece: int) -> None:
    messages = [b"", b"one", bytes(300)]
    stream = b"".join(map(frame, messages))
    reader, found = FrameReader(), list[bytes]()
    for at in range(0, len(stream), piece):
        found += reader.take(stream[at : at + piece])
    assert found == messages


def test_a_hit_is_told_from_a_name_that_was_fetched() -> None:
    caches = Caches()
    assert not caches.at_hand("a", 0)
    caches.primed("a", Answer("NOERROR", 0, ttl_s=10), 0)
    assert caches.at_hand("a", 8 * SECOND)
    assert caches.hit("a", Answer("NOERROR", 0, ttl_s=6), 4 * SECOND) == AGED
    assert not caches.at_hand("a", 9 * SECOND)
    assert caches.hit("a", Answer("NOERROR", 0, ttl_s=10), 5 * SECOND) == REFILLED
    assert caches.hit("a", Answer("NOERROR", 0, True, ttl_s=10), 9 * SECOND) == AUTHORITATIVE
    assert not caches.at_hand("b", 0)


def test_what_cannot_be_kept_is_never_at_hand() -> None:
    caches = Caches()
    caches.primed("a", Answer("NOERROR", 0, ttl_s=0), 0)
    assert not caches.at_hand("a", 1)
    assert caches.hit("a", Answer("NOERROR", 0, ttl_s=0), 1) == REFILLED


def test_a_new_name_whose_time_has_fallen_was_made_up_from_the_cache() -> None:
    caches = Caches()
    assert caches.miss("a", Answer("NXDOMAIN", 0, ttl_s=60)) == ""
    assert caches.miss("a", Answer("NXDOMAIN", 0, ttl_s=41)) == SYNTHESISED
    assert caches.miss("a", Answer("NXDOMAIN", 0, ttl_s=60)) == ""


def test_a_missing_library_is_told_in_one_line(
    fake_collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "dns.edns", None)
    for name in [name for name in sys.modules if name.startswith("pathbudget.probes.dns.")]:
        if not name.endswith((".probe", ".settings")):
            monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ConfigError, match=r"pip install 'pathbudget\[request\]'"):
        fake_collector.open(DNS)
