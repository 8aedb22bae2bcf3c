"""`pathbudget catalogue`: check a catalogue of one's own, look things up in the shipped one."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pathbudget.agents.cli.catalogue_import import register_import
from pathbudget.agents.cli.exits import ExitCode, fail, reports_errors

if TYPE_CHECKING:
    from pathbudget.sites.listing import Point

Files = Annotated[list[Path], typer.Argument(metavar="FILE...", help="TOML or CSV files.")]
With = Annotated[
    list[Path] | None,
    typer.Option("--catalogue", metavar="FILE", help="Know the places of this file, too."),
]


class Kind(StrEnum):
    """What to list."""

    REGION = "region"
    SITE = "site"
    TIER = "tier"


class Format(StrEnum):
    """How to print a listing."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


class PlainFormat(StrEnum):
    """How to print an answer that is no list."""

    TABLE = "table"
    JSON = "json"


ListFormat = Annotated[Format, typer.Option("--format", help="How to print it.")]
AnswerFormat = Annotated[PlainFormat, typer.Option("--format", help="How to print it.")]


def register(application: typer.Typer) -> None:
    """Add the commands."""
    commands = typer.Typer(help="Regions, sites and tiers: check yours, look up what ships.")
    commands.command(name="check")(check)
    commands.command(name="list")(list_)
    commands.command(name="distance", context_settings={"ignore_unknown_options": True})(distance)
    register_import(commands)
    application.add_typer(commands, name="catalogue", no_args_is_help=True)


@reports_errors
def check(files: Files, output_format: AnswerFormat = PlainFormat.TABLE) -> None:
    """Read catalogue files as an evaluation would, and say what is in them or all their faults."""
    from pathbudget.agents.cli import catalogue_output as output
    from pathbudget.sites.catalogue_file import load_catalogue

    catalogue = load_catalogue(files)
    if output_format is PlainFormat.JSON:
        output.print_json(catalogue)
    else:
        output.print_catalogue(catalogue)


@reports_errors
def list_(
    kind: Annotated[Kind | None, typer.Option("--kind", help="Only these.")] = None,
    near: Annotated[
        str, typer.Option("--near", metavar="LAT,LON", help="Nearest first; or a place's name.")
    ] = "",
    search: Annotated[str, typer.Option("--search", metavar="TEXT", help="Holds all words.")] = "",
    output_format: ListFormat = Format.TABLE,
) -> None:
    """List the shipped regions, sites and tiers."""
    from pathbudget.agents.cli import catalogue_output as output
    from pathbudget.sites import listing
    from pathbudget.sites.shipped import shipped_catalogue

    shipped = listing.only(shipped_catalogue(), kind)
    center = _point(near, None) if near else None
    places = listing.list_places(shipped, search=search, near=center)
    tiers = [] if near else listing.list_tiers(shipped, search=search)
    if output_format is Format.JSON:
        output.print_json({"places": places, "tiers": tiers})
    elif output_format is Format.CSV:
        output.print_csv(kind, places, tiers)
    else:
        output.print_listing(places, tiers)


@reports_errors
def distance(
    a: Annotated[str, typer.Argument(metavar="A", help="A place's name, or LAT,LON.")],
    b: Annotated[str, typer.Argument(metavar="B", help="A place's name, or LAT,LON.")],
    catalogue: With = None,
    output_format: AnswerFormat = PlainFormat.TABLE,
) -> None:
    """Say how far two places are apart, and the quickest round trip that light in fibre allows."""
    from pathbudget.agents.cli import catalogue_output as output
    from pathbudget.sites import listing

    answer = listing.between(_point(a, catalogue), _point(b, catalogue))
    if output_format is PlainFormat.JSON:
        output.print_json(answer)
    else:
        output.print_distance(answer)


def point_named(text: str) -> "Point":
    """A shipped place, or coordinates."""
    return _point(text, None)


def _point(text: str, files: list[Path] | None) -> "Point":
    """A shipped place, one of `files`, or coordinates."""
    from pathbudget.sites import listing
    from pathbudget.sites.catalogue_file import load_catalogue
    from pathbudget.sites.places import places_of
    from pathbudget.sites.shipped import shipped_catalogue

    own = places_of(load_catalogue(files)) if files else {}
    try:
        return listing.point(text, {**places_of(shipped_catalogue()), **own})
    except ValueError as error:
        raise fail(str(error), ExitCode.USAGE) from None
