"""The path graph of one series: who stands where, and which flows go from whom to whom. Pure.

Rows are hop limits. The latest trace is drawn in full; what the last change of path took away is
drawn beside it, marked, and what it brought is marked too.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from pathbudget.analysis.routes.as_paths import WILD_WORD
from pathbudget.analysis.routes.canonical import OPEN_WORD
from pathbudget.analysis.routes.model import (
    Granularity,
    PathObservation,
    PathSeries,
    RouteEvent,
    RouteEventKind,
)

WILD = ""
"""Name of the node of those who did not answer."""
CHANGES = frozenset({RouteEventKind.SHIFT, RouteEventKind.FLAP})


class Mark(StrEnum):
    """What the last change of path did with a node or a link."""

    KEPT = "kept"
    NEW = "new"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class Node:
    """One address at one hop limit (1 is the first); `column` counts from the left."""

    limit: int
    address: str
    column: int
    flows: int
    mark: Mark = Mark.KEPT
    rtt_ns: float | None = None
    labels: str = ""
    destination: bool = False

    @property
    def wild(self) -> bool:
        """Whether nobody answered."""
        return self.address == WILD


@dataclass(frozen=True, slots=True)
class Link:
    """So many flows of the latest trace go from one node to another of the next hop limit."""

    limit: int
    start: str
    end: str
    flows: int
    mark: Mark = Mark.KEPT


@dataclass(frozen=True, slots=True)
class PathGraph:
    """Nodes and links, and how many columns they take."""

    series: PathSeries
    nodes: tuple[Node, ...]
    links: tuple[Link, ...]
    flows: int
    changed_unix_ns: int | None = None
    """When the change that is marked had happened."""

    @property
    def rows(self) -> int:
        """Hop limits."""
        return max((one.limit for one in self.nodes), default=0)

    @property
    def columns(self) -> int:
        """Nodes side by side at most."""
        return max((one.column + 1 for one in self.nodes), default=0)


@dataclass(slots=True)
class _Seen:
    """Flows by node and by link, while they are counted."""

    nodes: dict[tuple[int, str], int] = field(default_factory=dict[tuple[int, str], int])
    links: dict[tuple[int, str, str], int] = field(default_factory=dict[tuple[int, str, str], int])
    rtt_ns: dict[tuple[int, str], float] = field(default_factory=dict[tuple[int, str], float])
    labels: dict[tuple[int, str], str] = field(default_factory=dict[tuple[int, str], str])


def path_graph(latest: PathObservation, events: Iterable[RouteEvent] = ()) -> PathGraph:
    """Of the latest trace of a series and its changes so far."""
    seen = _count(latest)
    change = _last_change(latest.series, events)
    marks = _marks(seen, change)
    for key in marks:
        if len(key) == 2:
            seen.nodes.setdefault(key, 0)
        else:
            seen.links.setdefault(key, 0)
    columns = _columns(seen)
    ends = {len(one.hops) for one in latest.flows if one.reached}
    nodes = tuple(
        Node(
            limit=limit,
            address=address,
            column=columns[limit, address],
            flows=flows,
            mark=marks.get((limit, address), Mark.KEPT),
            rtt_ns=seen.rtt_ns.get((limit, address)),
            labels=seen.labels.get((limit, address), ""),
            destination=limit in ends and address == latest.series.address,
        )
        for (limit, address), flows in sorted(seen.nodes.items())
    )
    links = tuple(
        Link(limit, start, end, flows, marks.get((limit, start, end), Mark.KEPT))
        for (limit, start, end), flows in sorted(seen.links.items())
    )
    changed = change.window.by_unix_ns if change and marks else None
    return PathGraph(latest.series, nodes, links, len(latest.flows), changed)


def _count(latest: PathObservation) -> _Seen:
    seen = _Seen()
    last = max((_length(one.hops) for one in latest.flows), default=0)
    for flow in latest.flows:
        before: Sequence[str] = ()
        for limit, hop in enumerate(flow.hops[:last], 1):
            here = sorted(hop) or [WILD]
            for address in here:
                key = (limit, address)
                seen.nodes[key] = seen.nodes.get(key, 0) + 1
                _note(seen, key, flow.hop_rtt_ns, flow.labels)
                for start in before:
                    link = (limit - 1, start, address)
                    seen.links[link] = seen.links.get(link, 0) + 1
            before = here
    return seen


def _length(hops: Sequence[frozenset[str]]) -> int:
    """Without the silence at its end, of which one hop is left to be seen."""
    answered = max((n for n, hop in enumerate(hops, 1) if hop), default=0)
    return min(len(hops), answered + 1)


def _note(
    seen: _Seen,
    key: tuple[int, str],
    rtts: Sequence[float | None],
    labels: Sequence[str],
) -> None:
    index = key[0] - 1
    rtt = rtts[index] if index < len(rtts) else None
    if rtt is not None and key[1] != WILD:
        seen.rtt_ns[key] = min(rtt, seen.rtt_ns.get(key, rtt))
    if index < len(labels) and labels[index]:
        seen.labels[key] = labels[index]


def _last_change(series: PathSeries, events: Iterable[RouteEvent]) -> RouteEvent | None:
    """The latest change of the same series that is known by address and still holds."""
    wanted = [
        one
        for one in events
        if one.series == series
        and one.granularity is Granularity.ADDRESS
        and one.kind in CHANGES
        and one.back is None
    ]
    return max(wanted, key=lambda one: one.window.by_unix_ns, default=None)


Marks = dict[tuple[int, str] | tuple[int, str, str], Mark]


def _marks(seen: _Seen, change: RouteEvent | None) -> Marks:
    """What is new since, and what is gone; only where the new is what the latest trace saw."""
    if change is None:
        return {}
    known_to = _known_to((*change.before, *change.after))
    before, after = _parts(change.before, known_to), _parts(change.after, known_to)
    known = {*seen.nodes, *seen.links}
    marks: Marks = {one: Mark.NEW for one in after - before if one in known}
    gone = {one for one in before - after if one not in known}
    for link in [one for one in gone if len(one) == 3]:  # with whoever stands at its ends
        ends = ((link[0], link[1]), (link[0] + 1, link[2]))
        gone |= {end for end in ends if end not in known}
    return marks | dict.fromkeys(gone, Mark.GONE)


def _known_to(paths: Iterable[tuple[str, ...]]) -> int:
    """Hop limit up to which all of them are known: behind it may be any number of hops."""
    lengths = (path.index(OPEN_WORD) if OPEN_WORD in path else 255 for path in paths)
    return min(lengths, default=255)


def _parts(
    paths: Iterable[tuple[str, ...]], known_to: int
) -> set[tuple[int, str] | tuple[int, str, str]]:
    """Nodes and links of a path set up to a hop limit; silence is neither new nor gone."""
    found: set[tuple[int, str] | tuple[int, str, str]] = set()
    for path in paths:
        before: Sequence[str] = ()
        for limit, word in enumerate(path[:known_to], 1):
            here = () if word == WILD_WORD else word.split("|")
            found |= {(limit, address) for address in here}
            found |= {(limit - 1, start, address) for start in before for address in here}
            before = here
    return found


def _columns(seen: _Seen) -> Mapping[tuple[int, str], int]:
    """Places from the left: below those it comes from (barycentre), then by address."""
    columns: dict[tuple[int, str], int] = {}
    for limit in sorted({limit for limit, _ in seen.nodes}):
        here = [address for number, address in seen.nodes if number == limit]
        places: dict[str, float] = {}
        for address in here:
            sources = [
                columns[limit - 1, start]
                for number, start, end in seen.links
                if (number, end) == (limit - 1, address) and (limit - 1, start) in columns
            ]
            places[address] = sum(sources) / len(sources) if sources else float("inf")
        order = sorted(here, key=lambda one: (places[one], len(one), one))
        columns |= {(limit, address): number for number, address in enumerate(order)}
    return columns
