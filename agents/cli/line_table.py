"""Budget lines as tables of 80 columns: one per tier."""

from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

from pathbudget.agents.cli.wording import in_a_line
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
from pathbudget.analysis.results import BudgetLine, Direction, TierInfo, Verdict

GAP = 2
"""Blanks between columns."""
GROUPED = 5
"""Columns of a table whose names stand above the lines."""
MOST_REASONS = 10
UNKNOWN = (Verdict.UNDECIDED, Verdict.NOT_MEASURED)
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
    for text in cautions(lookup.evaluation, selected.lines):
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
            for text in _reasons(lines):
                console.print(text)
            console.print()
    console.print(_together(selected), soft_wrap=True)


def _several(lines: list[BudgetLine]) -> bool:
    """Whether there is more than the headline line to a pair."""
    return any(not line.headline for line in lines)


def _title(tier: TierInfo, lines: list[BudgetLine]) -> str:
    allowance = f"{tier.name}: network allowance {given(tier.network_allowance_ms)} ms"
    if _several(lines):
        return allowance
    kind = connections(tier.headline_transport, tier.mode)
    return f"{allowance}, {percentile(tier.percentile)}, {kind} connections"


def _table(lookup: Lookup, lines: list[BudgetLine], width: int) -> Table:
    headings = ("ms", f"{lookup.confidence} interval", "n", "verdict")
    if _several(lines):
        return _grouped_table(lines, headings)
    rows = [_cells(line) for line in lines]
    widths = [
        max([len(heading), *(row[at].cell_len for row in rows)])
        for at, heading in enumerate(headings)
    ]
    # Names are cut to fit a terminal, numbers and verdicts never.
    names = max(6, (width - sum(widths) - GAP * (1 + len(headings))) // 2)
    table = _new_table()
    for name in ("region", "site"):
        table.add_column(name, no_wrap=True, overflow="ellipsis", max_width=names)
    _add_headings(table, headings, widths)
    for line, row in zip(lines, rows, strict=True):
        table.add_row(Text(in_a_line(line.region)), Text(in_a_line(line.site)), *row)
    return table


def _grouped_table(lines: list[BudgetLine], headings: tuple[str, ...]) -> Table:
    """Several lines to a pair: the names stand above them, where nothing has to be cut."""
    table = _new_table()
    table.add_column("region to site, lines", overflow="fold")
    _add_headings(table, headings, [max(map(len, column)) for column in _columns(lines, headings)])
    pair = None
    for line in lines:
        if pair != (line.region, line.site):
            pair = line.region, line.site
            table.add_row(Text(in_a_line(" to ".join(pair))))
        table.add_row(Text(f"  {_line_words(line)}"), *_cells(line))
    return table


def _columns(lines: list[BudgetLine], headings: tuple[str, ...]) -> list[list[str]]:
    rows = [[cell.plain for cell in _cells(line)] for line in lines]
    return [list(column) for column in zip(headings, *rows, strict=True)]


def _new_table() -> Table:
    return Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0))


def _add_headings(table: Table, headings: tuple[str, ...], widths: list[int]) -> None:
    for heading, needed in zip(headings, widths, strict=True):
        justify: JustifyMethod = "left" if heading == "verdict" else "right"
        table.add_column(heading, justify=justify, no_wrap=True, min_width=needed)


def _cells(line: BudgetLine) -> list[Text]:
    verdict = Text(line.verdict, style=STYLES[line.verdict])
    if line.allowance_ms is None:
        verdict = Text("none")
    ends = interval(line.low_ms, line.high_ms)
    value = bare_ms(line.value_ms)
    if not line.n:
        value = ends = ""
    return [Text(value), Text(ends), Text(f"{line.n}"), verdict]


def _line_words(line: BudgetLine) -> str:
    """``both tls cold p95``, ``in quic early_data p95 64000B``."""
    size = f" {line.prompt_bytes}B" if line.prompt_bytes else ""
    place = f"{line.transport} {line.mode}"
    return f"{DIRECTIONS[line.direction]} {place} {percentile(line.percentile)}{size}"


def _reasons(lines: list[BudgetLine]) -> list[str]:
    """Why lines are undecided or not measured, each reason once."""
    found: dict[tuple[Verdict, str], list[BudgetLine]] = {}
    for line in lines:
        if line.verdict in UNKNOWN and line.allowance_ms is not None and line.reason:
            found.setdefault((line.verdict, line.reason), []).append(line)
    told = [f"{verdict}{_of(alike)}: {reason}" for (verdict, reason), alike in found.items()]
    more = len(told) - MOST_REASONS
    return told[:MOST_REASONS] + (
        [f"{counted(more, 'more reason')}: --format json"] if more > 0 else []
    )


def _of(alike: list[BudgetLine]) -> str:
    """Which pair a reason is of, where it is of one."""
    pairs = {(line.region, line.site) for line in alike}
    return f" ({' to '.join(pairs.pop())})" if len(pairs) == 1 else ""


def _add_gap(table: Table, region: str, site: str) -> None:
    word = Text("not measured" if site else "no site", style="dim")
    region, site = in_a_line(region), in_a_line(site)
    names = [Text(region), Text(site or "(no site)")]
    if len(table.columns) == GROUPED:
        names = [Text(f"{region} to {site}" if site else f"{region} (no site)")]
    table.add_row(*names, Text(""), Text(""), Text("0"), word)


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
