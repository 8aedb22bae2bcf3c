"""Which routers of a world the emulator has to help, and all it needs to know for that."""

import ipaddress

from pathbudget.agents.lab.hop import Balancing
from pathbudget.agents.lab.hop_work import HopSetup, Interface
from pathbudget.agents.lab.topology import NodeKind
from pathbudget.agents.lab.wiring import FIRST_INDEX, inner_index, outer_name
from pathbudget.agents.lab.world import World
from pathbudget.probes.record import AddressFamily

ETHERNET_MTU = 1500
BY_EMULATOR = (Balancing.OCTETS, Balancing.PACKET)
_PREFIX_OCTETS = {AddressFamily.IPV4: 3, AddressFamily.IPV6: 8}


def hop_setups(world: World) -> tuple[HopSetup, ...]:
    """All routers whose packets are not for the kernel alone to decide."""
    return tuple(
        hop_setup(world, node.name)
        for node in world.of_kind(NodeKind.ROUTER)
        if needs_help(world, node.name)
    )


def needs_help(world: World, router: str) -> bool:
    """Whether the emulator has work at this router."""
    hop = world.nodes[router].hop
    return bool(
        hop.silent or hop.labels or hop.interface or hop.translation or hop.balancing in BY_EMULATOR
    )


def hop_setup(world: World, router: str) -> HopSetup:
    """What the emulator is told of one router."""
    interfaces = {step.link: _interface(world, step.link, router) for step in world.passes[router]}
    own = [world.address_of(router, family) for family in AddressFamily]
    on_links = [address for one in interfaces.values() for address in (one.ipv4, one.ipv6)]
    hop = world.nodes[router].hop
    return HopSetup(
        node=router,
        hop=hop,
        seed=f"{world.seed} {router}",
        addresses=(*own, *on_links),
        interfaces=interfaces,
        inside=tuple(inside_addresses(world, router)) if hop.translation else (),
        groups=_groups(world, router) if hop.balancing in BY_EMULATOR else {},
    )


def inside_addresses(world: World, router: str) -> list[str]:
    """Addresses of the regions that are linked to a router."""
    return [
        world.address_of(step.destination, family)
        for step in world.passes[router]
        if world.nodes[step.destination].kind is NodeKind.REGION
        for family in AddressFamily
    ]


def _interface(world: World, link: int, router: str) -> Interface:
    cable = world.links[link]
    end = 0 if cable.a == router else 1
    neighbour = cable.b if end == 0 else cable.a
    ipv4, ipv6 = (world.link_addresses(link, family)[end] for family in AddressFamily)
    name = outer_name(link, neighbour, world.parallels[link])
    return Interface(FIRST_INDEX + link, name, ipv4, ipv6, cable.mtu or ETHERNET_MTU)


def _groups(world: World, router: str) -> dict[str, tuple[int, ...]]:
    groups: dict[str, tuple[int, ...]] = {}
    for destination, steps in world.next_hops[router].items():
        if len(steps) < 2:
            continue
        inner = tuple(
            inner_index(step.link, 0 if world.links[step.link].a == router else 1) for step in steps
        )
        for family, octets in _PREFIX_OCTETS.items():
            network = ipaddress.ip_network(world.prefix_of(destination, family))
            groups[network.network_address.packed[:octets].hex()] = inner
    return groups
