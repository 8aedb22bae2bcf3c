"""`pathbudget budget check`: sources, outputs, exit codes and messages."""

import json
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.gate.conftest import make_line, make_of_lines
from typer.testing import CliRunner

from pathbudget.agents.cli.main import application
from pathbudget.analysis.report.json_report import render_json
from pathbudget.analysis.results import Evaluation

Run = Callable[..., Any]
FAILING = make_line(30.0, 29.0, 31.0)
POLICY = 'sites = "all"\n[tier.voice-ai]\nallowance_ms = 25.5\n'


@pytest.fixture(autouse=True)
def no_pipeline(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GITHUB_WORKSPACE", "CI_PROJECT_DIR", "WORKSPACE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the command on a report of these lines, in a folder with a policy for all sites."""
    monkeypatch.chdir(tmp_path)
    Path("gate.toml").write_text(POLICY)

    def check(lines: list[Any], *arguments: str, policy: str = "gate.toml") -> Any:
        Path("report.json").write_bytes(render_json(make_of_lines(lines)))
        words = ["budget", "check", "report.json", "--policy", policy, *arguments]
        return CliRunner(env={"COLUMNS": "80"}).invoke(application, words)

    return check


def names_here() -> list[str]:
    return sorted(path.name for path in Path.cwd().iterdir())


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        (make_line(), 0, "pathbudget gate: pass"),
        (FAILING, 1, "pathbudget gate: fail"),
        (make_line(25.0, 24.0, 26.0), 6, "pathbudget gate: measure-more"),
        (make_line(n=0), 4, "pathbudget gate: nothing was measured"),
    ],
)
def test_exit_codes(run: Run, line: Any, code: int, said: str) -> None:
    result = run([line])
    assert result.exit_code == code
    assert f"{said} (exit code {code})" in result.stdout
    assert result.stderr == ""


@pytest.mark.parametrize(
    ("option", "line", "code"),
    [
        (["--undecided", "pass"], make_line(25.0, 24.0, 26.0), 0),
        (["--undecided", "fail"], make_line(25.0, 24.0, 26.0), 1),
        (["--not-measured", "fail"], make_line(n=0), 1),
    ],
)
def test_the_command_line_has_the_last_word(
    run: Run, option: list[str], line: Any, code: int
) -> None:
    assert run([line], *option).exit_code == code


def test_all_outputs_at_once_point_at_the_policy(run: Run) -> None:
    result = run(
        [FAILING],
        *("--junit", "j.xml", "--sarif", "s.sarif", "--json", "o.json"),
        *("--markdown", "m.md", "--code-quality", "q.json", "--write-baseline", "b.json"),
        *("--annotations", "github"),
    )
    assert result.exit_code == 1
    assert ET.parse("j.xml").getroot().get("failures") == "1"
    (found,) = json.loads(Path("s.sarif").read_bytes())["runs"][0]["results"]
    place = found["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": "gate.toml"}, "region": {"startLine": 3}}
    assert json.loads(Path("o.json").read_bytes())["exit_code"] == 1
    assert Path("m.md").read_text().startswith("## ✕ pathbudget: fail")
    assert json.loads(Path("q.json").read_bytes())[0]["location"]["path"] == "gate.toml"
    assert "::error file=gate.toml,line=3,title=" in result.stdout
    written = ["b.json", "j.xml", "m.md", "o.json", "q.json", "s.sarif"]
    assert names_here() == sorted([*written, "gate.toml", "report.json"])


def test_an_output_on_stdout_has_it_to_itself(run: Run) -> None:
    result = run([FAILING], "--json", "-", "--annotations", "plain")
    assert json.loads(result.stdout)["ending"] == "fail"
    assert "pathbudget gate: fail" in result.stderr
    assert "gate.toml:3: error: voice-ai" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--json", "-", "--junit", "-"], "two outputs cannot go there"),
        (["--json", "x", "--junit", "./x"], "two outputs cannot go there"),
        (["--json", "none/x.json"], "there is no folder none"),
        (["--json", "."], "it is a folder"),
        (["--baseline", "none.json"], "cannot be read: No such file"),
        (["--baseline", "gate.toml"], "is no baseline"),
        (["--campaign", "x"], "a report has been evaluated already"),
        (["--tier", "voice"], 'no tier "voice" in this run'),
    ],
)
def test_what_is_asked_wrongly_is_two_and_writes_nothing(
    run: Run, arguments: list[str], told: str
) -> None:
    result = run([FAILING], *arguments)
    assert result.exit_code == 2
    assert told in " ".join(result.stderr.split())
    assert result.stdout == ""
    assert names_here() == ["gate.toml", "report.json"]


def test_a_policy_with_faults_is_two_with_lines(run: Run) -> None:
    Path("bad.toml").write_text("\ntierz = 1\n")
    result = run([FAILING], policy="bad.toml")
    assert result.exit_code == 2
    assert "bad.toml: line 2, tierz" in result.stderr


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "is no report"),
        (b"{}", "is no report"),
        (b'{"schema": 99, "provenance": {}, "lines": []}', "has schema version 99"),
        (b'{"schema": 1, "provenance": {}, "lines": []}', "is no report"),
    ],
)
def test_a_file_that_is_no_report_is_two(tmp_path: Path, content: bytes, told: str) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(content)
    result = CliRunner(env={"COLUMNS": "300"}).invoke(application, ["budget", "check", str(path)])
    assert result.exit_code == 2
    assert told in result.stderr


def test_a_report_from_standard_input_with_its_routes(run: Run) -> None:
    content = json.loads(render_json(make_of_lines([make_line()])))
    words = ["budget", "check", "-", "--policy", "gate.toml"]
    given = json.dumps(content | {"routes": {"anything": 1}})
    result = CliRunner().invoke(application, words, input=given)
    assert result.exit_code == 0
    broken = CliRunner().invoke(application, words, input=given[:-9])
    assert broken.exit_code == 2
    assert broken.stderr.startswith("standard input: is no report")


def test_a_baseline_makes_a_slower_line_fail(run: Run) -> None:
    assert run([make_line(10.0, 9.0, 11.0)], "--write-baseline", "b.json").exit_code == 0
    result = run([make_line(15.0, 14.0, 16.0)], "--baseline", "b.json")
    assert result.exit_code == 1
    assert "slower       voice-ai, us-south to dallas" in result.stdout
    both = run([make_line(15.0, 14.0, 16.0)], "--baseline", "b.json", "--write-baseline", "b.json")
    assert both.exit_code == 1
    assert run([make_line(15.0, 14.0, 16.0)], "--baseline", "b.json").exit_code == 0


def test_paths_are_from_the_root_of_the_checkout(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = tmp_path / "políticas de red"
    inner.mkdir()
    (inner / "gate.toml").write_text(POLICY)
    monkeypatch.chdir(inner)
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    result = run([FAILING], "--annotations", "github", policy="gate.toml")
    assert "::error file=políticas de red/gate.toml,line=3," in result.stdout


def test_one_output_that_cannot_be_written_keeps_no_other_back(run: Run) -> None:
    Path("deaf").symlink_to("/proc/nowhere/x")
    result = run([FAILING], "--json", "deaf", "--junit", "j.xml")
    assert result.exit_code == 5
    assert "cannot be written" in result.stderr
    assert "pathbudget gate: fail" in result.stdout
    assert ET.parse("j.xml").getroot().get("failures") == "1"


def test_what_an_old_output_held_is_replaced_whole(run: Run) -> None:
    Path("j.xml").write_text("x" * 100_000)
    run([FAILING], "--junit", "j.xml")
    assert ET.parse("j.xml").getroot().tag == "testsuites"


def test_a_store_is_evaluated_at_the_percentiles_of_the_policy(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {}

    def evaluate(*_given: object, **options: object) -> Evaluation:
        asked.update(options)
        return make_of_lines([make_line(percentile=90.0)])

    monkeypatch.setattr("pathbudget.agents.evaluation.evaluate_store", evaluate)
    Path("p.toml").write_text('sites = "all"\n[tier.voice-ai]\npercentiles = [90]\n')
    (tmp_path / "store").mkdir()
    words = ["budget", "check", "store", "--policy", "p.toml"]
    result = CliRunner().invoke(application, words)
    assert result.exit_code == 0
    assert asked["percentiles"] == (90.0,)


def test_letters_that_a_log_cannot_hold_are_written_out(run: Run) -> None:
    line = msgspec.structs.replace(make_line(20.0, 19.0, None), reason="東京.")
    Path("report.json").write_bytes(render_json(make_of_lines([line])))
    Path("all.toml").write_text('sites = "all"\n')
    words = ["budget", "check", "report.json", "--policy", "all.toml", "--annotations", "plain"]
    result = CliRunner(charset="ascii").invoke(application, words)
    assert result.exit_code == 6
    assert result.stdout.count(r"\u6771\u4eac.") == 2


def test_there_is_no_store_is_four(tmp_path: Path) -> None:
    result = CliRunner().invoke(application, ["budget", "check", str(tmp_path / "none")])
    assert result.exit_code == 4
    assert "there is no store" in result.stderr
