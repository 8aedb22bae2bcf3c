"""The parts of a world: nodes, links, and the directions in which packets pass them."""

import dataclasses
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any

from pathbudget.agents.lab.hop import ORDINARY, Hop
from pathbudget.agents.lab.link import DirectionModel
from pathbudget.agents.reflector.clocks import Skew


class LinkState(StrEnum):
    """Whether a link carries packets."""

    UP = "up"
    DOWN = "down"
    """Both ends see that the carrier is lost."""
    SILENT = "silent"
    """Packets vanish and no end sees why; only routing protocols can find out."""


class NodeKind(StrEnum):
    """What a node is. Only routers forward."""

    REGION = "region"
    ROUTER = "router"
    SITE = "site"


TRUE_CLOCK = Skew()
NODES_PER_KIND = 4096
LINKS_PER_NODE = 126


@dataclass(frozen=True, slots=True)
class Node:
    """One namespace of the lab.

    `carrier` of a router is who runs it; of a region or site, through whom its packets leave.
    """

    name: str
    kind: NodeKind
    carrier: str = ""
    asn: int | None = None
    latitude: float | None = None
    longitude: float | None = None
    responder: bool = True
    """Sites only: TLS 1.3 answers on port 8443 and TCP on 8080; without it they are refused."""
    reflector: bool | None = None
    """Sites only: STAMP answers on UDP port 8620, HTTPS and HTTP/3 on port 8621. None: where
    there is a responder."""
    clock: Skew = TRUE_CLOCK
    """Sites only: how wrong the clock is that the reflector puts into its answers."""
    ecmp: bool | None = None
    """Whether it uses all of its equally good ways. None: as the world says."""
    hop: Hop = ORDINARY
    """Routers only: how it treats packets that traceroutes are made of."""
    announces: bool = True
    """Whether it announces its own prefix by BGP."""
    also_announces: tuple[str, ...] = ()
    """Nodes whose prefixes it announces as if they were its own, and then throws packets away."""

    @property
    def reflects(self) -> bool:
        """Whether a reflector runs here."""
        wanted = self.responder if self.reflector is None else self.reflector
        return wanted and self.kind is NodeKind.SITE


@dataclass(frozen=True, slots=True)
class Link:
    """A cable between `a` and `b`. `cost` decides routing; None means the configured delay."""

    a: str
    b: str
    forward: DirectionModel
    """a to b."""
    reverse: DirectionModel
    """b to a."""
    cost: float | None = None
    name: str = ""
    """Needed only to tell it from its parallels."""
    members: tuple[tuple[DirectionModel, DirectionModel], ...] = ()
    """Of a bundle (LAG): forward and reverse of each cable; flows are spread over them below IP,
    so no traceroute shows them. Empty: one cable, as `forward` and `reverse` say."""
    mtu: int | None = None
    """Largest IP packet that its ends send, in octets; larger ones are refused by ICMP."""
    preferences: tuple[int | None, int | None] = (None, None)
    """BGP LOCAL_PREF that `a` gives what it hears over this link, and that `b` gives."""
    prepends: tuple[int, int] = (0, 0)
    """How often `b` repeats its AS number in what it tells `a`, and `a` in what it tells `b`: so
    what makes packets from `a` to `b` unlikely comes first."""
    state: LinkState = LinkState.UP
    session: bool = True
    """Whether the ends speak BGP over it, where they speak BGP."""
    first_costs: tuple[float, float] | None = None
    """Costs of both directions where the delays that they came from have changed since."""

    @property
    def costs(self) -> tuple[float, float]:
        """What routing takes for the length of both directions."""
        if self.cost is not None:
            return self.cost, self.cost
        return self.first_costs or (self.forward.delay_ns / 1e6, self.reverse.delay_ns / 1e6)


@dataclass(frozen=True, slots=True)
class LinkPass:
    """One link in the direction in which a packet takes it."""

    source: str
    destination: str
    link: int
    """Index in `World.links`."""
    model: DirectionModel
    cost: float
    members: tuple[DirectionModel, ...] = ()
    """Of a bundle: what a packet meets is one of these, by its flow."""
    state: LinkState = LinkState.UP

    @property
    def models(self) -> tuple[DirectionModel, ...]:
        """What a packet may meet, each as probable as the others."""
        found = self.members or (self.model,)
        if self.state is LinkState.UP:
            return found
        return tuple(dataclasses.replace(model, loss=1.0) for model in found)


@dataclass(frozen=True, slots=True)
class StaticRoute:
    """At node `at`, packets to node `to` go to the neighbour `via`, whatever routing says."""

    at: str
    to: str
    via: str


@dataclass(frozen=True)
class Topology:
    """Nodes by name, the links between them, and the routes that somebody fixed."""

    nodes: dict[str, Node]
    links: tuple[Link, ...]
    routes: tuple[StaticRoute, ...] = ()
    ecmp: bool = False
    """Whether nodes use all of their equally good ways, a flow each (RFC 2992)."""

    def of_kind(self, kind: NodeKind) -> list[Node]:
        """Nodes of one kind in the order of the definition."""
        return [node for node in self.nodes.values() if node.kind is kind]

    def uses_all_equal(self, name: str) -> bool:
        """Whether a node spreads its flows over equally good ways."""
        own = self.nodes[name].ecmp
        return self.ecmp if own is None else own

    @cached_property
    def derived(self) -> dict[str, Any]:
        """Room for what others derive from it once and ask for often."""
        return {}

    @cached_property
    def passes(self) -> dict[str, list[LinkPass]]:
        """For every node the link directions that leave it."""
        leaving: dict[str, list[LinkPass]] = {name: [] for name in self.nodes}
        for index, link in enumerate(self.links):
            for side, (source, destination, model) in enumerate(
                ((link.a, link.b, link.forward), (link.b, link.a, link.reverse))
            ):
                members = tuple(member[side] for member in link.members)
                step = LinkPass(
                    source, destination, index, model, link.costs[side], members, link.state
                )
                leaving[source].append(step)
        return leaving
