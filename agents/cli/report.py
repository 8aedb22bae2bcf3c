"""`pathbudget report`: what a store holds as one page for people who decide."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pathbudget.agents.cli.exits import ExitCode, fail, reports_errors
from pathbudget.agents.cli.measured_store import need_store, no_sample
from pathbudget.agents.cli.options import (
    DEFAULT_STORE,
    AlwaysValidOption,
    BusyHoursOption,
    CampaignOption,
    CatalogueOption,
    Rigour,
    SpansOption,
    StoreArgument,
    TermsOption,
    TierOption,
    TracesOption,
    given_of,
    tell_left_out,
    tell_misplaced,
)
from pathbudget.agents.cli.outputs import check_outputs, is_stdout, write_whole
from pathbudget.agents.cli.wording import in_a_line

if TYPE_CHECKING:
    from pathbudget.agents.routes.evaluation import RouteWish
    from pathbudget.analysis.results import Evaluation
    from pathbudget.analysis.routes.route_report import RouteReport
    from pathbudget.analysis.whole_budget.terms import Term
    from pathbudget.sites.catalogue import Catalogue
    from pathbudget.sites.prefixes import PrefixTable

OutputOption = Annotated[
    list[Path] | None,
    typer.Option("--output", "-o", help="File to write, - for stdout; repeatable."),
]
TitleOption = Annotated[str, typer.Option("--title", help="Title of the report.")]
PrefixesOption = Annotated[
    Path | None,
    typer.Option("--prefixes", metavar="FILE", help="Prefix table: whose each address is."),
]
ScaleOption = Annotated[
    float,
    typer.Option("--time-scale", min=0.001, max=10, help="For labs in which time is compressed."),
]


class Format(StrEnum):
    """What a report can be written as."""

    HTML = "html"
    MARKDOWN = "markdown"
    JSON = "json"


FormatOption = Annotated[
    Format | None, typer.Option("--format", help="Default: by the suffix of each output.")
]

SUFFIXES = {
    ".html": Format.HTML,
    ".htm": Format.HTML,
    ".md": Format.MARKDOWN,
    ".markdown": Format.MARKDOWN,
    ".json": Format.JSON,
}
DEFAULT_NAMES = {
    Format.HTML: "report.html",
    Format.MARKDOWN: "report.md",
    Format.JSON: "report.json",
}


def register(application: typer.Typer) -> None:
    """Add the command."""
    application.command(name="report")(report)


@reports_errors
def report(
    store: StoreArgument = DEFAULT_STORE,
    catalogue: CatalogueOption = None,
    tier: TierOption = None,
    campaign: CampaignOption = None,
    output: OutputOption = None,
    format: FormatOption = None,  # noqa: A002
    title: TitleOption = "",
    prefixes: PrefixesOption = None,
    terms: TermsOption = None,
    traces: TracesOption = None,
    span_map: SpansOption = None,
    always_valid: AlwaysValidOption = False,
    require_busy_hours: BusyHoursOption = False,
    time_scale: ScaleOption = 1.0,
) -> None:
    """Write a report on what a store holds: one HTML file, Markdown or JSON.

    The HTML opens with no network. Several outputs in one go: repeat --output; the suffix says
    the format (.html, .md, .json). Whole requests are judged with the terms of --terms and
    --traces.
    """
    from pathbudget.agents.routes.evaluation import RouteWish

    outputs = output or [Path(DEFAULT_NAMES[format or Format.HTML])]
    formats = [_format_of(path, format) for path in outputs]
    read = (*(catalogue or ()), *(terms or ()), *(traces or ()), span_map, prefixes)
    check_outputs(outputs, read)
    origins = prefix_table(prefixes)
    given = given_of(terms, traces, span_map)
    evaluation = evaluated(
        store,
        catalogue or [],
        tuple(tier or ()),
        campaign,
        title,
        terms=given.terms,
        rigour=Rigour(always_valid, require_busy_hours),
    )
    wish = RouteWish(campaign=campaign, tiers=tuple(tier or ()) or None, time_scale=time_scale)
    routes = _routes(store, catalogue or [], wish, origins)
    printed = any(is_stdout(path) for path in outputs)
    for path, kind in zip(outputs, formats, strict=True):
        content = _rendered(evaluation, routes, kind)
        write_whole(path, content)
        if not is_stdout(path):
            typer.echo(f"{path}: {kind} report, {_size(len(content))}", err=printed)
    tell_left_out(given)


def _format_of(path: Path, asked: Format | None) -> Format:
    found = asked or SUFFIXES.get(path.suffix.lower())
    if found is None:
        known = ", ".join(SUFFIXES)
        message = f"{path}: no format for this suffix; known: {known}. Or say --format."
        raise fail(message, ExitCode.USAGE)
    return found


def evaluated(
    folder: Path,
    catalogue_files: list[Path],
    tiers: tuple[str, ...],
    campaign: str | None,
    title: str = "",
    percentiles: tuple[float, ...] = (),
    *,
    terms: "tuple[Term, ...]" = (),
    rigour: Rigour | None = None,
) -> "Evaluation":
    """Evaluate a store for a command; exits with a message where there is nothing to evaluate."""
    from pathbudget.agents.evaluation import evaluate_store
    from pathbudget.agents.extras import require

    catalogue = catalogue_of(catalogue_files)
    refuse_unknown("tier", tiers, tuple(catalogue.tiers))
    need_store(folder)
    require("store", "pyarrow")
    from pathbudget.agents.store.parquet import Store

    store, rigour = Store(folder), rigour or Rigour()
    evaluation = evaluate_store(
        store,
        catalogue,
        tiers=tiers or None,
        campaign=campaign,
        title=title,
        percentiles=percentiles,
        terms=terms,
        always_valid=rigour.always_valid,
        require_busy_hours=rigour.require_busy_hours,
    )
    if not evaluation.provenance.samples:
        raise no_sample(folder, campaign)
    tell_misplaced(terms, evaluation, tuple(catalogue.tiers))
    return evaluation


def catalogue_of(paths: list[Path]) -> "Catalogue":
    """The user's catalogue; without one, the shipped tiers, and every place unknown."""
    from pathbudget.sites.catalogue import Catalogue
    from pathbudget.sites.catalogue_file import load_catalogue

    loaded = load_catalogue(paths)
    return loaded if paths else Catalogue(tiers=loaded.tiers)


def refuse_unknown(what: str, asked: tuple[str, ...], known: tuple[str, ...]) -> None:
    """Exit with the names that are known when one that was asked for is not."""
    wrong = [name for name in asked if name not in known]
    if wrong:
        names = ", ".join(known[:40]) + (" ..." if len(known) > 40 else "")
        message = f"unknown {what} {', '.join(wrong)}; known: {names or 'none'}"
        raise fail(in_a_line(message), ExitCode.USAGE)


def _routes(
    folder: Path,
    catalogue_files: list[Path],
    wish: "RouteWish",
    origins: "PrefixTable | None",
) -> "RouteReport | None":
    """What the traces of a store say; None where there is none."""
    from pathbudget.agents.routes.evaluation import TRACE, routes_of_store
    from pathbudget.agents.store.parquet import Store
    from pathbudget.agents.store.reading import Selection

    store = Store(folder)
    if not store.list_series(Selection(campaign=wish.campaign, probe=TRACE)):
        return None
    return routes_of_store(store, wish, catalogue_of(catalogue_files), origins)


def prefix_table(file: Path | None) -> "PrefixTable | None":
    """The table that a user names. Raises ConfigError."""
    if file is None:
        return None
    from pathbudget.sites.prefixes import load_prefix_table

    return load_prefix_table(file)


def _rendered(evaluation: "Evaluation", routes: "RouteReport | None", kind: Format) -> bytes:
    from pathbudget.agents.extras import require

    if kind is Format.JSON:
        from pathbudget.analysis.report.json_report import render_json

        return render_json(evaluation, routes)
    if kind is Format.MARKDOWN:
        from pathbudget.analysis.report.markdown import render_markdown

        return render_markdown(evaluation, routes).encode()
    require("report", "jinja2", "plotly")
    from pathbudget.analysis.report.html import render_html

    return render_html(evaluation, routes).encode()


def _size(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 1e6 else f"{max(1, count // 1000)} kB"
