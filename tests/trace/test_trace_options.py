"""Options of the trace probe: what goes together, what it may cost, and which flow comes first."""

import random
from typing import Any

import pytest
from tests.trace.conftest import DESTINATION, MS

from pathbudget.probes.channels import PacketOptions
from pathbudget.probes.contract import ProbeEnvironment
from pathbudget.probes.fake_network import FakeClock, FakeNetwork
from pathbudget.probes.flow_book import FlowBook, UsedFlow
from pathbudget.probes.icmp_family import IcmpFamily
from pathbudget.probes.icmp_session import IcmpSession
from pathbudget.probes.icmp_wire import checksum
from pathbudget.probes.record import AddressFamily
from pathbudget.probes.trace.contract import TraceProtocol
from pathbudget.probes.trace.flow_keys import FlowKeys
from pathbudget.probes.trace.ip_headers import ICMPV6, pseudo_sum
from pathbudget.probes.trace.pace import HopPaces, Pace
from pathbudget.probes.trace.probe import TRACE, read_settings
from pathbudget.probes.trace.rules import Algorithm

SECOND = 1_000_000_000


def test_defaults_give_no_fault_and_find_path_sets() -> None:
    settings = read_settings({})
    assert TRACE.check({}) == []
    assert settings.protocol is TraceProtocol.ICMP
    assert settings.rules.algorithm is Algorithm.MDA_LITE
    assert settings.rules.flows == 512


def test_flows_alone_mean_so_many_flows() -> None:
    rules = read_settings({"flows": 8}).rules
    assert (rules.algorithm, rules.flows) == (Algorithm.PARIS, 8)
    capped = read_settings({"flows": 8, "algorithm": "mda"}).rules
    assert (capped.algorithm, capped.flows) == (Algorithm.MDA, 8)
    assert read_settings({"algorithm": "paris"}).rules.flows == 1


@pytest.mark.parametrize(
    ("options", "where"),
    [
        ({"first_hop": 9, "max_hops": 8}, "first_hop"),
        ({"protocol": "session", "flows": 2}, "flows"),
        ({"protocol": "session", "algorithm": "mda"}, "algorithm"),
        ({"protocol": "session", "mtu": True}, "mtu"),
        ({"protocol": "session", "size": 200}, "size"),
        ({"protocol": "icmp", "port": 80}, "port"),
        ({"source_port": 80}, "source_port"),
        ({"source": "here"}, "source"),
    ],
)
def test_what_does_not_go_together_is_said_at_once(options: dict[str, Any], where: str) -> None:
    assert [fault.where for fault in TRACE.check(options)] == [where]


def test_what_it_may_cost_is_bounded_by_its_options() -> None:
    one = TRACE.cost({"flows": 1, "max_hops": 30, "attempts": 1})
    assert one.packets == 60
    most = TRACE.cost({})
    assert most.packets == 4_000
    assert TRACE.cost({"mtu": True}).packets > most.packets
    assert TRACE.cost({"size": 1_500}).bytes > most.bytes


@pytest.mark.parametrize("protocol", [TraceProtocol.UDP, TraceProtocol.ICMP])
def test_keys_are_all_different_and_follow_from_the_address(protocol: TraceProtocol) -> None:
    def keys(destination: str, first: int = 0) -> list[int]:
        flows = FlowKeys(protocol, AddressFamily.IPV4, "192.0.2.1", destination, 80, first)
        return [flows.flow(n).key for n in range(600)]

    assert len(set(keys(DESTINATION))) == 600
    assert keys(DESTINATION) == keys(DESTINATION) != keys("192.0.2.10")
    assert keys(DESTINATION, 77)[0] == 77
    assert keys(DESTINATION, 77)[1:] == keys(DESTINATION)[:599]


def test_flows_over_ipv6_have_labels_that_last() -> None:
    flows = FlowKeys(TraceProtocol.UDP, AddressFamily.IPV6, "2001:db8::1", "2001:db8::9", 80)
    labels = [flows.flow(n).label for n in range(100)]
    assert len(set(labels)) > 95
    assert all(0 < label < 1 << 20 for label in labels)


@pytest.mark.parametrize("family", list(AddressFamily))
def test_the_flow_of_an_open_icmp_probe_is_known(family: AddressFamily) -> None:
    v4 = family is AddressFamily.IPV4
    here, there = ("192.0.2.1", DESTINATION) if v4 else ("2001:db8::1", "2001:db8::9")
    network = FakeNetwork(FakeClock())
    session = IcmpSession(family, random.Random(1), payload_bytes=33)
    environment = ProbeEnvironment(
        network, network.clock, random.Random(1), lambda _, __: None, lambda _, __: None
    )
    probe = IcmpFamily(environment, family, session, PacketOptions())
    book = FlowBook.of(network)
    assert book.flow("icmp", family, here, there, 0) is None
    probe.open(1)
    used = book.flow("icmp", family, here, there, 0)
    flow = session.flows.of(there, 0)
    message = session._build(flow.identifier, flow.checksum, 12_345)
    if not v4:  # what the kernel does
        pseudo = pseudo_sum(here, there, ICMPV6) + len(message)
        filled = checksum(pseudo.to_bytes(4, "big") + message)
        message = message[:2] + filled.to_bytes(2, "big") + message[4:]
    assert used == UsedFlow(int.from_bytes(message[2:4], "big"), 0)
    probe.close()
    assert book.flow("icmp", family, here, there, 0) is None


def test_permits_are_not_saved_up() -> None:
    pace, now = Pace(1_000), 10 * SECOND
    assert 1 <= pace.take(now, 100) <= 5
    assert pace.take(now, 100) == 0
    assert now < pace.next_ns() <= now + MS + 1
    assert pace.take(pace.next_ns(), 100) == 1
    taken = sum(pace.take(now + step * 250_000, 100) for step in range(1, 4_001))
    assert 990 <= taken <= 1_010
    assert pace.take(now + 60 * SECOND, 100) <= 5


def test_hops_that_ration_are_asked_slower_and_faster_again() -> None:
    paces = HopPaces()
    assert paces.due_ns(3, 0) == paces.due_ns(3, 0) == 0
    for _ in range(9):
        paces.unanswered(3, rationed=True)
    assert [paces.due_ns(3, 0) for _ in range(3)] == [0, 1_200 * MS, 2_400 * MS]
    assert paces.due_ns(4, 0) == 0
    for _ in range(40):
        paces.answered(3)
    assert paces.due_ns(3, 10 * SECOND) == 10 * SECOND
    for _ in range(9):
        paces.unanswered(5, rationed=False)
    paces.due_ns(5, 0)
    assert paces.due_ns(5, 0) == 200 * MS
