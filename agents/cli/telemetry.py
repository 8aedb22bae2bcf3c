"""`pathbudget telemetry`: terms of the budget out of traces, load tests and files."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pathbudget.agents.cli.exits import ExitCode, fail, reports_errors, tell

if TYPE_CHECKING:
    from pathbudget.agents.telemetry.gather import Gathered


class Format(StrEnum):
    """What `terms` can be printed as."""

    TABLE = "table"
    JSON = "json"


FilesArgument = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE...",
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
        help="Terms of the budget out of OpenTelemetry traces and files; a receiver of traces.",
        no_args_is_help=True,
    )
    group.command("terms")(terms)
    group.command("map")(print_map)
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


def _tell_problems(gathered: "Gathered") -> None:
    problems = gathered.problems
    for fault in problems.faults:
        tell(str(fault))
    if (more := problems.count - len(problems.faults)) > 0:
        tell(f"... and {more:,} more that could not be read")


def _write(path: Path, gathered: "Gathered") -> None:
    from pathbudget.agents.cli.report import write_whole
    from pathbudget.analysis.whole_budget.term_output import as_csv, as_toml

    text = as_csv(gathered.terms) if path.suffix.lower() == ".csv" else as_toml(gathered.terms)
    write_whole(path, text.encode())
    tell(f"{path}: {sum(len(term.values_ns) for term in gathered.terms):,} values")
