"""The demo's answer on a terminal of 80 columns."""

from collections.abc import Iterable

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pathbudget.analysis.results import (
    BudgetLine,
    Evaluation,
    Finding,
    Objective,
    Recommendation,
    TierInfo,
    Verdict,
)

STYLES = {Verdict.PASS: "green", Verdict.FAIL: "red", Verdict.UNDECIDED: "yellow"}


def show(evaluation: Evaluation, console: Console) -> None:
    """Budget tables, one per tier, then the recommended sites."""
    for tier in evaluation.tiers:
        console.print(_budget_table(evaluation, tier))
    console.print("[bold]Recommended sites[/] (exact choice on the upper interval ends, p-median)")
    for tier in evaluation.tiers:
        for one in evaluation.recommendations:
            if one.tier == tier.name and one.objective is Objective.P_MEDIAN and one.sites:
                console.print(_recommendation(one, tier), highlight=False)
    for kind in dict.fromkeys(finding.kind for finding in evaluation.findings):
        found = [finding for finding in evaluation.findings if finding.kind is kind]
        more = f" ({len(found) - 1} more like it in the report)" if len(found) > 1 else ""
        console.print(f"Note: {_where(found[0])}{found[0].text}{more}", style="dim")


def _budget_table(evaluation: Evaluation, tier: TierInfo) -> Table:
    title = (
        f"{tier.title} ({tier.name}): network p{tier.percentile:g} in ms, {tier.mode} connection, "
        f"allowance {tier.network_allowance_ms:g} ms"
    )
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    table.add_column("region", no_wrap=True)
    for site in evaluation.sites:
        table.add_column(site.name, max_width=15, overflow="fold")
    lines = {(line.region, line.site): line for line in _headlines(evaluation.lines, tier.name)}
    for region in evaluation.regions:
        cells = [_cell(lines.get((region.name, site.name))) for site in evaluation.sites]
        table.add_row(region.name, *cells)
    return table


def _headlines(lines: Iterable[BudgetLine], tier: str) -> list[BudgetLine]:
    return [line for line in lines if line.headline and line.tier == tier]


def _cell(line: BudgetLine | None) -> Text:
    if line is None:
        return Text("not measured")
    cell = Text(_ms(line.value_ms) + " ")
    cell.append(line.verdict.value, style=STYLES[line.verdict])
    cell.append(f"\n{_ms(line.low_ms)}..{_ms(line.high_ms, 'no limit')} n={line.n}", style="dim")
    return cell


def _recommendation(one: Recommendation, tier: TierInfo) -> str:
    sites = " + ".join(one.sites)
    cost = "unbounded" if one.value is None else f"{one.value:.1f} ms"
    margin = "no other choice"
    if one.next_best_sites:
        gap = "unbounded" if one.margin is None else f"{one.margin:.1f} ms"
        margin = f"{gap} better than {' + '.join(one.next_best_sites)}"
    word = "decided" if one.decided else "undecided"
    return f"  {tier.name:9}{one.k}  [bold]{sites}[/]\n             mean {cost}, {margin}; {word}"


def _where(finding: Finding) -> str:
    place = " to ".join(name for name in (finding.region, finding.site) if name)
    return f"{place}: " if place and place not in finding.text else ""


def _ms(value: float | None, absent: str = "unbounded") -> str:
    """A column takes 15 characters: ``113.6..no limit``."""
    return absent if value is None else f"{value:.1f}"
