"""Whole budgets in 80 columns."""

import textwrap
from collections.abc import Iterable, Sequence

import typer

from pathbudget.agents.cli.wording import harmless, in_a_line
from pathbudget.analysis.report.words import bare_ms, figure, interval, ms, percentile, share
from pathbudget.analysis.whole_budget.lost_words import lost_words
from pathbudget.analysis.whole_budget.results import (
    Combination,
    Deadline,
    Figure,
    WhatIf,
    WholeBudget,
    WholeTerm,
)

WIDTH = 80
IN_FULL = 3
LEGEND = (
    "share: its mean in requests about as slow as the percentile; may reach: what its own "
    "percentile may grow to; per ms: what the percentile falls by for each ms off its mean."
)
"""Budgets that are printed term by term; of more one line each."""

VERDICTS = {"pass": "PASSED", "fail": "FAILED", "undecided": "UNDECIDED"}
METHODS = {
    "independent": "independent",
    "joint": "joint",
    "bound": "bound",
    "sum_of_quantiles": "sum of each",
}
SUM_NOTE = "for comparison: neither an estimate nor a bound"


def print_budgets(budgets: Sequence[WholeBudget], *, details: bool) -> None:
    """Term by term where they are few, or wanted; else one line each, by tier."""
    if details or len(budgets) <= IN_FULL:
        for budget in budgets:
            print_budget(budget)
            typer.echo()
        typer.echo(_fit(LEGEND))
        return
    for tier in dict.fromkeys(budget.tier for budget in budgets):
        _print_tier([budget for budget in budgets if budget.tier == tier])


def print_budget(budget: WholeBudget) -> None:
    """All of one budget."""
    typer.echo(_fit(f"{place(budget)}: {outcome(budget)}"))
    p = percentile(budget.percentile)
    heads = ("term", "from", f"own {p}", "share", "may reach", "per ms")
    rows = [_row(term) for term in budget.terms]
    for line in columns(heads, rows, "<<>>>>"):
        typer.echo(f"  {line}")
    for line in _sentences(budget):
        typer.echo(textwrap.fill(line, WIDTH, initial_indent="  ", subsequent_indent="    "))


def place(budget: WholeBudget) -> str:
    """``chat, tokyo to tky-1``; the tier alone where no network was measured."""
    if not budget.region and not budget.site:
        return in_a_line(budget.tier)
    return in_a_line(f"{budget.tier}, {budget.region} to {budget.site}")


def outcome(budget: WholeBudget) -> str:
    """``p95 318 ms of 400 ms, PASSED``, with the interval where anything was sampled."""
    ends = f" ({interval(budget.low_ms, budget.high_ms)})" if budget.n else ""
    value = ms(budget.value_ms) if budget.n else f"{budget.value_ms or 0:,.10g} ms"
    return (
        f"{percentile(budget.percentile)} {value}{ends} of {budget.target_ms:,.10g} ms, "
        f"{VERDICTS[budget.verdict]}"
    )


def _row(term: WholeTerm) -> tuple[str, ...]:
    reach = "any"
    if term.headroom_ms is not None and term.value_ms is not None:
        reach = figure(max(0.0, term.value_ms + term.headroom_ms))
    elif term.stretch is None and term.value_ms is None:
        reach = "-"
    return (
        term.name,
        "assumed" if term.source == "tier" else term.source,
        bare_ms(term.value_ms),
        "-" if term.contribution_ms is None else figure(term.contribution_ms),
        reach,
        f"{term.leverage:.2f}",
    )


def _sentences(budget: WholeBudget) -> Iterable[str]:
    yield harmless(budget.reason)
    if budget.n:
        yield _breach(budget)
    if budget.deadline is not None:
        yield _deadline(budget.deadline, budget)
    if budget.fix_first:
        yield harmless(f"Fix first: {budget.fix_first}: {budget.fix_reason}")
    if budget.n:
        yield "Combined: " + "; ".join(_combination(one) for one in budget.combinations) + "."
    for note in budget.notes:
        yield harmless(f"Note: {note}")


def _breach(budget: WholeBudget) -> str:
    lost = lost_words((term.name, term.origin) for term in budget.terms if term.losses)
    failing = f", {share(budget.failing)} because they {lost}" if budget.failing else ""
    ends = f"{share(budget.breach_low)} to {share(budget.breach_high)}"
    return f"Above the target: {share(budget.breach)} of the requests ({ends}){failing}."


def _deadline(deadline: Deadline, budget: WholeBudget) -> str:
    p = percentile(budget.percentile)
    if deadline.at_percentile_ms is None and deadline.hard_ms is None:
        return "Deadline of the first token: none; the rest alone takes longer than the target."
    hard = f"no request above {_or_none(deadline.hard_ms)}"
    if not budget.n:
        return f"Deadline of the first token: {hard}."
    hard = f"{hard} ({_or_none(deadline.hard_safe_ms)} to be safe)"
    if deadline.at_percentile_ms is None:
        return f"Deadline of the first token: {hard}."
    soft = f"{p} at most {ms(deadline.at_percentile_ms)}"
    safe = _or_none(deadline.at_percentile_safe_ms)
    return f"Deadline of the first token: {soft} ({safe} to be safe), or {hard}."


def _or_none(value: float | None) -> str:
    return "none" if value is None else ms(value)


def _combination(one: Combination) -> str:
    words = f"{METHODS[one.method]} {ms(one.value_ms)}"
    if one.method == "sum_of_quantiles":
        return f"{words} ({SUM_NOTE})"
    return f"{words} ({interval(one.low_ms, one.high_ms)})"


def _print_tier(budgets: Sequence[WholeBudget]) -> None:
    first = budgets[0]
    typer.echo(f"{first.tier}: {percentile(first.percentile)} of {first.target_ms:,.10g} ms")
    heads = ("region", "site", "ms", "interval", "over target", "verdict", "fix first")
    rows = [
        (
            in_a_line(one.region),
            in_a_line(one.site),
            bare_ms(one.value_ms),
            interval(one.low_ms, one.high_ms),
            share(one.breach),
            one.verdict,
            one.fix_first or "-",
        )
        for one in budgets
    ]
    for line in columns(heads, rows, "<<>>><<"):
        typer.echo(f"  {line}")
    for reason in dict.fromkeys(one.reason for one in budgets if one.verdict != "pass"):
        typer.echo(
            textwrap.fill(harmless(reason), WIDTH, initial_indent="  ", subsequent_indent="    ")
        )
    assumed = dict.fromkeys(name for one in budgets for name in one.assumed)
    if assumed and all(one.verdict == "pass" for one in budgets):
        words = f"Assumed at the tier's allowance, not measured: {', '.join(assumed)}."
        typer.echo(textwrap.fill(words, WIDTH, initial_indent="  ", subsequent_indent="    "))
    typer.echo()


def change_lines(found: Sequence[WhatIf]) -> list[str]:
    """For each budget its place and a row per percentile: before, after, the change, verdicts."""
    heads = ("", "before", "after", "interval", "change", "verdict")
    rows: list[tuple[str, ...]] = []
    places: dict[int, str] = {}
    for one in found:
        places[len(rows)] = _places(one)
        for before, after in zip(one.before_figures, one.after_figures, strict=True):
            judged = after.percentile == one.after.percentile
            rows.append(
                (
                    f"  {percentile(after.percentile)}",
                    bare_ms(before.value_ms),
                    bare_ms(after.value_ms),
                    _ends(after, sampled=bool(one.after.n)),
                    _change(before, after),
                    _verdicts(one) if judged else "",
                )
            )
    head, *lines = columns(heads, rows, "<>>>><")
    printed = [head]
    for at, line in enumerate(lines):
        printed += [places[at]] if at in places else []
        printed.append(line)
    return printed


def _places(one: WhatIf) -> str:
    """Where it is, and where the lever took it."""
    moved = one.after.site != one.before.site
    return place(one.before) + (in_a_line(f", then {one.after.site}") if moved else "")


def _ends(one: Figure, *, sampled: bool) -> str:
    return interval(one.low_ms, one.high_ms) if sampled else "-"


def _change(before: Figure, after: Figure) -> str:
    if before.value_ms is None or after.value_ms is None:
        return "-"
    return f"{after.value_ms - before.value_ms:+,.1f}"


def _verdicts(one: WhatIf) -> str:
    before, after = one.before.verdict, one.after.verdict
    return str(after) if before == after else f"{before} to {after}"


def columns(
    heads: Sequence[str], rows: Sequence[Sequence[str]], sides: str, gap: int = 2
) -> list[str]:
    """A table in as few columns as it needs; the first two give way where that is over 78."""
    every = [tuple(heads), *rows]
    widths = [max(len(row[at]) for row in every) for at in range(len(heads))]
    room = WIDTH - 2 - gap * (len(heads) - 1)
    for at in (0, 1):
        over = sum(widths) - room
        if over > 0:
            widths[at] = max(8, widths[at] - over)
    return [
        (" " * gap)
        .join(
            f"{_cut(cell, width):{side}{width}}"
            for cell, width, side in zip(row, widths, sides, strict=True)
        )
        .rstrip()
        for row in every
    ]


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def _fit(text: str) -> str:
    return textwrap.fill(text, WIDTH, subsequent_indent="  ")
