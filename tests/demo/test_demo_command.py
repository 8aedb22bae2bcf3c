"""`pathbudget demo` in both of its worlds: tables, recommendation, report; never a crash."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pathbudget.agents.demo.places import REGIONS, SITES

PATHBUDGET = "from pathbudget.agents.cli.main import run; run()"
FORBIDDEN = (
    "from pathbudget.agents.lab import capability\n"
    "capability.why_not = lambda: 'this kernel makes no network namespaces'\n"
)


def demo(folder: Path, *arguments: str, before: str = "") -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", before + PATHBUDGET, "demo", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def check_answer(folder: Path, done: "subprocess.CompletedProcess[str]") -> None:
    assert done.returncode == 0, done.stdout + done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 80
    for tier in ("voice-ai", "chat", "rag"):
        assert f"({tier})" in done.stdout
    for name in (*(region.name for region in REGIONS), *(site.name for site in SITES)):
        assert name in done.stdout
    assert "Recommended sites" in done.stdout
    assert "demo-output/report.html" in done.stdout
    output = folder / "demo-output"
    assert (output / "report.html").read_text().startswith("<!DOCTYPE html>")
    evaluation = json.loads((output / "report.json").read_bytes())
    headlines = [line for line in evaluation["lines"] if line["headline"]]
    assert len(headlines) == len(REGIONS) * len(SITES) * 3
    assert all(line["n"] > 0 for line in headlines)


def test_where_no_lab_can_be_the_reason_is_given_and_loopback_is_taken(tmp_path: Path) -> None:
    done = demo(tmp_path, "--duration", "4", before=FORBIDDEN)
    check_answer(tmp_path, done)
    assert "this kernel makes no network namespaces" in done.stderr
    assert "ICMP and path probes are left out" in done.stderr
    again = demo(tmp_path, "--duration", "4", "--world", "loopback")
    check_answer(tmp_path, again)
    assert again.stderr == ""


def test_a_lab_that_was_asked_for_and_cannot_be_is_exit_code_3(tmp_path: Path) -> None:
    done = demo(tmp_path, "--world", "lab", before=FORBIDDEN)
    assert done.returncode == 3
    assert "this kernel makes no network namespaces" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.needs("lab")
def test_the_lab_is_measured_with_icmp_and_says_its_own_error(tmp_path: Path) -> None:
    done = demo(tmp_path, "--duration", "4")
    check_answer(tmp_path, done)
    assert "an emulated internet" in done.stdout
    assert "own error p50" in done.stdout.replace("\n", " ")
    evaluation = json.loads((tmp_path / "demo-output" / "report.json").read_bytes())
    headlines = [line for line in evaluation["lines"] if line["headline"]]
    assert {line["round_trips_from"] for line in headlines} == {"icmp"}
    import duckdb

    samples = tmp_path / "demo-output" / "demo-store" / "samples" / "**" / "*.parquet"
    counts = duckdb.connect().execute(
        f"select metric, count(*) from '{samples}' where probe = 'stamp' "
        "and metric like 'transit_%' and value_ns > 0 group by all"
    )
    assert {metric for metric, _ in counts.fetchall()} == {"transit_forward", "transit_reverse"}
