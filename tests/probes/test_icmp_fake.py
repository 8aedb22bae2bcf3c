"""The echo probe on the fake network: what every kind of answer becomes."""

import pytest

from pathbudget.probes.errors import PrivilegeError
from pathbudget.probes.fake_collector import Collector, shot_at
from pathbudget.probes.fake_network import FakeNetwork, FakePath
from pathbudget.probes.icmp import ICMP
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
@pytest.mark.parametrize(
    ("quotes", "family", "icmp_type", "code", "kind"),
    [(quotes, AddressFamily.IPV4, *row) for row in ERRORS_V4 for quotes in (8, 64)]
    + [(64, AddressFamily.IPV6, *row) for row in ERRORS_V6],
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


@both_kinds
def test_an_icmpv6_error_without_our_secret_is_not_believed(
    fake: FakeNetwork, fake_collector: Collector, privileged: bool
) -> None:
    """Routers quote all that fits (RFC 4443 section 2.4); 16 bits of sequence are soon guessed."""
    fake.privileged = privileged
    there = HERE[AddressFamily.IPV6]
    fake.paths[there] = FakePath(unreachable=(1, 0, "2001:db8:ffff::7"), quotes_bytes=8)
    probe = fake_collector.open(ICMP)
    probe.fire(shot_at(there))
    fake.clock.advance(2_000 * MS)
    failure = fake_collector.only("rtt").failure
    assert failure is not None
    assert failure.kind is FailureKind.TIMEOUT
    assert fake_collector.counts == {(-1, "forged_error"): 1}


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
