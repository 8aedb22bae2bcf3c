"""`pathbudget store`: look into a store, take data out of it, keep it in order."""

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pathbudget.agents.cli.exits import ExitCode, fail, reports_errors, tell
from pathbudget.probes.record import AddressFamily

if TYPE_CHECKING:
    from pathbudget.agents.store.parquet import Receipt, Store
    from pathbudget.agents.store.reading import Selection
    from pathbudget.agents.store.update_files import UpdateSelection


class ListFormat(StrEnum):
    """How `list` prints."""

    TABLE = "table"
    JSON = "json"


class TableChoice(StrEnum):
    """Which records."""

    MEASUREMENTS = "measurements"
    BGP = "bgp"


class ExportFormat(StrEnum):
    """What `export` writes."""

    CSV = "csv"
    JSONL = "jsonl"
    PARQUET = "parquet"


_FORM = "UTC, such as 2026-03-01 or 2026-03-01T09:30"
_TIMES = ["%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"]

StoreArgument = Annotated[Path, typer.Argument(metavar="STORE", help="Folder of the store.")]
CampaignOption = Annotated[str | None, typer.Option("--campaign", help="Only this campaign.")]
RegionOption = Annotated[str | None, typer.Option("--region", help="Only this region.")]
VantageOption = Annotated[str | None, typer.Option("--vantage", help="Only this vantage.")]
SiteOption = Annotated[str | None, typer.Option("--site", help="Only this site.")]
TargetOption = Annotated[str | None, typer.Option("--target", help="Only this target.")]
ProbeOption = Annotated[str | None, typer.Option("--probe", help="Only this probe.")]
FamilyOption = Annotated[
    AddressFamily | None, typer.Option("--family", help="Only this address family.")
]
SinceOption = Annotated[
    datetime | None,
    typer.Option(
        "--since", metavar="TIME", formats=_TIMES, help=f"Started then or later; {_FORM}."
    ),
]
UntilOption = Annotated[
    datetime | None,
    typer.Option("--until", metavar="TIME", formats=_TIMES, help="Started before then."),
]
TableOption = Annotated[
    TableChoice,
    typer.Option("--table", help="Measurements with their samples, or updates of BGP feeds."),
]
FeedOption = Annotated[str | None, typer.Option("--feed", help="Only this feed (--table bgp).")]
DEFAULT = Path("pathbudget-store")


def register(application: typer.Typer) -> None:
    """Add the group of commands."""
    group = typer.Typer(
        help="List, export, compact, verify and recover a store of measurements.",
        no_args_is_help=True,
    )
    group.command("list")(list_store)
    group.command("export")(export)
    group.command("compact")(compact)
    group.command("verify")(verify)
    group.command("recover")(recover)
    application.add_typer(group, name="store")


@reports_errors
def list_store(
    store: StoreArgument = DEFAULT,
    output_format: Annotated[
        ListFormat, typer.Option("--format", help="How to print it.")
    ] = ListFormat.TABLE,
    campaign: CampaignOption = None,
    region: RegionOption = None,
    vantage: VantageOption = None,
    site: SiteOption = None,
    target: TargetOption = None,
    probe: ProbeOption = None,
    family: FamilyOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    table: TableOption = TableChoice.MEASUREMENTS,
    feed: FeedOption = None,
) -> None:
    """What is in a store: campaigns, vantages, targets, probes, how many samples; BGP feeds."""
    from rich.console import Console

    from pathbudget.agents.store.listing_text import as_json, print_table
    from pathbudget.agents.store.update_listing import feeds_as_json, print_feeds

    names = (campaign, region, vantage, site, target, probe)
    _check_filters(table, (*names, family), feed)
    opened = _open(store)
    whole = not any((*names, family))
    feeds = opened.list_feeds(_of_bgp(feed, since, until)) if whole else []
    if table is TableChoice.BGP:
        if output_format is ListFormat.JSON:
            sys.stdout.write(feeds_as_json(feeds).decode() + "\n")
        else:
            print_feeds(feeds, Console())
        return
    series = opened.list_series(_selection(names, family, since, until))
    if output_format is ListFormat.JSON:
        sys.stdout.write(as_json(series).decode() + "\n")
        return
    if series or not feeds:
        print_table(series, Console())
    print_feeds(feeds, Console())


@reports_errors
def export(
    store: StoreArgument = DEFAULT,
    output_format: Annotated[
        ExportFormat,
        typer.Option(
            "--format", help="csv and parquet: a row per sample; jsonl: a line per measurement."
        ),
    ] = ExportFormat.CSV,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File; standard output without it.")
    ] = None,
    campaign: CampaignOption = None,
    region: RegionOption = None,
    vantage: VantageOption = None,
    site: SiteOption = None,
    target: TargetOption = None,
    probe: ProbeOption = None,
    family: FamilyOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    table: TableOption = TableChoice.MEASUREMENTS,
    feed: FeedOption = None,
) -> None:
    """Take measurements out of a store, or updates of BGP feeds, as one file."""
    names = (campaign, region, vantage, site, target, probe)
    _check_filters(table, (*names, family), feed)
    if output_format is ExportFormat.PARQUET and output is None:
        raise fail("Parquet needs a file: add --output FILE.", ExitCode.USAGE)
    opened = _open(store)
    from pathbudget.agents.store.export import FORMATS, UPDATE_FORMATS, whole_file

    if table is TableChoice.BGP:
        updates = opened.updates(_of_bgp(feed, since, until))
        with whole_file(output) as file:
            number = UPDATE_FORMATS[output_format](updates, file)
        typer.echo(f"{number} updates exported", err=True)
        return
    measurements = opened.select(_selection(names, family, since, until))
    with whole_file(output) as file:
        number = FORMATS[output_format](measurements, file)
    unit = "measurements" if output_format is ExportFormat.JSONL else "samples"
    typer.echo(f"{number} {unit} exported", err=True)


@reports_errors
def compact(store: StoreArgument = DEFAULT) -> None:
    """Make the many small files of each day one. Readers and writers may go on meanwhile."""
    receipt = _open(store).compact()
    typer.echo(f"{receipt.files_before} files became {receipt.files_after}.")
    if receipt.problems:
        raise fail("\n".join(receipt.problems), ExitCode.TROUBLE)


@reports_errors
def verify(store: StoreArgument = DEFAULT) -> None:
    """Read everything in a store and name what is wrong. Changes nothing."""
    problems = _open(store).verify()
    if problems:
        text = "\n".join(str(problem) for problem in problems)
        raise fail(f"{text}\n{_count(len(problems), 'problem')}.", ExitCode.TROUBLE)
    typer.echo("No problem found.")


@reports_errors
def recover(store: StoreArgument = DEFAULT) -> None:
    """Finish what a killed or failed campaign left: bring its journals into the tables."""
    opened = _open(store)
    from pathbudget.agents.store.recovery import recover as bring_in

    opened.layout.require()
    receipt, left_alone = bring_in(opened)
    typer.echo(_said(receipt))
    _warn(receipt.problems)
    if left_alone:
        raise fail("\n".join(left_alone), ExitCode.TROUBLE)


def _open(path: Path) -> "Store":
    """The store; imported late because pyarrow takes its time and is an extra."""
    from pathbudget.agents.store.parquet import Store

    return Store(path)


def _selection(
    names: Sequence[str | None],
    family: AddressFamily | None,
    since: datetime | None,
    until: datetime | None,
) -> "Selection":
    from pathbudget.agents.store.reading import Selection

    campaign, region, vantage, site, target, probe = names
    return Selection(
        campaign=campaign,
        region=region,
        vantage=vantage,
        site=site,
        target=target,
        probe=probe,
        family=family,
        since_unix_ns=_unix_ns(since),
        until_unix_ns=_unix_ns(until),
    )


def _of_bgp(feed: str | None, since: datetime | None, until: datetime | None) -> "UpdateSelection":
    from pathbudget.agents.store.update_files import UpdateSelection

    return UpdateSelection(_unix_ns(since), _unix_ns(until), feed)


def _check_filters(table: TableChoice, names: Sequence[str | None], feed: str | None) -> None:
    """Filters that the other table has no column for would silently do nothing."""
    if table is TableChoice.BGP and any(names):
        message = "--table bgp takes --feed, --since and --until; the others are of measurements"
        raise fail(message, ExitCode.USAGE)
    if table is TableChoice.MEASUREMENTS and feed:
        raise fail("--feed is for BGP: add --table bgp", ExitCode.USAGE)


def _unix_ns(moment: datetime | None) -> int | None:
    if moment is None:
        return None
    return int(moment.replace(tzinfo=UTC).timestamp()) * 1_000_000_000


def _said(receipt: "Receipt") -> str:
    updates = f"{_count(receipt.updates, 'BGP update')} brought into the store."
    if not receipt.written and not receipt.already_there:
        return updates if receipt.updates else "Nothing was left over."
    text = f"{_count(receipt.written, 'measurement')} brought into the store"
    text = f"{text}, {receipt.already_there} were there already."
    return f"{text}\n{updates}" if receipt.updates else text


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _warn(problems: Sequence[str]) -> None:
    for problem in problems:
        tell(problem)
