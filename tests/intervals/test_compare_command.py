"""`pathbudget compare`: two sites, campaigns or periods of a store, and what is refused."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from pathbudget.agents.cli.main import application
from pathbudget.agents.store.parquet import Store
from pathbudget.probes.record import Measurement, Metric, Sample, Target, Vantage

START = 1_790_035_200_000_000_000
"""2026-09-22T00:00 UTC."""
MINUTE = 60_000_000_000

Run = Callable[..., Any]


def measurement(site: str, rtt_ms: float, minute: int, campaign: str) -> Measurement:
    rng = np.random.default_rng([minute, len(site)])
    start = START + minute * MINUTE
    return Measurement(
        id=f"{site}-{campaign}-{minute}",
        vantage=Vantage("west-1", "west"),
        target=Target(f"{site}-edge", "edge.example", site),
        probe="icmp",
        started_unix_ns=start,
        campaign=campaign,
        samples=tuple(
            Sample(i, Metric.RTT, start + i * 100_000_000, round(value * 1e6))
            for i, value in enumerate(rtt_ms + rng.exponential(1.0, 200))
        ),
    )


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Alpha takes 10 ms and, ten minutes later in another campaign, 12; beta always 20."""
    folder = tmp_path_factory.mktemp("compared") / "store"
    Store(folder).write(
        [
            measurement("alpha", 10.0, 0, "first"),
            measurement("alpha", 12.0, 10, "second"),
            measurement("beta", 20.0, 0, "first"),
            measurement("beta", 20.0, 10, "second"),
        ]
    )
    return folder


@pytest.fixture
def run(store: Path) -> Run:
    def compare(*arguments: str) -> Any:
        runner = CliRunner(env={"COLUMNS": "80"})
        return runner.invoke(application, ["compare", str(store), *arguments])

    return compare


def rows_of(result: Any) -> list[dict[str, Any]]:
    assert result.exit_code == 0, result.output
    rows: list[dict[str, Any]] = json.loads(result.stdout)["comparisons"]
    return rows


def test_two_sites(run: Run) -> None:
    first, second = rows_of(run("--site", "alpha", "--site", "beta", "--format", "json"))
    assert (first["percentile"], second["percentile"]) == (50.0, 95.0)
    assert (first["n_first"], first["n_second"]) == (400, 400)
    assert first["low_ms"] < first["difference_ms"] < first["high_ms"]
    assert first["order"] == "first faster"
    assert first["superiority"] > 0.99


@pytest.mark.parametrize(
    "way", [("--campaign", "first", "--campaign", "second"), ("--split", "2026-09-22T00:05")]
)
def test_two_periods_or_campaigns(run: Run, way: tuple[str, ...]) -> None:
    rows = rows_of(run(*way, "--percentile", "50", "--format", "json"))
    alpha, beta = sorted(rows, key=lambda row: row["site"])
    assert alpha["low_ms"] <= 2.0 <= alpha["high_ms"]
    assert alpha["order"] == "first faster"
    assert beta["low_ms"] <= 0.0 <= beta["high_ms"]
    assert beta["order"] == "undecided"


def test_the_table_fits_a_terminal(run: Run) -> None:
    result = run("--split", "2026-09-22T00:05")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == "Round trips: after less before, ms, 95% intervals"
    assert max(map(len, lines)) <= 80
    assert "west to alpha" in result.stdout
    assert "undecided" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ((), 2, "say what to compare"),
        (("--site", "alpha"), 2, "say what to compare"),
        (("--site", "alpha", "--site", "beta", "--split", "2026-09-22"), 2, "say what to compare"),
        (("--site", "alpha", "--site", "alpha"), 2, "cannot be compared with itself"),
        (("--site", "alpha", "--site", "gamma"), 2, "unknown site gamma; known: alpha, beta"),
        (("--campaign", "first", "--campaign", "x"), 2, "unknown campaign x"),
        (("--split", "2027-01-01"), 4, "after was not measured."),
        (("--split", "2026-09-22", "--confidence", "1"), 2, "expected 0.5 to 0.9999"),
        (
            ("--split", "2026-09-22", "--confidence", "0.9999999999999999"),
            2,
            "expected 0.5 to 0.9999",
        ),
        (("--split", "2026-09-22", "--percentile", "100"), 2, "not between 0 and 100"),
    ],
)
def test_what_is_refused(run: Run, arguments: tuple[str, ...], code: int, said: str) -> None:
    result = run(*arguments)
    assert result.exit_code == code
    assert said in result.stderr


def test_without_a_store(tmp_path: Path) -> None:
    words = ["compare", str(tmp_path / "none"), "--site", "a", "--site", "b"]
    result = CliRunner().invoke(application, words)
    assert result.exit_code == 4
    assert "there is no store" in result.stderr
