"""Tables of a world for the terminal, at most 80 columns wide."""

from collections.abc import Sequence

from pathbudget.agents.lab.topology import NodeKind
from pathbudget.agents.lab.truth import truth
from pathbudget.agents.lab.world import World
from pathbudget.probes.record import AddressFamily

WIDTH = 80
LONGEST_NAME = 24


def node_table(world: World) -> str:
    """What is in a world: a count, then a line per node."""
    counts = ", ".join(f"{len(world.of_kind(kind))} {kind}s" for kind in NodeKind)
    rows = [["node", "kind", "carrier", "IPv4", "IPv6"]]
    rows += [
        [
            _short(node.name),
            node.kind.value,
            _short(node.carrier, 12),
            world.address_of(node.name),
            world.address_of(node.name, AddressFamily.IPV6),
        ]
        for node in world.nodes.values()
    ]
    return f"{counts}, {len(world.links)} links: no fault.\n\n" + columns(rows, left=5)


def truth_table(world: World) -> str:
    """Round trips that the definitions imply, in ms, with the routers on the way there."""
    rows = [["region", "site", "min", "p50", "p95", "p99", "loss %", "hops"]]
    for (region, site), true in truth(world).items():
        figures = [true.minimum_ms, *(true.quantile_ms(share) for share in (0.5, 0.95, 0.99))]
        hops = f"{len(world.path(region, site))}+{len(world.path(site, region))}"
        rows.append(
            [
                _short(region, 18),
                _short(site, 21),
                *(f"{figure:.2f}" for figure in figures),
                f"{100 * true.loss:.3f}",
                hops,
            ]
        )
    return (
        "ICMP echo of 84 octets, round trip in ms; hops there+back\n\n"
        + columns(rows, left=2)
        + "\n\nOf answered echoes, with empty queues. docs/lab.md says how it is computed."
    )


def columns(rows: Sequence[Sequence[str]], *, left: int) -> str:
    """Rows in columns; the first `left` are flush left, the others flush right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            cell.ljust(width) if index < left else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    return "\n".join(line.rstrip()[:WIDTH] for line in lines)


def _short(text: str, longest: int = LONGEST_NAME) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "\N{HORIZONTAL ELLIPSIS}"
