"""What really happened to a lab while it played, for judging what others say about it.

Written as JSON. Wall-clock times are of CLOCK_REALTIME, the clock of packet stamps. Paths are what
traceroutes over IPv4 can show, on the preferred way; round trips are those of `truth.py`.
"""

import contextlib
from collections.abc import Iterator

import msgspec

from pathbudget.agents.lab.bgp_routes import best_routes, speaks
from pathbudget.agents.lab.event import ROUTING, Event, EventKind
from pathbudget.agents.lab.events import Moment
from pathbudget.agents.lab.report import Stall
from pathbudget.agents.lab.topology import LinkPass
from pathbudget.agents.lab.truth import truth
from pathbudget.agents.lab.world import World


class Happening(msgspec.Struct, frozen=True):
    """One change: when it began, was done, and had settled.

    No packet noticed before `began`; everything ordered was carried out by `done`; `settled` is
    when all kernels forwarded as expected, None where routes did not change or did not get there.
    """

    began_unix_ns: int
    done_unix_ns: int
    settled_unix_ns: int | None = None


class State(msgspec.Struct, frozen=True):
    """One pair before or after. `nodes` empty: packets do not arrive; then no round trip."""

    nodes: tuple[str, ...]
    addresses: tuple[str, ...]
    as_path: tuple[int, ...]
    back: tuple[str, ...]
    """Nodes on the way back."""
    paths: int
    """How many ways there are."""
    rtt_ms: float | None
    """Median of answered echoes, the peak of swelling queues included."""
    minimum_ms: float | None
    loss: float


class Effect(msgspec.Struct, frozen=True):
    """What an event did to one pair of region and site."""

    region: str
    site: str
    before: State
    after: State
    moved: bool
    """Whether packets take another way, there or back."""


class Entry(msgspec.Struct, frozen=True):
    """One event of the world file."""

    number: int
    """Its place in the file, from 1."""
    kind: str
    subject: str
    planned_at_ns: int
    planned_for_ns: int | None
    causes: tuple[str, ...]
    """What an incident that explains it may rightly be called (`Cause` of the analysis); empty:
    nothing that anybody should be alarmed about."""
    effects: tuple[Effect, ...]
    start: Happening | None = None
    """None: it did not come to that."""
    end: Happening | None = None


class Ledger(msgspec.Struct, frozen=True):
    """A whole play."""

    seed: int
    began_unix_ns: int
    ended_unix_ns: int
    entries: tuple[Entry, ...]
    stalls: tuple[Stall, ...] = ()
    """When the lab itself was late, by the host's doing: packets felt that as well."""
    error_p99_us: float = 0.0
    """How late its deliveries were at the 99th percentile (`LabReport`)."""

    def encode(self) -> bytes:
        """As JSON for people and programs."""
        return msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n"

    @classmethod
    def decode(cls, octets: bytes) -> "Ledger":
        """Raises msgspec.DecodeError."""
        return msgspec.json.decode(octets, type=cls)


def planned(world: World, moments: list[Moment]) -> list[Entry]:
    """An entry for every event, before anything has happened."""
    began = {number: moment for moment in moments for number in moment.begins}
    entries: list[Entry] = []
    for number, event in enumerate(world.events):
        effects = tuple(effects_of(began[number].before, began[number].after))
        entries.append(
            Entry(
                number=number + 1,
                kind=event.kind.value,
                subject=subject_of(world, event),
                planned_at_ns=event.at_ns,
                planned_for_ns=event.for_ns,
                causes=causes_of(event, effects),
                effects=effects,
            )
        )
    return entries


def effects_of(before: World, after: World) -> Iterator[Effect]:
    """What differs for pairs that notice."""
    for pair in changed_pairs(before, after):
        one, other = state_of(before, pair), state_of(after, pair)
        yield Effect(*pair, one, other, has_moved(before, after, pair))


def changed_pairs(before: World, after: World) -> Iterator[tuple[str, str]]:
    """Pairs for which anything differs that an echo or traceroute could notice."""
    for region in before.regions:
        for site in before.sites:
            if _met(before, (region, site)) != _met(after, (region, site)):
                yield region, site


def has_moved(before: World, after: World, pair: tuple[str, str]) -> bool:
    """Whether packets of a pair take another way, there or back."""
    return _ways(before, pair) != _ways(after, pair)


def state_of(world: World, pair: tuple[str, str]) -> State:
    """How a pair fares in a world."""
    states: dict[tuple[str, str], State] = world.derived.setdefault("states", {})
    if pair not in states:
        states[pair] = _state_of(world, pair)
    return states[pair]


def _state_of(world: World, pair: tuple[str, str]) -> State:
    region, site = pair
    there, back = _way(world, region, site), _way(world, site, region)
    if there is None or back is None:
        nodes = tuple(step.destination for step in there or ())
        addresses = tuple(world.answer_of(step) for step in there or ())
        return State(nodes, addresses, _as_path(world, pair), (), 0, None, None, 1.0)
    true = truth(world, pairs=[pair])[pair]
    peak = sum(
        model.swell.peak_ns for step in (*there, *back) for model in step.models[:1] if model.swell
    )
    lost = true.loss >= 1
    return State(
        nodes=tuple(step.destination for step in there),
        addresses=tuple(world.answer_of(step) for step in there),
        as_path=_as_path(world, pair),
        back=tuple(step.destination for step in back),
        paths=len(world.ways(region, site)),
        rtt_ms=None if lost else round(true.quantile_ms(0.5) + peak / 1e6, 6),
        minimum_ms=None if lost else round(true.minimum_ms, 6),
        loss=round(true.loss, 9),
    )


def _way(world: World, source: str, destination: str) -> list[LinkPass] | None:
    with contextlib.suppress(LookupError):
        return world.path(source, destination)
    return None


def _ways(world: World, pair: tuple[str, str]) -> tuple[object, ...]:
    """Links and nodes of the preferred ways and the sets of all."""

    def links(source: str, destination: str) -> object:
        with contextlib.suppress(LookupError):
            return frozenset(
                tuple(step.link for step in way) for way in world.ways(source, destination)
            )
        return None

    return links(*pair), links(*pair[::-1])


def _met(world: World, pair: tuple[str, str]) -> tuple[object, ...]:
    """Everything that packets of a pair meet."""

    def steps(source: str, destination: str) -> object:
        with contextlib.suppress(LookupError):
            return [
                [(step.link, step.models, world.links[step.link].mtu) for step in way]
                for way in world.ways(source, destination)
            ]
        return None

    return steps(*pair), steps(*pair[::-1])


def _as_path(world: World, pair: tuple[str, str]) -> tuple[int, ...]:
    """As the region has it by BGP, prepends apart; without BGP, of the nodes on the way."""
    region, site = pair
    if world.bgp and speaks(world, region):
        route = best_routes(world, site).get(region)
        numbers = list(route.as_path) if route else []
    else:
        way = _way(world, region, site) or []
        numbers = [world.nodes[step.destination].asn or 0 for step in way]
    return tuple(
        number for at, number in enumerate(numbers) if number and numbers[at - 1 : at] != [number]
    )


def subject_of(world: World, event: Event) -> str:
    """What an event is about, for a person."""
    if event.kind is EventKind.HIJACK:
        return f"{event.node} announces {event.victim}"
    if event.kind is EventKind.FEED_DEAD:
        return event.listener
    if event.node:
        return f"{event.node} by {event.neighbour}" if event.neighbour else event.node
    first = world.links[event.links[0]]
    ends = (first.b, first.a) if event.source == first.b else (first.a, first.b)
    text = f"{ends[0]} {'>' if event.source else '-'} {ends[1]}"
    text += f" ({first.name})" if first.name and len(event.links) == 1 else ""
    return text + (f", member {event.member + 1}" if event.member is not None else "")


def causes_of(event: Event, effects: tuple[Effect, ...]) -> tuple[str, ...]:
    """Words of `analysis.routes.model.Cause` that are right for an event."""
    fixed = {
        EventKind.FEED_DEAD: ("feed",),
        EventKind.ICMP_RATE: (),
        EventKind.SILENT: (),
        EventKind.MTU: (),
        EventKind.BLACK_HOLE: ("black_hole",) if effects else (),
        EventKind.QUEUE: ("queue",) if effects else (),
        EventKind.HIJACK: ("origin", "withdrawn", "outage"),
    }
    if event.kind in fixed:
        return fixed[event.kind]
    if not effects:
        return ("routing_only",) if event.kind in ROUTING else ()
    if event.kind is EventKind.DEGRADE:
        return _of_degradation(event)
    if any(effect.after.rtt_ms is None for effect in effects):
        return ("withdrawn", "outage")
    moved = ("path_moved",) if any(effect.moved for effect in effects) else ("member", "loss")
    return (*moved, "flap") if event.for_ns is not None else moved


def _of_degradation(event: Event) -> tuple[str, ...]:
    if event.member is not None:
        return ("member",)
    moved = ("level",) if event.extra_ns or event.variation else ()
    return (*moved, "loss") if event.loss else moved
