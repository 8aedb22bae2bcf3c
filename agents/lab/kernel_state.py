"""Whether the kernels of a lab forward as its world says."""

import contextlib
import ipaddress

from pathbudget.agents.lab.bgp_routes import speaks
from pathbudget.agents.lab.fabric import Fabric
from pathbudget.agents.lab.kernel_routes import RouteReader, Table
from pathbudget.agents.lab.wiring import FIRST_INDEX
from pathbudget.agents.lab.world import World
from pathbudget.probes.record import AddressFamily

EVERYTHING = {AddressFamily.IPV4: "0.0.0.0/0", AddressFamily.IPV6: "::/0"}


class KernelRoutes:
    """Looks into all namespaces of a lab. Raises OSError."""

    def __init__(self, fabric: Fabric) -> None:
        self._open = contextlib.ExitStack()
        self._readers: dict[str, RouteReader] = {}
        for name, space in fabric.spaces.items():
            self._readers[name] = reader = RouteReader(space.descriptor)
            self._open.callback(reader.close)

    def close(self) -> None:
        """Give the sockets back."""
        self._open.close()

    def tables(self) -> dict[str, Table]:
        """Routes of all nodes, one after the other."""
        return {name: reader.table() for name, reader in self._readers.items()}

    def first_difference(self, world: World) -> str:
        """Where packets do not go as the world says, in words; empty: nowhere."""
        for name, reader in self._readers.items():
            if world.bgp and not speaks(world, name):
                continue  # it has a default route
            odd = _difference(world, name, reader.table())
            if odd:
                return odd
        return ""


def _difference(world: World, name: str, table: Table) -> str:
    if not (world.bgp or len(world.passes[name]) > 1):
        return ""
    for destination in world.nodes:
        if destination == name:
            continue
        steps = world.next_hops[name].get(destination, ())
        wanted = frozenset(FIRST_INDEX + step.link for step in steps)
        for family in AddressFamily:
            prefix = str(ipaddress.ip_network(world.prefix_of(destination, family)))
            found = table.get(prefix, frozenset())
            default = table.get(EVERYTHING[family], frozenset())
            if found != wanted and not (not found and default == wanted):
                return (
                    f"{name} sends {family} to {destination} by {_named(world, name, found)}, "
                    f"not by {_named(world, name, wanted)}"
                )
    return ""


def _named(world: World, name: str, interfaces: frozenset[int]) -> str:
    ends = [
        step.destination for step in world.passes[name] if FIRST_INDEX + step.link in interfaces
    ]
    return " and ".join(ends) or "nobody"
