"""Puts a World into the kernel: one namespace per node, two veth pairs per link, fixed routes.

The inner ends of all links are in the emulator's namespace. Neighbours are entered by hand, so no
ARP or neighbour discovery crosses an emulated ocean and no first packet is an outlier.
"""

import array
import contextlib
import fcntl
import os
import socket
import struct
import zlib
from collections.abc import Iterable, Mapping

from pathbudget.agents.lab.bgp_routes import speaks
from pathbudget.agents.lab.control import DirectionSetup
from pathbudget.agents.lab.hop import Balancing
from pathbudget.agents.lab.namespaces import inside, new_namespace, set_kernel_parameter
from pathbudget.agents.lab.rtnetlink import NO_ARP, UP, RoutingSocket
from pathbudget.agents.lab.topology import Link, LinkPass, Node, NodeKind
from pathbudget.agents.lab.wiring import (
    FIRST_INDEX,
    hardware_address,
    inner_index,
    outer_name,
)
from pathbudget.agents.lab.world import World
from pathbudget.probes.record import AddressFamily

EVERYTHING = {AddressFamily.IPV4: "0.0.0.0/0", AddressFamily.IPV6: "::/0"}
WHOLE = {AddressFamily.IPV4: 32, AddressFamily.IPV6: 128}
POINT_TO_POINT = {AddressFamily.IPV4: 31, AddressFamily.IPV6: 127}
"""RFC 3021, RFC 6164."""
LOOPBACK = 1

_SIOCETHTOOL = 0x8946
_OFFLOADS = (0x17, 0x1F, 0x25)
"""ETHTOOL_STXCSUM, ETHTOOL_STSO, ETHTOOL_SGSO."""

EVERY_NODE = (
    ("net/ipv4/conf/all/rp_filter", "0"),
    ("net/ipv4/conf/default/rp_filter", "0"),
    ("net/ipv4/icmp_ratelimit", "0"),
    ("net/ipv6/icmp/ratelimit", "0"),
    ("net/ipv6/conf/all/accept_dad", "0"),
    ("net/ipv6/conf/default/accept_dad", "0"),
    ("net/ipv6/conf/default/accept_ra", "0"),
    ("net/ipv6/conf/default/router_solicitations", "0"),
    ("net/ipv6/conf/default/addr_gen_mode", "1"),
)
WHERE_THE_KERNEL_HAS_IT = (
    ("net/ipv4/icmp_errors_use_inbound_ifaddr", "1"),
    ("net/ipv4/icmp_msgs_per_sec", "1000000"),
    ("net/ipv4/icmp_msgs_burst", "1000000"),
)
ROUTER = (
    ("net/ipv4/ip_forward", "1"),
    ("net/ipv6/conf/all/forwarding", "1"),
)
WITHOUT_IPV6 = (
    ("net/ipv6/conf/all/disable_ipv6", "1"),
    ("net/ipv6/conf/default/disable_ipv6", "1"),
)


class Space:
    """One namespace and a routing socket into it. Raises OSError."""

    def __init__(self, parameters: Iterable[tuple[str, str]]) -> None:
        self.descriptor = new_namespace()
        try:
            with inside(self.descriptor):
                for name, value in parameters:
                    set_kernel_parameter(name, value)
                self.kernel = RoutingSocket()
        except BaseException:
            os.close(self.descriptor)
            raise

    def close(self) -> None:
        """Give the descriptors back; the namespace ends when no process is left in it."""
        self.kernel.close()
        os.close(self.descriptor)


class NodeSpace(Space):
    """Namespace of one node, with its own addresses."""

    def __init__(self, node: Node, world: World) -> None:
        router = ROUTER if node.kind is NodeKind.ROUTER else ()
        super().__init__([*EVERY_NODE, *router, *hop_parameters(node)])
        self.node = node
        self.names: list[str] = []
        with inside(self.descriptor):
            set_optional_parameters(hash_parameters(node, world.seed))
        self.kernel.set_flags(LOOPBACK, UP)
        for family, length in WHOLE.items():
            self.kernel.address(LOOPBACK, world.address_of(node.name, family), length)
        self.kernel.flush()


def hash_parameters(node: Node, seed: int) -> tuple[tuple[str, str], ...]:
    """How the kernel picks one of equally good ways.

    Each node has a hash of its own: with one for all, routers behind each other would decide
    alike, and some true ways would carry nothing (polarisation).
    """
    policy = "0" if node.hop.balancing is Balancing.ADDRESSES else "1"
    own = zlib.crc32(f"hash {seed} {node.name}".encode()) or 1
    return (
        ("net/ipv4/fib_multipath_hash_policy", policy),
        ("net/ipv6/fib_multipath_hash_policy", policy),
        ("net/ipv4/fib_multipath_hash_seed", str(own)),
    )


def hop_parameters(node: Node) -> tuple[tuple[str, str], ...]:
    """The limit on ICMP errors, in milliseconds per message (icmp(7)).

    IPv6 gives wider prefixes more, a /64 four times as much: so its figure is four times as large.
    """
    rate = node.hop.icmp_rate_ns
    if rate is None:
        return ()
    milliseconds = max(1, rate // 1_000_000)
    return (
        ("net/ipv4/icmp_ratelimit", str(milliseconds)),
        ("net/ipv6/icmp/ratelimit", str(4 * milliseconds)),
    )


def set_optional_parameters(more: Iterable[tuple[str, str]] = ()) -> None:
    """What is good to have in the namespace of the calling thread, where it can be had."""
    for name, value in (*WHERE_THE_KERNEL_HAS_IT, *more):
        with contextlib.suppress(OSError):
            set_kernel_parameter(name, value)
    for groups in ("0 2147483647", "0 0"):  # the second where the user namespace has one group
        with contextlib.suppress(OSError):
            set_kernel_parameter("net/ipv4/ping_group_range", groups)
            break


class Fabric:
    """All namespaces of a lab and the cables between them. Raises OSError when built in vain."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.spaces: dict[str, NodeSpace] = {}
        self.directions: list[DirectionSetup] = []
        self._open = contextlib.ExitStack()
        try:
            self.emulator = Space(WITHOUT_IPV6)
            self._open.callback(self.emulator.close)
            for node in world.nodes.values():
                self.spaces[node.name] = space = NodeSpace(node, world)
                self._open.callback(space.close)
        except BaseException:
            self._open.close()
            raise

    def connect(self) -> None:
        """Make the links, then the routes."""
        for number, link in enumerate(self.world.links):
            self._link(number, link)
        self.emulator.kernel.flush()
        for space in self.spaces.values():
            with inside(space.descriptor):
                switch_offloads_off(space.names)
            add_routes(space, self.world)
            space.kernel.flush()

    def set_carrier(self, number: int, *, carrier: bool) -> None:
        """Have both ends of a link see that it is there, or that it is not."""
        kernel = self.emulator.kernel
        for end in (0, 1):
            if carrier:
                kernel.set_flags(inner_index(number, end), UP | NO_ARP)
            else:
                kernel.set_down(inner_index(number, end))
        kernel.flush()

    def set_mtu(self, number: int, mtu: int) -> None:
        """The largest packet of both ends of a link."""
        link = self.world.links[number]
        for name in (link.a, link.b):
            kernel = self.spaces[name].kernel
            kernel.set_mtu(FIRST_INDEX + number, mtu)
            kernel.flush()

    def follow_routes(self, before: World, after: World) -> None:
        """Enter the routes that differ, where no routing protocol does."""
        for space in self.spaces.values():
            old, new = _needed(space, before), _needed(space, after)
            changed = [
                to for to in {**old, **new} if _links_of(old.get(to)) != _links_of(new.get(to))
            ]
            for destination in changed:
                enter_route(space, after, destination, old.get(destination), new.get(destination))
            space.kernel.flush()

    def close(self) -> None:
        """Give everything back."""
        self._open.close()

    def _link(self, number: int, link: Link) -> None:
        ends = (self.spaces[link.a], self.spaces[link.b])
        count = self.world.parallels[number]
        parallel = f" #{count}" if count else ""
        inner = (inner_index(number, 0), inner_index(number, 1))
        for own, space in enumerate(ends):
            other = ends[1 - own].node
            self._plug_in(space, outer_name(number, other.name, count), number, own, link.mtu)
            set_link_addresses(space, self.world, number, own)
            self.emulator.kernel.set_flags(inner[own], UP | NO_ARP)
            self.directions.append(
                DirectionSetup(
                    link=number,
                    source=space.node.name,
                    destination=other.name,
                    enters=inner[own],
                    leaves=inner[1 - own],
                    from_router=space.node.kind is NodeKind.ROUTER,
                    into_router=other.kind is NodeKind.ROUTER,
                    seed=f"{self.world.seed} {space.node.name} > {other.name}{parallel}",
                    models=tuple(member[own] for member in link.members)
                    or ((link.forward, link.reverse)[own],),
                    addresses=hardware_address(number, 1 - own) + hardware_address(number, own),
                )
            )

    def _plug_in(self, space: NodeSpace, name: str, number: int, end: int, mtu: int | None) -> None:
        """A veth pair from a node to the emulator's namespace."""
        index = FIRST_INDEX + number
        space.kernel.veth(
            name,
            index,
            hardware_address(number, end),
            f"{'ab'[end]}{number}",
            inner_index(number, end),
            self.emulator.descriptor,
        )
        space.kernel.flush()
        if mtu:
            space.kernel.set_mtu(index, mtu)
        space.kernel.set_flags(index, UP)
        space.names.append(name)


def switch_offloads_off(names: Iterable[str]) -> None:
    """Have the kernel finish checksums and segments before it sends. Raises OSError.

    With offloads the ring would see partial checksums and frames of 64 KiB.
    """
    with socket.socket() as control:
        for name in names:
            for command in _OFFLOADS:
                value = array.array("I", [command, 0])
                request = struct.pack("16sP16x", name.encode(), value.buffer_info()[0])
                fcntl.ioctl(control, _SIOCETHTOOL, request)


def set_link_addresses(space: NodeSpace, world: World, number: int, end: int) -> None:
    """Addresses of one end of a link, and its neighbour as a permanent entry."""
    index = FIRST_INDEX + number
    for family, length in POINT_TO_POINT.items():
        addresses = world.link_addresses(number, family)
        space.kernel.address(index, addresses[end], length)
        space.kernel.neighbour(index, addresses[1 - end], hardware_address(number, 1 - end))


def add_routes(space: NodeSpace, world: World) -> None:
    """Routes to the prefixes of all other nodes, leaving from the node's own address."""
    for destination, steps in _needed(space, world).items():
        enter_route(space, world, destination, None, steps)


def enter_route(
    space: NodeSpace,
    world: World,
    destination: str,
    before: tuple[LinkPass, ...] | None,
    steps: tuple[LinkPass, ...] | None,
) -> None:
    """The routes of both families to one node (or to everything) instead of those before."""
    for family in AddressFamily:
        prefix = world.prefix_of(destination, family) if destination else EVERYTHING[family]
        if before:
            space.kernel.no_route(prefix)
        if steps:
            space.kernel.route(
                prefix,
                [(world.far_address(step, family), FIRST_INDEX + step.link) for step in steps],
                world.address_of(space.node.name, family),
            )


def _links_of(steps: tuple[LinkPass, ...] | None) -> list[int]:
    return [step.link for step in steps or ()]


def _needed(space: NodeSpace, world: World) -> Mapping[str, tuple[LinkPass, ...]]:
    """Next hops by destination node; the empty name is everything, for a node with one link.
    Where there is BGP its speakers enter the routes, but for the static ones."""
    name = space.node.name
    leaving = world.passes[name]
    if world.bgp and speaks(world, name):
        fixed = [route.to for route in world.routes if route.at == name]
        return {to: world.next_hops[name][to] for to in fixed}
    if len(leaving) == 1 and space.node.kind is not NodeKind.ROUTER:
        return {"": (leaving[0],)}
    return world.next_hops[name]
