"""What users of other tools were hurt by, each as a test of the echo probe.

The rest of these rows is tested beside what they belong to: capabilities and fallbacks in
tests/probes, hop loss and path changes with the traces.
"""

import random
import socket

import pytest

from pathbudget.probes import network as network_module
from pathbudget.probes.channels import Arrival, IcmpBatch, IcmpChannel, PacketOptions
from pathbudget.probes.clock import Reading, SystemClock
from pathbudget.probes.contract import BatchProbe
from pathbudget.probes.errors import PrivilegeError
from pathbudget.probes.fake_collector import Collector, shot_at
from pathbudget.probes.fake_network import FakeNetwork, FakePath
from pathbudget.probes.icmp import ICMP
from pathbudget.probes.icmp_session import IcmpSession, Outcome
from pathbudget.probes.icmp_socket import StampedIcmpSocket
from pathbudget.probes.icmp_wire import checksum
from pathbudget.probes.network import SystemNetwork
from pathbudget.probes.record import (
    HOST_BUSY_NS,
    AddressFamily,
    ClockSource,
    FailureKind,
    Flag,
    Sample,
    Stamps,
)

MS = 1_000_000
HOUR_NS = 3_600_000 * MS
V4 = AddressFamily.IPV4


def reply_to(message: bytes, *, identifier: int | None = None) -> bytes:
    name = message[4:6] if identifier is None else identifier.to_bytes(2, "big")
    body = b"\0\0\0\0" + name + message[6:]
    return body[:2] + checksum(body).to_bytes(2, "big") + body[4:]


def at(monotonic_ns: int) -> Reading:
    return Reading(monotonic_ns, HOUR_NS + monotonic_ns, 0)


def hear(session: IcmpSession, reply: bytes, *, stamp_ns: int, read_ns: int) -> list[object]:
    arrival = Arrival(reply, "192.0.2.1", 64, HOUR_NS + stamp_ns)
    session.receive(1, IcmpBatch([(0, HOUR_NS + 1_000)], [arrival]), at(read_ns))
    return list(session.events())


def test_pitfall_16_a_busy_loop_marks_the_sample_and_leaves_the_value_alone() -> None:
    session = IcmpSession(V4, random.Random(1))
    late = HOST_BUSY_NS + 5 * MS
    number, message = session.request(shot_at("192.0.2.1"), at(0))
    session.sent(number, 1, 0)
    (event,) = hear(session, reply_to(message), stamp_ns=3 * MS, read_ns=3 * MS + late)
    assert isinstance(event, Outcome)
    sample = event.sample
    assert (sample.value_ns, sample.clock_source) == (3 * MS - 1_000, ClockSource.KERNEL)
    assert sample.flags == (Flag.HOST_BUSY,)
    assert sample.stamps == Stamps(
        user_sent_ns=-1_000,
        kernel_sent_ns=0,
        kernel_received_ns=3 * MS - 1_000,
        user_received_ns=3 * MS + late - 1_000,
    )


@pytest.mark.parametrize("late_ns", [HOST_BUSY_NS // 2, HOST_BUSY_NS * 2])
def test_pitfall_16_a_late_send_is_marked_and_its_lateness_kept(
    fake: FakeNetwork, fake_collector: Collector, late_ns: int
) -> None:
    import msgspec

    fake.paths["192.0.2.1"] = FakePath(round_trip_ns=10 * MS)
    probe = fake_collector.open(ICMP)
    due_ns = fake.clock.monotonic_ns()
    fake.clock.advance(late_ns)
    probe.fire(msgspec.structs.replace(shot_at("192.0.2.1"), due_ns=due_ns))
    fake.clock.advance(100 * MS)
    sample = fake_collector.only("rtt")
    assert (sample.value_ns, sample.lateness_ns) == (10 * MS, late_ns)
    assert sample.stamps is not None
    assert sample.stamps.due_ns == -late_ns
    assert (Flag.HOST_BUSY in sample.flags) == (late_ns > HOST_BUSY_NS)


def test_pitfall_17_one_socket_per_family_serves_all_series(
    fake: FakeNetwork, fake_collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[AddressFamily] = []
    plain = FakeNetwork.open_icmp

    def open_icmp(self: FakeNetwork, family: AddressFamily, *rest: object) -> IcmpChannel | None:
        opened.append(family)
        return plain(self, family, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(FakeNetwork, "open_icmp", open_icmp)
    addresses = [f"198.51.{n // 250}.{1 + n % 250}" for n in range(1_000)]
    for address in addresses:
        fake.paths[address] = FakePath()
    probe = fake_collector.open(ICMP)
    assert isinstance(probe, BatchProbe)
    probe.fire_all([shot_at(address, series=n) for n, address in enumerate(addresses)])
    fake.clock.advance(100 * MS)
    assert sorted(opened) == sorted(AddressFamily)
    assert sorted(series for series, _ in fake_collector.emitted) == list(range(1_000))
    assert {sample.value_ns for _, sample in fake_collector.emitted} == {10 * MS}


def test_pitfall_21_identifier_and_token_are_random_in_every_run() -> None:
    seen: set[bytes] = set()
    tokens: set[bytes] = set()
    for seed in range(50):
        session = IcmpSession(V4, random.Random(seed))
        _, message = session.request(shot_at("192.0.2.1"), at(0))
        seen.add(message[4:6])
        tokens.add(message[8:16])
    assert len(seen) > 40
    assert len(tokens) == 50


@pytest.mark.parametrize("privileged", [True, False], ids=["raw", "datagram"])
def test_pitfall_22_a_pinned_session_is_left_and_the_rotation_recorded(
    fake: FakeNetwork, fake_collector: Collector, privileged: bool
) -> None:
    """A firewall drops everything under the first identifier, for ever."""
    fake.privileged = privileged
    pinned: list[bytes] = []

    def lost(number: int) -> bool:
        name = fake.sent[-1][1][4:6]
        pinned.append(name)
        return name == pinned[0]

    fake.paths["192.0.2.1"] = FakePath(lost=lost)
    probe = fake_collector.open(ICMP, {"rotate_after": 4})
    for seq in range(10):
        probe.fire(shot_at("192.0.2.1", seq=seq, timeout_ns=50 * MS))
        fake.clock.advance(100 * MS)
    samples = sorted((s for _, s in fake_collector.emitted), key=lambda each: each.seq)
    assert [sample.failure is None for sample in samples] == [False] * 4 + [True] * 6
    assert fake_collector.counts == {(0, "identifier_rotated"): 1}
    assert len(fake.sent) == 10


def test_pitfall_22_an_outage_of_all_targets_renews_an_unprivileged_socket_once(
    fake: FakeNetwork, fake_collector: Collector
) -> None:
    fake.privileged = False
    probe = fake_collector.open(ICMP, {"rotate_after": 3})
    assert isinstance(probe, BatchProbe)
    for _ in range(3):
        probe.fire_all(
            [shot_at(f"192.0.2.{n}", series=n, timeout_ns=50 * MS) for n in range(1, 200)]
        )
        fake.clock.advance(100 * MS)
    assert fake_collector.counted("identifier_rotated") == 1


def test_pitfall_23_a_rewritten_identifier_is_no_loss() -> None:
    session = IcmpSession(V4, random.Random(1))
    _, message = session.request(shot_at("192.0.2.1"), at(0))
    other = int.from_bytes(message[4:6], "big") ^ 0x5A5A
    (event,) = hear(session, reply_to(message, identifier=other), stamp_ns=2 * MS, read_ns=2 * MS)
    assert isinstance(event, Outcome)
    assert event.sample.failure is None


def test_pitfall_24_colliding_identifiers_of_two_processes_do_not_cross() -> None:
    one, other = IcmpSession(V4, random.Random(1)), IcmpSession(V4, random.Random(2))
    _, ours = one.request(shot_at("192.0.2.1"), at(0))
    _, theirs = other.request(shot_at("192.0.2.1"), at(0))
    collided = reply_to(theirs, identifier=int.from_bytes(ours[4:6], "big"))
    assert collided[6:8] == ours[6:8]
    assert hear(one, collided, stamp_ns=MS, read_ns=MS) == [(-1, "foreign")]
    assert one.under_way == 1


def test_pitfall_26_a_path_that_grows_is_no_loss(
    fake: FakeNetwork, fake_collector: Collector
) -> None:
    """Echo requests leave with the system's TTL; how far they came is recorded with each answer."""
    path = fake.paths["192.0.2.1"] = FakePath(ttl=57)
    probe = fake_collector.open(ICMP)
    for seq in range(6):
        path.ttl = 57 if seq < 3 else 49
        probe.fire(shot_at("192.0.2.1", seq=seq))
        fake.clock.advance(100 * MS)
    assert [sample.ttl for sample in fake_collector.of("rtt")] == [57] * 3 + [49] * 3
    assert ICMP.options["ttl"].default == 0


@pytest.mark.parametrize("privileged", [True, False], ids=["raw", "datagram"])
def test_pitfall_27_an_unreachable_is_never_a_reply(
    fake: FakeNetwork, fake_collector: Collector, privileged: bool
) -> None:
    fake.privileged = privileged
    codes = [0, 1, 2, 3, 9, 10, 13]
    for code in codes:
        path = FakePath(unreachable=(3, code, "198.51.100.7"))
        fake.paths[f"192.0.2.{code}"] = path
    probe = fake_collector.open(ICMP)
    for code in codes:
        probe.fire(shot_at(f"192.0.2.{code}", seq=code))
    fake.clock.advance(100 * MS)
    for sample in fake_collector.of("rtt"):
        assert sample.value_ns is None
        assert sample.failure is not None
        assert (sample.failure.icmp_type, sample.failure.icmp_code) == (3, sample.seq)
        assert sample.failure.kind is FailureKind.UNREACHABLE
        assert sample.responder == "198.51.100.7"


def test_pitfall_28_every_packet_of_a_train_has_its_own_outcome_and_none_is_sent_again(
    fake: FakeNetwork, fake_collector: Collector
) -> None:
    fake.paths["192.0.2.1"] = FakePath(lost=lambda number: number % 3 == 0)
    probe = fake_collector.open(ICMP)
    assert isinstance(probe, BatchProbe)
    probe.fire_all([shot_at("192.0.2.1", seq=seq, timeout_ns=50 * MS) for seq in range(9)])
    fake.clock.advance(200 * MS)
    assert len(fake.sent) == 9
    ended: dict[int, Sample] = {sample.seq: sample for sample in fake_collector.of("rtt")}
    assert sorted(ended) == list(range(9))
    assert [ended[seq].failure is not None for seq in range(9)] == [True, False, False] * 3


async def test_pitfall_29_no_icmp_socket_is_said_with_both_remedies(
    network: SystemNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[bool] = []

    def refuse(family: AddressFamily, *, privileged: bool) -> None:
        tried.append(privileged)
        raise PermissionError(1, "not permitted")

    monkeypatch.setattr(network_module, "try_icmp", refuse)
    with pytest.raises(PrivilegeError) as told:
        Collector(network, SystemClock()).open(ICMP)
    assert tried == [True, False]
    assert "cap_net_raw" in told.value.remedy
    assert "ping_group_range" in told.value.remedy


def test_flows_are_used_in_turn_and_recorded(fake: FakeNetwork, fake_collector: Collector) -> None:
    """Within a flow the first bytes of all packets are alike, sequence and payload apart."""
    fake.paths["192.0.2.1"] = FakePath()
    probe = fake_collector.open(ICMP, {"flows": 4})
    for seq in range(12):
        probe.fire(shot_at("192.0.2.1", seq=seq))
    fake.clock.advance(100 * MS)
    identifiers = [int.from_bytes(message[4:6], "big") for _, message in fake.sent]
    assert len(set(identifiers)) == 4
    assert identifiers == identifiers[:4] * 3
    flows = {sample.seq: sample.flow for sample in fake_collector.of("rtt")}
    assert flows == dict(enumerate(identifiers))
    heads = {message[:6] for _, message in fake.sent}
    assert len(heads) == 4
    assert all(checksum(message) == 0 for _, message in fake.sent)
    assert len({message[16:] for _, message in fake.sent}) == 12


def test_unprivileged_flows_have_a_socket_each(
    fake: FakeNetwork, fake_collector: Collector
) -> None:
    fake.privileged = False
    fake.paths["192.0.2.1"] = FakePath()
    probe = fake_collector.open(ICMP, {"flows": 3})
    assert isinstance(probe, BatchProbe)
    probe.fire_all([shot_at("192.0.2.1", seq=seq) for seq in range(9)])
    fake.clock.advance(100 * MS)
    flows = {sample.seq: sample.flow for sample in fake_collector.of("rtt")}
    assert len(set(flows.values())) == 3
    assert all(flows[seq] == flows[seq % 3] for seq in range(9))
    assert {int.from_bytes(message[4:6], "big") for _, message in fake.sent} == set(flows.values())


async def test_packet_options_are_set_on_the_socket(
    network: SystemNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a UDP socket in the place of the unprivileged kind: that one can be had everywhere."""

    def try_icmp(family: AddressFamily, *, privileged: bool) -> socket.socket:
        if privileged:
            raise PermissionError(1, "not permitted")
        return socket.socket(socket.AF_INET, socket.SOCK_DGRAM)

    monkeypatch.setattr(network_module, "try_icmp", try_icmp)
    packet = PacketOptions(source="127.0.0.9", ttl=7, dscp=46, interface="lo", fragment=False)
    channel = network.open_icmp(V4, lambda _: None, packet)
    assert isinstance(channel, StampedIcmpSocket)
    inside = channel._socket
    assert inside.getsockname() == ("127.0.0.9", channel.identifier)
    options = [(socket.SOL_IP, 2), (socket.SOL_IP, 1), (socket.SOL_IP, 10)]
    assert [inside.getsockopt(*option) for option in options] == [7, 184, 2]
    assert inside.getsockopt(socket.SOL_SOCKET, 25, 16).rstrip(b"\0") == b"lo"
    channel.close()
    with pytest.raises(PrivilegeError, match="nowhere"):
        network.open_icmp(V4, lambda _: None, PacketOptions(interface="nowhere"))


def test_identifiers_that_were_given_up_are_forgotten_in_the_end() -> None:
    """A target that is down for days: its old identifiers are somebody else's one day."""
    flows = IcmpSession(V4, random.Random(1)).flows
    first = flows.of("192.0.2.1", 0)
    for _ in range(5_000):
        flows.rotate(flows.of("192.0.2.1", 0))
    current = flows.of("192.0.2.1", 0)
    assert not flows.is_current(first)
    assert flows.is_current(current)
    assert flows.may_be_ours(current.identifier)
    assert len(flows._used) <= 1_025


def test_memory_stays_flat_however_many_probes_have_been(
    fake: FakeNetwork, fake_collector: Collector
) -> None:
    """Whatever is kept by probe or by address has a bound or goes with the answer."""
    session = IcmpSession(V4, random.Random(1))
    for round_ in range(300):
        batch = IcmpBatch()
        for n in range(10):
            number, message = session.request(shot_at(f"192.0.2.{n}", seq=round_), at(round_))
            session.sent(number, 1, number)
            batch.arrivals.append(Arrival(reply_to(message), f"192.0.2.{n}", 64, None))
        session.receive(1, batch, at(round_ + 1))
        assert len(session.events()) == 10
        session.next_deadline_ns()
    assert session.under_way == 0
    assert not session._by_key[1]
    assert not session._deadlines._queues
    assert len(session.flows._by_address) == 10
