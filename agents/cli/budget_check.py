"""`pathbudget budget check`: the gate of a pipeline (docs/gate.md)."""

import os
import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from pathbudget.agents.cli.budget_check_source import Asked, evaluation_of
from pathbudget.agents.cli.exits import reports_errors
from pathbudget.agents.cli.options import (
    AlwaysValidOption,
    BusyHoursOption,
    CampaignOption,
    CatalogueOption,
    Rigour,
    SpansOption,
    TermsOption,
    TierOption,
    TracesOption,
)
from pathbudget.agents.cli.outputs import check_outputs, is_stdout, write_whole
from pathbudget.agents.cli.wording import harmless
from pathbudget.analysis.gate.annotations import Style
from pathbudget.analysis.gate.policy import Treatment

if TYPE_CHECKING:
    from pathbudget.analysis.gate.baseline import Baseline
    from pathbudget.analysis.gate.checks import Outcome
    from pathbudget.analysis.gate.policy import Policy
    from pathbudget.analysis.results import Evaluation

DEFAULT_SOURCE = Path("pathbudget-store")
ROOTS = ("GITHUB_WORKSPACE", "CI_PROJECT_DIR", "WORKSPACE")
"""Where pipelines say that the checkout is: paths in their annotations are from there."""

SourceArgument = Annotated[
    Path,
    typer.Argument(
        metavar="STORE|REPORT.json", help="Folder of measurements, or a report as JSON; - is stdin."
    ),
]
PolicyOption = Annotated[
    Path | None, typer.Option("--policy", metavar="FILE", help="What is demanded (TOML).")
]
BaselineOption = Annotated[
    Path | None,
    typer.Option("--baseline", metavar="FILE", help="Fail on what is surely slower than this."),
]
WriteBaselineOption = Annotated[
    Path | None, typer.Option("--write-baseline", metavar="FILE", help="Write this run as one.")
]
UndecidedOption = Annotated[
    Treatment | None, typer.Option("--undecided", help="Before the policy's word.")
]
NotMeasuredOption = Annotated[
    Treatment | None, typer.Option("--not-measured", help="Before the policy's word.")
]
JunitOption = Annotated[
    Path | None, typer.Option("--junit", metavar="FILE", help="Write JUnit XML; - is stdout.")
]
SarifOption = Annotated[
    Path | None, typer.Option("--sarif", metavar="FILE", help="Write SARIF 2.1.0.")
]
JsonOption = Annotated[
    Path | None, typer.Option("--json", metavar="FILE", help="Write every check as JSON.")
]
MarkdownOption = Annotated[
    Path | None, typer.Option("--markdown", metavar="FILE", help="Write a summary page.")
]
QualityOption = Annotated[
    Path | None,
    typer.Option("--code-quality", metavar="FILE", help="Write GitLab code quality JSON."),
]
AnnotationsOption = Annotated[
    Style | None, typer.Option("--annotations", help="Print what does not pass in this style.")
]
EverythingOption = Annotated[bool, typer.Option("--all", help="List the checks that pass too.")]


def register_check(group: typer.Typer) -> None:
    """Add the command."""
    group.command("check")(check)


@reports_errors
def check(
    source: SourceArgument = DEFAULT_SOURCE,
    catalogue: CatalogueOption = None,
    campaign: CampaignOption = None,
    tier: TierOption = None,
    policy: PolicyOption = None,
    undecided: UndecidedOption = None,
    not_measured: NotMeasuredOption = None,
    baseline: BaselineOption = None,
    write_baseline: WriteBaselineOption = None,
    junit: JunitOption = None,
    sarif: SarifOption = None,
    json: JsonOption = None,
    markdown: MarkdownOption = None,
    code_quality: QualityOption = None,
    annotations: AnnotationsOption = None,
    everything: EverythingOption = False,
    terms: TermsOption = None,
    traces: TracesOption = None,
    span_map: SpansOption = None,
    always_valid: AlwaysValidOption = False,
    require_busy_hours: BusyHoursOption = False,
) -> None:
    """Say whether a pipeline may go on: exit 0 pass, 1 fail, 6 measure more.

    Without a policy: the headline line of every tier from each region to its recommended site;
    what is undecided or not measured asks for more measurements.
    """
    outputs = {
        "junit": junit,
        "sarif": sarif,
        "json": json,
        "markdown": markdown,
        "code-quality": code_quality,
        "baseline": write_baseline,
    }
    wanted = {kind: path for kind, path in outputs.items() if path is not None}
    updated = write_baseline is not None and baseline == write_baseline
    read = (source, policy, *(catalogue or ()), *(terms or ()), *(traces or ()), span_map)
    check_outputs(list(wanted.values()), (*read, None if updated else baseline))
    the_policy = _policy(policy, tuple(tier or ()), undecided, not_measured)
    before = _baseline(baseline)
    asked = Asked(
        tuple(catalogue or ()),
        campaign,
        tuple(terms or ()),
        tuple(traces or ()),
        span_map,
        Rigour(always_valid, require_busy_hours),
    )
    evaluation = evaluation_of(source, asked, the_policy)
    from pathbudget.analysis.gate.outcome import check as checked

    outcome = checked(evaluation, the_policy, before, baseline_file=str(baseline))
    outcome = _located(outcome, policy, catalogue[0] if catalogue else None)
    unwritten = _write(wanted, outcome, evaluation)
    beside = any(map(is_stdout, wanted.values()))
    _say(outcome, annotations, everything=everything, err=beside)
    raise unwritten or typer.Exit(outcome.exit_code)


def _policy(
    file: Path | None,
    tiers: tuple[str, ...],
    undecided: Treatment | None,
    not_measured: Treatment | None,
) -> "Policy":
    """The policy of the file, and what the command line says before it."""
    import msgspec

    from pathbudget.agents.gate_files import read_policy
    from pathbudget.analysis.gate.policy import Policy

    policy = Policy() if file is None else read_policy(file)
    if tiers:
        policy = msgspec.structs.replace(policy, tiers=tiers)
    return policy.overruled(undecided, not_measured)


def _baseline(file: Path | None) -> "Baseline | None":
    from pathbudget.agents.gate_files import read_baseline

    return None if file is None else read_baseline(file)


def _located(outcome: "Outcome", policy: Path | None, catalogue: Path | None) -> "Outcome":
    """The outcome with the file that annotations point at, as the pipeline names it."""
    import msgspec

    file = policy or catalogue
    if file is None:
        return outcome
    shown = _from_root(file)
    checks = tuple(msgspec.structs.replace(one, file=shown) for one in outcome.checks)
    named = msgspec.structs.replace(outcome.policy, file=shown if policy else "")
    return msgspec.structs.replace(outcome, checks=checks, policy=named)


def _from_root(file: Path) -> str:
    """A path from the root of the checkout, where the file is in it."""
    from pathbudget.analysis.gate.subject_words import visible

    whole = file.absolute()
    roots = [Path(os.environ[name]) for name in ROOTS if os.environ.get(name)]
    for root in (*roots, Path.cwd()):
        with suppress(ValueError):
            return visible(whole.relative_to(root.absolute()).as_posix())
    return visible(whole.as_posix())


def _write(
    wanted: dict[str, Path], outcome: "Outcome", evaluation: "Evaluation"
) -> typer.Exit | None:
    """Every file, whole or not at all; one that cannot be written keeps none of the others back,
    nor the verdict. Returns how to end where one could not.
    """
    failed: list[typer.Exit] = []
    for kind, path in wanted.items():
        content = RENDERERS[kind](outcome, evaluation)
        try:
            write_whole(path, content)
        except typer.Exit as error:
            failed.append(error)
    return failed[0] if failed else None


def _junit(outcome: "Outcome", _evaluation: "Evaluation") -> bytes:
    from pathbudget.analysis.gate.junit import render_junit

    return render_junit(outcome)


def _sarif(outcome: "Outcome", _evaluation: "Evaluation") -> bytes:
    from importlib.metadata import version

    from pathbudget.analysis.gate.sarif import render_sarif

    return render_sarif(outcome, version("pathbudget"))


def _json(outcome: "Outcome", _evaluation: "Evaluation") -> bytes:
    from pathbudget.analysis.gate.gate_json import render_json

    return render_json(outcome)


def _markdown(outcome: "Outcome", _evaluation: "Evaluation") -> bytes:
    from pathbudget.analysis.gate.gate_markdown import render_markdown

    return render_markdown(outcome).encode()


def _code_quality(outcome: "Outcome", _evaluation: "Evaluation") -> bytes:
    from pathbudget.analysis.gate.annotations import render_code_quality

    return render_code_quality(outcome)


def _new_baseline(outcome: "Outcome", evaluation: "Evaluation") -> bytes:
    from pathbudget.analysis.gate.baseline import baseline_of, render_baseline

    return render_baseline(baseline_of(evaluation, [one.subject for one in outcome.checks]))


RENDERERS: dict[str, "Callable[[Outcome, Evaluation], bytes]"] = {
    "junit": _junit,
    "sarif": _sarif,
    "json": _json,
    "markdown": _markdown,
    "code-quality": _code_quality,
    "baseline": _new_baseline,
}


def _say(outcome: "Outcome", style: Style | None, *, everything: bool, err: bool) -> None:
    """The verdict for the log, and the annotations that were asked for."""
    from pathbudget.analysis.gate.annotations import render_annotations
    from pathbudget.analysis.gate.gate_text import render_text

    stream = sys.stderr if err else sys.stdout
    text = render_text(outcome, _width(stream), everything=everything)
    annotated = "" if style is None else render_annotations(outcome, style)
    typer.echo(_encodable(harmless(text) + annotated, stream), nl=False, err=err)


def _width(stream: TextIO) -> int | None:
    """Of the terminal, or what COLUMNS says; a log has none, so that it can be searched."""
    if not stream.isatty() and "COLUMNS" not in os.environ:
        return None
    return shutil.get_terminal_size().columns


def _encodable(text: str, stream: TextIO) -> str:
    """Letters that a pipeline's log cannot hold, written out."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)
