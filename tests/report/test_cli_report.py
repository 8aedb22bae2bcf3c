"""`pathbudget report`: files written whole, formats by suffix, clear messages."""

import json
import random
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pathbudget.agents.cli import outputs
from pathbudget.agents.cli.exits import ExitCode
from pathbudget.agents.cli.main import application
from pathbudget.agents.store.parquet import Store
from pathbudget.analysis.results import Evaluation
from pathbudget.probes.record import (
    AddressFamily,
    ClockSource,
    Failure,
    FailureKind,
    Measurement,
    Sample,
    Stage,
    Target,
    Vantage,
)

EvaluationFactory = Callable[..., Evaluation]
SECRET = "198.51.100.77"
CATALOGUE = """
[[region]]
name = "texas"
latitude = 32.8
longitude = -96.8

[[site]]
name = "dallas"
latitude = 32.8
longitude = -96.9

[[site.target]]
name = "dallas-edge"
host = "dallas.example"
"""


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch, evaluation: Evaluation, tmp_path: Path) -> dict[str, Any]:
    """The evaluation instead of what an empty store holds; what the command asked for."""
    asked: dict[str, Any] = {}
    Store(tmp_path).check_writable()

    def evaluate(store: object, catalogue: object, **options: Any) -> Evaluation:
        asked.update(options, catalogue=catalogue)
        return evaluation

    monkeypatch.setattr("pathbudget.agents.evaluation.evaluate_store", evaluate)
    return asked


def run(*arguments: str | Path) -> Any:
    return CliRunner().invoke(application, ["report", *(str(word) for word in arguments)])


def test_several_formats_in_one_go(fake: dict[str, Any], tmp_path: Path) -> None:
    names = [tmp_path / name for name in ("a.html", "b.md", "c.json")]
    result = run(tmp_path, *(word for name in names for word in ("-o", name)), "--title", "T")
    assert result.exit_code == 0, result.output
    assert names[0].read_text().startswith("<!DOCTYPE html>")
    assert names[1].read_text().startswith("# ")
    assert json.loads(names[2].read_bytes())["schema"] == 1
    assert fake["title"] == "T"
    assert [line.split(":")[0] for line in result.stdout.splitlines()] == [str(n) for n in names]


def test_without_a_catalogue_the_shipped_tiers_count(fake: dict[str, Any], tmp_path: Path) -> None:
    run(tmp_path, "-o", tmp_path / "a.json", "--tier", "voice-ai", "--campaign", "c")
    assert "voice-ai" in fake["catalogue"].tiers
    assert not fake["catalogue"].regions
    assert fake["tiers"] == ("voice-ai",)
    assert fake["campaign"] == "c"


def test_to_stdout(fake: dict[str, Any], tmp_path: Path) -> None:
    result = run(tmp_path, "-o", "-", "--format", "json")
    assert json.loads(result.stdout)["schema"] == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("-o", "report.pdf"), "no format for this suffix"),
        (("-o", "nowhere/report.html"), "no folder nowhere"),
        (("--tier", "gold"), "voice-ai"),
        (("-c", "missing.toml"), "missing.toml"),
    ],
)
def test_what_is_wrong_on_the_command_line_is_two(
    fake: dict[str, Any], tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    result = run(tmp_path, *arguments)
    assert result.exit_code == 2
    assert said in result.stderr


def test_what_stood_there_survives_a_full_disk(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import typer

    old = tmp_path / "report.html"
    old.write_text("old")

    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(typer.Exit) as caught:
        outputs.write_whole(old, b"new")
    assert caught.value.exit_code == ExitCode.TROUBLE
    assert old.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_a_written_file_has_the_usual_permissions(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("")
    outputs.write_whole(tmp_path / "whole", b"x")
    modes = {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("plain", "whole")}
    assert len(modes) == 1


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real.html").write_text("old")
    (tmp_path / "link.html").symlink_to("real.html")
    outputs.write_whole(tmp_path / "link.html", b"new")
    assert (tmp_path / "link.html").is_symlink()
    assert (tmp_path / "real.html").read_text() == "new"


def test_an_empty_store_is_four(tmp_path: Path) -> None:
    Store(tmp_path / "store").check_writable()
    result = run(tmp_path / "store", "-o", tmp_path / "r.html")
    assert result.exit_code == 4
    assert not (tmp_path / "r.html").exists()


def measurement(number: int) -> Measurement:
    """Six hundred round trips of about 2 ms, and two losses."""
    begun = 1_790_000_000_000_000_000 + number
    generator = random.Random(number)
    samples = tuple(
        Sample(
            seq=seq,
            metric="rtt",
            sent_unix_ns=begun + seq * 250_000_000,
            clock_source=ClockSource.KERNEL,
            value_ns=2_000_000 + generator.randrange(500_000),
        )
        for seq in range(600)
    )
    lost = Failure(kind=FailureKind.TIMEOUT, stage=Stage.WAIT)
    losses = tuple(
        Sample(seq=seq, metric="rtt", sent_unix_ns=begun + seq * 250_000_000, failure=lost)
        for seq in (600, 601)
    )
    return Measurement(
        id=f"0190{number:028d}",
        vantage=Vantage(name="texas-a", region="texas", host=SECRET, source_address=SECRET),
        target=Target(name="dallas-edge", host="dallas.example", site="dallas"),
        probe="icmp",
        started_unix_ns=begun,
        duration_ns=151 * 10**9,
        samples=samples + losses,
        campaign="spring",
        address="203.0.113.10",
        family=AddressFamily.IPV4,
    )


def test_from_a_store_to_all_formats_without_the_address_of_a_vantage(tmp_path: Path) -> None:
    store, catalogue = tmp_path / "store", tmp_path / "catalogue.toml"
    catalogue.write_text(CATALOGUE)
    Store(store).write([measurement(1)])
    outputs = [tmp_path / name for name in ("r.html", "r.md", "r.json")]
    words = [word for path in outputs for word in ("-o", path)]
    result = run(store, "-c", catalogue, *words)
    assert result.exit_code == 0, result.output
    for path in outputs:
        text = path.read_text()
        assert "dallas" in text
        assert SECRET not in text
    lines = CliRunner().invoke(application, ["budget", str(store), "-c", str(catalogue)])
    assert lines.exit_code == 0, lines.output
    assert "texas" in lines.stdout
    assert "pass" in lines.stdout


def test_a_report_judges_whole_requests_with_the_terms_it_is_given(tmp_path: Path) -> None:
    store, catalogue = tmp_path / "store", tmp_path / "catalogue.toml"
    catalogue.write_text(CATALOGUE)
    Store(store).write([measurement(1)])
    terms = tmp_path / "terms.csv"
    terms.write_text("term,value_ms\n" + "".join(f"ttft,{90 + at % 40}\n" for at in range(400)))
    words: list[str | Path] = [store, "-c", catalogue, "--tier", "chat", "--terms", terms]
    result = run(*words, "-o", tmp_path / "r.json", "-o", tmp_path / "r.md")
    assert result.exit_code == 0, result.output
    (whole,) = json.loads((tmp_path / "r.json").read_bytes())["whole_budgets"]
    sources = {term["name"]: term["source"] for term in whole["terms"]}
    assert (sources["ttft"], sources["guardrail"]) == ("file", "tier")
    assert "ttft" not in whole["assumed"]
    policy = tmp_path / "gate.toml"
    policy.write_text('whole = true\nundecided = "pass"\ntiers = ["chat"]\n')
    gate = ["budget", "check", str(store), "-c", str(catalogue), "--terms", str(terms)]
    told = CliRunner().invoke(application, [*gate, "--policy", str(policy), "--all"])
    assert told.exit_code == 0, told.output
    assert "whole request" in told.stdout
    told = CliRunner().invoke(application, [*gate, "--undecided", "pass"])
    assert "whole = true" in told.stderr


def test_a_fault_in_the_terms_is_told_before_the_store_is_read(
    fake: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "terms.toml").write_text('[[term]]\nname = "ttft"\nsamples_ms = [-1]\n')
    result = run(tmp_path, "--terms", tmp_path / "terms.toml", "-o", tmp_path / "r.html")
    assert result.exit_code == 2
    assert not fake


def test_intervals_for_many_looks_and_the_evening_can_be_asked_for(
    fake: dict[str, Any], tmp_path: Path
) -> None:
    words = ["--always-valid", "--require-busy-hours"]
    assert run(tmp_path, *words, "-o", tmp_path / "r.json").exit_code == 0
    assert (fake["always_valid"], fake["require_busy_hours"]) == (True, True)
    for command in ("lines", "check"):
        fake.clear()
        CliRunner().invoke(application, ["budget", command, str(tmp_path), *words])
        assert (fake["always_valid"], fake["require_busy_hours"]) == (True, True)
