"""`pathbudget catalogue import peeringdb`: facilities as candidate sites of a catalogue."""

import csv
import io
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pathbudget.agents.cli.exits import ExitCode, fail, reports_errors, tell

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pathbudget.sites.catalogue import Site
    from pathbudget.sites.peeringdb import Imported

COLUMNS = (
    *("name", "title", "country", "latitude", "longitude", "operator", "metro"),
    *("price_per_month", "capacity", "power_kw", "exchanges", "networks", "targets"),
    *("source", "date"),
)


class Format(StrEnum):
    """What the sites are written as."""

    CSV = "csv"
    TOML = "toml"


def register_import(commands: typer.Typer) -> None:
    """Add the group."""
    group = typer.Typer(help="Candidate sites from lists that others keep.")
    group.command(name="peeringdb", context_settings={"ignore_unknown_options": False})(peeringdb)
    commands.add_typer(group, name="import", no_args_is_help=True)


@reports_errors
def peeringdb(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE", help="API answers or dumps, JSON or gzip.")
    ],
    country: Annotated[
        list[str] | None, typer.Option("--country", help="Like US; repeatable.")
    ] = None,
    near: Annotated[
        str, typer.Option("--near", metavar="LAT,LON", help="Nearest first; or a place's name.")
    ] = "",
    within: Annotated[
        float | None, typer.Option("--within", metavar="KM", help="No farther than this.", min=0)
    ] = None,
    asn: Annotated[
        list[str] | None, typer.Option("--asn", help="Networks of yours; repeatable.")
    ] = None,
    through_exchanges: Annotated[
        bool, typer.Option("--through-exchanges", help="Networks at exchanges there count, too.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write; default: stdout.")
    ] = None,
    format: Annotated[  # noqa: A002
        Format | None, typer.Option("--format", help="Default: by the file's suffix, else csv.")
    ] = None,
) -> None:
    """Turn facilities into sites, with the exchanges and networks that are there.

    What is left out is counted on stderr, by reason.
    """
    from pathbudget.agents.cli.catalogue import point_named
    from pathbudget.agents.cli.outputs import check_outputs, write_whole
    from pathbudget.sites.peeringdb import Wanted, reasons, sites_of
    from pathbudget.sites.peeringdb_files import read_peeringdb

    if within is not None and not near:
        raise fail("--within needs --near", ExitCode.USAGE)
    wanted = Wanted(
        countries=tuple(code.upper() for code in country or ()),
        near=point_named(near) if near else None,
        within_km=within,
        asns=_asns(asn or []),
        through_exchanges=through_exchanges,
    )
    kind = format or _by_suffix(output)
    if output is not None:
        check_outputs([output], files)
    objects = read_peeringdb(files)
    imported = sites_of(objects, wanted)
    for reason in reasons(imported.left_out):
        tell(f"left out: {reason}")
    if not imported.sites:
        raise fail("no facility is left.", ExitCode.NOTHING_MEASURED)
    content = as_csv(imported.sites) if kind is Format.CSV else as_toml(imported.sites)
    if output is None:
        sys.stdout.write(content)
    else:
        write_whole(output, content.encode())
    tell(_summary(imported))


def _by_suffix(output: Path | None) -> Format:
    if output is None:
        return Format.CSV
    found = {".csv": Format.CSV, ".toml": Format.TOML}.get(output.suffix.lower())
    if found is None:
        raise fail(f"{output}: a catalogue ends in .csv or .toml", ExitCode.USAGE)
    return found


def _asns(words: list[str]) -> tuple[int, ...]:
    from pathbudget.sites.presence_reader import as_number

    numbers = [as_number(word) for word in words]
    for word, number in zip(words, numbers, strict=True):
        if number is None:
            raise fail(f"--asn {word}: expected an AS number, like AS64500", ExitCode.USAGE)
    return tuple(number for number in numbers if number is not None)


def as_csv(sites: "Sequence[Site]") -> str:
    """A table that ``catalogue check`` reads."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows([_cell(site, name) for name in COLUMNS] for site in sites)
    return text.getvalue()


def _cell(site: "Site", name: str) -> str:
    if name == "exchanges":
        return "; ".join(site.exchanges)
    if name == "networks":
        return " ".join(f"AS{number}" for number in site.networks)
    if name == "targets":
        return ""
    value = getattr(site, name)
    return "" if value is None else str(value)


def as_toml(sites: "Sequence[Site]") -> str:
    """``[[site]]`` tables that ``catalogue check`` reads."""
    return "\n".join(_table(site) for site in sites)


def _table(site: "Site") -> str:
    lines = ["[[site]]"]
    for name in COLUMNS:
        value = getattr(site, name)
        if value not in (None, "", ()):
            lines.append(f"{name} = {_toml(value)}")
    return "\n".join(lines) + "\n"


def _toml(value: object) -> str:
    """Strings, numbers and lists as TOML; JSON's strings are TOML's."""
    import json

    if isinstance(value, tuple):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


def _summary(imported: "Imported") -> str:
    from pathbudget.analysis.report.words import counted

    count = len(imported.sites)
    exchanges = {name for site in imported.sites for name in site.exchanges}
    networks = {number for site in imported.sites for number in site.networks}
    far = [one for one in imported.distances_km if one is not None]
    distance = f"; {min(far):,.0f} to {max(far):,.0f} km away" if far else ""
    parts = [
        counted(count, "site"),
        counted(len(exchanges), "exchange"),
        counted(len(networks), "network"),
    ]
    return ", ".join(parts) + distance
