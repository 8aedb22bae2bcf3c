"""`pathbudget routes`: which way packets go, what moved, who did it and what it cost."""

import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pathbudget.agents.cli.exits import ExitCode, fail, reports_errors, tell
from pathbudget.agents.cli.measured_store import need_store
from pathbudget.agents.cli.options import (
    DEFAULT_STORE,
    CampaignOption,
    CatalogueOption,
    StoreArgument,
    TierOption,
)
from pathbudget.agents.cli.outputs import check_outputs, write_whole
from pathbudget.agents.cli.report import (
    PrefixesOption,
    ScaleOption,
    catalogue_of,
    prefix_table,
    refuse_unknown,
)
from pathbudget.agents.cli.store import SinceOption, UntilOption
from pathbudget.probes.errors import ConfigError, Fault

if TYPE_CHECKING:
    from pathbudget.agents.bgp.plans import BgpPlan
    from pathbudget.agents.routes.evaluation import RouteWish
    from pathbudget.agents.store.parquet import Store
    from pathbudget.analysis.routes.route_report import RouteReport
    from pathbudget.sites.catalogue import Catalogue
    from pathbudget.sites.prefixes import PrefixTable

SeriesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--series",
        metavar="WORD",
        help="Only where region, site, vantage, target or address has it; repeatable.",
    ),
]
UpdatesOption = Annotated[
    bool, typer.Option("--updates/--no-updates", help="Use the BGP updates of the store.")
]
PathsOption = Annotated[bool, typer.Option("--paths", help="Every route of every series.")]
JsonOption = Annotated[bool, typer.Option("--json", help="All of it as JSON.")]
HtmlOption = Annotated[
    Path | None, typer.Option("--html", metavar="FILE", help="Write a page; opens offline.")
]
ExitOption = Annotated[
    bool,
    typer.Option("--exit-code", help="Exit 1 where an open incident breaks a budget line."),
]
FollowOption = Annotated[
    bool, typer.Option("--follow", "-f", help="Watch the store; tell each incident once.")
]
FeedsOption = Annotated[
    Path | None,
    typer.Option("--feeds", metavar="FILE", help="File of BGP feeds: what is expected of each."),
]
GranularityOption = Annotated[
    str,
    typer.Option(
        "--granularity",
        help="What a hop is: address, router (with --aliases) or as (with --prefixes).",
    ),
]
AliasesOption = Annotated[
    Path | None,
    typer.Option(
        "--aliases", metavar="FILE", help="Which addresses are one router: a line for each."
    ),
]
EveryOption = Annotated[str, typer.Option("--every", help="Between looks of --follow.")]


def register(application: typer.Typer) -> None:
    """Add the command."""
    application.command(name="routes")(routes)


@reports_errors
def routes(
    store: StoreArgument = DEFAULT_STORE,
    since: SinceOption = None,
    until: UntilOption = None,
    series: SeriesOption = None,
    campaign: CampaignOption = None,
    prefixes: PrefixesOption = None,
    updates: UpdatesOption = True,
    feeds: FeedsOption = None,
    catalogue: CatalogueOption = None,
    tier: TierOption = None,
    paths: PathsOption = False,
    as_json: JsonOption = False,
    html: HtmlOption = None,
    exit_code: ExitOption = False,
    follow: FollowOption = False,
    every: EveryOption = "10s",
    time_scale: ScaleOption = 1.0,
    granularity: GranularityOption = "address",
    aliases: AliasesOption = None,
) -> None:
    """Which way packets go: what is stable, what moved, who moved it and what it cost.

    A load balancer that does its job is no incident. Each incident has its cost with an interval,
    who is blamed and why, and the budget lines that it moved.
    """
    from pathbudget.agents.routes.evaluation import RouteWish

    _check_granularity(granularity, aliases, prefixes)
    the_catalogue = catalogue_of(catalogue or [])
    refuse_unknown("tier", tuple(tier or ()), tuple(the_catalogue.tiers))
    table = prefix_table(prefixes)
    opened = _open(store)
    wish = RouteWish(
        since_unix_ns=_unix_ns(since),
        until_unix_ns=_unix_ns(until),
        campaign=campaign,
        series=tuple(series or ()),
        updates=updates,
        tiers=tuple(tier) if tier else None,
        time_scale=time_scale,
        feeds=_feeds(feeds),
        granularity=granularity,
        aliases=aliases,
    )
    if follow:
        _follow(opened, wish, the_catalogue, table, every=every, as_json=as_json)
        return
    _check_output(html, (*(catalogue or ()), prefixes, feeds, aliases))
    report = _evaluated(opened, store, wish, the_catalogue, table)
    if html is not None:
        _write_page(html, report)
    if as_json:
        from pathbudget.analysis.report.route_json import render_routes_json

        typer.echo(render_routes_json(report), nl=False)
    elif html is None:
        _print(report, paths=paths)
    if exit_code:
        raise typer.Exit(_exit_code(report))


def _check_granularity(word: str, aliases: Path | None, prefixes: Path | None) -> None:
    """What hops are called by takes the file that says so. Raises ConfigError."""
    needed = {"address": True, "router": aliases is not None, "as": prefixes is not None}
    if word not in needed:
        fault = Fault("command line", "--granularity", f'"{word}"', "address, router or as")
        raise ConfigError([fault])
    if not needed[word]:
        option = {"router": "--aliases", "as": "--prefixes"}[word]
        fault = Fault("command line", "--granularity", f'"{word}" has no table', f"{option} FILE")
        raise ConfigError([fault])


def _open(folder: Path) -> "Store":
    from pathbudget.agents.extras import require

    need_store(folder)
    require("store", "pyarrow")
    require("analysis", "numpy", "scipy")
    from pathbudget.agents.store.parquet import Store

    return Store(folder)


def _evaluated(
    opened: "Store",
    folder: Path,
    wish: "RouteWish",
    catalogue: "Catalogue",
    table: "PrefixTable | None",
) -> "RouteReport":
    from pathbudget.agents.routes.evaluation import routes_of_store

    report = routes_of_store(opened, wish, catalogue, table)
    if not (report.stability or report.timelines or report.feeds or report.incidents):
        of = f" of {', '.join(wish.series)}" if wish.series else ""
        message = f"{folder}: the store holds no trace, round trip or BGP update{of}."
        raise fail(message, ExitCode.NOTHING_MEASURED)
    if not report.stability:
        tell("No trace is in the store: paths are unknown (pathbudget run with a trace probe).")
    return report


def _feeds(file: Path | None) -> "BgpPlan | None":
    if file is None:
        return None
    from pathbudget.agents.bgp.feeds_file import load_feeds

    return load_feeds(file)


def _check_output(html: Path | None, read: tuple[Path | None, ...]) -> None:
    """Complain about the page before the long work, not after it."""
    if html is None:
        return
    from pathbudget.agents.extras import require

    require("report", "jinja2", "plotly")
    check_outputs([html], read)


def _write_page(file: Path, report: "RouteReport") -> None:
    from pathbudget.agents.routes.table import summary_parts
    from pathbudget.analysis.report.html import render_routes_html
    from pathbudget.analysis.report.words import utc

    written = f"written {utc(int(datetime.now(UTC).timestamp()) * 1_000_000_000)}"
    page = render_routes_html(report, "Routes", (*summary_parts(report), written))
    write_whole(file, page.encode())
    typer.echo(f"{file}: page of routes", err=True)


def _print(report: "RouteReport", *, paths: bool) -> None:
    from rich.console import Console

    from pathbudget.agents.routes.table import report_lines

    console = Console(width=_width(), highlight=False, markup=False, emoji=False)
    for line in report_lines(report, console.width, paths=paths):
        console.print(line, soft_wrap=True)


def _width() -> int | None:
    """Of the terminal; where there is none, 80 unless COLUMNS says otherwise."""
    return None if sys.stdout.isatty() or "COLUMNS" in os.environ else 80


def _exit_code(report: "RouteReport") -> int:
    """Why the build fails, on stderr."""
    from pathbudget.analysis.report.route_words import breached, cause_words, line_words

    found = breached(report)
    for incident, line in found:
        tell(f"fail: {cause_words(incident.cause)}: {line_words(line)}")
    return int(ExitCode.OBJECTIVE_NOT_MET if found else ExitCode.OK)


def _follow(
    opened: "Store",
    wish: "RouteWish",
    catalogue: "Catalogue",
    table: "PrefixTable | None",
    *,
    every: str,
    as_json: bool,
) -> None:
    from pathbudget.agents.cli.ping import duration_of
    from pathbudget.agents.routes.follow import follow

    follow(opened, wish, catalogue, table, duration_of("--every", every), as_json=as_json)


def _unix_ns(time: datetime | None) -> int | None:
    """A time of the command line is UTC."""
    return None if time is None else int(time.replace(tzinfo=UTC).timestamp()) * 1_000_000_000
