"""Questions over UDP on a fake network: what is believed, counted, repeated, given up."""

from collections.abc import Callable
from dataclasses import dataclass, field

import dns.flags
import dns.message
import dns.rcode
import dns.rrset

from pathbudget.probes.channels import Datagram, QueuedError
from pathbudget.probes.dns.probe import DNS
from pathbudget.probes.fake_collector import Collector, shot_at
from pathbudget.probes.fake_datagrams import FakeDatagramChannel
from pathbudget.probes.fake_network import FakeClock, FakeNetwork, FakePath
from pathbudget.probes.record import ClockSource, FailureKind, Flag, Sample

MS = 1_000_000
SECOND = 1_000_000_000
SERVER, OTHER = "192.0.2.1", "192.0.2.66"
NAME = "www.example.org"


def answered(wire: bytes, *, ttl: int = 300, flags: int = 0, rcode: int = 0) -> bytes:
    made = dns.message.make_response(dns.message.from_wire(wire))
    made.flags |= flags
    made.set_rcode(dns.rcode.Rcode(rcode))
    if not rcode:
        made.answer.append(dns.rrset.from_text(made.question[0].name, ttl, "IN", "A", "192.0.2.7"))
    return made.to_wire()


Words = Callable[[int, bytes], list[tuple[int, bytes]]]


@dataclass
class Resolver:
    """Answers question number `n` (from 0) with what `says` gives: (delay, datagram) each."""

    says: Words
    questions: list[bytes] = field(default_factory=list[bytes])

    def take(
        self, datagram: Datagram, clock: FakeClock, reply: Callable[[bytes, int, int], None]
    ) -> None:
        number = len(self.questions)
        self.questions.append(datagram.payload)
        for delay_ns, wire in self.says(number, datagram.payload):
            clock.call_in(delay_ns, lambda wire=wire: reply(wire, 60, 0))  # type: ignore[misc]


def plainly(number: int, wire: bytes) -> list[tuple[int, bytes]]:
    del number
    return [(10 * MS, answered(wire))]


def serve(fake: FakeNetwork, says: Words = plainly) -> Resolver:
    resolver = Resolver(says)
    fake.services[SERVER, 53] = resolver
    return resolver


def shoot(collector: Collector, fake: FakeNetwork, count: int = 1, **options: str | int) -> None:
    probe = collector.open(DNS, {"name": NAME, **options})
    for seq in range(count):
        probe.fire(shot_at(SERVER, seq=seq))
        fake.clock.advance(2 * SECOND)
    probe.close()


def hit(collector: Collector) -> Sample:
    return collector.only("dns_hit")


def test_the_first_question_is_not_measured(fake: FakeNetwork, fake_collector: Collector) -> None:
    """It may be a miss: the resolver takes 80 ms for it."""
    resolver = serve(
        fake, lambda n, wire: [((10 if n else 80) * MS, answered(wire, ttl=300 - 2 * n))]
    )
    shoot(fake_collector, fake, 3)
    samples = fake_collector.of("dns_hit")
    assert [sample.value_ns for sample in samples] == [10 * MS] * 3
    assert {sample.clock_source for sample in samples} == {ClockSource.KERNEL}
    assert [(sample.notes or {})["cache"] for sample in samples] == ["aged"] * 3
    assert len(resolver.questions) == 4


def test_a_name_that_has_run_out_is_asked_for_once_before(
    fake: FakeNetwork, fake_collector: Collector
) -> None:
    resolver = serve(fake, lambda n, wire: [(10 * MS, answered(wire, ttl=2))])
    shoot(fake_collector, fake, 3)
    assert len(resolver.questions) == 6


def test_a_cache_that_was_refilled_is_no_sure_hit(
    fake: FakeNetwork, fake_collector: Collector
) -> None:
    serve(fake, lambda n, wire: [(10 * MS, answered(wire, ttl=(300, 300, 298, 300)[n]))])
    shoot(fake_collector, fake, 3)
    sure, aged, refilled = fake_collector.of("dns_hit")
    assert Flag.LOW_CONFIDENCE not in (*sure.flags, *aged.flags)
    assert refilled.flags == (Flag.LOW_CONFIDENCE,)


def test_hit_and_miss_are_asked_together(fake: FakeNetwork, fake_collector: Collector) -> None:
    resolver = serve(fake)
    shoot(fake_collector, fake, 2, zone="wild.example")
    assert [sample.value_ns for sample in fake_collector.of("dns_miss")] == [10 * MS] * 2
    assert len(fake_collector.of("dns_hit")) == 2
    names = {dns.message.from_wire(one).question[0].name for one in resolver.questions}
    assert len(names) == 3


def test_silence_is_a_timeout_and_no_question_is_repeated(
    fake: FakeNetwork, fake_collector: Collector
) -> None:
    resolver = serve(fake, lambda _, __: [])
    shoot(fake_collector, fake)
    failure = hit(fake_collector).failure
    assert failure is not None
    assert failure.kind is FailureKind.TIMEOUT
    assert len(resolver.questions) == 1


def test_an_error_of_the_server_is_no_number(fake: FakeNetwork, fake_collector: Collector) -> None:
    serve(fake, lambda _, wire: [(10 * MS, answered(wire, rcode=dns.rcode.SERVFAIL))])
    shoot(fake_collector, fake)
    sample = hit(fake_collector)
    assert sample.failure is not None
    assert (sample.failure.kind, sample.failure.detail) == (FailureKind.STATUS, "SERVFAIL")
    assert (sample.notes or {})["rcode"] == "SERVFAIL"
    assert sample.stamps is not None
    assert sample.stamps.kernel_received_ns == 10 * MS


def test_only_what_carries_our_question_back_is_believed(
    fake: FakeNetwork, fake_collector: Collector
) -> None:
    def says(number: int, wire: bytes) -> list[tuple[int, bytes]]:
        right = answered(wire)
        at = wire.index(b"\x03") + 1  # the first letter of the name
        other_case = right[:at] + bytes([right[at] ^ 0x20]) + right[at + 1 :]
        wrong_number = bytes([right[0] ^ 1]) + right[1:]
        wrong_name = right[:at] + b"x" + right[at + 1 :]
        if not number:
            return [(MS, right)]
        forged = [(MS, wrong_number), (2 * MS, wrong_name), (3 * MS, other_case), (4 * MS, b"")]
        return [*forged, (10 * MS, right)]

    serve(fake, says)
    shoot(fake_collector, fake)
    assert hit(fake_collector).value_ns == 10 * MS
    assert fake_collector.counted("forged") == 2
    assert fake_collector.counted("case_changed") == 1
    assert fake_collector.counted("corrupt") == 1


def test_a_server_that_changes_letters_is_named(
    fake: FakeNetwork, fake_collector: Collector
) -> None:
    def says(number: int, wire: bytes) -> list[tuple[int, bytes]]:
        del number
        right = answered(wire)
        end = right.index(b"\x00", 12)
        return [(10 * MS, right[:12] + right[12:end].lower() + right[end:])]

    serve(fake, says)
    shoot(fake_collector, fake)
    failure = hit(fake_collector).failure
    assert failure is not None
    assert "mixed_case = false" in failure.detail
    fake_collector.emitted.clear()
    shoot(fake_collector, fake, mixed_case=False)
    assert hit(fake_collector).value_ns == 10 * MS


def test_an_answer_from_elsewhere_is_foreign(fake: FakeNetwork, fake_collector: Collector) -> None:
    resolver = serve(fake, lambda n, wire: [] if n else [(10 * MS, answered(wire))])
    channels: list[FakeDatagramChannel] = []
    open_datagrams = fake.open_datagrams

    def keep(*given: object, **named: object) -> FakeDatagramChannel | None:
        channel = open_datagrams(*given, **named)  # type: ignore[arg-type]
        if channel is not None:
            channels.append(channel)
        return channel

    fake.open_datagrams = keep  # type: ignore[method-assign]
    probe = fake_collector.open(DNS, {"name": NAME})
    probe.fire(shot_at(SERVER))
    fake.clock.advance(20 * MS)
    right = answered(resolver.questions[-1])
    for sender, port in ((OTHER, 53), (SERVER, 54)):
        channels[0].inject(Datagram(right, sender, port, "", 60, 0, None))
    channels[0].inject_error(QueuedError(3, 3, OTHER, SERVER, resolver.questions[-1][:11], None))
    channels[0].inject_error(QueuedError(3, 3, OTHER, SERVER, bytes(30), None))
    fake.clock.advance(MS)
    assert not fake_collector.emitted
    assert fake_collector.counted("foreign") == 2
    assert fake_collector.counted("unverifiable_error") == 1
    assert fake_collector.counted("forged_error") == 1
    channels[0].inject_error(QueuedError(3, 1, OTHER, SERVER, resolver.questions[-1][:40], None))
    fake.clock.advance(MS)
    sample = hit(fake_collector)
    assert sample.failure is not None
    assert (sample.failure.kind, sample.responder) == (FailureKind.UNREACHABLE, OTHER)


def test_copies_and_latecomers_are_counted(fake: FakeNetwork, fake_collector: Collector) -> None:
    def says(number: int, wire: bytes) -> list[tuple[int, bytes]]:
        right = answered(wire, ttl=300 - 2 * number)
        if number == 2:
            return [(1_500 * MS, right)]
        return [(10 * MS, right), (10 * MS, right), (30 * MS, right)] if number else [(MS, right)]

    serve(fake, says)
    shoot(fake_collector, fake, 2)
    first, second = fake_collector.of("dns_hit")
    assert first.value_ns == 10 * MS
    assert second.failure is not None
    assert fake_collector.counted("duplicate") == 2
    assert fake_collector.counted("late") == 1


def test_a_repeated_question_says_so(fake: FakeNetwork, fake_collector: Collector) -> None:
    resolver = serve(fake, lambda n, wire: [] if n == 1 else [(10 * MS, answered(wire))])
    shoot(fake_collector, fake, retries=2, retry_ms=200)
    sample = hit(fake_collector)
    assert sample.value_ns == 210 * MS
    assert Flag.RETRIED in sample.flags
    assert sample.notes is not None
    assert (sample.notes["asked"], sample.notes["answered"]) == (2, 2)
    assert len({one[:2] for one in resolver.questions}) == 3  # each with a number of its own


def test_a_cut_answer_is_asked_for_over_tcp(fake: FakeNetwork, fake_collector: Collector) -> None:
    """The other side of the TCP connection says something else: that is told, not believed."""

    def says(number: int, wire: bytes) -> list[tuple[int, bytes]]:
        return [(10 * MS, answered(wire, flags=dns.flags.TC if number else 0))]

    serve(fake, says)
    fake.paths[SERVER] = FakePath(says=b"\x00\x0c" + b"\x00\x00\x80" + bytes(9))
    shoot(fake_collector, fake)
    failure = hit(fake_collector).failure
    assert failure is not None
    assert failure.detail == "forged answer over TCP"


def test_who_cannot_be_asked_over_tcp_is_a_failure(
    fake: FakeNetwork, fake_collector: Collector
) -> None:
    serve(fake, lambda n, wire: [(10 * MS, answered(wire, flags=dns.flags.TC if n else 0))])
    fake.paths[SERVER] = FakePath(refused=True)
    shoot(fake_collector, fake)
    failure = hit(fake_collector).failure
    assert failure is not None
    assert failure.kind is FailureKind.REFUSED
    assert failure.detail.startswith("over TCP, after a truncated answer")


def test_a_stepped_clock_is_marked(fake: FakeNetwork, fake_collector: Collector) -> None:
    serve(fake)
    probe = fake_collector.open(DNS, {"name": NAME})
    probe.fire(shot_at(SERVER))
    fake.clock.advance(15 * MS)
    fake.clock.step(-5 * SECOND)
    fake.clock.advance(SECOND)
    sample = hit(fake_collector)
    assert (sample.value_ns, sample.clock_source) == (10 * MS, ClockSource.USER)
    assert Flag.CLOCK_STEP in sample.flags


def test_nothing_is_remembered_for_ever(fake: FakeNetwork, fake_collector: Collector) -> None:
    """More questions than there are numbers, one after the other."""
    serve(fake, lambda _, wire: [(MS, answered(wire, flags=dns.flags.AA))])
    probe = fake_collector.open(DNS, {"name": NAME})
    for seq in range(300):
        probe.fire(shot_at(SERVER, seq=seq))
        fake.clock.advance(SECOND)
    session = probe._families["ipv4"]._session  # type: ignore[attr-defined]
    assert len(session._table._sendings) < 70
    assert not session._table._by_key
    assert not session.under_way


def test_an_ipv6_address_may_be_written_in_any_way(
    fake: FakeNetwork, fake_collector: Collector
) -> None:
    written = "2001:DB8:0::1"
    fake.services[written, 5300] = Resolver(plainly)
    probe = fake_collector.open(DNS, {"name": NAME})
    channel = probe._families["ipv6"]._channel  # type: ignore[attr-defined]
    arrive = channel.inject

    def arrive_as_written(datagram: Datagram) -> None:
        """The system tells where a datagram came from in its own way."""
        arrive(datagram._replace(sender="2001:db8::1"))

    channel.inject = arrive_as_written
    probe.fire(shot_at(written, port=5300))
    fake.clock.advance(SECOND)
    assert hit(fake_collector).value_ns == 10 * MS
