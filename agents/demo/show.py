"""The demo's answer on a terminal of 80 columns."""

import textwrap
from collections.abc import Iterable

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pathbudget.analysis.report.cautions import cautions
from pathbudget.analysis.report.words import NO_LIMIT_MEANS, counted, share
from pathbudget.analysis.results import (
    BudgetLine,
    Evaluation,
    Finding,
    Objective,
    Recommendation,
    TierInfo,
    Verdict,
)

STYLES = {
    Verdict.PASS: "green",
    Verdict.FAIL: "red",
    Verdict.UNDECIDED: "yellow",
    Verdict.NOT_MEASURED: "dim",
}
NO_LIMIT = "∞"
"""*No limit* in a cell of few characters; the line below the tables says so."""
WHOLE = 1 - 1e-9


def show(evaluation: Evaluation, console: Console) -> None:
    """What weakens the numbers, budget tables, one per tier, then the recommended sites."""
    for text in cautions(evaluation):
        console.print(Text(f"Caution: {text}", style="bold yellow"))
    for tier in evaluation.tiers:
        console.print(_budget_table(evaluation, tier))
    headlines = [line for line in evaluation.lines if line.headline and line.n]
    if any(line.high_ms is None for line in headlines):
        console.print(Text(f"{NO_LIMIT}: no limit: {NO_LIMIT_MEANS}.", style="dim"))
    console.print("[bold]Recommended sites[/] (exact choice on the upper interval ends, p-median)")
    for tier in evaluation.tiers:
        every = [
            one
            for one in evaluation.recommendations
            if one.tier == tier.name and one.objective is Objective.P_MEDIAN
        ]
        for one in every:
            if one.sites:
                console.print(_recommendation(one, tier), highlight=False)
        if without := [one for one in every if not one.sites]:
            console.print(_no_recommendation(without, tier), highlight=False)
    for kind in dict.fromkeys(finding.kind for finding in evaluation.findings):
        found = [finding for finding in evaluation.findings if finding.kind is kind]
        more = f" ({len(found) - 1} more like it in the report)" if len(found) > 1 else ""
        console.print(Text(f"Note: {_where(found[0])}{found[0].text}{more}", style="dim"))


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
    if line is None or not line.n:
        return Text("not measured", style="dim")
    cell = Text(_ms(line.value_ms) + " ")
    cell.append(line.verdict.value, style=STYLES[line.verdict])
    cell.append(f"\n{_ms(line.low_ms)}..{_ms(line.high_ms)} n={line.n}", style="dim")
    return cell


def _recommendation(one: Recommendation, tier: TierInfo) -> Text:
    """Which sites, then the cost and what it is a mean of."""
    text = Text(f"  {tier.name:9}{one.k}  ")
    text.append(" + ".join(one.sites), style="bold")
    word = "decided" if one.decided else "undecided"
    return text.append(_indented(f"mean {_cost(one)}, {_margin(one)}; {word}{_only(one)}"))


def _no_recommendation(some: list[Recommendation], tier: TierInfo) -> Text:
    """All of a tier at once, with the reason of the largest choice."""
    largest = max(some, key=lambda one: one.k)
    sizes = ", ".join(f"{one.k}" for one in some)
    why = _indented(f"no recommendation: {largest.reasons[0]}")
    return Text(f"  {tier.name:9}{sizes}{why}")


def _indented(text: str) -> str:
    """On lines of their own below the sites, within 80 columns."""
    return "\n" + textwrap.indent(textwrap.fill(text, 66, break_on_hyphens=False), " " * 13)


def _cost(one: Recommendation) -> str:
    if one.value is None:
        return "no limit"
    served = "" if one.served_share > WHOLE else f" of the {share(one.served_share)} served"
    return f"{one.value:.1f} ms{served}"


def _margin(one: Recommendation) -> str:
    others = " + ".join(one.next_best_sites)
    if not others:
        return f"no other choice of {counted(one.k, 'site')}"
    if one.margin is not None:
        return f"{one.margin:.1f} ms better than {others}"
    return f"not comparable with {others} ({share(one.next_best_served_share)} served)"


def _only(one: Recommendation) -> str:
    """A decision on less than all traffic says so."""
    return "" if one.measured_share > WHOLE else f", for the {share(one.measured_share)} measured"


def _where(finding: Finding) -> str:
    place = " to ".join(name for name in (finding.region, finding.site) if name)
    return f"{place}: " if place and place not in finding.text else ""


def _ms(value: float | None) -> str:
    """A column takes 15 characters: ``113.6 undecided``, ``95.3..∞ n=1000``."""
    return NO_LIMIT if value is None else f"{value:.1f}"
