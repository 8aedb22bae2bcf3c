"""Reads a World from TOML. docs/lab.md has every key.

[[region]]  name, carrier, asn, latitude, longitude, ecmp
[[router]]  as [[region]], and balancing, icmp_rate, silent, mpls,
            interface, nat
[[site]]    as [[region]], and responder, reflector,
            clock = {offset, ppm, step, step_after, stated_error}
[[link]]    between, delay, variation, loss, bursts, rate, queue, reorder, order, silent_mtu,
            local_preference, prepend, cost, name, mtu, members,
            forward = {...} and reverse = {...} for keys that differ by direction
[[route]]   at, to, via
[bgp]       hold, mrt
[[listener]] name, at, router, port, asn, hold, add_paths
[[event]]   at, for, kind, and the keys of the kind (event_file.py)
"""

from collections.abc import Callable, Iterator
from pathlib import Path

from pathbudget.agents.lab.bgp_file import read_bgp, read_listener
from pathbudget.agents.lab.bgp_routes import by_bgp
from pathbudget.agents.lab.clock_file import read_clock
from pathbudget.agents.lab.event_file import EventReader
from pathbudget.agents.lab.hop import ORDINARY, Balancing
from pathbudget.agents.lab.hop_file import HOP_KEYS, read_hop
from pathbudget.agents.lab.link_file import choice, read_link, yes_or_no
from pathbudget.agents.lab.routing import shortest_delay
from pathbudget.agents.lab.topology import Node, NodeKind, StaticRoute
from pathbudget.agents.lab.world import World
from pathbudget.agents.lab.world_check import faults_of
from pathbudget.probes.errors import ConfigError, Fault
from pathbudget.sites.entry import Entry, Interval, show
from pathbudget.sites.toml_reader import parse_toml, read_text

TABLES = ("region", "router", "site", "link", "route", "listener", "event")
TOP_KEYS = ("seed", "ecmp", "balancing", "bgp")
PLACE_KEYS = ("name", "carrier", "latitude", "longitude", "ecmp", "asn")
KEYS = {
    NodeKind.REGION: PLACE_KEYS,
    NodeKind.ROUTER: (*PLACE_KEYS, *HOP_KEYS),
    NodeKind.SITE: (*PLACE_KEYS, "responder", "reflector", "clock"),
}
LATITUDE = Interval(-90, 90, "degrees north, -90 to 90")
LONGITUDE = Interval(-180, 180, "degrees east, -180 to 180")
AS_NUMBER = Interval(1, 4294967295, "an AS number, 1 to 4294967295")
SEED = Interval(0, 2**53, "a whole number of 0 or more")


def load_world(path: Path) -> World:
    """The world of a file. Raises ConfigError with every fault of it."""
    faults: list[Fault] = []
    text = read_text(path, faults)
    if text is None:
        raise ConfigError(faults)
    return parse_world(text, str(path))


def parse_world(text: str, file: str = "world.toml") -> World:
    """The world of a TOML text; `file` is what faults call it."""
    faults: list[Fault] = []
    document = parse_toml(text, file, faults)
    if document is None:
        raise ConfigError(faults)
    top = Entry(file, document, lambda key: key, faults)
    top.only((*TABLES, *TOP_KEYS))
    balancing = choice(top, "balancing", Balancing, Balancing.PORTS)
    nodes = [_node(entry, kind, balancing) for kind in NodeKind for entry in _entries(top, kind)]
    links = [link for entry in _entries(top, "link") if (link := read_link(entry))]
    routes = [_route(entry) for entry in _entries(top, "route")]
    seed = top.whole_number("seed", SEED)
    bgp = read_bgp(top)
    by_name = {node.name: node for node in nodes}
    listeners = tuple(read_listener(entry) for entry in _entries(top, "listener"))
    reader = EventReader(by_name, links, listeners, bgp)
    events = [event for entry in _entries(top, "event") if (event := reader.read(entry))]
    world = World(
        by_name,
        tuple(links),
        tuple(routes),
        ecmp=yes_or_no(top, "ecmp") or False,
        seed=1 if seed is None else seed,
        routing=by_bgp if bgp else shortest_delay,
        bgp=bgp,
        listeners=listeners,
        events=tuple(events),
    )
    if not faults:
        faults += [Fault(file, *found) for found in faults_of(world, nodes)]
    if faults:
        raise ConfigError(list(dict.fromkeys(faults)))
    return world


def _entries(top: Entry, name: str) -> Iterator[Entry]:
    value = top.values.get(name, [])
    if not isinstance(value, list):
        top.fault(name, f"{show(value)} is no list of tables", f"[[{name}]] with two brackets")
        return
    for number, values in enumerate(value, start=1):
        place = f"{name}[{number}]"
        if isinstance(values, dict):
            yield Entry(top.file, values, _places(place), top.faults)
        else:
            top.fault(place, f"{show(values)} is no table", f"[[{name}]] with two brackets")


def _places(place: str) -> Callable[[str], str]:
    return lambda key: f"{place}.{key}" if key else place


def _node(entry: Entry, kind: NodeKind, balancing: Balancing) -> Node:
    entry.only(KEYS[kind])
    asn = entry.whole_number("asn", AS_NUMBER)
    return Node(
        name=entry.text("name", None),
        kind=kind,
        carrier=entry.text("carrier"),
        asn=asn,
        latitude=entry.number("latitude", LATITUDE),
        longitude=entry.number("longitude", LONGITUDE),
        responder=yes_or_no(entry, "responder") is not False,
        reflector=yes_or_no(entry, "reflector"),
        clock=read_clock(entry),
        ecmp=yes_or_no(entry, "ecmp"),
        hop=read_hop(entry, balancing) if kind is NodeKind.ROUTER else ORDINARY,
    )


def _route(entry: Entry) -> StaticRoute:
    entry.only(("at", "to", "via"))
    return StaticRoute(entry.text("at", None), entry.text("to", None), entry.text("via", None))
