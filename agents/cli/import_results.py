"""`pathbudget import ripe-atlas|scamper FILE...`: what others measured, as our own records."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pathbudget.agents.cli.exits import ExitCode, fail, reports_errors, tell
from pathbudget.agents.cli.options import CatalogueOption, TierOption
from pathbudget.agents.cli.outputs import check_outputs, is_stdout, write_whole
from pathbudget.agents.cli.report import evaluated, refuse_unknown
from pathbudget.agents.importers.probe_places import WITHIN_KM, ProbePlaces, RegionBy, read_places

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pathbudget.agents.importers.import_report import ImportReport
    from pathbudget.agents.store.parquet import Receipt
    from pathbudget.probes.record import Measurement
    from pathbudget.sites.catalogue import Catalogue

NAMED = 10
"""Problems named on stderr; all of them are counted."""


class Format(StrEnum):
    """What the summary can be printed as."""

    TABLE = "table"
    JSON = "json"


FilesArgument = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE...",
        help="JSON array or JSON lines, also .gz and .bz2.",
        exists=True,
        dir_okay=False,
        readable=True,
    ),
]
StoreOption = Annotated[Path, typer.Option("--store", help="Folder to keep measurements in.")]
ProbesOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--probes",
        help="Where the probes are: probes or anchors of the Atlas API; repeatable.",
        exists=True,
        dir_okay=False,
    ),
]
RegionByOption = Annotated[RegionBy, typer.Option("--region-by", help="What makes a region.")]
WithinOption = Annotated[
    float, typer.Option("--within-km", help="How far a nearest region may be.", min=0)
]
FormatOption = Annotated[Format, typer.Option("--format", help="Form of the summary.")]
ReportOption = Annotated[
    Path | None, typer.Option("--report", help="Go on to an HTML report on the store.")
]
VantageOption = Annotated[
    str, typer.Option("--vantage", help="Who measured; default: the host that the file names.")
]
RegionOption = Annotated[str, typer.Option("--region", help="Region of the vantage.")]
AddressesOption = Annotated[
    bool, typer.Option("--keep-addresses", help="Store the probes' own addresses too.")
]


def register(application: typer.Typer) -> None:
    """Add the command."""
    imports = typer.Typer(no_args_is_help=True, help="Read results that others measured.")
    imports.command(name="ripe-atlas")(ripe_atlas)
    imports.command(name="scamper")(scamper)
    application.add_typer(imports, name="import")


@reports_errors
def ripe_atlas(
    files: FilesArgument,
    store: StoreOption = Path("pathbudget-store"),
    probes: ProbesOption = None,
    catalogue: CatalogueOption = None,
    region_by: RegionByOption = RegionBy.PROBE,
    within_km: WithinOption = WITHIN_KM,
    format: FormatOption = Format.TABLE,  # noqa: A002
    report: ReportOption = None,
    tier: TierOption = None,
    keep_addresses: AddressesOption = False,
) -> None:
    """Import RIPE Atlas results: ping, traceroute and sslcert, of any firmware.

    Importing a file again changes nothing. A malformed result is counted and named, and the rest
    is read.
    """
    if report is not None:
        check_outputs([report], (*files, *(probes or ()), *(catalogue or ())))
        _check_report(report, catalogue or [], tuple(tier or ()))
    elif tier:
        raise fail("--tier is for a report; name one with --report FILE", ExitCode.USAGE)
    known = _catalogue(catalogue)
    places = _places(probes or [], known, region_by, within_km)

    def read(counts: "ImportReport") -> "Iterator[Measurement]":
        from pathbudget.agents.importers.ripe_atlas import read_results

        return read_results(
            files, places=places, report=counts, catalogue=known, keep_addresses=keep_addresses
        )

    counts, receipt = _import(files, store, read)
    _tell_problems(counts)
    _tell(counts, receipt, store, format)
    if counts.measurements == 0:
        raise fail("Nothing could be imported.", ExitCode.NOTHING_MEASURED)
    if report is not None:
        _write_report(
            report, store, catalogue or [], tuple(tier or ()), quiet=format is Format.JSON
        )


@reports_errors
def scamper(
    files: FilesArgument,
    store: StoreOption = Path("pathbudget-store"),
    catalogue: CatalogueOption = None,
    vantage: VantageOption = "",
    region: RegionOption = "",
    format: FormatOption = Format.TABLE,  # noqa: A002
) -> None:
    """Import traces of scamper: trace and tracelb, as JSON.

    Importing a file again changes nothing. A malformed result is counted and named, and the rest
    is read.
    """
    known = _catalogue(catalogue)

    def read(counts: "ImportReport") -> "Iterator[Measurement]":
        from pathbudget.agents.importers.scamper import read_scamper

        return read_scamper(files, report=counts, catalogue=known, vantage=vantage, region=region)

    counts, receipt = _import(files, store, read)
    _tell_problems(counts)
    _tell(counts, receipt, store, format)
    if counts.measurements == 0:
        raise fail("Nothing could be imported.", ExitCode.NOTHING_MEASURED)


def _catalogue(paths: list[Path] | None) -> "Catalogue | None":
    from pathbudget.sites.catalogue_file import load_catalogue

    return load_catalogue(paths) if paths else None


def _check_report(path: Path, catalogue: list[Path], tiers: tuple[str, ...]) -> None:
    """Complain about what the report needs before the long work, not after it."""
    from pathbudget.agents.extras import require
    from pathbudget.sites.catalogue_file import load_catalogue

    require("report", "jinja2", "plotly")
    require("analysis", "numpy", "scipy")
    refuse_unknown("tier", tiers, tuple(load_catalogue(catalogue).tiers))
    if path.is_dir() or not path.absolute().parent.is_dir():
        message = f"{path}: cannot be written: it is a folder, or in a folder that is not there"
        raise fail(message, ExitCode.USAGE)


def _places(
    paths: list[Path], catalogue: "Catalogue | None", region_by: RegionBy, within_km: float
) -> ProbePlaces:
    if region_by is not RegionBy.PROBE and not paths:
        message = f"--region-by {region_by} needs --probes FILE, which says where the probes are"
        raise fail(message, ExitCode.USAGE)
    if region_by is RegionBy.NEAREST and catalogue is None:
        message = "--region-by nearest needs --catalogue FILE, which has the regions"
        raise fail(message, ExitCode.USAGE)
    places = {probe: place for path in paths for probe, place in read_places(path).items()}
    regions = catalogue.regions.values() if catalogue is not None else ()
    return ProbePlaces(places, region_by=region_by, regions=regions, within_km=within_km)


def _import(
    files: list[Path], folder: Path, read: "Callable[[ImportReport], Iterator[Measurement]]"
) -> "tuple[ImportReport, Receipt]":
    from pathbudget.agents.extras import require

    require("store", "pyarrow")
    from pathbudget.agents.importers.import_progress import shown
    from pathbudget.agents.importers.import_report import ImportReport
    from pathbudget.agents.store.parquet import Store

    counts = ImportReport(problems_kept=NAMED)
    store = Store(folder)
    store.check_writable()
    measurements = read(counts)
    try:
        return counts, store.write(shown(measurements, files, counts))
    except KeyboardInterrupt:
        message = (
            f"Interrupted after {counts.results:,} results; what {folder} has of them stays.\n"
            "To go on, import the same files again: nothing is stored twice."
        )
        raise fail(message, ExitCode.INTERRUPTED) from None


def _tell_problems(counts: "ImportReport") -> None:
    for problem in counts.problems:
        tell(str(problem))
    more = counts.malformed + counts.damaged_files - len(counts.problems)
    if more > 0:
        typer.echo(f"... and {more:,} more that could not be read", err=True)


def _tell(counts: "ImportReport", receipt: "Receipt", store: Path, form: Format) -> None:
    from pathbudget.agents.importers import import_summary

    stored = {"written": receipt.written, "already_there": receipt.already_there}
    if form is Format.JSON:
        typer.echo(import_summary.as_json(counts, stored))
    else:
        typer.echo(import_summary.as_text(counts, stored, str(store)))


def _write_report(
    path: Path, store: Path, catalogue: list[Path], tiers: tuple[str, ...], *, quiet: bool
) -> None:
    from pathbudget.analysis.report.html import render_html

    evaluation = evaluated(store, catalogue, tiers, None, "RIPE Atlas results")
    write_whole(path, render_html(evaluation).encode())
    typer.echo(f"{path}: html report", err=quiet or is_stdout(path))
