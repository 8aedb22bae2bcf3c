"""Configuration of the BIRD 2 of one node (https://bird.network.cz, user's guide of 2.0).

Sessions are over the addresses of links, one for each link and address family. The defaults of the
times would take minutes to settle; with ours a lab of ten routers needs two seconds. The own prefix
is a black hole that stays out of the kernel. How routes are compared is told in `bgp_routes.py`.
"""

from collections.abc import Iterator

from pathbudget.agents.lab.bgp import Bgp, Listener
from pathbudget.agents.lab.bgp_routes import med_of, preference_of, speaks
from pathbudget.agents.lab.topology import LinkPass, LinkState, Node, NodeKind
from pathbudget.agents.lab.world import World
from pathbudget.probes.record import AddressFamily

MOST_WAYS = 64
_TIMES = "connect delay time 1; connect retry time 1; error wait time 1, 2; error forget time 2;"


def bird_config(world: World, name: str, mrt_file: str = "") -> str:
    """The whole file. `mrt_file` empty: no dump."""
    node, bgp = world.nodes[name], world.bgp or Bgp()
    return "\n".join(
        [
            f"router id {world.address_of(name)};",
            "log stderr { error, fatal, bug };",
            *(
                [f'mrtdump "{mrt_file}";', "mrtdump protocols { states, messages };"]
                if mrt_file
                else []
            ),
            "protocol device { scan time 10; }",
            *(_kernel(world, name, family) for family in AddressFamily),
            *(_static(world, name, family) for family in AddressFamily),
            *(
                _session(world, step, family, bgp)
                for step in world.passes[name]
                if speaks(world, step.destination)
                for family in AddressFamily
            ),
            *(
                _listener(world, node, number, listener)
                for number, listener in enumerate(world.listeners)
                if listener.router == name
            ),
            "",
        ]
    )


def _number(family: AddressFamily) -> int:
    return 4 if family is AddressFamily.IPV4 else 6


def _kernel(world: World, name: str, family: AddressFamily) -> str:
    merge = f"merge paths yes limit {MOST_WAYS}; " if world.uses_all_equal(name) else ""
    return (
        f"protocol kernel kernel{_number(family)} {{ {merge}scan time 60; {family} {{ import none; "
        "export filter { if source = RTS_BGP || dest = RTD_UNICAST then { "
        f"krt_prefsrc = {world.address_of(name, family)}; accept; }} reject; }}; }}; }}"
    )


def _static(world: World, name: str, family: AddressFamily) -> str:
    node = world.nodes[name]
    own = [name] if node.announces else []
    routes = [
        f"route {world.prefix_of(one, family)} blackhole;" for one in (*own, *node.also_announces)
    ]
    routes += [
        f"route {world.prefix_of(step.destination, family)} via {world.far_address(step, family)};"
        for step in _quiet_neighbours(world, name)
    ]
    return f"protocol static static{_number(family)} {{ {family}; {' '.join(routes)} }}"


def _quiet_neighbours(world: World, name: str) -> Iterator[LinkPass]:
    """Regions and sites that this node announces, as they do not speak for themselves."""
    for step in world.passes[name]:
        neighbour = world.nodes[step.destination]
        quiet = not speaks(world, neighbour.name) and neighbour.announces
        if quiet and step.state is not LinkState.DOWN:
            yield step


def _session(world: World, step: LinkPass, family: AddressFamily, bgp: Bgp) -> str:
    node, neighbour = world.nodes[step.source], world.nodes[step.destination]
    link = world.links[step.link]
    ends = world.link_addresses(step.link, family)
    here, there = ends if link.a == step.source else ends[::-1]
    hold = max(3, bgp.hold_ns // 1_000_000_000)
    internal = node.asn == neighbour.asn
    return (
        f"protocol bgp link{step.link}v{_number(family)} {{ "
        + ("" if link.session else "disabled; ")
        + f"local {here} as {node.asn}; neighbor {there} as {neighbour.asn}; direct; "
        + f"hold time {hold}; startup hold time {max(hold, 20)}; keepalive time 1; {_TIMES} "
        + "med metric yes; "
        + ("rr client; " if internal else "")
        + f"{family} {{ import filter {{ {_import(world, step, internal)} }}; "
        + f"export filter {{ {_export(world, node, link.prepends, step, internal)} }}; "
        + "next hop self; }; }"
    )


def _import(world: World, step: LinkPass, internal: bool) -> str:
    if not internal:
        return f"bgp_med = 0; bgp_local_pref = {preference_of(world, step)}; accept;"
    said = preference_of(world, step, -1)
    prefer = f"bgp_local_pref = {said}; " if said >= 0 else ""
    return (
        "if ! defined(bgp_med) then bgp_med = 0; "
        f"bgp_med = bgp_med + {med_of(step)}; {prefer}accept;"
    )


def _export(
    world: World, node: Node, prepends: tuple[int, int], step: LinkPass, internal: bool
) -> str:
    side = 0 if world.links[step.link].b == node.name else 1
    times = 0 if internal else prepends[side]
    longer = f"bgp_path.prepend({node.asn}); " * times
    if node.kind is NodeKind.ROUTER:
        return f"{longer}accept;"
    return f"if source = RTS_STATIC then {{ {longer}accept; }} reject;"


def _listener(world: World, node: Node, number: int, listener: Listener) -> str:
    asn = node.asn if listener.asn is None else listener.asn
    more = "add paths tx; " if listener.add_paths else ""
    channels = " ".join(
        f"{family} {{ import none; export all; {more}"
        f"next hop address {world.address_of(node.name, family)}; }};"
        for family in AddressFamily
    )
    return (
        f"protocol bgp listener{number} {{ "
        + ("" if listener_up(world, listener) else "disabled; ")
        + f"local {world.address_of(node.name)} as {node.asn}; "
        f"neighbor {world.address_of(listener.at)} port {listener.port} as {asn}; multihop; "
        f"hold time {max(3, listener.hold_ns // 1_000_000_000)}; {_TIMES} "
        + ("rr client; " if asn == node.asn else "")
        + f"{channels} }}"
    )


def listener_up(world: World, listener: Listener) -> bool:
    """Whether nothing cut its session."""
    return listener.name not in world.cut_listeners
