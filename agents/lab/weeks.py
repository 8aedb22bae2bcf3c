"""Weeks of random trouble by seed: other times, kinds and places each time, one after the other.

For judging what finds trouble: every event does something (or is a kind that should alarm nobody),
and none begins before the one before it is over and the routes have settled.
"""

import contextlib
import dataclasses
import random
from collections.abc import Callable, Iterator

from pathbudget.agents.lab.event import Event, EventKind
from pathbudget.agents.lab.events import applied, links_between
from pathbudget.agents.lab.ledger import changed_pairs, has_moved
from pathbudget.agents.lab.topology import NodeKind
from pathbudget.agents.lab.world import World
from pathbudget.probes.errors import LabError

SECOND = 1_000_000_000
LENGTH_NS = 110 * SECOND
CALM_NS = 8 * SECOND
"""Before the first event, after the last, and (halved) between two."""
LASTS_NS = (6 * SECOND, 12 * SECOND)
SICK_NS = 24 * SECOND
"""A sick member stays so for that much longer: it is noticed by the losses of its own flows alone,
and a real week would have it for hours (docs/link-health.md: how long it takes)."""
ATTEMPTS = 200
LEAST_NS = 3_000_000
"""What moving to another way costs or saves one pair at least."""

Draw = Callable[[World, random.Random], Event]


def random_week(
    world: World, seed: int, *, length_ns: int = LENGTH_NS, kinds: tuple[EventKind, ...] = ()
) -> World:
    """The world with other events. `kinds`: which ones, in any order; empty: one of each that the
    world allows. All of it takes `length_ns`, and `SICK_NS` more for each sick member.

    Raises LabError where the world has no place for one of them.
    """
    drawn = random.Random(f"week {seed}")
    calm = dataclasses.replace(world, events=())
    wanted = list(kinds or kinds_for(world))
    drawn.shuffle(wanted)
    share = (length_ns - 2 * CALM_NS) // max(1, len(wanted))
    events: list[Event] = []
    later = 0
    for number, kind in enumerate(wanted):
        lasts = min(drawn.randint(*LASTS_NS), share - CALM_NS // 2)
        if lasts < SECOND:
            raise LabError(f"{len(wanted)} events do not go into {length_ns // SECOND} s")
        begin = CALM_NS + number * share + drawn.randint(0, share - CALM_NS // 2 - lasts)
        event = _draw(calm, kind, drawn)
        longer = SICK_NS if event.member is not None else 0
        events.append(dataclasses.replace(event, at_ns=begin + later, for_ns=lasts + longer))
        later += longer
    return dataclasses.replace(calm, events=tuple(events))


def kinds_for(world: World) -> Iterator[EventKind]:
    """What can happen to a world."""
    yield from (EventKind.LINK_DOWN, EventKind.DEGRADE, EventKind.QUEUE, EventKind.ICMP_RATE)
    if world.bgp:
        yield from (EventKind.PREFER, EventKind.WITHDRAW, EventKind.SESSION_DOWN)
    if world.listeners:
        yield EventKind.FEED_DEAD
    if any(link.members for link in world.links):
        yield EventKind.DEGRADE  # of a member


def _draw(calm: World, kind: EventKind, drawn: random.Random) -> Event:
    for _ in range(ATTEMPTS):
        event = DRAWS[kind](calm, drawn)
        if event.kind in HARMLESS or _is_felt(calm, event):
            return event
    raise LabError(f"no place in this world for an event of kind {kind}")


def _is_felt(calm: World, event: Event) -> bool:
    """Whether there is something to find, and it is what the kind promises."""
    after = applied(calm, event)
    pairs = list(changed_pairs(calm, after))
    if event.kind is EventKind.WITHDRAW:
        return bool(pairs)
    delays = [(_delay_ns(calm, pair), _delay_ns(after, pair)) for pair in pairs]
    if any(late is None for _, late in delays):
        return False
    if event.kind in MOVING:
        return any(
            early and late and abs(late - early) >= LEAST_NS and has_moved(calm, after, pair)
            for pair, (early, late) in zip(pairs, delays, strict=True)
        )
    return bool(pairs)


def _delay_ns(world: World, pair: tuple[str, str]) -> int | None:
    """There and back, None where packets do not arrive."""
    with contextlib.suppress(LookupError):
        way = [*world.path(*pair), *world.path(*pair[::-1])]
        return sum(step.models[0].delay_ns for step in way)
    return None


MOVING = (EventKind.LINK_DOWN, EventKind.PREFER, EventKind.SESSION_DOWN)
HARMLESS = (EventKind.ICMP_RATE, EventKind.FEED_DEAD)


def _any_link(world: World, drawn: random.Random) -> int:
    return drawn.randrange(len(world.links))


def _link_down(world: World, drawn: random.Random) -> Event:
    return Event(EventKind.LINK_DOWN, 0, links=(_any_link(world, drawn),))


def _degrade(world: World, drawn: random.Random) -> Event:
    """A sick member where there are bundles, every other time; else more delay in one direction."""
    bundles = [at for at, link in enumerate(world.links) if link.members]
    if bundles and drawn.random() < 0.5:
        link = drawn.choice(bundles)
        member = drawn.randrange(len(world.links[link].members))
        return Event(EventKind.DEGRADE, 0, links=(link,), member=member, loss=0.03)
    link = _any_link(world, drawn)
    source = drawn.choice((world.links[link].a, world.links[link].b))
    extra = drawn.randint(4, 15) * 1_000_000
    return Event(EventKind.DEGRADE, 0, links=(link,), source=source, extra_ns=extra)


def _queue(world: World, drawn: random.Random) -> Event:
    link = _any_link(world, drawn)
    source = drawn.choice((world.links[link].a, world.links[link].b))
    peak = drawn.randint(5, 15) * 1_000_000
    return Event(EventKind.QUEUE, 0, SECOND, links=(link,), source=source, extra_ns=peak)


def _icmp_rate(world: World, drawn: random.Random) -> Event:
    router = drawn.choice(world.of_kind(NodeKind.ROUTER)).name
    return Event(EventKind.ICMP_RATE, 0, node=router, rate_ns=SECOND)


def _prefer(world: World, drawn: random.Random) -> Event:
    name = drawn.choice([*world.regions, *world.sites])
    neighbour = drawn.choice(world.passes[name]).destination
    links = links_between(world.links, name, neighbour)
    return Event(EventKind.PREFER, 0, links=links, node=name, neighbour=neighbour, number=300)


def _withdraw(world: World, drawn: random.Random) -> Event:
    return Event(EventKind.WITHDRAW, 0, node=drawn.choice(world.sites))


def _session_down(world: World, drawn: random.Random) -> Event:
    return Event(EventKind.SESSION_DOWN, 0, links=(_any_link(world, drawn),))


def _feed_dead(world: World, drawn: random.Random) -> Event:
    listener = drawn.choice(world.listeners).name
    return Event(EventKind.FEED_DEAD, 0, listener=listener, silently=drawn.random() < 0.5)


DRAWS: dict[EventKind, Draw] = {
    EventKind.LINK_DOWN: _link_down,
    EventKind.DEGRADE: _degrade,
    EventKind.QUEUE: _queue,
    EventKind.ICMP_RATE: _icmp_rate,
    EventKind.PREFER: _prefer,
    EventKind.WITHDRAW: _withdraw,
    EventKind.SESSION_DOWN: _session_down,
    EventKind.FEED_DEAD: _feed_dead,
}
