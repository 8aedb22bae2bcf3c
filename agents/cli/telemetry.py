"""`pathbudget telemetry`: terms of the budget out of traces, load tests and files."""

import ipaddress
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pathbudget.agents.cli.exits import ExitCode, fail, reports_errors, tell
from pathbudget.agents.cli.telemetry_export import export
from pathbudget.probes.errors import ConfigError, Fault

if TYPE_CHECKING:
    from pathbudget.agents.telemetry.gather import Gathered


LARGEST_PORT = 65_535


class Format(StrEnum):
    """What `terms` can be printed as."""

    TABLE = "table"
    JSON = "json"


FilesArgument = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE",
        help="OTLP exports (JSON, protobuf, .gz), folders of them, llmperf results, TOML, CSV.",
        exists=True,
        readable=True,
    ),
]
MapOption = Annotated[
    Path | None,
    typer.Option(
        "--map", metavar="FILE", help="Which spans are which terms (TOML).", exists=True,
        dir_okay=False,
    ),
]  # fmt: skip
TokensOption = Annotated[
    int, typer.Option("--tokens", min=1, max=1000, help="Tokens after the first that count.")
]
OutputOption = Annotated[
    Path | None,
    typer.Option("--output", metavar="FILE", help="Write the terms too: .csv or .toml."),
]
FormatOption = Annotated[Format, typer.Option("--format", help="How to print it.")]
ConfidenceOption = Annotated[
    float, typer.Option("--confidence", min=0.5, max=0.999, help="Of the intervals.")
]


def register(application: typer.Typer) -> None:
    """Add the group of commands."""
    group = typer.Typer(
        help="Terms of the budget out of OpenTelemetry traces and files; a receiver, an exporter.",
        no_args_is_help=True,
    )
    group.command("terms")(terms)
    group.command("map")(print_map)
    group.command("receive")(receive)
    group.command("export")(export)
    application.add_typer(group, name="telemetry")


@reports_errors
def terms(
    files: FilesArgument,
    span_map: MapOption = None,
    tokens: TokensOption = 10,
    output: OutputOption = None,
    format: FormatOption = Format.TABLE,  # noqa: A002
    confidence: ConfidenceOption = 0.95,
) -> None:
    """The budget terms that files give, with intervals, and what was left out and why.

    The network is not among them: probes measure it. The file that --output writes is one for
    `pathbudget budget whole --terms`.
    """
    from pathbudget.agents.extras import require

    if output is not None and output.suffix.lower() not in (".csv", ".toml"):
        raise fail(f"--output {output}: expected a name ending in .csv or .toml", ExitCode.USAGE)
    require("analysis", "numpy", "scipy")
    from pathbudget.agents.cli.outputs import check_outputs

    check_outputs([] if output is None else [output], (*files, span_map))
    from pathbudget.agents.telemetry.gather import gather
    from pathbudget.agents.telemetry.listing import as_json, print_terms

    gathered = gather(files, span_map, tokens=tokens)
    _tell_problems(gathered)
    if output is not None:
        _write(output, gathered)
    if format is Format.JSON:
        sys.stdout.write(as_json(gathered, confidence).decode() + "\n")
    else:
        print_terms(gathered, confidence)


@reports_errors
def print_map() -> None:
    """Print the shipped table of spans and terms, to be changed and given to --map."""
    from pathbudget.agents.extras import require

    require("analysis", "numpy", "scipy")
    from pathbudget.analysis.whole_budget.spans_map import default_map_text

    sys.stdout.write(default_map_text())


@reports_errors
def receive(
    listen: Annotated[
        str, typer.Option(metavar="ADDRESS:PORT", help="Where to listen.")
    ] = "127.0.0.1:4318",
    output: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Where requests are kept, as they come.")
    ] = Path("pathbudget-traces"),
    max_body_mib: Annotated[
        int, typer.Option(min=1, max=256, help="Largest request, packed and unpacked.")
    ] = 20,
    max_disk_mib: Annotated[
        int, typer.Option(min=1, help="Beyond this the folder takes no more.")
    ] = 1024,
    ready_fd: Annotated[
        int | None, typer.Option(min=1, help="Write 'ready' to this descriptor when listening.")
    ] = None,
    die_with_parent: Annotated[
        bool, typer.Option("--die-with-parent", help="Stop when the starting process ends.")
    ] = False,
) -> None:
    """Receive traces by OTLP/HTTP (protobuf and JSON) and keep them for `telemetry terms`.

    A request is on the disk before it is acknowledged. Runs until SIGTERM or Ctrl-C. Whoever
    reaches the address can write to the folder, up to its bound: leave it on loopback, or in a
    network that you trust.
    """
    from pathbudget.agents.extras import require

    host, port = _address(listen)
    require("telemetry", "h11", "opentelemetry", "google")
    from pathbudget.agents.responder import process
    from pathbudget.agents.telemetry.receive_process import serve
    from pathbudget.agents.telemetry.receive_server import MEBIBYTE, ReceiverOptions

    if die_with_parent:
        process.die_with_parent()
    body = max_body_mib * MEBIBYTE
    options = ReceiverOptions(host, port, body, held_bytes=max(64 * MEBIBYTE, 3 * body))
    counts = serve(options, output, max_disk_mib * MEBIBYTE, ready_fd)
    told = ", ".join(f"{count:,} {what}" for what, count in sorted(counts.items()) if count)
    tell(f"Stopped. {told or 'Nobody came'}. To read it: pathbudget telemetry terms {output}")


def _address(text: str) -> tuple[str, int]:
    """Host and port of ``127.0.0.1:4318``, ``[::1]:4318`` or ``localhost:4318``."""
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") if host.startswith("[") else host
    sound = port.isascii() and port.isdigit() and int(port) <= LARGEST_PORT
    if not sound or not _is_address(host):
        expected = "an address of this machine and a port, like 127.0.0.1:4318 or [::1]:4318"
        raise ConfigError([Fault("command line", "--listen", f"{text!r}", expected)])
    return host, int(port)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost"
    return True


def _tell_problems(gathered: "Gathered") -> None:
    problems = gathered.problems
    for fault in problems.faults:
        tell(str(fault))
    if (more := problems.count - len(problems.faults)) > 0:
        tell(f"... and {more:,} more that could not be read")


def _write(path: Path, gathered: "Gathered") -> None:
    from pathbudget.agents.cli.outputs import write_whole
    from pathbudget.analysis.whole_budget.term_output import as_csv, as_toml

    try:
        text = as_csv(gathered.terms) if path.suffix.lower() == ".csv" else as_toml(gathered.terms)
    except ValueError as error:
        raise fail(f"{path}: {error}: name it .toml", ExitCode.USAGE) from None
    write_whole(path, text.encode())
    tell(f"{path}: {sum(len(term.values_ns) for term in gathered.terms):,} values")
