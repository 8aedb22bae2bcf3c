"""Budget lines as tables of 80 columns: one per tier."""

from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

from pathbudget.analysis.report.cautions import cautions
from pathbudget.analysis.report.lookup import Lookup
from pathbudget.analysis.report.selection import Selected
from pathbudget.analysis.report.words import (
    UNBOUNDED,
    bare_ms,
    connections,
    counted,
    given,
    interval,
    percentile,
)
from pathbudget.analysis.results import BudgetLine, Carrier, Direction, TierInfo, Verdict

GAP = 2
"""Blanks between columns."""
STYLES = {
    Verdict.PASS: "green",
    Verdict.FAIL: "bold red",
    Verdict.UNDECIDED: "yellow",
    Verdict.NOT_MEASURED: "dim",
}
DIRECTIONS = {
    Direction.INGRESS: "in",
    Direction.EGRESS: "out",
    Direction.STREAM: "stream",
    Direction.NETWORK: "both",
}


def print_tables(lookup: Lookup, selected: Selected, width: int | None, *, color: bool) -> None:
    """Print one table per tier, then what they say together."""
    console = Console(
        width=width, highlight=False, markup=False, emoji=False, no_color=not color or None
    )
    for text in cautions(lookup.evaluation):
        console.print(Text(f"Caution: {text}", style="yellow"))
    for tier in lookup.tiers:
        lines = [line for line in selected.lines if line.tier == tier.name]
        missing = [gap for gap in selected.missing if gap.tier == tier.name]
        if lines or missing:
            console.print(_title(tier, lines), soft_wrap=True)
            if any(not gap.site for gap in missing) and (
                why := lookup.no_recommendation(tier.name)
            ):
                console.print(f"no recommendation: {why} (the lines: --sites all)")
            table = _table(lookup, lines, console.width)
            for gap in missing:
                _add_gap(table, gap.region, gap.site)
            console.print(table)
            console.print()
    console.print(_together(selected), soft_wrap=True)


def _several(lines: list[BudgetLine]) -> bool:
    """Whether there is more than the headline line to a pair."""
    return any(not line.headline for line in lines)


def _title(tier: TierInfo, lines: list[BudgetLine]) -> str:
    allowance = f"{tier.name}: network allowance {given(tier.network_allowance_ms)} ms"
    if _several(lines):
        return allowance
    kind = connections(tier.transport, tier.mode)
    return f"{allowance}, {percentile(tier.percentile)}, {kind} connections"


def _table(lookup: Lookup, lines: list[BudgetLine], width: int) -> Table:
    several = _several(lines)
    rows = [_row(line, several=several) for line in lines]
    headings = ["ms", f"{lookup.confidence} interval", "n", "verdict"]
    headings = ["line", *headings] if several else headings
    widths = [
        max([len(heading), *(row[2 + at].cell_len for row in rows)])
        for at, heading in enumerate(headings)
    ]
    # Names are cut to fit a terminal, numbers and verdicts never.
    names = max(6, (width - sum(widths) - GAP * (1 + len(headings))) // 2)
    table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0))
    for name in ("region", "site"):
        table.add_column(name, no_wrap=True, overflow="ellipsis", max_width=names)
    for heading, needed in zip(headings, widths, strict=True):
        justify: JustifyMethod = "left" if heading in ("line", "verdict") else "right"
        wide = None if heading == "verdict" else needed
        table.add_column(heading, justify=justify, no_wrap=True, min_width=wide)
    for row in rows:
        table.add_row(*row)
    return table


def _row(line: BudgetLine, *, several: bool) -> list[Text]:
    verdict = Text(line.verdict, style=STYLES[line.verdict])
    if line.allowance_ms is None:
        verdict = Text("none")
    cells = [Text(line.region), Text(line.site)]
    if several:
        cells.append(Text(_line_words(line)))
    ends = interval(line.low_ms, line.high_ms)
    value = bare_ms(line.value_ms)
    if not line.n:
        value = ends = ""
    return [*cells, Text(value), Text(ends), Text(f"{line.n}"), verdict]


def _line_words(line: BudgetLine) -> str:
    """``both cold p95``, ``in quic early_data p95 64000B``."""
    over = f"{line.transport} " if line.transport is Carrier.QUIC else ""
    size = f" {line.prompt_bytes}B" if line.prompt_bytes else ""
    mode = f"{over}{line.mode}"
    return f"{DIRECTIONS[line.direction]} {mode} {percentile(line.percentile)}{size}"


def _add_gap(table: Table, region: str, site: str) -> None:
    cells = [Text(region), Text(site or "(no site)")]
    rest = len(table.columns) - 4
    word = "not measured" if site else "no site"
    table.add_row(*cells, *(Text("") for _ in range(rest)), Text("0"), Text(word, style="dim"))


def _together(selected: Selected) -> str:
    counts = selected.counts
    judged = (Verdict.PASS, Verdict.FAIL, Verdict.UNDECIDED)
    words = [f"{counts[verdict]} {verdict}" for verdict in judged]
    without = sum(not gap.site for gap in selected.missing)
    if absent := counts[Verdict.NOT_MEASURED] + len(selected.missing) - without:
        words.append(f"{absent} {Verdict.NOT_MEASURED}")
    if without:
        words.append(f"{without} without a recommended site")
    unbounded = sum(line.high_ms is None for line in selected.lines if line.n)
    note = f"\n{UNBOUNDED}: too many lost or too few sent to tell." if unbounded else ""
    return f"{counted(sum(counts.values()), 'line')}: {', '.join(words)}.{note}"
