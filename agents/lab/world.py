"""The World: regions, routers of carriers, sites, and the links between them.

Read from TOML by `world_file.load_world`, or built in Python by `world_check.build_world`.
Everything that follows from the definition (paths, addresses) is here; nothing runs.
"""

import ipaddress
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from pathbudget.agents.lab.bgp import Bgp, Listener
from pathbudget.agents.lab.event import Event
from pathbudget.agents.lab.routing import NextHops, Routing, shortest_delay
from pathbudget.agents.lab.topology import LinkPass, NodeKind, Topology
from pathbudget.agents.lab.ways import (
    Way,
    address_links,
    addresses_by_hop,
    check,
    steps_by_hop,
    ways,
)
from pathbudget.probes.record import AddressFamily


@dataclass(frozen=True)
class World(Topology):
    """The whole definition. Not checked by itself; the two functions named above do that."""

    seed: int = 1
    """Of everything random in the links."""
    routing: Routing = shortest_delay
    bgp: Bgp | None = None
    """None: routes are fixed when the lab starts. Goes with `bgp_routes.by_bgp`."""
    listeners: tuple[Listener, ...] = ()
    events: tuple[Event, ...] = ()
    """What happens while the lab plays (`events.py`)."""
    cut_listeners: frozenset[str] = frozenset()
    """Those whose session is closed."""
    stalled_listeners: frozenset[str] = frozenset()
    """Those whose session hears nothing any more."""

    @property
    def regions(self) -> list[str]:
        """Names of the regions."""
        return [node.name for node in self.of_kind(NodeKind.REGION)]

    @property
    def sites(self) -> list[str]:
        """Names of the sites."""
        return [node.name for node in self.of_kind(NodeKind.SITE)]

    @cached_property
    def next_hops(self) -> NextHops:
        """``next_hops[at][to]`` are the link directions that a packet may take, a preferred one
        first and mostly alone; absent: unreachable."""
        return self.routing(self)

    @cached_property
    def forwarding(self) -> dict[str, dict[str, tuple[int, ...]]]:
        """`next_hops` by number of the links alone: what routers know, whatever links do."""
        return {
            at: {to: tuple(step.link for step in steps) for to, steps in table.items()}
            for at, table in self.next_hops.items()
        }

    def path(self, source: str, destination: str) -> list[LinkPass]:
        """Link directions from one node to another, as the kernels will forward; where there are
        several ways, the preferred one (`ways` has all).

        Raises LookupError when there is no way, or the static routes go in a circle.
        """
        taken: list[LinkPass] = []
        at = source
        while at != destination:
            steps = self.next_hops[at].get(destination)
            if not steps:
                raise LookupError(f"no way from {source} to {destination}: it ends at {at}")
            if len(taken) >= len(self.nodes):
                raise LookupError(f"packets from {source} to {destination} go in a circle at {at}")
            taken.append(steps[0])
            at = steps[0].destination
        return taken

    def ways(self, source: str, destination: str) -> list[Way]:
        """All ways, the preferred one first. Raises LookupError where `path` does, and where
        there are too many to list.
        """
        check(self.next_hops, source, destination)
        return ways(self.next_hops, source, destination)

    def paths(
        self, source: str, destination: str, family: AddressFamily = AddressFamily.IPV4
    ) -> frozenset[tuple[str, ...]]:
        """The true path set: who answers at hop limits 1, 2, ... on each way, the destination
        itself last; an empty text where nobody does. Raises LookupError as `ways`.
        """
        return frozenset(
            tuple(self.answer_of(step, family) for step in way)
            for way in self.ways(source, destination)
        )

    def hops(
        self, source: str, destination: str, family: AddressFamily = AddressFamily.IPV4
    ) -> list[frozenset[str]]:
        """Who may answer at hop limits 1, 2, ...; also where there are too many ways to list."""
        return addresses_by_hop(self._steps(source, destination), self._answers(family))

    def hop_links(
        self, source: str, destination: str, family: AddressFamily = AddressFamily.IPV4
    ) -> frozenset[tuple[int, str, str]]:
        """Every true link (hop limit, address there, address at the next hop limit)."""
        steps = self._steps(source, destination)
        return address_links(self.next_hops, steps, destination, self._answers(family))

    def _steps(self, source: str, destination: str) -> list[list[LinkPass]]:
        check(self.next_hops, source, destination)
        return steps_by_hop(self.next_hops, source, destination)

    def _answers(self, family: AddressFamily) -> Callable[[LinkPass], str]:
        return lambda step: self.answer_of(step, family)

    def answer_of(self, step: LinkPass, family: AddressFamily = AddressFamily.IPV4) -> str:
        """The address that answers a packet that came by `step` and goes no further.

        Routers answer IPv4 from the interface that it came in by, IPv6 from their own address:
        Linux has no such choice there. Regions and sites are what they are addressed by. Empty:
        a silent router.
        """
        node = self.nodes[step.destination]
        if node.hop.silent:
            return ""
        if node.kind is not NodeKind.ROUTER or family is AddressFamily.IPV6:
            return self.address_of(node.name, family)
        return self.far_address(step, family)

    def far_address(self, step: LinkPass, family: AddressFamily) -> str:
        """The address of the interface at which a packet on `step` arrives."""
        ends = self.link_addresses(step.link, family)
        return ends[1 if self.links[step.link].b == step.destination else 0]

    @cached_property
    def parallels(self) -> list[int]:
        """For every link, how many links before it have the same ends."""
        counts: dict[frozenset[str], int] = {}
        numbers: list[int] = []
        for link in self.links:
            ends = frozenset((link.a, link.b))
            numbers.append(counts.get(ends, 0))
            counts[ends] = numbers[-1] + 1
        return numbers

    @cached_property
    def _positions(self) -> dict[str, int]:
        counts: dict[NodeKind, int] = {}
        positions: dict[str, int] = {}
        for node in self.nodes.values():
            positions[node.name] = counts.get(node.kind, 0)
            counts[node.kind] = positions[node.name] + 1
        return positions

    def prefix_of(self, name: str, family: AddressFamily) -> str:
        """The prefix that belongs to a node: a /24 of 10.0.0.0/8, a /64 of fd70:6274::/32.

        Regions start at 10.16.0.0, routers at 10.32.0.0, sites at 10.48.0.0.
        """
        group = 1 + list(NodeKind).index(self.nodes[name].kind)
        index = self._positions[name]
        if family is AddressFamily.IPV4:
            return f"10.{16 * group + (index >> 8)}.{index & 255}.0/24"
        return f"fd70:6274:{group:x}:{index:x}::/64"

    def address_of(self, name: str, family: AddressFamily = AddressFamily.IPV4) -> str:
        """The address of a node: ``.1`` of its prefix, on its loopback interface."""
        return str(ipaddress.ip_network(self.prefix_of(name, family)).network_address + 1)

    def link_addresses(self, index: int, family: AddressFamily) -> tuple[str, str]:
        """Addresses of the ends `a` and `b` of a link, out of the prefix of the router end."""
        owner, position = self._link_owners[index]
        base = ipaddress.ip_network(self.prefix_of(owner, family)).network_address
        low = base + 2 * (position + 1)
        return str(low), str(low + 1)

    @cached_property
    def _link_owners(self) -> list[tuple[str, int]]:
        counts: dict[str, int] = {}
        owners: list[tuple[str, int]] = []
        for link in self.links:
            owner = link.a if self.nodes[link.a].kind is NodeKind.ROUTER else link.b
            owners.append((owner, counts.get(owner, 0)))
            counts[owner] = owners[-1][1] + 1
        return owners

    def links_owned_by(self, name: str) -> int:
        """How many links take their addresses out of the prefix of a node."""
        return sum(owner == name for owner, _ in self._link_owners)
