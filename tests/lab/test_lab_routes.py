"""Routes of running labs: kernels spread flows as the world says, hops behave as told, real BGP
speakers settle on what is computed, and events happen when the ledger says so.
"""

import dataclasses
import functools
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pathbudget.agents.lab.event import Event, EventKind
from pathbudget.agents.lab.events import applied, links_between
from pathbudget.agents.lab.hop import Hop, Label
from pathbudget.agents.lab.link import DirectionModel
from pathbudget.agents.lab.running import Lab
from pathbudget.agents.lab.topology import Link, Node, NodeKind
from pathbudget.agents.lab.world import World
from pathbudget.agents.lab.world_check import build_world
from pathbudget.agents.lab.world_file import load_world
from pathbudget.probes.record import AddressFamily

STARTS_LABS_HERE = True

QUICK = DirectionModel(delay_ns=200_000)
SECOND = 1_000_000_000
ROUTES = Path(__file__).resolve().parents[2] / "examples" / "lab" / "routes.toml"
FIRST_PORT, PORT = 20_000, 33_434
ANSWERS = {AddressFamily.IPV4: (3, 11), AddressFamily.IPV6: (1, 2, 3)}


def diamond() -> World:
    """region - left - (m0 ... m3) - right = end - site; right and end have two links, the last
    link takes 1400 octets."""
    middle = [f"m{number}" for number in range(4)]
    labels = Hop(labels=(Label(24015), Label(16008)))
    nodes = [Node("region", NodeKind.REGION), Node("site", NodeKind.SITE, responder=False)]
    nodes += [Node(name, NodeKind.ROUTER) for name in ("left", *middle, "end")]
    nodes += [Node("right", NodeKind.ROUTER, hop=labels)]
    links = [Link("region", "left", QUICK, QUICK)]
    links += [Link(one, other, QUICK, QUICK) for one, other in _both_sides(middle)]
    links += [Link("right", "end", QUICK, QUICK)] * 2
    links += [Link("end", "site", QUICK, QUICK, mtu=1400)]
    return build_world(nodes, links, ecmp=True)


def _both_sides(middle: list[str]) -> Iterator[tuple[str, str]]:
    for name in middle:
        yield "left", name
        yield name, "right"


class Tracer:
    """Sends one datagram for each flow and hop limit; who answers is told by its source port."""

    def __init__(self, world: World, family: AddressFamily) -> None:
        self.six = family is AddressFamily.IPV6
        self.kind = socket.AF_INET6 if self.six else socket.AF_INET
        self.target = world.address_of("site", family)
        self.hops = len(world.hops("region", "site", family))
        self.answers = ANSWERS[family]

    def paths(self, flows: int) -> set[tuple[str, ...]]:
        """Paths of flows that heard of every hop."""
        heard: dict[tuple[int, int], str] = {}
        with socket.socket(self.kind, socket.SOCK_RAW, 58 if self.six else 1) as raw:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 21)
            for flow in range(flows):
                for hop in range(1, self.hops + 1):
                    self.send(flow, hop)
                heard |= self.read(raw, 0.0)
            heard |= self.read(raw, 0.3)
            deadline = time.monotonic() + 5  # the lab may have to wait for a processor
            while len(heard) < flows * self.hops and time.monotonic() < deadline:
                heard |= self.read(raw, 0.3)
        found = {
            tuple(heard.get((flow, hop), "") for hop in range(1, self.hops + 1))
            for flow in range(flows)
        }
        return {path for path in found if all(path)}

    def send(self, flow: int, hop: int) -> None:
        with socket.socket(self.kind, socket.SOCK_DGRAM) as out:
            out.setsockopt(41 if self.six else 0, 16 if self.six else socket.IP_TTL, hop)
            out.bind(("", FIRST_PORT + flow))
            out.sendto(bytes(hop), (self.target, PORT))  # its length tells the hop

    def read(self, raw: socket.socket, wait: float) -> dict[tuple[int, int], str]:
        heard: dict[tuple[int, int], str] = {}
        raw.settimeout(wait or 0.0001)
        while True:
            try:
                octets, sender = raw.recvfrom(4096)
            except (TimeoutError, BlockingIOError):
                return heard
            icmp = octets if self.six else octets[20:]
            if icmp[0] in self.answers:
                port, _, length = struct.unpack("!HHH", icmp[8:][40 if self.six else 20 :][:6])
                heard[port - FIRST_PORT, length - 8] = sender[0]


def errors(world: World, size: int, count: int = 1, *, hop: int = 64) -> list[bytes]:
    """ICMP messages that datagrams of `size` octets (as IP packets) call forth."""
    heard: list[bytes] = []
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, 1) as raw:
        raw.settimeout(0.3)
        for _ in range(count):
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
                out.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, hop)
                out.setsockopt(socket.IPPROTO_IP, 10, 3)  # IP_MTU_DISCOVER: probe
                out.sendto(bytes(size - 28), (world.address_of("site"), PORT))
                time.sleep(0.005)
        while True:
            try:
                heard.append(raw.recv(4096)[20:])
            except TimeoutError:
                return heard


@pytest.mark.needs("lab")
def test_flows_pass_all_true_ways_and_hops_are_as_told() -> None:
    world = diamond()
    with Lab(world) as lab:
        for family in AddressFamily:
            tracer = Tracer(world, family)
            assert lab.call("region", lambda: tracer.paths(70)) == set(  # noqa: B023
                world.paths("region", "site", family)
            )
        ask = functools.partial(lab.call, "region")
        (labelled,) = ask(lambda: errors(world, 60, hop=3))
        assert labelled[5] == 32
        assert labelled[8 + 128 :][8:12] == struct.pack("!I", 24015 << 12 | 1)
        (too_big,) = ask(lambda: errors(world, 1450))
        assert (too_big[0], too_big[1]) == (3, 4)
        assert struct.unpack("!H", too_big[6:8]) == (1400,)

        limit = Event(EventKind.ICMP_RATE, 0, node="left", rate_ns=SECOND)
        lab.become(applied(world, limit))
        assert 1 <= len(ask(lambda: errors(world, 60, 30, hop=1))) <= 12
        hole = Event(EventKind.BLACK_HOLE, 0, links=(0,), source="region", number=1300)
        lab.become(applied(world, hole))
        assert ask(lambda: errors(world, 1350)) == []
        assert len(ask(lambda: errors(world, 1250, hop=1))) == 1

        down = applied(world, Event(EventKind.LINK_DOWN, 0, links=(1,)))  # left - m0
        lab.become(down)
        assert not lab.difference()
        tracer = Tracer(down, AddressFamily.IPV4)
        assert len(down.paths("region", "site")) == 6
        assert ask(lambda: tracer.paths(60)) == set(down.paths("region", "site"))
        lab.become(world)
        assert ask(lambda: tracer.paths(70)) == set(world.paths("region", "site"))
    assert lab.report().ring_drops == lab.report().unsent == 0


@pytest.mark.needs("lab")
@pytest.mark.needs("bird")
def test_bgp_settles_as_computed_and_events_happen_as_the_ledger_says() -> None:
    world = load_world(ROUTES)
    quiet = {name: dataclasses.replace(node, responder=False) for name, node in world.nodes.items()}
    (east,) = links_between(world.links, "east", "atlas-4")
    events = (
        Event(EventKind.LINK_DOWN, SECOND // 10, 3 * SECOND // 2, links=(east,)),
        Event(EventKind.WITHDRAW, 9 * SECOND // 2, SECOND, node="tokyo"),
    )
    world = dataclasses.replace(world, nodes=quiet, events=events)
    with Lab(world) as lab:
        lab.converged(20)
        before = time.time_ns()
        ledger = lab.play()
        lab.converged(20)
        assert "listener0" in lab.ask_speaker("breeze-2", "show protocols")
        ended = time.time_ns()
    assert before <= ledger.began_unix_ns <= ledger.ended_unix_ns <= ended
    for entry in ledger.entries:
        assert entry.start is not None
        assert entry.end is not None
        planned = ledger.began_unix_ns + entry.planned_at_ns
        assert planned <= entry.start.began_unix_ns <= entry.start.done_unix_ns
        assert entry.start.settled_unix_ns is not None
        assert entry.start.settled_unix_ns < entry.end.began_unix_ns
    moved, gone = ledger.entries
    assert {(effect.region, effect.moved) for effect in moved.effects} == {("east", True)}
    assert {effect.site for effect in gone.effects} == {"tokyo"}
