"""The whole probe over a fake network: what samples say, and that it ends whatever comes."""

from typing import Any

import pytest
from tests.trace.conftest import DESTINATION, MS, SECOND, Traced, network_of, run_traces, shot

from pathbudget.probes.contract import Probe
from pathbudget.probes.errors import PrivilegeError
from pathbudget.probes.fake_network import FakeNetwork, FakePath
from pathbudget.probes.fake_packets import FakePacket
from pathbudget.probes.fake_topology import Balance, FakeNat, FakeTopology
from pathbudget.probes.record import ClockSource, FailureKind, Metric, Stage
from pathbudget.probes.tcp_wire import ACK
from pathbudget.probes.trace.contract import HopNote, LabelEntry, PathArrival, PathBatch

V6 = "2001:db8::9"
PROTOCOLS = pytest.mark.parametrize("protocol", ["icmp", "udp", "tcp"])


def diamond(seed: int = 3, destination: str = DESTINATION) -> FakeTopology:
    """1 - 2 - 4 - 1 routers."""
    topology = FakeTopology(seed)
    topology.layers(destination, layers(destination, 1, 2, 4, 1))
    return topology


def line(length: int, destination: str = DESTINATION) -> FakeTopology:
    topology = FakeTopology(1)
    topology.layers(destination, layers(destination, *[1] * length))
    return topology


def layers(destination: str, *widths: int) -> list[list[str]]:
    pattern = "2001:db8:a{}::{}" if ":" in destination else "10.{}.0.{}"
    return [[pattern.format(hop, 1 + n) for n in range(width)] for hop, width in enumerate(widths)]


def trace(topology: FakeTopology, address: str = DESTINATION, **options: Any) -> Traced:
    return run_traces(network_of(topology), [shot(address)], options)


def links(found: Traced, destination: str = DESTINATION) -> set[tuple[int, str, str]]:
    flows: dict[int | None, dict[int | None, set[str]]] = {}
    for one in found.hops:
        if one.value_ns is not None:
            hops = flows.setdefault(one.flow, {})
            hops.setdefault(one.part, set()).add(one.responder or destination)
    seen: set[tuple[int, str, str]] = set()
    for hops in flows.values():
        for limit, names in hops.items():
            after = hops.get((limit or 0) + 1, set())
            if limit and len(names) == len(after) == 1 and names != {destination}:
                seen.add((limit, next(iter(names)), next(iter(after))))
    return seen


@PROTOCOLS
@pytest.mark.parametrize("address", [DESTINATION, V6])
def test_every_packet_has_a_sample_and_all_links_are_in_them(protocol: str, address: str) -> None:
    topology = diamond(destination=address)
    network = network_of(topology)
    found = run_traces(network, [shot(address, seq=4)], {"protocol": protocol})
    assert links(found, address) == topology.links(address)
    assert len(found.hops) == found.notes[HopNote.PACKETS]
    assert {one.seq for one in found.samples} == {4}
    target = found.target
    assert target.value_ns == 5 * MS
    assert target.clock_source is ClockSource.KERNEL
    assert target.part is None
    assert target.flow == found.hops[0].flow
    assert found.notes[HopNote.PROTOCOL] == protocol
    assert found.notes[HopNote.STOPPED] == "arrived"
    assert found.notes[HopNote.COMPLETE] is True
    assert found.notes[HopNote.CONFIDENCE] == 0.95
    first = found.at(1)[0]
    assert first.value_ns == 1 * MS
    assert first.stamps is not None
    assert first.stamps.kernel_received_ns == 1 * MS
    assert (first.notes or {})[HopNote.RETURN_HOPS] == 1
    assert found.counts == {}


def test_flows_of_an_address_are_the_same_every_time() -> None:
    seen = []
    for seed in (1, 2):
        found = run_traces(network_of(diamond()), [shot()], {"protocol": "udp"}, seed=seed)
        seen.append([one.flow for one in found.hops])
    assert seen[0] == seen[1]


def test_pitfall_33_the_first_flow_is_the_one_that_was_named() -> None:
    found = trace(diamond(), protocol="udp", source_port=4_321, flows=2)
    assert found.target.flow == 4_321
    assert len({one.flow for one in found.hops}) == 2


def test_labels_and_notes_of_routers_are_kept() -> None:
    topology = line(3)
    topology.node("10.1.0.1").labels = (
        LabelEntry(24_015, 0, False, 1),
        LabelEntry(16_008, 3, True, 254),
    )
    topology.node("10.2.0.1").quoted_ttl = 3
    topology.node("10.2.0.1").returns = 4
    found = trace(topology, protocol="udp")
    labelled, odd = found.at(2)[0].notes or {}, found.at(3)[0].notes or {}
    assert labelled[HopNote.MPLS] == "24015/0/0/1 16008/3/1/254"
    assert odd[HopNote.QUOTED_TTL] == 3
    assert odd[HopNote.RETURN_HOPS] == 7
    assert odd[HopNote.ICMP] == "11/0"
    assert HopNote.MPLS not in odd


@pytest.mark.parametrize(("protocol", "shift"), [("udp", 0), ("udp", 700), ("icmp", 0)])
def test_pitfall_31_a_nat_is_seen_and_breaks_nothing(protocol: str, shift: int) -> None:
    topology = diamond()
    topology.node("10.0.0.1").nat = FakeNat("198.51.100.7", port_shift=shift)
    found = trace(topology, protocol=protocol)
    assert links(found) == topology.links(DESTINATION)
    if protocol == "udp":
        behind = [one for one in found.hops if one.part in (2, 3)]
        assert behind
        assert all((one.notes or {}).get(HopNote.TRANSLATED) is True for one in behind)
    assert all(HopNote.TRANSLATED not in (one.notes or {}) for one in found.at(1))


def test_balancing_by_packet_is_told() -> None:
    topology = FakeTopology(5)
    topology.layers(DESTINATION, layers(DESTINATION, 1, 4, 1))
    topology.node("10.0.0.1").balance = Balance.PACKET
    found = trace(topology, protocol="udp")
    assert found.notes[HopNote.PER_PACKET] == "2"
    assert links(found) <= topology.links(DESTINATION)


def test_pitfall_25_a_hop_that_rations_its_answers_is_told_from_loss() -> None:
    topology = line(4)
    limited = topology.node("10.1.0.1")
    limited.per_second, limited.burst = 2.0, 3
    found = trace(topology, protocol="udp")
    assert found.notes[HopNote.LIMITED] == "2"
    assert found.notes[HopNote.COMPLETE] is True
    assert links(found) == topology.links(DESTINATION)
    lost = [one for one in found.hops if one.failure is not None]
    assert lost
    assert {one.part for one in lost} == {2}
    assert all(one.failure.kind is FailureKind.TIMEOUT for one in lost if one.failure)
    assert len(found.at(2)) < 50
    assert found.took_ns < 30 * SECOND


def test_silent_routers_cost_time_and_no_numbers() -> None:
    topology = line(6)
    for name in ("10.2.0.1", "10.3.0.1"):
        topology.node(name).silent = True
    found = trace(topology, protocol="udp")
    assert found.target.value_ns == 7 * MS
    assert links(found) == topology.links(DESTINATION)
    assert all(one.failure is not None for one in found.at(3))
    assert found.took_ns < 4 * SECOND


def test_a_silent_destination_is_a_timeout_that_says_why() -> None:
    topology = line(3)
    topology.node(DESTINATION).silent = True
    found = trace(topology, protocol="udp", gap=3)
    failure = found.target.failure
    assert failure is not None
    assert (failure.kind, failure.stage) == (FailureKind.TIMEOUT, Stage.WAIT)
    assert failure.detail == (
        "no answer within 1000 ms: nobody answers any more, nor does the destination"
    )
    assert found.notes[HopNote.STOPPED] == "gap"
    assert max(one.part or 0 for one in found.hops) == 6


def test_pitfall_27_a_refusal_is_neither_a_hop_nor_the_destination() -> None:
    topology = line(5)
    topology.node("10.2.0.1").refuses = 13
    found = trace(topology, protocol="udp")
    failure = found.target.failure
    assert failure is not None
    assert (failure.kind, failure.icmp_type, failure.icmp_code) == (FailureKind.UNREACHABLE, 3, 13)
    assert found.target.responder == "10.2.0.1"
    assert found.notes[HopNote.STOPPED] == "unreachable"
    refused = [one for one in found.hops if (one.notes or {}).get(HopNote.ICMP) == "3/13"]
    assert refused
    assert max(one.part or 0 for one in found.hops) < 12


def test_a_path_that_changes_under_way_says_so() -> None:
    topology = FakeTopology(1)
    topology.layers(DESTINATION, layers(DESTINATION, *[1] * 4))

    def during(network: FakeNetwork, _: Probe) -> None:
        moved = [["10.0.0.1"], ["10.9.0.1"], ["10.9.0.2"], ["10.3.0.1"]]
        network.clock.call_in(12 * MS, lambda: topology.layers(DESTINATION, moved))

    found = run_traces(network_of(topology), [shot()], {"protocol": "udp"}, during=during)
    since = found.notes[HopNote.CHANGED]
    assert isinstance(since, int)
    fresh = Traced([one for one in found.samples if one.sent_unix_ns >= since])
    assert links(fresh) == topology.links(DESTINATION)
    assert found.notes[HopNote.COMPLETE] is True


def test_the_path_mtu_is_found_with_who_narrows_it() -> None:
    topology = line(3)
    for _, link in topology.links_of(DESTINATION):
        if link.router.address == "10.2.0.1":
            link.mtu = 1_400
    found = trace(topology, protocol="udp", mtu=True)
    assert found.notes[HopNote.PATH_MTU] == 1_400
    assert found.notes[HopNote.NARROWED_BY] == "10.1.0.1"
    assert HopNote.BLACK_HOLE not in found.notes
    assert len(found.hops) < int(found.notes[HopNote.PACKETS])


def test_a_black_hole_is_found() -> None:
    topology = line(3)
    topology.node("10.1.0.1").tells_too_big = False
    for _, link in topology.links_of(DESTINATION):
        if link.router.address == "10.2.0.1":
            link.mtu = 1_400
    found = trace(topology, protocol="udp", mtu=True)
    assert found.notes[HopNote.PATH_MTU] == 1_400
    assert found.notes[HopNote.BLACK_HOLE] == 2


def test_segments_inside_a_connection_pass_a_firewall_for_established_flows() -> None:
    topology = line(3)
    topology.node(DESTINATION).open_ports = {443}

    def established(packet: FakePacket) -> bool:
        return packet.protocol == 6 and bool(packet.transport[13] & ACK)

    topology.node("10.1.0.1").passes = established
    network = network_of(topology)
    network.paths[DESTINATION] = FakePath()
    found = run_traces(network, [shot(port=443)], {"protocol": "session"})
    assert found.notes[HopNote.PROTOCOL] == "session"
    assert found.notes[HopNote.STOPPED] == "arrived"
    assert links(found) == topology.links(DESTINATION)
    assert len({one.flow for one in found.hops}) == 1


def test_a_session_that_cannot_be_opened_is_a_failure_of_the_trace() -> None:
    network = network_of(line(3))
    network.path(DESTINATION).lost = lambda _: True
    found = run_traces(network, [shot(port=443)], {"protocol": "session"})
    assert found.hops == []
    assert found.target.failure is not None
    assert found.target.failure.stage is Stage.CONNECT


def test_all_traces_keep_to_one_rate() -> None:
    topology = FakeTopology(2)
    addresses = [f"192.0.2.{n}" for n in range(1, 9)]
    for address in addresses:
        topology.layers(address, layers(address, 1, 1, 1, 1))
    network = network_of(topology)
    shots = [shot(address, series=n) for n, address in enumerate(addresses)]
    found = run_traces(network, shots, {"protocol": "udp", "rate": 500})
    times = sorted(one.sent_unix_ns for one in found.hops)
    assert len(found.targets) == 8
    assert all(one.value_ns is not None for one in found.targets)
    for first, last in zip(times, times[50:], strict=False):
        assert last - first >= 90 * MS
    assert found.took_ns > len(found.hops) / 500 * 0.95 * SECOND


def test_a_deadline_ends_a_trace_whatever_is_missing() -> None:
    topology = line(4)
    limited = topology.node("10.1.0.1")
    limited.per_second, limited.burst = 0.5, 1
    found = trace(topology, protocol="udp", deadline=2.0)
    assert found.took_ns <= 3 * SECOND + MS
    assert found.notes[HopNote.COMPLETE] is False
    assert found.target.value_ns == 5 * MS
    assert len(found.hops) == found.notes[HopNote.PACKETS]


def test_garbage_floods_and_answers_of_others_change_nothing() -> None:
    topology = diamond()
    network = network_of(topology)

    def during(network: FakeNetwork, probe: Probe) -> None:
        def flood() -> None:
            for family in probe._families.values():  # type: ignore[attr-defined]
                batch = PathBatch()
                for number in range(100):
                    for size in (0, 7, 8, 28, 60):
                        data = bytes((11, 0)) + bytes((number + n) & 255 for n in range(size))
                        batch.arrivals.append(PathArrival(1, data, "203.0.113.9", 64, None))
                    batch.arrivals.append(PathArrival(6, bytes(20), "203.0.113.9", 64, None))
                family._listen(batch)

        for at in range(1, 20):
            network.clock.call_in(at * MS, flood)

    found = run_traces(network, [shot()], {"protocol": "udp"}, during=during)
    assert links(found) == topology.links(DESTINATION)
    assert not any(one.responder == "203.0.113.9" for one in found.hops)
    assert len(found.hops) == found.notes[HopNote.PACKETS]


def test_every_answer_twice_is_counted_and_changes_nothing() -> None:
    topology = diamond()
    network = network_of(topology)

    def during(_: FakeNetwork, probe: Probe) -> None:
        for family in probe._families.values():  # type: ignore[attr-defined]
            heard = family._listen
            receive = family._sessions.receive

            def twice(batch: PathBatch, now: Any, receive: Any = receive) -> None:
                receive(PathBatch(batch.sent, [*batch.arrivals, *batch.arrivals]), now)

            family._sessions.receive = twice
            assert heard is not None

    found = run_traces(network, [shot()], {"protocol": "udp"}, during=during)
    assert links(found) == topology.links(DESTINATION)
    assert found.counts["duplicate"] > 0.5 * len(found.hops)
    assert len(found.hops) == found.notes[HopNote.PACKETS]


def test_late_answers_are_counted_and_stay_timeouts() -> None:
    topology = line(2)
    topology.node("10.1.0.1").answer_ns = 900 * MS
    found = run_traces(network_of(topology), [shot(timeout_ns=500 * MS)], {"protocol": "udp"})
    assert found.counts["late"] > 0
    assert all(one.failure is not None for one in found.at(2))
    assert found.target.value_ns == 3 * MS


def test_a_slow_answer_is_waited_for_while_the_trace_goes_on() -> None:
    topology = line(2)
    topology.node("10.1.0.1").answer_ns = 800 * MS
    found = run_traces(network_of(topology), [shot(timeout_ns=2 * SECOND)], {"protocol": "udp"})
    assert any(one.responder == "10.1.0.1" for one in found.at(2))
    assert links(found) == topology.links(DESTINATION)


def test_traces_of_one_series_do_not_pile_up() -> None:
    topology = line(3)
    topology.node(DESTINATION).silent = True
    shots = [shot(seq=n) for n in range(5)]
    found = run_traces(network_of(topology), shots, {"protocol": "udp"})
    assert sorted(one.seq for one in found.targets) == [0, 1, 2, 3, 4]
    assert found.counts["busy"] == 3
    busy = [one.failure for one in found.targets if one.failure and one.failure.stage is Stage.SEND]
    assert {one.kind for one in busy} == {FailureKind.LOCAL}


def test_without_the_right_to_raw_sockets_it_is_udp_or_a_clear_error() -> None:
    topology = diamond()
    found = run_traces(network_of(topology, privileged=False), [shot()], {})
    assert found.notes[HopNote.PROTOCOL] == "udp"
    assert found.notes[HopNote.UNPRIVILEGED] is True
    assert links(found) == topology.links(DESTINATION)
    with pytest.raises(PrivilegeError):
        run_traces(network_of(topology, privileged=False), [shot()], {"protocol": "tcp"})


def test_a_family_that_this_host_lacks_is_a_failure_of_its_shots() -> None:
    network = network_of(diamond())
    network.families = frozenset({next(iter(network.families))})
    addresses = (DESTINATION, V6)
    found = run_traces(network, [shot(one, series=n) for n, one in enumerate(addresses)], {})
    kinds = {one.failure.kind for one in found.targets if one.failure is not None}
    assert FailureKind.NO_ROUTE in kinds


def test_close_gives_up_what_is_under_way() -> None:
    topology = line(3)
    network = network_of(topology)

    def during(_: FakeNetwork, probe: Probe) -> None:
        probe.close()
        for family in probe._families.values():  # type: ignore[attr-defined]
            family.idle.set()

    found = run_traces(network, [shot()], {"protocol": "udp"}, during=during)
    assert [one for one in found.samples if one.metric == Metric.RTT] == []
