"""The simulated networks behind the door: read with the codecs of the trace probe, and by scapy."""

from collections import Counter
from dataclasses import dataclass, field

import pytest
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import IPv6

from pathbudget.probes.channels import PathBatch
from pathbudget.probes.errors import PrivilegeError
from pathbudget.probes.fake_network import FakeClock, FakeNetwork
from pathbudget.probes.fake_packets import FakePacket, read_packet
from pathbudget.probes.fake_paths import HERE
from pathbudget.probes.fake_topology import Balance, FakeNat, FakeRouter, FakeTopology
from pathbudget.probes.record import AddressFamily, Failure
from pathbudget.probes.trace.contract import (
    Answer,
    AnswerKind,
    Flow,
    FlowPacket,
    LabelEntry,
    PathArrival,
    TraceProtocol,
)
from pathbudget.probes.trace.matching import Match, match
from pathbudget.probes.trace.wire import build, read

V4, V6 = AddressFamily.IPV4, AddressFamily.IPV6
THERE = {V4: "192.0.2.9", V6: "2001:db8::9"}
MS = 1_000_000
DIAMOND = [["10.0.0.1"], ["10.0.1.1", "10.0.1.2"], ["10.0.2.1", "10.0.2.2"], ["10.0.3.1"]]
SIX = [["2001:db8:1::1"], ["2001:db8:2::1", "2001:db8:2::2"], ["2001:db8:3::1"]]
PROTOCOLS = [TraceProtocol.ICMP, TraceProtocol.UDP, TraceProtocol.TCP]


@dataclass
class World:
    """One channel into one topology."""

    family: AddressFamily = V4
    seed: int = 1
    batches: list[PathBatch] = field(default_factory=list[PathBatch])

    def __post_init__(self) -> None:
        self.clock = FakeClock()
        self.network = FakeNetwork(self.clock, topology=FakeTopology(self.seed))
        self.topology = self.network.topology
        self.there = THERE[self.family]
        self.topology.layers(self.there, DIAMOND if self.family is V4 else SIX, meshed={1})
        channel = self.network.open_paths(self.family, self.batches.append)
        assert channel is not None
        self.channel = channel

    def node(self, address: str) -> FakeRouter:
        return self.topology.node(address)

    def flow(self, protocol: TraceProtocol, key: int) -> Flow:
        port = 0 if protocol is TraceProtocol.ICMP else 443
        return Flow(protocol, self.family, HERE[self.family], self.there, key, port)

    def probe(self, key: int, hop: int, protocol: TraceProtocol = TraceProtocol.UDP) -> FlowPacket:
        return build(self.flow(protocol, key), hop, 100 + hop)

    def send(self, *packets: FlowPacket, gap_ns: int = 0) -> list[PathArrival]:
        self.batches.clear()
        for packet in packets:
            (key,) = self.channel.send_all([packet])
            assert isinstance(key, int)
            self.clock.advance(gap_ns)
        self.clock.advance(1_000 * MS)
        return [one for batch in self.batches for one in batch.arrivals]

    def answers(self, *packets: FlowPacket, gap_ns: int = 0) -> list[Answer]:
        arrivals = self.send(*packets, gap_ns=gap_ns)
        found = [read(arrival, self.family) for arrival in arrivals]
        assert None not in found
        return [answer for answer in found if answer is not None]


@pytest.mark.parametrize("family", [V4, V6])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_flow_keeps_its_way_and_it_is_the_true_one(
    protocol: TraceProtocol, family: AddressFamily
) -> None:
    world = World(family)
    length = 5 if family is V4 else 4
    seen: set[tuple[str, ...]] = set()
    for key in range(2_000, 2_024):
        packets = [world.probe(key, hop, protocol) for hop in range(1, length + 2)]
        answers = sorted(world.answers(*packets), key=lambda one: one.token)
        way = [one.responder for one in answers]
        true = world.topology.path_of(read_packet(packets[0].data))
        assert way == [router.address for router in true] + [world.there]
        kinds = [one.kind for one in answers]
        assert kinds == [AnswerKind.EXCEEDED] * (length - 1) + [AnswerKind.ARRIVED] * 2
        pairs = zip(packets, answers, strict=True)
        assert all(match(packet, answer) is Match.PLAIN for packet, answer in pairs)
        seen.add(tuple(way[:-1]))
    assert seen == world.topology.paths(world.there)


def test_links_are_those_of_the_paths() -> None:
    topology = FakeTopology()
    topology.layers("D", [["a"], ["b1", "b2"], ["c1", "c2"]])
    assert topology.paths("D") == {("a", "b1", "c1", "D"), ("a", "b2", "c2", "D")}
    assert topology.links("D") == {
        (1, "a", "b1"), (1, "a", "b2"), (2, "b1", "c1"), (2, "b2", "c2"), (3, "c1", "D"),
        (3, "c2", "D"),
    }  # fmt: skip
    topology.node("b1").silent = True
    assert (2, "b1", "c1") not in topology.links("D")
    topology.link("D", "a", "c1")  # a shorter way as well
    assert ("a", "c1", "D") in topology.paths("D")


def test_a_seed_settles_everything_and_another_one_other_things() -> None:
    def ways(seed: int) -> list[str]:
        world = World(seed=seed)
        return [world.send(world.probe(key, 2))[0].sender for key in range(3_000, 3_020)]

    assert ways(4) == ways(4) != ways(5)


def test_a_balancer_by_packet_tears_flows_and_one_by_destination_moves_none() -> None:
    world = World()
    world.node("10.0.0.1").balance = Balance.PACKET
    torn = Counter(world.send(world.probe(3_000, 2))[0].sender for _ in range(60))
    assert min(torn["10.0.1.1"], torn["10.0.1.2"]) > 15
    world.node("10.0.0.1").balance = Balance.DESTINATION
    assert len({world.send(world.probe(key, 2))[0].sender for key in range(3_000, 3_030)}) == 1


def test_shares_weigh_ways() -> None:
    world = World()
    world.node("10.0.0.1").to[world.there][0].share = 7
    came = Counter(world.send(world.probe(key, 2))[0].sender for key in range(3_000, 3_160))
    assert 120 < came["10.0.1.1"] < 160


def test_time_there_and_back_is_that_of_the_links() -> None:
    world = World()
    for _, link in world.topology.links_of(world.there):
        link.delay_ns = 3 * MS
    arrivals = world.send(world.probe(3_000, 3))
    sent = world.batches[0].sent
    assert [key for key, _ in sent] == [0]
    assert (arrivals[0].kernel_unix_ns or 0) - sent[0][1] == 18 * MS


def test_a_rate_limit_lets_as_many_through_as_it_says() -> None:
    world = World()
    router = world.node("10.0.0.1")
    router.per_second, router.burst = 10, 3
    packets = [world.probe(3_000 + number, 1) for number in range(100)]
    assert len(world.send(*packets, gap_ns=10 * MS)) in range(12, 15)
    assert len(world.send(*packets[:20])) == 3


def test_silence_loss_and_firewalls() -> None:
    world = World()
    world.node("10.0.0.1").silent = True
    assert world.send(world.probe(3_000, 1)) == []
    world.node("10.0.3.1").answers_lost = 0.5
    assert 25 < len(world.send(*[world.probe(3_000 + n, 4) for n in range(100)])) < 75
    world.node("10.0.3.1").answers_lost = 0.0
    world.node("10.0.3.1").passes = lambda packet: packet.protocol != 17
    assert world.send(world.probe(3_000, 9)) == []
    assert len(world.send(world.probe(3_000, 9, TraceProtocol.ICMP))) == 1
    world.node("10.0.3.1").refuses = 13
    (answer,) = world.answers(world.probe(3_000, 9, TraceProtocol.ICMP))
    assert (answer.kind, answer.icmp_code) == (AnswerKind.UNREACHABLE, 13)


def test_labels_hidden_routers_and_odd_quotes() -> None:
    world = World()
    stack = (LabelEntry(24_015, 0, bottom=False, ttl=1), LabelEntry(16, 5, bottom=True, ttl=9))
    world.node("10.0.0.1").labels = stack
    world.node("10.0.0.1").quoted_ttl = 7
    world.node("10.0.3.1").hidden = True
    first, last = world.answers(world.probe(3_000, 1), world.probe(3_000, 4))
    assert (first.stack, first.quoted_ttl) == (stack, 7)
    assert (last.kind, last.responder) == (AnswerKind.ARRIVED, world.there)
    world.node("10.0.0.1").quotes = 8
    assert world.answers(world.probe(3_000, 1))[0].token == 101


@pytest.mark.parametrize("family", [V4, V6])
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("shift", [0, 1_000])
def test_behind_a_translator_probes_are_known_and_look_translated(
    protocol: TraceProtocol, family: AddressFamily, shift: int
) -> None:
    world = World(family)
    first = (DIAMOND if family is V4 else SIX)[0][0]
    public = "198.51.100.7" if family is V4 else "2001:db8:f::7"
    world.node(first).nat = FakeNat(public, shift)
    packets = [world.probe(3_000, hop, protocol) for hop in range(1, 6)]
    answers = sorted(world.answers(*packets), key=lambda one: one.token)
    assert len(answers) == 5
    assert match(packets[0], answers[0]) is Match.PLAIN
    assert match(packets[4], answers[4]) is not Match.FOREIGN
    # A translator shows in the checksum; that of an echo request over IPv4 covers no address.
    shows = protocol is not TraceProtocol.ICMP or family is V6
    for packet, answer in zip(packets[1:3], answers[1:3], strict=True):
        assert match(packet, answer) is (Match.TRANSLATED if shows else Match.PLAIN)


def test_links_that_are_too_narrow_say_so_or_are_black_holes() -> None:
    world = World()
    world.node("10.0.3.1").to[world.there][0].mtu = 1_400
    flow = world.flow(TraceProtocol.UDP, 3_000)
    (answer,) = world.answers(build(flow, 64, 7, size=1_450))
    assert (answer.kind, answer.mtu, answer.responder) == (AnswerKind.TOO_BIG, 1_400, "10.0.3.1")
    assert world.answers(build(flow, 64, 8, size=1_400))[0].kind is AnswerKind.ARRIVED
    world.node("10.0.3.1").tells_too_big = False
    assert world.send(build(flow, 64, 9, size=1_450)) == []


def test_hosts_answer_syns_by_port_and_drop_what_is_damaged() -> None:
    world = World()
    world.node(world.there).open_ports = {443}
    (syn_ack,) = world.send(world.probe(3_000, 9, TraceProtocol.TCP))
    assert syn_ack.data[13] == 0x12
    world.node(world.there).open_ports = ()
    (reset,) = world.send(world.probe(3_000, 9, TraceProtocol.TCP))
    assert reset.data[13] == 0x14
    data = world.probe(3_000, 9, TraceProtocol.ICMP).data
    assert world.send(FlowPacket(data[:-1] + b"\xff", world.there, 1)) == []
    with pytest.raises(ValueError, match="says"):
        world.send(FlowPacket(data + b"\0", world.there, 1))


def test_scapy_reads_the_answers_and_finds_their_checksums_right() -> None:
    world = World()
    for protocol, layer in ((TraceProtocol.UDP, "UDPerror"), (TraceProtocol.TCP, "TCPerror")):
        (exceeded,) = world.send(world.probe(3_000, 2, protocol))
        message = ICMP(exceeded.data)
        said, message.chksum = message.chksum, None
        assert (message.type, ICMP(bytes(message)).chksum) == (11, said)
        assert message.haslayer(layer)
        quoted = IP(exceeded.data[8:])
        assert (quoted.ttl, quoted.dst) == (1, world.there)
        total, quoted.chksum = quoted.chksum, None
        assert IP(bytes(quoted)).chksum == total
    (segment,) = world.send(world.probe(3_000, 9, TraceProtocol.TCP))
    whole = IP(src=world.there, dst=HERE[V4]) / TCP(segment.data)
    said, whole[TCP].chksum = whole[TCP].chksum, None
    assert IP(bytes(whole))[TCP].chksum == said


def test_scapy_agrees_with_the_translator() -> None:
    world = World(V6)
    world.node(SIX[0][0]).nat = FakeNat("2001:db8:f::7", 5)
    seen: list[bytes] = []

    def look(packet: FakePacket) -> bool:
        seen.append(packet.data)
        return True

    world.node(world.there).passes = look
    world.send(world.probe(3_000, 9))
    whole = IPv6(seen[0])
    assert (whole.src, whole[UDP].sport) == ("2001:db8:f::7", 3_005)
    said, whole[UDP].chksum = whole[UDP].chksum, None
    assert IPv6(bytes(whole))[UDP].chksum == said


def test_without_rights_the_fake_door_refuses_what_the_real_one_does() -> None:
    world = World()
    world.network.privileged = False
    with pytest.raises(PrivilegeError):
        world.network.open_paths(V4, world.batches.append)
    plain = world.network.open_paths(V4, world.batches.append, privileged=False)
    assert plain is not None
    assert plain.privileged is False
    udp, tcp = plain.send_all([world.probe(3_000, 1), world.probe(3_000, 1, TraceProtocol.TCP)])
    assert (udp, isinstance(tcp, Failure)) == (0, True)
