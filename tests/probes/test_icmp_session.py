"""The bookkeeping behind the echo probe: sessions fed by hand, batch by batch."""

import struct

import pytest

from pathbudget.probes.channels import Arrival, IcmpBatch
from pathbudget.probes.clock import Reading
from pathbudget.probes.fake_collector import Collector, shot_at
from pathbudget.probes.fake_network import FakeNetwork
from pathbudget.probes.icmp_session import IcmpSession, Outcome
from pathbudget.probes.record import (
    AddressFamily,
    ClockSource,
    FailureKind,
)

MS = 1_000_000
HOUR_NS = 3_600_000 * MS


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


def test_an_error_about_another_destination_with_the_same_numbers_is_not_taken(
    fake: FakeNetwork, fake_collector: Collector
) -> None:
    """8 quoted bytes hold no secret: destination, identifier, sequence and checksum must all fit.
    What is under an identifier of ours and does not fit is counted, never believed.
    """
    session = IcmpSession(AddressFamily.IPV4, fake.rng)
    _, message = session.request(shot_at("192.0.2.1"), Reading(0, HOUR_NS, 0))

    def error_about(destination: bytes, quoted: bytes) -> IcmpBatch:
        header = b"\x45" + bytes(8) + b"\x01" + bytes(6) + destination
        text = struct.pack("!BBHI", 3, 1, 0, 0) + header + quoted
        return IcmpBatch(arrivals=[Arrival(text, "198.51.100.7", 64, None)])

    other_identifier = message[:4] + bytes(2) + message[6:8]
    other_checksum = message[:2] + bytes(2) + message[4:8]
    for batch, said in (
        (error_about(bytes([192, 0, 2, 2]), message[:8]), [(-1, "forged_error")]),
        (error_about(bytes([192, 0, 2, 1]), other_checksum), [(-1, "forged_error")]),
        (error_about(bytes([192, 0, 2, 1]), other_identifier), []),  # somebody else's ping
    ):
        session.receive(1, batch, Reading(MS, HOUR_NS + MS, 0))
        assert session.events() == said
    session.receive(
        1, error_about(bytes([192, 0, 2, 1]), message[:8]), Reading(MS, HOUR_NS + MS, 0)
    )
    assert len(session.events()) == 1


def test_tokens_and_identifiers_differ_between_runs(fake: FakeNetwork) -> None:
    import random

    def first_message(seed: int) -> bytes:
        session = IcmpSession(AddressFamily.IPV4, random.Random(seed))
        return session.request(shot_at("192.0.2.1"), Reading(0, 0, 0))[1]

    one, other = first_message(1), first_message(2)
    assert one[8:16] != other[8:16]
    assert one[4:6] != other[4:6]


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
