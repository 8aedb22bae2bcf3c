"""`pathbudget compare`: two sites, campaigns or periods of a store; which is faster, how surely?"""

import os
import sys
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from pathbudget.agents.cli.exits import ExitCode, fail, reports_errors
from pathbudget.agents.cli.measured_store import need_store
from pathbudget.agents.cli.options import DEFAULT_STORE, RegionOption, StoreArgument
from pathbudget.agents.cli.report import refuse_unknown

if TYPE_CHECKING:
    from pathbudget.agents.store.parquet import Store
    from pathbudget.analysis.intervals.compared import Compared

TIMES = ["%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"]


class Format(StrEnum):
    """How the rows are printed."""

    TABLE = "table"
    JSON = "json"


SiteOption = Annotated[
    list[str] | None, typer.Option("--site", help="Twice: the two sites to compare.")
]
CampaignOption = Annotated[
    list[str] | None, typer.Option("--campaign", help="Twice: the two campaigns to compare.")
]
SplitOption = Annotated[
    datetime | None,
    typer.Option(
        "--split",
        metavar="TIME",
        formats=TIMES,
        help="Compare what was before with what was after; UTC, such as 2026-03-01T09:30.",
    ),
]
PercentileOption = Annotated[
    list[float] | None, typer.Option("--percentile", help="Repeatable. Default: 50 and 95.")
]
ConfidenceOption = Annotated[
    float, typer.Option("--confidence", help="Of each interval, 0.5 to 0.9999.")
]
FormatOption = Annotated[Format, typer.Option("--format", help="How to print the rows.")]


def register(application: typer.Typer) -> None:
    """Add the command."""
    application.command(name="compare")(compare)


@reports_errors
def compare(
    store: StoreArgument = DEFAULT_STORE,
    site: SiteOption = None,
    campaign: CampaignOption = None,
    split: SplitOption = None,
    region: RegionOption = None,
    percentile: PercentileOption = None,
    confidence: ConfidenceOption = 0.95,
    format: FormatOption = Format.TABLE,  # noqa: A002
) -> None:
    """Compare round trips of two sites, two campaigns or two periods.

    The interval is of the difference, second less first, at hours of the day that both measured.
    """
    sites, campaigns = site or [], campaign or []
    percentiles = _checked(sites, campaigns, split, percentile or [50.0, 95.0], confidence)
    need_store(store)
    from pathbudget.agents.extras import require

    require("store", "pyarrow")
    require("analysis", "numpy", "scipy")
    from pathbudget.agents.store.parquet import Store

    rows = _rows(Store(store), sites, campaigns, split, percentiles, confidence)
    refuse_unknown("region", tuple(region or ()), tuple(dict.fromkeys(row.region for row in rows)))
    rows = [row for row in rows if not region or row.region in region]
    if not any(row.first_ms is not None or row.second_ms is not None for row in rows):
        reasons = dict.fromkeys(row.reason for row in rows if row.reason)
        raise fail("\n".join(["nothing to compare.", *reasons]), ExitCode.NOTHING_MEASURED)
    _print(rows, format, confidence)


def _checked(
    sites: list[str],
    campaigns: list[str],
    split: datetime | None,
    percentiles: list[float],
    confidence: float,
) -> list[float]:
    ways = [len(sites) == 2, len(campaigns) == 2 and not sites, split is not None and not sites]
    given = [bool(sites), bool(campaigns), split is not None]
    if sum(ways) != 1 or sum(given) != 1:
        message = (
            "say what to compare: --site A --site B, --campaign A --campaign B or --split TIME"
        )
        raise fail(message, ExitCode.USAGE)
    if len({*sites, *campaigns}) == 1:
        raise fail(f"{(sites or campaigns)[0]} cannot be compared with itself", ExitCode.USAGE)
    if not 0.5 <= confidence <= 0.9999:
        raise fail(f"--confidence is {confidence:g}; expected 0.5 to 0.9999", ExitCode.USAGE)
    wrong = [value for value in percentiles if not 0 < value < 100]
    if wrong:
        raise fail(f"--percentile {wrong[0]:g} is not between 0 and 100", ExitCode.USAGE)
    return sorted(set(percentiles))


def _rows(
    store: "Store",
    sites: list[str],
    campaigns: list[str],
    at: datetime | None,
    percentiles: list[float],
    confidence: float,
) -> "list[Compared]":
    from pathbudget.analysis.intervals import compared

    if campaigns:
        known = tuple(one.name for one in store.list_campaigns())
        refuse_unknown("campaign", tuple(campaigns), known)
        before, after = (
            compared.round_trips(store.measurements(campaign=name)) for name in campaigns
        )
        names = campaigns[0], campaigns[1]
        return compared.compare_pairs(before, after, names, percentiles, confidence)
    tracks = compared.round_trips(store.measurements())
    if sites:
        refuse_unknown("site", tuple(sites), tuple(dict.fromkeys(site for _, site in tracks)))
        return compared.compare_sites(tracks, sites[0], sites[1], percentiles, confidence)
    assert at is not None
    moment = round(at.replace(tzinfo=UTC).timestamp()) * 1_000_000_000
    before, after = compared.split(tracks, moment)
    return compared.compare_pairs(before, after, ("before", "after"), percentiles, confidence)


def _print(rows: "list[Compared]", format: Format, confidence: float) -> None:  # noqa: A002
    if format is Format.JSON:
        import msgspec

        whole = {"schema": 1, "confidence": confidence, "comparisons": rows}
        text = msgspec.json.format(msgspec.json.encode(whole), indent=2).decode()
        typer.echo(text)
        return
    from pathbudget.agents.cli.compare_table import print_table

    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else 240
    print_table(rows, confidence, width, color=sys.stdout.isatty())
