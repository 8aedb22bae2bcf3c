"""The probe on the fake network and on loopback, and what it says of wrong options."""

import asyncio
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pathbudget.probes.channels import Datagram, DatagramBatch, Outgoing
from pathbudget.probes.clock import Clock, ClockWatcher, SystemClock
from pathbudget.probes.contract import BatchProbe, Options
from pathbudget.probes.errors import ConfigError
from pathbudget.probes.fake_collector import Collector, shot_at
from pathbudget.probes.fake_network import FakeClock, FakeNetwork, FakePath
from pathbudget.probes.network import SystemNetwork
from pathbudget.probes.record import (
    AddressFamily,
    ClockQuality,
    ClockSource,
    Direction,
    FailureKind,
    Metric,
    SyncState,
)
from pathbudget.probes.stamp.authentication import read_keys
from pathbudget.probes.stamp.fake_reflector import FakeReflector
from pathbudget.probes.stamp.probe import DEFAULT_PORT, STAMP
from pathbudget.probes.stamp.reflector_session import ReflectorPolicy, ReflectorSession

MS = 1_000_000
FAR, FAR6 = "192.0.2.1", "2001:db8::1"


@pytest.fixture
def fake() -> FakeNetwork:
    return FakeNetwork(FakeClock())


@pytest.fixture
def collector(fake: FakeNetwork) -> Collector:
    return Collector(fake, fake.clock)


def shoot(
    fake: FakeNetwork, collector: Collector, shots: int, address: str = FAR, **options: object
) -> None:
    probe = collector.open(STAMP, options)  # type: ignore[arg-type]
    for seq in range(shots):
        probe.fire(shot_at(address, seq=seq))
        fake.clock.advance(200 * MS)
    fake.clock.advance(3_000 * MS)
    asyncio.run(probe.drain())
    probe.close()


@pytest.mark.parametrize("address", [FAR, FAR6])
def test_both_directions_of_a_way(fake: FakeNetwork, collector: Collector, address: str) -> None:
    fake.services[address, DEFAULT_PORT] = FakeReflector(
        forward_ns=30 * MS, reverse_ns=20 * MS, offset_ns=-70 * MS
    )
    shoot(fake, collector, 5, address)
    for rtt, forward, reverse in zip(
        *(
            collector.of(metric)[:4]
            for metric in (Metric.RTT, Metric.TRANSIT_FORWARD, Metric.TRANSIT_REVERSE)
        ),
        strict=True,
    ):
        assert rtt.value_ns == 50 * MS
        assert rtt.clock_source is ClockSource.KERNEL
        assert forward.value_ns == 30 * MS - 70 * MS
        assert reverse.value_ns == 20 * MS + 70 * MS
        assert rtt.flow is not None
    assert len(collector.of(Metric.RTT)) == 5
    assert not collector.counts


def test_losses_of_each_way(fake: FakeNetwork, collector: Collector) -> None:
    fake.services[FAR, DEFAULT_PORT] = FakeReflector(
        lost_forward=lambda number: number == 2, lost_reverse=lambda number: number in (5, 6)
    )
    shoot(fake, collector, 10)
    told = {
        one.seq: one.failure.direction
        for one in collector.of(Metric.RTT)
        if one.failure is not None
    }
    assert told == {2: Direction.FORWARD, 5: Direction.REVERSE, 6: Direction.REVERSE}
    assert (collector.counted("lost_forward"), collector.counted("lost_reverse")) == (1, 2)


def test_a_port_where_nobody_listens(fake: FakeNetwork, collector: Collector) -> None:
    fake.paths[FAR] = FakePath(unreachable=(3, 3, FAR))
    shoot(fake, collector, 1)
    failure = collector.only(Metric.RTT).failure
    assert failure is not None
    assert failure.kind is FailureKind.UNREACHABLE
    assert failure.detail == "port unreachable"
    assert (failure.icmp_type, failure.icmp_code) == (3, 3)


def test_a_silent_host(fake: FakeNetwork, collector: Collector) -> None:
    shoot(fake, collector, 3)
    kinds = [one.failure.kind for one in collector.of(Metric.RTT) if one.failure]
    assert kinds == [FailureKind.TIMEOUT] * 3
    assert collector.counted("lost_direction_unknown") == 3


def test_a_family_that_the_host_has_not(fake: FakeNetwork, collector: Collector) -> None:
    fake.families = frozenset({AddressFamily.IPV4})
    shoot(fake, collector, 1, FAR6)
    failure = collector.only(Metric.RTT).failure
    assert failure is not None
    assert failure.kind is FailureKind.NO_ROUTE


def test_flows_leave_from_ports_of_their_own(fake: FakeNetwork, collector: Collector) -> None:
    fake.services[FAR, DEFAULT_PORT] = FakeReflector()
    shoot(fake, collector, 12, flows=3)
    flows = [one.flow for one in collector.of(Metric.TRANSIT_FORWARD)]
    assert len(set(flows)) == 3
    by_seq = {one.seq: one.flow for one in collector.of(Metric.RTT)}
    assert all(by_seq[seq] == by_seq[seq % 3] for seq in by_seq)


def test_many_at_once(fake: FakeNetwork, collector: Collector) -> None:
    fake.services[FAR, DEFAULT_PORT] = FakeReflector()
    probe = collector.open(STAMP, {"follow_up": False})
    assert isinstance(probe, BatchProbe)
    probe.fire_all([shot_at(FAR, seq=seq) for seq in range(200)])
    fake.clock.advance(2_000 * MS)
    assert [one.seq for one in collector.of(Metric.RTT)] == list(range(200))
    assert not any(one.failure for one in collector.of(Metric.RTT))
    probe.close()


def test_the_target_may_name_the_port(fake: FakeNetwork, collector: Collector) -> None:
    fake.services[FAR, 862] = FakeReflector(
        session=ReflectorSession(ReflectorPolicy(862)), forward_ns=MS, reverse_ns=MS
    )
    probe = collector.open(STAMP, {"follow_up": False})
    probe.fire(shot_at(FAR, port=862))
    fake.clock.advance(2_000 * MS)
    assert collector.only(Metric.RTT).failure is None
    probe.close()


def key_file(folder: Path, text: str) -> str:
    path = folder / "keys"
    path.write_text(text)
    path.chmod(0o600)
    return str(path)


def test_authenticated_and_with_a_clock_that_is_set_back(
    fake: FakeNetwork, collector: Collector, tmp_path: Path
) -> None:
    path = key_file(tmp_path, f"one {'ab' * 16}\nother {'cd' * 16}")
    keys = (read_keys(path)["other"],)
    session = ReflectorSession(ReflectorPolicy(DEFAULT_PORT, keys=keys))
    fake.services[FAR, DEFAULT_PORT] = FakeReflector(session=session)
    probe = collector.open(STAMP, {"key_file": path, "key_id": "other"})
    for seq in range(10):
        if seq == 5:
            fake.clock.step(-3_600_000 * MS)
        probe.fire(shot_at(FAR, seq=seq))
        fake.clock.advance(200 * MS)
    fake.clock.advance(3_000 * MS)
    assert len(collector.of(Metric.RTT)) == 10
    assert not any(one.failure for one in collector.of(Metric.RTT))
    assert not session.refused
    probe.close()


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"size": 66}, "64, or 68 and more"),
        ({"size": 20}, "64, or 68 and more"),
        ({"key_id": "one"}, "key_file beside it"),
        ({"key_file": "KEYS"}, "one of one, other"),
        ({"key_file": "KEYS", "key_id": "three"}, "has no key 'three'"),
        ({"key_file": "/nowhere"}, "No such file"),
    ],
)
def test_options_that_cannot_be(
    collector: Collector, tmp_path: Path, options: Options, problem: str
) -> None:
    path = key_file(tmp_path, f"one {'ab' * 16}\nother {'cd' * 16}")
    given = {name: path if value == "KEYS" else value for name, value in options.items()}
    with pytest.raises(ConfigError, match=problem):
        collector.open(STAMP, given)


@pytest.mark.parametrize(
    ("options", "octets"),
    [
        ({}, 64),
        ({"follow_up": False}, 44),
        ({"size": 500}, 500),
        ({"dscp": 46}, 72),
        ({"key_file": "some"}, 152),
    ],
)
def test_the_cost_is_what_leaves(options: Options, octets: int) -> None:
    assert STAMP.cost(options).bytes == 2 * (48 + octets)
    assert STAMP.cost(options).packets == 2


@pytest.fixture
async def network() -> AsyncIterator[SystemNetwork]:
    network = SystemNetwork()
    await asyncio.sleep(0.05)  # until the kernel stamps
    yield network
    network.close()


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
async def test_on_loopback_with_the_sockets_of_this_host(
    network: SystemNetwork, address: str
) -> None:
    collector = Collector(network, SystemClock())
    family = AddressFamily.IPV6 if ":" in address else AddressFamily.IPV4
    clock = SystemClock()

    def listen(batch: DatagramBatch) -> None:
        assert channel is not None
        for key, stamp in batch.sent:
            session.transmitted(key, stamp)
        for one in batch.arrivals:
            send_back(one)

    def send_back(one: Datagram) -> None:
        now = clock.unix_ns()
        answer = session.receive(
            one.payload, one.sender, one.sender_port, one.local, one.ttl, one.traffic_class,
            one.kernel_unix_ns or now, now, clock.monotonic_ns(),
        )  # fmt: skip
        if answer is not None and channel is not None:
            key = channel.send(Outgoing(answer.payload, one.sender, one.sender_port))
            assert isinstance(key, int)
            session.sent(answer, key)

    channel = network.open_datagrams(family, listen)
    assert channel is not None
    session = ReflectorSession(ReflectorPolicy(channel.port))
    probe = collector.open(STAMP)
    for seq in range(20):
        probe.fire(shot_at(address, seq=seq, port=channel.port, timeout_ns=400 * MS))
        await asyncio.sleep(0.005)
    async with asyncio.timeout(10):
        await probe.drain()
    channel.close()
    probe.close()
    assert [one.seq for one in collector.of(Metric.RTT)] == list(range(20))
    assert not any(one.failure for one in collector.of(Metric.RTT))
    assert all(one.value_ns and one.value_ns > 0 for one in collector.of(Metric.RTT))
    assert sum(one.clock_source is ClockSource.KERNEL for one in collector.of(Metric.RTT)) >= 15
    assert not session.refused


async def test_on_loopback_nobody_listens(network: SystemNetwork) -> None:
    collector = Collector(network, SystemClock())
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
    probe = collector.open(STAMP)
    probe.fire(shot_at("127.0.0.1", port=port))
    async with asyncio.timeout(10):
        await probe.drain()
    probe.close()
    failure = collector.only(Metric.RTT).failure
    assert failure is not None
    assert failure.kind is FailureKind.UNREACHABLE
    assert (failure.icmp_type, failure.icmp_code) == (3, 3)


def test_the_probe_asks_a_survey_of_its_clock_and_claims_only_a_bound_that_is_vouched_for(
    fake: FakeNetwork, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At once, and again and again."""
    asked: list[int] = []

    class Survey:
        def __init__(self, clock: Clock, watcher: ClockWatcher) -> None:
            self.watcher = watcher

        def now(self) -> ClockQuality:
            asked.append(self.watcher.steps)
            return ClockQuality(SyncState.SYNCHRONISED, "chrony", 5_000)

    monkeypatch.setattr("pathbudget.probes.stamp.probe.ClockSurvey", Survey)
    reflector = FakeReflector()
    reflector.session.claim_clock(7_000)
    fake.services[FAR, DEFAULT_PORT] = reflector
    shoot(fake, collector, 12)
    errors = [one.error_ns for one in collector.of(Metric.TRANSIT_FORWARD)]
    assert all(error is not None and 12_000 <= error < 12_200 for error in errors)
    assert len(asked) == 2  # in 2.4 s, of one of both families


@pytest.mark.parametrize("under_way", [False, True])
def test_after_a_step_nothing_is_claimed_until_the_clock_was_asked_again(
    fake: FakeNetwork, collector: Collector, monkeypatch: pytest.MonkeyPatch, under_way: bool
) -> None:
    """Neither of packets that are sent then, nor of one that was under way."""
    said = [ClockQuality(SyncState.SYNCHRONISED, "chrony", 5_000)]

    class Survey:
        def __init__(self, clock: Clock, watcher: ClockWatcher) -> None:
            pass

        def now(self) -> ClockQuality:
            return said[0]

    monkeypatch.setattr("pathbudget.probes.stamp.probe.ClockSurvey", Survey)
    reflector = FakeReflector(forward_ns=30 * MS, reverse_ns=30 * MS)
    reflector.session.claim_clock(7_000)
    fake.services[FAR, DEFAULT_PORT] = reflector
    probe = collector.open(STAMP, {"follow_up": False})
    probe.fire(shot_at(FAR, seq=0))
    fake.clock.advance(20 * MS if under_way else 200 * MS)
    fake.clock.step(5_000 * MS)
    said[0] = ClockQuality(SyncState.UNKNOWN, "chrony")
    fake.clock.advance(200 * MS)
    probe.fire(shot_at(FAR, seq=1))
    fake.clock.advance(1_500 * MS)
    said[0] = ClockQuality(SyncState.SYNCHRONISED, "chrony", 5_000)
    probe.fire(shot_at(FAR, seq=2))
    fake.clock.advance(200 * MS)
    vouched = [one.error_ns is not None for one in collector.of(Metric.TRANSIT_FORWARD)]
    assert vouched == [not under_way, False, True]
    probe.close()
