"""A path graph as SVG: hop by hop from the top, branches side by side, autonomous systems as bands.

No script and no font of its own. Marks differ by shape and by words, colour only repeats them.
"""

import html
from collections.abc import Mapping
from dataclasses import dataclass

from pathbudget.analysis.report.route_graph import Link, Mark, Node, PathGraph
from pathbudget.analysis.report.words import fine_ms

ROW, TOP = 54, 32
LEFT, RIGHT = 30, 6
LETTER, SMALL_LETTER = 6.4, 5.8
"""Width of a letter of an address and of what stands below it, in CSS pixels."""
NARROWEST_COLUMN, WIDEST_COLUMN = 110, 290
BESIDE = 12
"""From the middle of a node to its words."""
RADIUS = 6
THINNEST, THICKEST = 1.4, 6.0
BANDS = ("#e8f1f6", "#f6ece4", "#e9f2ec", "#f1eaf4", "#f5f0de", "#ebeef1", "#f6e9ee", "#e4f1f3")
LONGEST_NAME = 30


@dataclass(frozen=True, slots=True)
class _Sizes:
    column: float
    width: float
    height: float
    columns: int

    def x(self, node: Node, in_row: int) -> float:
        """Rows are centred, so that a diamond looks like one; words stand right of their node."""
        spare = (self.columns - in_row) / 2
        return LEFT + (node.column + spare) * self.column + RADIUS + 4

    def y(self, limit: int) -> float:
        return TOP + (limit - 1) * ROW


Places = dict[tuple[int, str], tuple[float, float]]


def path_svg(graph: PathGraph, names: Mapping[str, str], description: str) -> tuple[str, int]:
    """The drawing, and its width in CSS pixels. `names` as in `RouteReport.hop_names`."""
    sizes = _sizes(graph)
    in_row: dict[int, int] = {}
    for node in graph.nodes:
        in_row[node.limit] = in_row.get(node.limit, 0) + 1
    places: Places = {
        (one.limit, one.address): (sizes.x(one, in_row[one.limit]), sizes.y(one.limit))
        for one in graph.nodes
    }
    parts = [
        *_bands(graph, names, sizes),
        *(_link(one, places, graph.flows) for one in graph.links),
        *(_node(one, places[one.limit, one.address]) for one in graph.nodes),
        *(_limit(limit, sizes) for limit in range(1, graph.rows + 1)),
    ]
    width, height = round(sizes.width), round(sizes.height)
    head = (
        f'<svg class="path" xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" aria-label="{html.escape(description)}">'
    )
    return head + "".join(parts) + "</svg>", width


def _sizes(graph: PathGraph) -> _Sizes:
    address = max((len(one.address) for one in graph.nodes), default=0) * LETTER
    below = max((len(_below(one)) for one in graph.nodes), default=0) * SMALL_LETTER
    needed = max(address, below) + BESIDE + RADIUS + 10
    column = min(WIDEST_COLUMN, max(NARROWEST_COLUMN, needed))
    columns = max(1, graph.columns)
    width = LEFT + columns * column + RIGHT
    return _Sizes(column, max(width, 230), TOP + graph.rows * ROW - 24, columns)


def _bands(graph: PathGraph, names: Mapping[str, str], sizes: _Sizes) -> list[str]:
    """A band per run of hops of one AS. Silence between two hops of one AS belongs to it."""
    rows = [_whose(graph, limit, names) for limit in range(1, graph.rows + 1)]
    for index in range(1, len(rows) - 1):
        if rows[index] is None and rows[index - 1] == rows[index + 1]:
            rows[index] = rows[index - 1]
    order = list(dict.fromkeys(one for one in rows if one))
    parts: list[str] = []
    start = 0
    for index in range(1, len(rows) + 1):
        if index < len(rows) and rows[index] == rows[start]:
            continue
        name = rows[start]
        if name:
            colour = BANDS[order.index(name) % len(BANDS)]
            parts.append(_band(name, colour, start, index, sizes))
        start = index
    return parts


def _whose(graph: PathGraph, limit: int, names: Mapping[str, str]) -> str | None:
    """The AS of all that answer at a hop limit; empty where they differ, None of silence."""
    there = [one for one in graph.nodes if one.limit == limit and not one.wild]
    there = [one for one in there if one.mark is not Mark.GONE] or there
    found = {names.get(one.address, "") for one in there}
    if not there:
        return None
    return found.pop() if len(found) == 1 else ""


def _band(name: str, colour: str, start: int, end: int, sizes: _Sizes) -> str:
    top = sizes.y(start + 1) - 28
    height = (end - start) * ROW - 3
    shown = name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"
    return (
        f'<rect x="{LEFT - 6}" y="{top:.0f}" width="{sizes.width - LEFT + 4:.0f}" '
        f'height="{height}" rx="3" fill="{colour}"/>'
        + _text("as", sizes.width - RIGHT - 2, top + 12, shown)
    )


def _limit(limit: int, sizes: _Sizes) -> str:
    return f'<text class="hop" x="{LEFT - 12}" y="{sizes.y(limit) + 4:.0f}">{limit}</text>'


def _link(link: Link, places: Places, flows: int) -> str:
    (x1, y1), (x2, y2) = places[link.limit, link.start], places[link.limit + 1, link.end]
    share = link.flows / flows if flows else 0.0
    wild = "" in (link.start, link.end)
    thick = THINNEST + (THICKEST - THINNEST) * share * (0.3 if wild else 1)
    bend = (y2 - y1) * 0.45
    title = _link_title(link, flows)
    return (
        f'<path class="link {link.mark}{" wild" * wild}" stroke-width="{thick:.1f}" '
        f'd="M{x1:.1f} {y1:.1f}C{x1:.1f} {y1 + bend:.1f} {x2:.1f} {y2 - bend:.1f} '
        f'{x2:.1f} {y2:.1f}"><title>{html.escape(title)}</title></path>'
    )


def _link_title(link: Link, flows: int) -> str:
    ends = f"{link.start or 'nobody answers'} > {link.end or 'nobody answers'}"
    said = {Mark.NEW: ", new", Mark.GONE: ", gone", Mark.KEPT: ""}[link.mark]
    return f"{ends}: {link.flows} of {flows} flows{said}"


def _node(node: Node, place: tuple[float, float]) -> str:
    x, y = place
    name = "no answer" if node.wild else node.address
    words = [_shape(node, x, y)]
    words.append(_text("address", x + BESIDE, y + 1, name))
    if below := _below(node):
        words.append(_text(f"below {node.mark}", x + BESIDE, y + 14, below))
    return "".join(words)


def _below(node: Node) -> str:
    """Its least round trip, its label, and what the last change did with it."""
    words = [] if node.rtt_ns is None else [fine_ms(node.rtt_ns / 1e6)]
    if node.labels:
        words.append(f"MPLS {node.labels.split('/')[0]}")
    if node.mark is not Mark.KEPT:
        words.append(str(node.mark))
    return " · ".join(words)


def _shape(node: Node, x: float, y: float) -> str:
    if node.destination:
        side = 2 * RADIUS
        return (
            f'<rect class="node {node.mark}" x="{x - RADIUS:.1f}" y="{y - RADIUS:.1f}" '
            f'width="{side}" height="{side}"/>'
        )
    wild = " wild" * node.wild
    return f'<circle class="node {node.mark}{wild}" cx="{x:.1f}" cy="{y:.1f}" r="{RADIUS}"/>'


def _text(kind: str, x: float, y: float, text: str) -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{html.escape(text)}</text>'
