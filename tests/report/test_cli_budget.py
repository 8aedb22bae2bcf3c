"""`pathbudget budget`: lines, formats, and exit codes that a pipeline can rely on."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

from pathbudget.agents.cli.main import application
from pathbudget.analysis.results import BudgetLine, Carrier, Evaluation, Mode, Verdict

EvaluationFactory = Callable[..., Evaluation]
Run = Callable[..., Any]


def with_verdict(evaluation: Evaluation, verdict: Verdict) -> Evaluation:
    """Every line gets the same verdict."""
    lines = tuple(msgspec.structs.replace(x, verdict=verdict) for x in evaluation.lines)
    return msgspec.structs.replace(evaluation, lines=lines)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Run the command on an evaluation instead of a store."""

    def run_on(evaluation: Evaluation, *arguments: str, columns: str = "80") -> Any:
        def evaluate(*_given: object, **_options: object) -> Evaluation:
            return evaluation

        monkeypatch.setattr("pathbudget.agents.evaluation.evaluate_store", evaluate)
        command = ["budget", str(tmp_path), *arguments]
        return CliRunner(env={"COLUMNS": columns}).invoke(application, command)

    return run_on


def test_all_pass_is_zero(run: Run, evaluation: Evaluation) -> None:
    result = run(with_verdict(evaluation, Verdict.PASS))
    assert result.exit_code == 0
    assert result.stderr == ""


def test_one_fail_is_one_and_is_named(run: Run, evaluation: Evaluation) -> None:
    result = run(evaluation, "--tier", "voice-ai", "--format", "json")
    assert result.exit_code == 1
    assert "fail: voice-ai, ap-ne to frankfurt, warm p95:" in result.stderr


@pytest.mark.parametrize(
    ("option", "code", "said"),
    [(None, 0, "warning"), ("warn", 0, "warning"), ("pass", 0, ""), ("fail", 1, "fail")],
)
def test_undecided_is_what_the_user_says(
    run: Run, evaluation: Evaluation, option: str | None, code: int, said: str
) -> None:
    arguments = ["--undecided", option] if option else []
    result = run(with_verdict(evaluation, Verdict.UNDECIDED), *arguments)
    assert result.exit_code == code
    assert result.stderr.startswith(said)
    assert bool(result.stderr) == bool(said)


def test_a_missing_line_counts_as_undecided(run: Run, evaluation: Evaluation) -> None:
    passing = with_verdict(evaluation, Verdict.PASS)
    lines = tuple(x for x in passing.lines if x.region != "us-east")
    holed = msgspec.structs.replace(passing, lines=lines)
    assert run(holed, "--undecided", "fail").exit_code == 1
    result = run(holed)
    assert result.exit_code == 0
    assert "not measured" in result.stderr
    assert "not measured" in result.stdout


def test_json_is_lines_and_counts(run: Run, evaluation: Evaluation) -> None:
    content = json.loads(run(evaluation, "--tier", "chat", "--format", "json").stdout)
    lines = msgspec.convert(content["lines"], tuple[BudgetLine, ...])
    assert len(lines) == 6
    counts = content["counts"]
    assert counts["pass"] + counts["fail"] + counts["undecided"] == 6
    assert content["verdict"] == "fail"
    assert content["confidence"] == 0.95


def test_csv_has_units_in_its_head_and_says_no_limit(run: Run, evaluation: Evaluation) -> None:
    result = run(evaluation, "--sites", "all", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert len(rows) == 6 * 4 * 3
    assert {"value_ms", "low_ms", "high_ms", "allowance_ms", "percentile", "n"} <= set(rows[0])
    dead = [r for r in rows if (r["region"], r["site"]) == ("ap-south", "tokyo")]
    assert {row["value_ms"] for row in dead} == {"no limit"}
    assert {row["verdict"] for row in rows} == {"pass", "fail", "undecided"}


def test_csv_holds_no_name_that_a_spreadsheet_takes_for_a_formula(
    run: Run, evaluation: Evaluation
) -> None:
    lines = tuple(msgspec.structs.replace(x, target="=cmd()") for x in evaluation.lines)
    hostile = msgspec.structs.replace(evaluation, lines=lines)
    result = run(hostile, "--sites", "all", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert {row["target"] for row in rows} == {"'=cmd()"}


@pytest.mark.parametrize("arguments", [(), ("--sites", "all"), ("--all-lines",)])
def test_the_table_fits_eighty_columns(
    run: Run, evaluation: Evaluation, arguments: tuple[str, ...]
) -> None:
    result = run(evaluation, *arguments)
    assert max(len(line) for line in result.stdout.splitlines()) <= 80
    row = next(x for x in result.stdout.splitlines() if x.startswith("us-south"))
    assert "…" not in row.removeprefix("us-south")
    assert "\x1b" not in result.stdout


def several(evaluation: Evaluation) -> Evaluation:
    """Early data over both, beside what there is: the widest labels and numbers."""
    added = [
        msgspec.structs.replace(
            line,
            mode=Mode.EARLY_DATA,
            transport=carrier,
            headline=False,
            prompt_bytes=64_000,
            value_ms=1234.0,
            low_ms=1233.0,
            high_ms=None,
            verdict=Verdict.NOT_MEASURED,
            reason="no such connection was measured.",
        )
        for line in evaluation.lines
        if line.headline
        for carrier in (Carrier.TLS, Carrier.QUIC)
    ]
    return msgspec.structs.replace(evaluation, lines=(*evaluation.lines, *added))


def test_several_modes_and_transports_fit_eighty_columns_uncut(
    run: Run, evaluation: Evaluation
) -> None:
    asked = (
        *("--mode", "early_data", "--transport", "quic", "--transport", "tls"),
        *("--prompt", "64000"),
    )
    result = run(several(evaluation), "--tier", "voice-ai", *asked)
    lines = [line.rstrip() for line in result.stdout.splitlines()]
    assert max(map(len, lines)) <= 80
    assert "…" not in result.stdout
    assert "us-south to dallas" in lines
    for transport in ("tls", "quic"):
        row = next(x for x in lines if f"both {transport} early_data p95 64000B" in x)
        assert row.endswith("not measured")
        assert "1,233 to no limit" in row
    assert lines.count("not measured: no such connection was measured.") == 1


def test_cautions_are_of_the_lines_that_are_shown(run: Run, evaluation: Evaluation) -> None:
    """A headline line without a limit that nobody asked for is no caution."""
    open_lines = tuple(
        msgspec.structs.replace(x, high_ms=None) if x.headline and x.tier != "rag" else x
        for x in evaluation.lines
    )
    weak = msgspec.structs.replace(evaluation, lines=open_lines)
    assert "Caution" not in run(weak, "--tier", "rag").stdout
    assert "lines have no upper limit" in " ".join(run(weak, "--tier", "chat").stdout.split())


def test_a_mode_that_is_not_over_that_transport_is_answered_with_those_there_are(
    run: Run, evaluation: Evaluation
) -> None:
    result = run(evaluation, "--mode", "cold", "--transport", "quic", "--sites", "all")
    assert result.exit_code == 4
    assert "no line is of cold and quic; there are lines of" in result.stderr
    mixed = tuple(
        msgspec.structs.replace(x, transport=Carrier.MIXED, mode=Mode.MIXTURE, headline=False)
        if x.mode is Mode.COLD
        else x
        for x in evaluation.lines
    )
    over_both = msgspec.structs.replace(evaluation, lines=mixed)
    result = run(over_both, "--mode", "mixture", "--transport", "quic", "--sites", "all")
    assert "both mixed mixture p95" in result.stdout


def test_long_names_are_cut_in_the_table_and_numbers_are_not(run: Run, hostile: Evaluation) -> None:
    result = run(hostile)
    lines = result.stdout.splitlines()
    assert max(len(line) for line in lines) <= 120
    rows = [
        line.rstrip() for line in lines if line.rstrip().endswith(("pass", "fail", "undecided"))
    ]
    assert any("…" in row for row in rows)


@pytest.mark.parametrize(
    ("option", "value", "known"),
    [
        ("--tier", "voice", "voice-ai"),
        ("--region", "mars", "us-south"),
        ("--site", "atlantis", "dallas"),
        ("--percentile", "97", "50, 95, 99"),
    ],
)
def test_unknown_names_are_two_and_the_known_ones_are_told(
    run: Run, evaluation: Evaluation, option: str, value: str, known: str
) -> None:
    result = run(evaluation, option, value)
    assert result.exit_code == 2
    assert known in result.stderr
    assert value in result.stderr
    assert result.stdout == ""


def test_nothing_measured_is_four(run: Run, evaluation_of: EvaluationFactory) -> None:
    result = run(evaluation_of(0, 0, 3))
    assert result.exit_code == 4


def test_a_folder_that_is_not_there_is_four(tmp_path: Path) -> None:
    result = CliRunner().invoke(application, ["budget", str(tmp_path / "none")])
    assert result.exit_code == 4
    assert "no store" in result.stderr
