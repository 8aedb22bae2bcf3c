"""The tables ``[[event]]`` of a world file. docs/lab.md has the keys of every kind."""

from collections.abc import Mapping, Sequence

from pathbudget.agents.lab.bgp import Bgp, Listener
from pathbudget.agents.lab.event import ROUTING, Event, EventKind
from pathbudget.agents.lab.events import links_between
from pathbudget.agents.lab.link import Variation
from pathbudget.agents.lab.link_file import (
    MTU,
    PREFERENCE,
    PREPEND,
    PROBABILITY,
    duration,
    inner,
    read_variation,
    yes_or_no,
)
from pathbudget.agents.lab.topology import Link, Node, NodeKind
from pathbudget.agents.units import parse_duration_ns
from pathbudget.sites.entry import Entry, Interval, did_you_mean, show

WHEN = ("at", "for", "kind")
KEYS: dict[EventKind, tuple[str, ...]] = {
    EventKind.LINK_DOWN: ("link", "silent"),
    EventKind.DEGRADE: ("link", "from", "member", "extra_delay", "loss", "variation", "over"),
    EventKind.QUEUE: ("link", "from", "peak"),
    EventKind.PREFER: ("node", "neighbour", "local_preference"),
    EventKind.PREPEND: ("node", "neighbour", "times"),
    EventKind.WITHDRAW: ("node",),
    EventKind.SESSION_DOWN: ("link",),
    EventKind.HIJACK: ("node", "victim"),
    EventKind.ICMP_RATE: ("node", "rate"),
    EventKind.SILENT: ("node",),
    EventKind.MTU: ("link", "mtu"),
    EventKind.BLACK_HOLE: ("link", "from", "silent_mtu"),
    EventKind.FEED_DEAD: ("listener", "stalls"),
}
OF_ROUTERS = (EventKind.ICMP_RATE, EventKind.SILENT, EventKind.HIJACK)
LONGEST_NS = 86_400_000_000_000
OCTETS = Interval(68, 1499, "octets of an IP packet, 68 to 1499")
MEMBER = Interval(1, 64, "the number of a member, from 1")


class EventReader:
    """Reads events against what the rest of the file defines."""

    def __init__(
        self,
        nodes: Mapping[str, Node],
        links: Sequence[Link],
        listeners: Sequence[Listener],
        bgp: Bgp | None,
    ) -> None:
        self._nodes = nodes
        self._links = links
        self._listeners = [listener.name for listener in listeners]
        self._bgp = bgp

    def read(self, entry: Entry) -> Event | None:
        """One event; None when its kind cannot be read. Faults are noted in `entry`."""
        word = entry.word("kind", list(EventKind), "") or _missing(entry, "kind", list(EventKind))
        if word not in list(EventKind):
            return None
        kind = EventKind(word)
        keys = KEYS[kind]
        entry.only((*WHEN, *keys))
        if kind in ROUTING and self._bgp is None:
            entry.fault("kind", f"{show(word)} without BGP", "a table [bgp]")
        links = self._ends(entry) if "link" in keys else ()
        node = self._node(entry, "node") if "node" in keys else ""
        neighbour = self._neighbour(entry, node) if "neighbour" in keys else ""
        if "neighbour" in keys and node in self._nodes:
            links = self._sessions(node, neighbour)
        lasts = _span(entry, "for") if "for" in entry.values else None
        if kind is EventKind.QUEUE and lasts is None:
            entry.fault("for", "is missing", 'how long the queue swells and falls, like "60s"')
        return Event(
            kind=kind,
            at_ns=_span(entry, "at") or 0,
            for_ns=lasts,
            links=links,
            source=self._side(entry, links) if "from" in keys else "",
            member=self._member(entry, links) if "member" in keys else None,
            node=node,
            neighbour=neighbour,
            extra_ns=self._extra(entry, kind),
            loss=(entry.number("loss", PROBABILITY) or 0.0) if "loss" in keys else 0.0,
            variation=self._variation(entry) if "variation" in keys else None,
            over_ns=duration(entry, "over", 0) if "over" in keys else 0,
            number=_number(entry, kind),
            rate_ns=_rate(entry) if "rate" in keys else None,
            listener=self._listener(entry) if "listener" in keys else "",
            victim=self._victim(entry, node) if "victim" in keys else "",
            silently=bool(_flag(entry, keys)),
        )

    def _ends(self, entry: Entry) -> tuple[int, ...]:
        value = entry.values.get("link")
        expected = 'the name of a link, or two nodes like ["tokyo", "east-tokyo"]'
        if isinstance(value, str):
            found = tuple(at for at, link in enumerate(self._links) if link.name == value)
            named = [link.name for link in self._links if link.name]
            expected = did_you_mean(value, named) if named else expected
        elif isinstance(value, list) and len(value) == 2 and all(isinstance(n, str) for n in value):
            found = links_between(self._links, str(value[0]), str(value[1]))
        else:
            found = ()
        if not found:
            entry.fault(
                "link", "is missing" if value is None else f"{show(value)} is no link", expected
            )
        return found

    def _node(self, entry: Entry, key: str) -> str:
        name = entry.text(key, None)
        if name and name not in self._nodes:
            entry.fault(key, f"{show(name)} is no node", did_you_mean(name, self._nodes))
        elif (
            name
            and entry.values.get("kind") in OF_ROUTERS
            and self._nodes[name].kind is not NodeKind.ROUTER
        ):
            entry.fault(key, f"{show(name)} is no router", "a router")
        return name

    def _neighbour(self, entry: Entry, node: str) -> str:
        name = entry.text("neighbour")
        if name and node in self._nodes and not links_between(self._links, node, name):
            problem = f"no link between {show(node)} and {show(name)}"
            entry.fault("neighbour", problem, f"a neighbour of {show(node)}")
        return name

    def _sessions(self, node: str, neighbour: str) -> tuple[int, ...]:
        return tuple(
            at
            for at, link in enumerate(self._links)
            if node in (link.a, link.b) and (not neighbour or neighbour in (link.a, link.b))
        )

    def _side(self, entry: Entry, links: tuple[int, ...]) -> str:
        name = entry.text("from")
        ends = {end for at in links for end in (self._links[at].a, self._links[at].b)}
        if name and ends and name not in ends:
            entry.fault(
                "from", f"{show(name)} is no end of the link", did_you_mean(name, sorted(ends))
            )
        return name

    def _member(self, entry: Entry, links: tuple[int, ...]) -> int | None:
        number = entry.whole_number("member", MEMBER)
        if number is None or not links:
            return None
        members = len(self._links[links[0]].members)
        if len(links) > 1 or number > members:
            problem = f"there is no member {number}"
            entry.fault("member", problem, f"1 to {members}" if members else "a link with members")
        return number - 1

    def _extra(self, entry: Entry, kind: EventKind) -> int:
        if kind is EventKind.QUEUE:
            if "peak" not in entry.values:
                entry.fault("peak", "is missing", 'a duration like "8ms"')
            return duration(entry, "peak", 0)
        return duration(entry, "extra_delay", 0) if kind is EventKind.DEGRADE else 0

    def _variation(self, entry: Entry) -> Variation | None:
        if not any(key in entry.values for key in ("extra_delay", "loss", "variation")):
            entry.fault("extra_delay", "nothing gets worse", "extra_delay, loss or variation")
        if "variation" not in entry.values:
            return None
        return read_variation(inner(entry, "variation", ("kind", "scale", "shape", "share")))

    def _listener(self, entry: Entry) -> str:
        name = entry.text("listener", None)
        if name and name not in self._listeners:
            entry.fault(
                "listener", f"{show(name)} is no listener", did_you_mean(name, self._listeners)
            )
        return name

    def _victim(self, entry: Entry, node: str) -> str:
        name = entry.text("victim", None)
        if name and name not in self._nodes:
            entry.fault("victim", f"{show(name)} is no node", did_you_mean(name, self._nodes))
        if name and name == node:
            entry.fault("victim", "the node itself", "another node")
        return name


def _flag(entry: Entry, keys: tuple[str, ...]) -> bool | None:
    for key in ("silent", "stalls"):
        if key in keys:
            return yes_or_no(entry, key)
    return None


def _number(entry: Entry, kind: EventKind) -> int:
    rules = {
        EventKind.PREFER: ("local_preference", PREFERENCE),
        EventKind.PREPEND: ("times", PREPEND),
        EventKind.MTU: ("mtu", MTU),
        EventKind.BLACK_HOLE: ("silent_mtu", OCTETS),
    }
    if kind not in rules:
        return 0
    return entry.whole_number(*rules[kind], required=True) or 0


def _rate(entry: Entry) -> int | None:
    if "rate" not in entry.values:
        entry.fault("rate", "is missing", 'the time between two messages, like "1s"')
        return None
    return max(1_000_000, duration(entry, "rate", 1_000_000))


def _missing(entry: Entry, key: str, known: Sequence[str]) -> str:
    if key not in entry.values:
        entry.fault(key, "is missing", "one of " + ", ".join(known))
    return ""


def _span(entry: Entry, key: str) -> int | None:
    """A time of the play, at most a day; None when it is wrong."""
    value = entry.values.get(key)
    expected = 'a duration of at most one day, like "12s"'
    if value is None:
        entry.fault(key, "is missing", expected)
        return None
    try:
        found = parse_duration_ns(value) if isinstance(value, str) else -1
    except ValueError:
        found = -1
    if not 0 <= found <= LONGEST_NS or (key == "for" and found == 0):
        entry.fault(key, f"{show(value)} is no such duration", expected)
        return None
    return found
