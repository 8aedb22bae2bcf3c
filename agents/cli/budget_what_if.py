"""`pathbudget budget what-if`: the whole budget before and after a lever, and what that assumes."""

import textwrap
from typing import TYPE_CHECKING, Annotated

import typer

from pathbudget.agents.cli.exits import ExitCode, fail, reports_errors
from pathbudget.agents.cli.options import (
    CampaignOption,
    CatalogueOption,
    RecommendedSiteOption,
    RegionOption,
    SpansOption,
    TermsOption,
    TierOption,
    TracesOption,
    given_of,
    tell_left_out,
)
from pathbudget.agents.cli.whole_options import (
    AllowancesOption,
    Asked,
    CombineOption,
    Format,
    FormatOption,
    MaybeStore,
    Measured,
    PercentileOption,
    measured,
)
from pathbudget.agents.cli.wording import harmless

if TYPE_CHECKING:
    from pathbudget.analysis.whole_budget.results import Combine, WhatIf

LeverOption = Annotated[
    list[str] | None,
    typer.Option("--lever", metavar="NAME[=VALUE]", help="What to change; repeatable."),
]


def register_what_if(group: typer.Typer) -> None:
    """Add the command."""
    group.command("what-if")(what_if)


@reports_errors
def what_if(
    store: MaybeStore = None,
    lever: LeverOption = None,
    catalogue: CatalogueOption = None,
    tier: TierOption = None,
    region: RegionOption = None,
    site: RecommendedSiteOption = None,
    terms: TermsOption = None,
    traces: TracesOption = None,
    span_map: SpansOption = None,
    combine: CombineOption = None,
    percentile: PercentileOption = None,
    campaign: CampaignOption = None,
    allowances: AllowancesOption = False,
    format: FormatOption = Format.TABLE,  # noqa: A002
) -> None:
    """Replay what was measured under a change, or a model of one: before, after, assumptions.

    Levers: mix, prompt, site, pop; token-rate, speculative, chunked-prefill, prefix-cache,
    cached-keys, async-guardrail. Without --lever they are listed with an example each.
    """
    if not lever:
        _list_levers()
        raise typer.Exit
    given = given_of(terms, traces, span_map)
    asked = Asked(
        store=store,
        catalogue=tuple(catalogue or ()),
        tiers=tuple(tier or ()),
        regions=tuple(region or ()),
        sites=tuple(site or ()),
        campaign=campaign,
        percentile=percentile,
        allowances=allowances,
    )
    found = _what_ifs(measured(asked, given), lever, combine)
    if not found:
        raise fail("no site is recommended: name one with --site.", ExitCode.NOTHING_MEASURED)
    if format is Format.JSON:
        from pathbudget.analysis.whole_budget.whole_json import what_ifs_json

        typer.echo(what_ifs_json(found, given.notes), nl=False)
        return
    _print(found)
    tell_left_out(given)


def _list_levers() -> None:
    from pathbudget.agents.cli.whole_table import columns
    from pathbudget.agents.extras import require

    require("analysis", "numpy", "scipy")
    from pathbudget.analysis.whole_budget.levers import LEVERS

    rows = [(one.title, f"--lever {one.example}") for one in LEVERS.values()]
    for line in columns(("what changes", "how it is written"), rows, "<<"):
        typer.echo(line)


def _what_ifs(found: Measured, levers: list[str], combine: "Combine | None") -> "list[WhatIf]":
    from pathbudget.analysis.whole_budget.case import Case
    from pathbudget.analysis.whole_budget.levers import read_lever
    from pathbudget.analysis.whole_budget.what_if import what_ifs

    read = [read_lever(text) for text in levers]
    cases = [
        Case(pair, tier, found.networks, found.given.terms, combine)
        for tier in found.tiers
        for pair in found.pairs(tier.name)
    ]
    return [one for case in cases for one in what_ifs(case, read)]


def _print(found: "list[WhatIf]") -> None:
    """A table per lever; its assumptions and what would confirm it once."""
    from pathbudget.agents.cli.whole_table import change_lines

    for written in dict.fromkeys(one.lever for one in found):
        alike = [one for one in found if one.lever == written]
        typer.echo(f"{written}: {alike[0].title}")
        for line in change_lines(alike):
            typer.echo(f"  {line}")
        _say("Note", [text for one in alike for text in one.notes])
        _say("Assumes", [text for one in alike for text in one.assumptions])
        _say("Would confirm it", [text for one in alike for text in one.confirm])
        typer.echo()


def _say(lead: str, texts: list[str]) -> None:
    for text in dict.fromkeys(texts):
        words = harmless(f"{lead}: {text}")
        typer.echo(textwrap.fill(words, 80, initial_indent="  ", subsequent_indent="    "))
