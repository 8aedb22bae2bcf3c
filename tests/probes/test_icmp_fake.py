"""The echo probe on the fake network: what every kind of answer becomes."""

import struct

import pytest

from pathbudget.probes.channels import Arrival, IcmpBatch
from pathbudget.probes.clock import Reading
from pathbudget.probes.errors import PrivilegeError
from pathbudget.probes.fake_collector import Collector, shot_at
from pathbudget.probes.fake_network import FakeNetwork, FakePath
from pathbudget.probes.icmp import ICMP
from pathbudget.probes.icmp_session import IcmpSession, Outcome
from pathbudget.probes.record import (
    AddressFamily,
    ClockSource,
    Failure,
    FailureKind,
    Flag,
    Stage,
)

MS = 1_000_000
HOUR_NS = 3_600_000 * MS
HERE = {AddressFamily.IPV4: "192.0.2.1", AddressFamily.IPV6: "2001:db8::1"}

both_kinds = pytest.mark.parametrize("privileged", [True, False], ids=["raw", "datagram"])
both_families = pytest.mark.parametrize("family", list(AddressFamily))


@both_kinds
@both_families
def test_a_round_trip(
    fake: FakeNetwork, fake_collector: Collector, privileged: bool, family: AddressFamily
) -> None:
    fake.privileged = privileged
    address = HERE[family]
    fake.paths[address] = FakePath(round_trip_ns=12_345_678, ttl=57)
    probe = fake_collector.open(ICMP)
    fake.clock.advance(5 * MS)
    sent_unix_ns = fake.clock.unix_ns()
    probe.fire(shot_at(address, seq=3, series=9, lateness_ns=17))
    fake.clock.advance(20 * MS)
    ((series, sample),) = fake_collector.emitted
    assert (series, sample.seq, sample.metric, sample.value_ns) == (9, 3, "rtt", 12_345_678)
    assert (sample.ttl, sample.responder, sample.lateness_ns) == (57, None, 17)
    assert (sample.sent_unix_ns, sample.flags) == (sent_unix_ns, ())
    assert sample.clock_source is ClockSource.KERNEL
    assert not fake_collector.counts


@pytest.mark.parametrize(
    ("send_stamps", "receive_stamps", "source", "value_ns"),
    [
        (True, True, ClockSource.KERNEL, 10 * MS),
        (False, True, ClockSource.KERNEL_RECEIVE, 10 * MS),
        (True, False, ClockSource.USER, 30 * MS),
        (False, False, ClockSource.USER, 30 * MS),
    ],
)
def test_a_blocked_loop_moves_the_value_only_where_stamps_are_missing(
    fake: FakeNetwork,
    fake_collector: Collector,
    send_stamps: bool,
    receive_stamps: bool,
    source: ClockSource,
    value_ns: int,
) -> None:
    fake.send_stamps, fake.receive_stamps = send_stamps, receive_stamps
    session = IcmpSession(AddressFamily.IPV4, fake.rng)
    sent = Reading(0, HOUR_NS, 0)
    number, message = session.request(shot_at("192.0.2.1"), sent)
    session.sent(number, 1, 0)
    batch = IcmpBatch()
    if send_stamps:
        batch.sent.append((0, HOUR_NS))
    reply = reply_to(message)
    stamp = HOUR_NS + 10 * MS if receive_stamps else None
    batch.arrivals.append(Arrival(reply, "192.0.2.1", 64, stamp))
    session.receive(1, batch, Reading(30 * MS, HOUR_NS + 30 * MS, 0))
    (event,) = session.events()
    assert isinstance(event, Outcome)
    assert (event.sample.value_ns, event.sample.clock_source) == (value_ns, source)


def reply_to(message: bytes) -> bytes:
    from pathbudget.probes.icmp_wire import checksum

    body = b"\0\0\0\0" + message[4:]
    return body[:2] + checksum(body).to_bytes(2, "big") + body[4:]


@both_kinds
@both_families
@pytest.mark.parametrize("step_ns", [HOUR_NS, -HOUR_NS])
def test_a_clock_step_under_way_is_marked_and_does_not_enter_the_value(
    fake: FakeNetwork,
    fake_collector: Collector,
    privileged: bool,
    family: AddressFamily,
    step_ns: int,
) -> None:
    fake.privileged = privileged
    address = HERE[family]
    fake.paths[address] = FakePath(round_trip_ns=10 * MS)
    probe = fake_collector.open(ICMP)
    for seq in range(3):
        probe.fire(shot_at(address, seq=seq))
        fake.clock.advance(5 * MS)
        if seq == 1:
            fake.clock.step(step_ns)
        fake.clock.advance(5 * MS)
    samples = fake_collector.of("rtt")
    assert [sample.value_ns for sample in samples] == [10 * MS] * 3
    assert [sample.flags for sample in samples] == [(), (Flag.CLOCK_STEP,), ()]
    assert samples[1].clock_source is ClockSource.USER
    assert not fake_collector.counts


@both_kinds
def test_a_loss_is_a_sample_at_its_deadline(
    fake: FakeNetwork, fake_collector: Collector, privileged: bool
) -> None:
    fake.privileged = privileged
    fake.paths["192.0.2.1"] = FakePath(lost=lambda number: number in (1, 2))
    probe = fake_collector.open(ICMP)
    for seq in range(4):
        probe.fire(shot_at("192.0.2.1", seq=seq, timeout_ns=100 * MS))
        fake.clock.advance(20 * MS)
    fake.clock.advance(59 * MS)
    assert [sample.seq for sample in fake_collector.of("rtt")] == [0, 3, 1]
    fake.clock.advance(21 * MS)
    kinds = [sample.failure and sample.failure.kind for sample in fake_collector.of("rtt")]
    assert kinds == [None, None, FailureKind.TIMEOUT, FailureKind.TIMEOUT]
    failure = fake_collector.of("rtt")[-1].failure
    assert failure == Failure(FailureKind.TIMEOUT, Stage.WAIT, "no answer within 100 ms")


def test_timeouts_of_different_length_strike_in_their_order(
    fake: FakeNetwork, fake_collector: Collector
) -> None:
    probe = fake_collector.open(ICMP)
    for seq, timeout_ms in enumerate((300, 100, 200)):
        probe.fire(shot_at("192.0.2.1", seq=seq, timeout_ns=timeout_ms * MS))
    fake.clock.advance(150 * MS)
    assert [sample.seq for sample in fake_collector.of("rtt")] == [1]
    fake.clock.advance(200 * MS)
    assert [sample.seq for sample in fake_collector.of("rtt")] == [1, 2, 0]


@both_kinds
def test_a_late_answer_is_counted_and_the_sample_stays_a_timeout(
    fake: FakeNetwork, fake_collector: Collector, privileged: bool
) -> None:
    fake.privileged = privileged
    fake.paths["192.0.2.1"] = FakePath(round_trip_ns=150 * MS)
    probe = fake_collector.open(ICMP)
    probe.fire(shot_at("192.0.2.1", series=4, timeout_ns=100 * MS))
    fake.clock.advance(200 * MS)
    sample = fake_collector.only("rtt")
    assert sample.failure is not None
    assert sample.failure.kind is FailureKind.TIMEOUT
    assert fake_collector.counts == {(4, "late"): 1}


def test_late_by_the_stamps_though_read_before_the_deadline_alarm(fake: FakeNetwork) -> None:
    """A loop that was blocked reads reply and deadline in one go: the stamps decide."""
    session = IcmpSession(AddressFamily.IPV4, fake.rng)
    number, message = session.request(
        shot_at("192.0.2.1", timeout_ns=100 * MS), Reading(0, HOUR_NS, 0)
    )
    session.sent(number, 1, 0)
    arrival = Arrival(reply_to(message), "192.0.2.1", 64, HOUR_NS + 120 * MS)
    batch = IcmpBatch([(0, HOUR_NS)], [arrival])
    session.receive(1, batch, Reading(500 * MS, HOUR_NS + 500 * MS, 0))
    outcome, *counted = reversed(session.events())
    assert isinstance(outcome, Outcome)
    assert outcome.sample.failure is not None
    assert outcome.sample.failure.kind is FailureKind.TIMEOUT
    assert [event[1] for event in counted] == ["late"]


@both_kinds
def test_duplicates_are_counted_and_mark_the_sample_read_with_them(
    fake: FakeNetwork, fake_collector: Collector, privileged: bool
) -> None:
    fake.privileged = privileged
    fake.paths["192.0.2.1"] = FakePath(duplicates=2)
    fake.paths["192.0.2.2"] = FakePath(duplicates=1, duplicate_gap_ns=5 * MS)
    probe = fake_collector.open(ICMP)
    probe.fire(shot_at("192.0.2.1", series=1))
    probe.fire(shot_at("192.0.2.2", series=2))
    fake.clock.advance(100 * MS)
    assert fake_collector.counts == {(1, "duplicate"): 2, (2, "duplicate"): 1}
    flags = {series: sample.flags for series, sample in fake_collector.emitted}
    assert flags == {1: (Flag.DUPLICATED,), 2: ()}
    assert [sample.value_ns for sample in fake_collector.of("rtt")] == [10 * MS, 10 * MS]


@both_kinds
def test_foreign_answers_are_counted_and_never_taken(
    fake: FakeNetwork, fake_collector: Collector, privileged: bool
) -> None:
    fake.privileged = privileged
    fake.paths["192.0.2.1"] = FakePath(foreign=3, round_trip_ns=10 * MS)
    probe = fake_collector.open(ICMP)
    probe.fire(shot_at("192.0.2.1"))
    fake.clock.advance(100 * MS)
    assert fake_collector.counts == {(-1, "foreign"): 3}
    assert fake_collector.only("rtt").value_ns == 10 * MS


def test_answers_to_other_programs_on_this_host_are_no_concern_of_ours(
    fake: FakeNetwork,
) -> None:
    """A raw socket hears the answers to everybody's pings, an unprivileged one its own."""
    session = IcmpSession(AddressFamily.IPV4, fake.rng)
    _, message = session.request(shot_at("192.0.2.1"), Reading(0, HOUR_NS, 0))
    forged = message[:8] + bytes(8) + message[16:]
    identifier = int.from_bytes(message[4:6], "big")
    theirs = forged[:4] + (identifier ^ 1).to_bytes(2, "big") + forged[6:]

    def heard(text: bytes) -> list[object]:
        batch = IcmpBatch(arrivals=[Arrival(reply_to(text), "192.0.2.1", 64, None)])
        session.receive(1, batch, Reading(MS, HOUR_NS + MS, 0))
        return list(session.events())

    assert heard(forged) == [(-1, "foreign")]
    assert heard(theirs) == []
    session.identifiers_are_ours = False
    assert heard(theirs) == [(-1, "foreign")]


@both_families
def test_a_damaged_answer_is_a_failure_of_its_own(
    fake: FakeNetwork, fake_collector: Collector, family: AddressFamily
) -> None:
    address = HERE[family]
    fake.paths[address] = FakePath(corrupt=lambda number: number == 0)
    probe = fake_collector.open(ICMP)
    probe.fire(shot_at(address, series=2))
    fake.clock.advance(100 * MS)
    failure = fake_collector.only("rtt").failure
    assert failure == Failure(FailureKind.CORRUPT, Stage.PARSE, "damaged payload")
    assert fake_collector.counts == {(2, "corrupt"): 1}


ERRORS_V4 = [
    (3, 0, FailureKind.UNREACHABLE),
    (3, 1, FailureKind.UNREACHABLE),
    (3, 13, FailureKind.UNREACHABLE),
    (3, 200, FailureKind.UNREACHABLE),
    (11, 0, FailureKind.TIME_EXCEEDED),
    (12, 0, FailureKind.PROTOCOL),
]
ERRORS_V6 = [
    (1, 0, FailureKind.UNREACHABLE),
    (1, 3, FailureKind.UNREACHABLE),
    (2, 0, FailureKind.UNREACHABLE),
    (3, 0, FailureKind.TIME_EXCEEDED),
    (4, 1, FailureKind.PROTOCOL),
]


@both_kinds
@pytest.mark.parametrize("quotes", [8, 64])
@pytest.mark.parametrize(
    ("family", "icmp_type", "code", "kind"),
    [(AddressFamily.IPV4, *row) for row in ERRORS_V4]
    + [(AddressFamily.IPV6, *row) for row in ERRORS_V6],
)
def test_icmp_errors_keep_type_code_and_who_said_so(
    fake: FakeNetwork,
    fake_collector: Collector,
    privileged: bool,
    quotes: int,
    family: AddressFamily,
    icmp_type: int,
    code: int,
    kind: FailureKind,
) -> None:
    fake.privileged = privileged
    router = {AddressFamily.IPV4: "198.51.100.7", AddressFamily.IPV6: "2001:db8:ffff::7"}[family]
    path = FakePath(unreachable=(icmp_type, code, router), quotes_bytes=quotes)
    fake.paths[HERE[family]] = path
    probe = fake_collector.open(ICMP)
    probe.fire(shot_at(HERE[family], seq=5, series=6))
    fake.clock.advance(2_000 * MS)
    ((series, sample),) = fake_collector.emitted
    failure = sample.failure
    assert failure is not None
    assert (series, sample.seq, sample.responder) == (6, 5, router)
    assert (failure.kind, failure.stage) == (kind, Stage.WAIT)
    assert (failure.icmp_type, failure.icmp_code) == (icmp_type, code)
    assert failure.detail


def test_an_error_about_another_destination_with_the_same_numbers_is_not_taken(
    fake: FakeNetwork, fake_collector: Collector
) -> None:
    """8 quoted bytes hold no secret: destination, identifier and sequence must all fit."""
    session = IcmpSession(AddressFamily.IPV4, fake.rng)
    _, message = session.request(shot_at("192.0.2.1"), Reading(0, HOUR_NS, 0))

    def error_about(destination: bytes, quoted: bytes) -> IcmpBatch:
        header = b"\x45" + bytes(8) + b"\x01" + bytes(6) + destination
        text = struct.pack("!BBHI", 3, 1, 0, 0) + header + quoted
        return IcmpBatch(arrivals=[Arrival(text, "198.51.100.7", 64, None)])

    other_identifier = message[:4] + bytes(2) + message[6:8]
    for batch in (
        error_about(bytes([192, 0, 2, 2]), message[:8]),
        error_about(bytes([192, 0, 2, 1]), other_identifier),
    ):
        session.receive(1, batch, Reading(MS, HOUR_NS + MS, 0))
        assert session.events() == []
    session.receive(
        1, error_about(bytes([192, 0, 2, 1]), message[:8]), Reading(MS, HOUR_NS + MS, 0)
    )
    assert len(session.events()) == 1


def test_another_responder_is_named(fake: FakeNetwork, fake_collector: Collector) -> None:
    fake.paths["192.0.2.1"] = FakePath(responder="192.0.2.200")
    probe = fake_collector.open(ICMP)
    probe.fire(shot_at("192.0.2.1"))
    fake.clock.advance(100 * MS)
    assert fake_collector.only("rtt").responder == "192.0.2.200"


def test_an_address_written_another_way_is_the_same_responder(
    fake: FakeNetwork, fake_collector: Collector
) -> None:
    written = "2001:DB8:0:0::1"
    fake.paths[written] = FakePath(responder="2001:db8::1")
    probe = fake_collector.open(ICMP)
    probe.fire(shot_at(written))
    fake.clock.advance(100 * MS)
    assert fake_collector.only("rtt").responder is None


@both_kinds
def test_the_identifier_changes_after_losses_in_a_row(
    fake: FakeNetwork, fake_collector: Collector, privileged: bool
) -> None:
    fake.privileged = privileged
    fake.paths["192.0.2.1"] = FakePath(lost=lambda number: 2 <= number < 9)
    fake.paths["192.0.2.2"] = FakePath()
    probe = fake_collector.open(ICMP, {"rotate_after": 3})
    for seq in range(12):
        for series, address in enumerate(("192.0.2.1", "192.0.2.2")):
            probe.fire(shot_at(address, seq=seq, series=series, timeout_ns=50 * MS))
        fake.clock.advance(100 * MS)
    identifiers = [message[4:6] for address, message in fake.sent if address == "192.0.2.1"]
    changes = [seq for seq in range(1, 12) if identifiers[seq] != identifiers[seq - 1]]
    assert changes == [5, 8]
    assert fake_collector.counts == {(0, "identifier_rotated"): 2}
    assert len(fake_collector.of("rtt")) == 24
    lost = [sample for _, sample in fake_collector.emitted if sample.failure is not None]
    assert len(lost) == 7


def test_tokens_and_identifiers_differ_between_runs(fake: FakeNetwork) -> None:
    import random

    def first_message(seed: int) -> bytes:
        session = IcmpSession(AddressFamily.IPV4, random.Random(seed))
        return session.request(shot_at("192.0.2.1"), Reading(0, 0, 0))[1]

    one, other = first_message(1), first_message(2)
    assert one[8:16] != other[8:16]
    assert one[4:6] != other[4:6]


@pytest.mark.parametrize("size", [16, 56, 1400])
def test_the_payload_is_as_long_as_asked_for(
    fake: FakeNetwork, fake_collector: Collector, size: int
) -> None:
    fake.paths["192.0.2.1"] = FakePath()
    probe = fake_collector.open(ICMP, {"payload_bytes": size})
    probe.fire(shot_at("192.0.2.1"))
    fake.clock.advance(100 * MS)
    assert len(fake.sent[0][1]) == 8 + size
    assert fake_collector.only("rtt").value_ns == 10 * MS
    assert ICMP.cost({"payload_bytes": size}).bytes >= 2 * (28 + size)


def test_more_probes_than_sequence_numbers_under_way(fake: FakeNetwork) -> None:
    """The ICMP sequence number has 16 bits; ours has more, and lies in the payload."""
    session = IcmpSession(AddressFamily.IPV4, fake.rng)
    batch = IcmpBatch()
    for seq in range(20):
        if seq == 10:
            session._number = 65_536  # as many probes later
        number, message = session.request(shot_at("192.0.2.1", seq=seq), Reading(0, HOUR_NS, 0))
        assert message[6:8] == (seq % 10).to_bytes(2, "big")
        session.sent(number, 1, number)
        batch.sent.append((number, HOUR_NS + seq))
        batch.arrivals.append(Arrival(reply_to(message), "192.0.2.1", 64, HOUR_NS + 2 * seq))
    session.receive(1, batch, Reading(10 * MS, HOUR_NS + 10 * MS, 0))
    samples = [event.sample for event in session.events() if isinstance(event, Outcome)]
    assert [(sample.seq, sample.value_ns) for sample in samples] == [(n, n) for n in range(20)]


def test_a_host_without_ipv6_says_so_in_every_sample(
    fake: FakeNetwork, fake_collector: Collector
) -> None:
    fake.families = frozenset({AddressFamily.IPV4})
    fake.paths["192.0.2.1"] = FakePath()
    probe = fake_collector.open(ICMP)
    probe.fire(shot_at("2001:db8::1", series=1))
    probe.fire(shot_at("192.0.2.1", series=2))
    fake.clock.advance(100 * MS)
    samples = dict(fake_collector.emitted)
    assert samples[1].failure == Failure(FailureKind.NO_ROUTE, Stage.SEND, "this host has no IPv6")
    assert samples[2].value_ns == 10 * MS


def test_without_any_icmp_socket_the_probe_does_not_open(
    fake: FakeNetwork, fake_collector: Collector
) -> None:
    fake.privileged = None
    with pytest.raises(PrivilegeError, match="ICMP socket"):
        fake_collector.open(ICMP)


async def test_drain_returns_when_the_last_shot_has_its_outcome() -> None:
    from pathbudget.probes.fake_time import FakeClock

    clock = FakeClock(jumps=True)
    network = FakeNetwork(clock, paths={"192.0.2.1": FakePath(lost=lambda number: number == 1)})
    collector = Collector(network, clock)
    probe = collector.open(ICMP)
    await probe.drain()
    for seq in range(3):
        probe.fire(shot_at("192.0.2.1", seq=seq))
    await probe.drain()
    assert sorted(sample.seq for sample in collector.of("rtt")) == [0, 1, 2]


def test_close_drops_what_is_under_way(fake: FakeNetwork, fake_collector: Collector) -> None:
    fake.paths["192.0.2.1"] = FakePath()
    probe = fake_collector.open(ICMP)
    probe.fire(shot_at("192.0.2.1"))
    probe.close()
    fake.clock.advance(5_000 * MS)
    assert fake_collector.emitted == []
