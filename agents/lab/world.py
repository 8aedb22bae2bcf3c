"""The World: regions, routers of carriers, sites, and the links between them.

Read from TOML by `world_file.load_world`, or built in Python by `world_check.build_world`.
Everything that follows from the definition (paths, addresses) is here; nothing runs.
"""

import ipaddress
from dataclasses import dataclass
from functools import cached_property

from pathbudget.agents.lab.routing import NextHops, Routing, shortest_delay
from pathbudget.agents.lab.topology import LinkPass, NodeKind, Topology
from pathbudget.probes.record import AddressFamily


@dataclass(frozen=True)
class World(Topology):
    """The whole definition. Not checked by itself; the two functions named above do that."""

    seed: int = 1
    """Of everything random in the links."""
    routing: Routing = shortest_delay

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
        """``next_hops[at][to]`` is the link direction that a packet takes; absent: unreachable."""
        return self.routing(self)

    def path(self, source: str, destination: str) -> list[LinkPass]:
        """Link directions from one node to another, as the kernels will forward.

        Raises LookupError when there is no way, or the static routes go in a circle.
        """
        taken: list[LinkPass] = []
        at = source
        while at != destination:
            step = self.next_hops[at].get(destination)
            if step is None:
                raise LookupError(f"no way from {source} to {destination}: it ends at {at}")
            if len(taken) >= len(self.nodes):
                raise LookupError(f"packets from {source} to {destination} go in a circle at {at}")
            taken.append(step)
            at = step.destination
        return taken

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
