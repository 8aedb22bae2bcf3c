"""`pathbudget bgp`: what BGP says about the sites, live and out of files."""

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pathbudget.agents.cli.exits import ExitCode, fail, reports_errors, tell

if TYPE_CHECKING:
    from pathbudget.agents.bgp.importing import FileCounts
    from pathbudget.agents.bgp.plans import BgpPlan
    from pathbudget.analysis.routes.bgp_state import Event, RouteTable, Watch

FeedsArgument = Annotated[Path, typer.Argument(metavar="FEEDS", help="File of feeds (TOML).")]
FilesArgument = Annotated[
    list[Path], typer.Argument(metavar="FILE...", help="MRT, RIS Live or exabgp; gz and bz2 too.")
]
StoreOption = Annotated[Path, typer.Option("--store", help="Folder of the store.")]
CatalogueOption = Annotated[
    list[Path] | None, typer.Option("--catalogue", help="Sites whose prefixes count; repeatable.")
]
PrefixOption = Annotated[
    list[str] | None, typer.Option("--prefix", help="A further prefix or address; repeatable.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="JSON, one object a line.")]
DEFAULT_STORE = Path("pathbudget-store")
MOST_PROBLEMS = 5


def register(application: typer.Typer) -> None:
    """Add the group of commands."""
    group = typer.Typer(
        help="BGP feeds: how fresh they are, and what peers say of each site's prefixes.",
        no_args_is_help=True,
    )
    group.command("check")(check)
    group.command("run")(run)
    group.command("import")(import_files)
    group.command("show")(show)
    application.add_typer(group, name="bgp")


@reports_errors
def check(feeds: FeedsArgument) -> None:
    """Say what a file of feeds asks for, or every fault of it. Connects to nobody."""
    plan = _plan(feeds)
    for feed in plan.feeds:
        stale = feed.rules.stale_after_ns
        expected = f", stale after {stale // 1_000_000_000} s" if stale else ""
        typer.echo(f"{feed.name}: {feed.kind}{expected}")
    for site, prefix in plan.prefixes:
        covering = "" if "/" in prefix else " (whatever covers it)"
        typer.echo(f"{site or '-'}: {prefix}{covering}")


@reports_errors
def run(
    feeds: FeedsArgument,
    store: StoreOption = DEFAULT_STORE,
    as_json: JsonOption = False,
    duration: Annotated[
        float | None, typer.Option(min=0.1, help="Stop after so many seconds.")
    ] = None,
) -> None:
    """Hear all feeds: keep every update in the store, show freshness, prefixes and events.

    Announces nothing to anybody. Runs until SIGTERM or Ctrl-C.
    """
    from pathbudget.agents.extras import require

    plan = _plan(feeds)
    require("store", "pyarrow")
    from pathbudget.agents.bgp.running import run_feeds
    from pathbudget.agents.store.parquet import Store

    opened = Store(store)
    opened.check_writable()
    hearing = run_feeds(plan, opened, as_json=as_json, duration_s=duration)
    typer.echo(f"{hearing.stored} updates stored in {store}", err=True)


@reports_errors
def import_files(
    files: FilesArgument,
    store: StoreOption = DEFAULT_STORE,
    catalogue: CatalogueOption = None,
    prefix: PrefixOption = None,
    feed: Annotated[
        str | None, typer.Option("--feed", help="Name of the feed; each file's own without it.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Bring BGP news of files into the store: MRT dumps and updates, RIS Live, exabgp.

    With --catalogue or --prefix only what concerns these, else everything. Importing a file again
    changes nothing.
    """
    from pathbudget.agents.extras import require

    require("store", "pyarrow")
    from pathbudget.agents.bgp.importing import FileCounts, read_files
    from pathbudget.agents.store.parquet import Store

    watch = _watch(catalogue, prefix)
    opened = Store(store)
    opened.check_writable()
    counts: list[FileCounts] = []
    receipt = opened.write_updates(
        read_files(files, lambda one: watch.site_of(one) is not None, counts, feed=feed)
    )
    _tell_import(counts, as_json=as_json)
    typer.echo(
        f"{receipt.written} updates stored in {store}, {receipt.already_there} were there already.",
        err=as_json,
    )
    if not any(one.updates for one in counts):
        raise fail("Nothing could be imported.", ExitCode.NOTHING_MEASURED)


@reports_errors
def show(
    store: StoreOption = DEFAULT_STORE,
    catalogue: CatalogueOption = None,
    prefix: PrefixOption = None,
    rpki: Annotated[
        Path | None, typer.Option("--rpki", help="VRPs of rpki-client or Routinator.")
    ] = None,
    settle: Annotated[
        float, typer.Option(min=0.1, max=3600, help="Seconds of quiet that end a convergence.")
    ] = 60.0,
    events: Annotated[int, typer.Option(min=0, help="Events to show at most.")] = 20,
    as_json: JsonOption = False,
) -> None:
    """Feeds, peers and the state of each prefix as the store has them, and the latest events."""
    from pathbudget.agents.extras import require

    require("store", "pyarrow")
    from pathbudget.analysis.routes.bgp_state import RouteTable
    from pathbudget.sites.rpki import load_vrps

    vrps = load_vrps(rpki) if rpki else None
    watch = _watch(catalogue, prefix)
    table = RouteTable(watch, settle_ns=round(settle * 1e9), vrps=vrps)
    _show(table, store, events, as_json=as_json)


def _show(table: "RouteTable", store: Path, most: int, *, as_json: bool) -> None:
    from collections import deque

    from rich.console import Console

    from pathbudget.agents.bgp.show import event_json, screen, status_json
    from pathbudget.agents.store.parquet import Store

    latest: deque[Event] = deque(maxlen=most)
    last = 0
    for update in Store(store).updates():
        latest.extend(table.see(update))
        last = max(last, min(update.time_unix_ns, update.arrived_unix_ns))
    latest.extend(table.finish())
    feeds, prefixes = table.status(time.time_ns()), table.prefixes()
    if as_json:
        for event in latest:
            sys.stdout.write(event_json(event).decode())
        sys.stdout.write(status_json(feeds, prefixes, last).decode())
        return
    if not feeds:
        raise fail(f"{store}: holds no BGP updates", ExitCode.NOTHING_MEASURED)
    console = Console(markup=False, emoji=False, highlight=False)
    console.print(screen(feeds, prefixes[:MOST_SHOWN], latest, {}))
    if len(prefixes) > MOST_SHOWN:
        typer.echo(f"... and {len(prefixes) - MOST_SHOWN} prefixes more; --prefix names some")


MOST_SHOWN = 40


def _plan(path: Path) -> "BgpPlan":
    from pathbudget.agents.bgp.feeds_file import load_feeds

    return load_feeds(path)


def _watch(catalogue: list[Path] | None, prefixes: list[str] | None) -> "Watch":
    from pathbudget.agents.bgp.feeds_file import site_prefixes
    from pathbudget.analysis.routes.bgp_state import Watch
    from pathbudget.sites.catalogue_file import load_catalogue

    known = load_catalogue(catalogue) if catalogue else None
    of_sites = site_prefixes(known.sites.values()) if known else []
    if catalogue and not of_sites and not prefixes:
        message = "no site of the catalogue has prefixes, or targets with addresses"
        raise fail(message, ExitCode.USAGE)
    try:
        return Watch.of_sites([*of_sites, *(("", one) for one in prefixes or [])])
    except ValueError as error:
        raise fail(f"--prefix: {error}", ExitCode.USAGE) from None


def _tell_import(counts: "list[FileCounts]", *, as_json: bool) -> None:
    from rich.console import Console

    from pathbudget.agents.bgp.show import import_table, line

    for one in counts:
        if one.problem:
            tell(f"{one.path}: {one.problem}")
        for reason, count in list(one.reasons.items())[:MOST_PROBLEMS]:
            tell(f"{one.path}: {count} unreadable: {reason}")
    if as_json:
        for one in counts:
            content = {"file": str(one.path), "format": one.kind, "updates": one.updates}
            content |= {"left_out": one.left_out, "unreadable": one.set_aside}
            sys.stdout.write(line({**content, "problem": one.problem}).decode())
    else:
        Console(markup=False, emoji=False, highlight=False).print(import_table(counts))
