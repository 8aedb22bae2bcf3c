"""`pathbudget budget lines`: the lines for a pipeline, with an exit code that can fail a build."""

import os
import sys
import textwrap
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from pathbudget.agents.cli.exits import ExitCode, fail, reports_errors, tell
from pathbudget.agents.cli.lake_lines import (
    DaskOption,
    LakeWish,
    ScratchOption,
    WorkersOption,
    lake_evaluated,
)
from pathbudget.agents.cli.options import (
    DEFAULT_STORE,
    AlwaysValidOption,
    BusyHoursOption,
    CampaignOption,
    CatalogueOption,
    RegionOption,
    Rigour,
    StoreArgument,
    TierOption,
)
from pathbudget.agents.cli.report import evaluated, refuse_unknown
from pathbudget.agents.cli.wording import in_a_line
from pathbudget.analysis.report.selection import Selected, Sites, Wanted, no_such_line, select
from pathbudget.analysis.report.words import connections, figure, interval, ms, percentile
from pathbudget.analysis.results import Carrier, Mode, Verdict

if TYPE_CHECKING:
    from pathbudget.analysis.report.lookup import Lookup
    from pathbudget.analysis.results import BudgetLine, Evaluation

NAMED = 10
"""Failing lines named on stderr; the output has all of them."""


class Format(StrEnum):
    """What the lines can be printed as."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


class Undecided(StrEnum):
    """What an undecided or missing line is worth."""

    WARN = "warn"
    PASS = "pass"  # noqa: S105
    FAIL = "fail"


SiteOption = Annotated[list[str] | None, typer.Option("--site", help="Only this site; repeatable.")]
SitesOption = Annotated[
    Sites | None,
    typer.Option("--sites", help="Of each region. Default: recommended; all with --site."),
]
ModeOption = Annotated[
    list[Mode] | None, typer.Option("--mode", help="Default: the tier's own; repeatable.")
]
TransportOption = Annotated[
    list[Carrier] | None,
    typer.Option("--transport", help="Default: the tier's own; repeatable."),
]
PromptOption = Annotated[
    list[int] | None,
    typer.Option("--prompt", metavar="BYTES", help="Default: the tier's own; repeatable.", min=1),
]
PercentileOption = Annotated[
    list[float] | None,
    typer.Option("--percentile", help="Like 95. Default: the tier's own; repeatable."),
]
AllLinesOption = Annotated[
    bool, typer.Option("--all-lines", help="Every mode, percentile and direction.")
]
FormatOption = Annotated[Format, typer.Option("--format", help="How to print the lines.")]
UndecidedOption = Annotated[
    Undecided,
    typer.Option("--undecided", help="What an undecided line is: a warning, a pass or a fail."),
]


def register_lines(group: typer.Typer) -> None:
    """Add the command."""
    group.command("lines")(lines)


@reports_errors
def lines(
    store: StoreArgument = DEFAULT_STORE,
    catalogue: CatalogueOption = None,
    tier: TierOption = None,
    region: RegionOption = None,
    site: SiteOption = None,
    sites: SitesOption = None,
    mode: ModeOption = None,
    transport: TransportOption = None,
    prompt: PromptOption = None,
    percentile: PercentileOption = None,
    all_lines: AllLinesOption = False,
    campaign: CampaignOption = None,
    format: FormatOption = Format.TABLE,  # noqa: A002
    undecided: UndecidedOption = Undecided.WARN,
    always_valid: AlwaysValidOption = False,
    require_busy_hours: BusyHoursOption = False,
    workers: WorkersOption = None,
    dask: DaskOption = None,
    scratch: ScratchOption = None,
) -> None:
    """Print budget lines; exit 1 when one breaks its allowance.

    Without options: for every tier, the headline line from each region to its recommended site.
    The word lines may be left out. Of a store that memory does not hold: --workers or --dask.
    """
    from pathbudget.analysis.report.lookup import Lookup

    lake = LakeWish(workers, dask, scratch)
    lake.check(always_valid=always_valid, require_busy_hours=require_busy_hours)
    asked = store, catalogue or [], tuple(tier or ()), campaign
    if lake.is_wanted:
        evaluation = lake_evaluated(*asked, lake)
    else:
        evaluation = evaluated(*asked, rigour=Rigour(always_valid, require_busy_hours))
    wanted = Wanted(
        tiers=tuple(tier or ()),
        regions=tuple(region or ()),
        sites=tuple(site or ()),
        which=sites or (Sites.ALL if site else Sites.RECOMMENDED),
        modes=tuple(mode or ()),
        transports=tuple(transport or ()),
        prompts=tuple(prompt or ()),
        percentiles=tuple(percentile or ()),
        all_lines=all_lines,
    )
    _refuse(evaluation, wanted)
    lookup = Lookup(evaluation)
    selected = select(lookup, wanted)
    if not selected.lines:
        raise fail(_why_nothing(lookup, wanted), ExitCode.NOTHING_MEASURED)
    _print(lookup, selected, format)
    _say(selected, format, undecided)
    raise typer.Exit(_exit_code(selected.verdict, undecided))


def _refuse(evaluation: "Evaluation", wanted: Wanted) -> None:
    refuse_unknown("region", wanted.regions, tuple(r.name for r in evaluation.regions))
    refuse_unknown("site", wanted.sites, tuple(s.name for s in evaluation.sites))
    known = {line.percentile for line in evaluation.lines}
    words = tuple(f"{value:g}" for value in sorted(known))
    refuse_unknown("percentile", tuple(f"{value:g}" for value in wanted.percentiles), words)
    sizes = {line.prompt_bytes for line in evaluation.lines} - {0}
    refuse_unknown("prompt", tuple(map(str, wanted.prompts)), tuple(map(str, sorted(sizes))))


def _why_nothing(lookup: "Lookup", wanted: Wanted) -> str:
    if lookup.evaluation.lines and (hint := no_such_line(lookup, wanted)):
        return textwrap.fill(hint, 80)
    if wanted.which is not Sites.RECOMMENDED or not lookup.evaluation.lines:
        return "there is no such budget line; nothing that it could rest on was measured."
    why = [
        textwrap.fill(f"{tier.name}: no site is recommended: {' '.join(choice.reasons)}", 80)
        for tier in lookup.tiers
        if (choice := lookup.chosen(tier.name)) and not choice.sites
    ]
    return "\n".join([*why, "The lines of all sites: --sites all."])


def _exit_code(verdict: Verdict, undecided: Undecided) -> ExitCode:
    broken = verdict is Verdict.FAIL
    doubtful = verdict is Verdict.UNDECIDED and undecided is Undecided.FAIL
    return ExitCode.OBJECTIVE_NOT_MET if broken or doubtful else ExitCode.OK


def _print(lookup: "Lookup", selected: Selected, kind: Format) -> None:
    from pathbudget.analysis.report.line_files import lines_csv, lines_json

    if kind is Format.JSON:
        confidence = lookup.evaluation.provenance.confidence
        typer.echo(lines_json(selected, confidence), nl=False)
    elif kind is Format.CSV:
        typer.echo(lines_csv(selected), nl=False)
    else:
        from pathbudget.agents.cli.line_table import print_tables

        print_tables(lookup, selected, _width(), color=sys.stdout.isatty())


def _width() -> int | None:
    """Of the terminal; a pipe has none, and names are not cut there unless COLUMNS says so."""
    return None if sys.stdout.isatty() or "COLUMNS" in os.environ else 240


def _say(selected: Selected, kind: Format, undecided: Undecided) -> None:
    """Why the exit code is what it is, on stderr, for a build log."""
    failing = _with(selected, Verdict.FAIL)
    if kind is not Format.TABLE:
        for line in failing[:NAMED]:
            tell(in_a_line(f"fail: {_sentence(line)}"))
        if len(failing) > NAMED:
            typer.echo(f"fail: {len(failing) - NAMED} more", err=True)
    open_lines = _with(selected, Verdict.UNDECIDED)
    absent = len(_with(selected, Verdict.NOT_MEASURED)) + len(selected.missing)
    if undecided is Undecided.PASS or not (open_lines or absent):
        return
    word = "warning" if undecided is Undecided.WARN else "fail"
    typer.echo(
        f"{word}: {len(open_lines)} undecided, {absent} not measured (--undecided pass|fail|warn)",
        err=True,
    )


def _with(selected: Selected, verdict: Verdict) -> "list[BudgetLine]":
    return [
        line for line in selected.lines if line.verdict is verdict and line.allowance_ms is not None
    ]


def _sentence(line: "BudgetLine") -> str:
    allowance = figure(line.allowance_ms or 0.0)
    return (
        f"{line.tier}, {line.region} to {line.site}, "
        f"{connections(line.transport, line.mode)} {percentile(line.percentile)}: "
        f"{ms(line.value_ms)} ({interval(line.low_ms, line.high_ms)}), allowance {allowance} ms"
    )
