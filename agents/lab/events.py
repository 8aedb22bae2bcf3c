"""What happens to a world while it runs. An event turns one world into another; nothing runs here.

The world at any time is the first one with all events under way applied to it, in the order in
which they began: so an event that ends is simply left out.
"""

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from pathbudget.agents.lab.event import Event, EventKind
from pathbudget.agents.lab.link import DirectionModel, Swell
from pathbudget.agents.lab.topology import Link, LinkState, Node
from pathbudget.agents.lab.world import World


@dataclass(frozen=True)
class Moment:
    """The world changes: some events begin or end (indices in `World.events`)."""

    at_ns: int
    before: World
    after: World
    begins: tuple[int, ...]
    ends: tuple[int, ...]


def timeline(world: World) -> list[Moment]:
    """All moments at which something begins or ends, in order."""
    times = {event.at_ns for event in world.events}
    times |= {event.ends_ns for event in world.events if event.ends_ns is not None}
    before, moments = world, list[Moment]()
    for at in sorted(times):
        after = at_time(world, at)
        begins = tuple(n for n, event in enumerate(world.events) if event.at_ns == at)
        ends = tuple(n for n, event in enumerate(world.events) if event.ends_ns == at)
        moments.append(Moment(at, before, after, begins, ends))
        before = after
    return moments


def at_time(world: World, at_ns: int) -> World:
    """The world when so much of the play is over."""
    on = [
        event
        for event in world.events
        if event.at_ns <= at_ns and (event.ends_ns is None or at_ns < event.ends_ns)
    ]
    for event in sorted(on, key=lambda event: event.at_ns):
        world = applied(world, event)
    return world


def applied(world: World, event: Event) -> World:
    """The world with one event under way."""
    return _HOW[event.kind](world, event)


def without(world: World, number: int) -> World:
    """The world with all its events but one."""
    events = [event for at, event in enumerate(world.events) if at != number]
    return dataclasses.replace(world, events=tuple(events))


def _with_links(world: World, event: Event, change: Callable[[Link], Link]) -> World:
    links = [change(link) if at in event.links else link for at, link in enumerate(world.links)]
    return dataclasses.replace(world, links=tuple(links))


def _with_node(world: World, name: str, change: Callable[[Node], Node]) -> World:
    nodes = {**world.nodes, name: change(world.nodes[name])}
    return dataclasses.replace(world, nodes=nodes)


def _link_down(world: World, event: Event) -> World:
    state = LinkState.SILENT if event.silently else LinkState.DOWN
    return _with_links(world, event, lambda link: dataclasses.replace(link, state=state))


def _with_models(
    world: World, event: Event, change: Callable[[DirectionModel], DirectionModel]
) -> World:
    """Models of the chosen directions and members changed."""

    def sides(
        link: Link, models: Sequence[DirectionModel]
    ) -> tuple[DirectionModel, DirectionModel]:
        forth, back = (
            change(model) if event.source in ("", end) else model
            for model, end in zip(models, (link.a, link.b), strict=True)
        )
        return forth, back

    def changed(link: Link) -> Link:
        members = tuple(
            sides(link, member) if event.member in (None, at) else member
            for at, member in enumerate(link.members)
        )
        if event.member is not None:
            return dataclasses.replace(link, members=members)
        forth, back = sides(link, (link.forward, link.reverse))
        return dataclasses.replace(
            link, forward=forth, reverse=back, members=members, first_costs=link.costs
        )

    return _with_links(world, event, changed)


def _degrade(world: World, event: Event) -> World:
    def worse(model: DirectionModel) -> DirectionModel:
        return dataclasses.replace(
            model,
            delay_ns=model.delay_ns + event.extra_ns,
            loss=1 - (1 - model.loss) * (1 - event.loss) if model.loss else event.loss,
            variation=event.variation or model.variation,
        )

    return _with_models(world, event, worse)


def _queue(world: World, event: Event) -> World:
    swell = Swell(event.extra_ns, event.for_ns or 1)
    return _with_models(world, event, lambda model: dataclasses.replace(model, swell=swell))


def _black_hole(world: World, event: Event) -> World:
    return _with_models(
        world, event, lambda model: dataclasses.replace(model, largest_octets=event.number)
    )


def _mtu(world: World, event: Event) -> World:
    return _with_links(world, event, lambda link: dataclasses.replace(link, mtu=event.number))


def _session_down(world: World, event: Event) -> World:
    return _with_links(world, event, lambda link: dataclasses.replace(link, session=False))


def _prefer(world: World, event: Event) -> World:
    def changed(link: Link) -> Link:
        forth, back = link.preferences
        own = (event.number, back) if link.a == event.node else (forth, event.number)
        return dataclasses.replace(link, preferences=own)

    return _with_links(world, event, changed)


def _prepend(world: World, event: Event) -> World:
    def changed(link: Link) -> Link:
        forth, back = link.prepends
        own = (event.number, back) if link.b == event.node else (forth, event.number)
        return dataclasses.replace(link, prepends=own)

    return _with_links(world, event, changed)


def _withdraw(world: World, event: Event) -> World:
    return _with_node(world, event.node, lambda node: dataclasses.replace(node, announces=False))


def _hijack(world: World, event: Event) -> World:
    def changed(node: Node) -> Node:
        return dataclasses.replace(node, also_announces=(*node.also_announces, event.victim))

    return _with_node(world, event.node, changed)


def _icmp_rate(world: World, event: Event) -> World:
    def changed(node: Node) -> Node:
        return dataclasses.replace(
            node, hop=dataclasses.replace(node.hop, icmp_rate_ns=event.rate_ns)
        )

    return _with_node(world, event.node, changed)


def _silent(world: World, event: Event) -> World:
    return _with_node(
        world,
        event.node,
        lambda node: dataclasses.replace(node, hop=dataclasses.replace(node.hop, silent=True)),
    )


def _feed_dead(world: World, event: Event) -> World:
    which = "stalled_listeners" if event.silently else "cut_listeners"
    before: frozenset[str] = getattr(world, which)
    if which == "cut_listeners":
        return dataclasses.replace(world, cut_listeners=before | {event.listener})
    return dataclasses.replace(world, stalled_listeners=before | {event.listener})


_HOW: dict[EventKind, Callable[[World, Event], World]] = {
    EventKind.LINK_DOWN: _link_down,
    EventKind.DEGRADE: _degrade,
    EventKind.QUEUE: _queue,
    EventKind.PREFER: _prefer,
    EventKind.PREPEND: _prepend,
    EventKind.WITHDRAW: _withdraw,
    EventKind.SESSION_DOWN: _session_down,
    EventKind.HIJACK: _hijack,
    EventKind.ICMP_RATE: _icmp_rate,
    EventKind.SILENT: _silent,
    EventKind.MTU: _mtu,
    EventKind.BLACK_HOLE: _black_hole,
    EventKind.FEED_DEAD: _feed_dead,
}


def links_between(links: Iterable[Link], one: str, other: str) -> tuple[int, ...]:
    """Indices of the links between two nodes."""
    ends = {one, other}
    return tuple(at for at, link in enumerate(links) if {link.a, link.b} == ends)
