"""`pathbudget store ...`: what a person sees, and what a script gets."""

import csv
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import duckdb
import pandas as pd
import pytest
import typer
from typer.testing import CliRunner, Result

from pathbudget.agents.cli import store as store_command
from pathbudget.agents.cli.exits import ExitCode
from pathbudget.agents.store.export import CSV_HEADER, milliseconds, utc_text
from pathbudget.agents.store.journal import Journal
from pathbudget.agents.store.parquet import Store
from pathbudget.probes.codec import read_lines
from pathbudget.probes.record import Measurement
from pathbudget.probes.spreadsheet import harmless

Make = Callable[..., Measurement]
Run = Callable[..., Result]
DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Run a command line in a terminal of 80 columns, in the temporary folder."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    application = typer.Typer()
    application.callback()(lambda: None)
    store_command.register(application)
    return lambda *words: CliRunner().invoke(application, ["store", *map(str, words)])


@pytest.fixture
def records(make: Make) -> list[Measurement]:
    return [make(number, day=number // 4) for number in range(8)]


@pytest.fixture
def store(tmp_path: Path, records: list[Measurement]) -> Store:
    """At the default place."""
    store = Store(tmp_path / "pathbudget-store")
    store.write(records)
    return store


def test_list_fits_80_columns_and_counts(run: Run, store: Store, make: Make) -> None:
    long = "a-very-long-name-of-a-region-that-somebody-chose-in-a-hurry-and-[kept]"
    store.write([make(50, region=long, campaign="x" * 70)])
    result = run("list")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0] == "campaign evaluation, 2025-12-01 12:00 to 2025-12-02 12:00 UTC"
    assert lines[1].split() == ["vantage", "target", "site", "probe", "samples", "failed", "%"]
    row = ["region-0-a", "site-0-t", "site-0", "icmp", "ipv4", "8", "2", "25.0"]
    assert row in [line.split() for line in lines]
    assert "[kept]" in "".join(result.stdout.split())


def test_list_as_json(run: Run, store: Store, records: list[Measurement]) -> None:
    result = run("list", store.path, "--format", "json")
    series = json.loads(result.stdout)
    assert len(series) == 6
    assert sum(one["samples"] for one in series) == 32
    assert series[0] == {
        "campaign": "evaluation",
        "region": "region-0",
        "vantage": "region-0-a",
        "site": "site-0",
        "target": "site-0-t",
        "probe": "icmp",
        "family": "ipv4",
        "measurements": 2,
        "samples": 8,
        "failures": 2,
        "first_unix_ns": records[0].started_unix_ns,
        "last_unix_ns": records[6].started_unix_ns + records[6].duration_ns,
    }


def test_an_empty_store_says_so(run: Run, tmp_path: Path) -> None:
    Store(tmp_path / "empty").check_writable()
    assert run("list", "empty").stdout == "The store is empty, or nothing in it matches.\n"
    assert run("list", "empty", "--format", "json").stdout == "[]\n"


@pytest.mark.parametrize("command", ["list", "export", "compact", "verify", "recover"])
def test_no_store_is_one_sentence(run: Run, command: str) -> None:
    result = run(command, "nowhere")
    assert result.exit_code == ExitCode.TROUBLE
    assert result.stderr == "nowhere: there is no store here; a campaign creates one\n"


def test_csv_has_units_in_its_header_and_exact_numbers(run: Run, store: Store) -> None:
    result = run("export")
    rows = list(csv.DictReader(result.stdout.splitlines()))
    assert tuple(rows[0]) == CSV_HEADER
    assert len(rows) == 32
    assert result.stderr == "32 samples exported\n"
    assert rows[0]["sent (UTC)"] == "2025-12-01T12:00:00.000000000Z"
    assert rows[1]["value (ms)"] == "15.000001"
    assert rows[1]["failure"] == ""
    assert (rows[3]["value (ms)"], rows[3]["failure"], rows[3]["failure stage"]) == (
        "",
        "timeout",
        "wait",
    )


def test_json_lines_are_what_the_codec_reads(
    run: Run, store: Store, records: list[Measurement]
) -> None:
    result = run("export", "--format", "jsonl", "--output", "out.jsonl")
    assert result.exit_code == 0
    assert result.stdout == ""
    assert list(read_lines(Path("out.jsonl"))) == records


def test_parquet_is_one_file_of_samples(run: Run, store: Store) -> None:
    assert run("export", "--format", "parquet", "-o", "out.parquet").exit_code == 0
    frame = pd.read_parquet("out.parquet")
    assert len(frame) == 32
    assert frame.value_ns.notna().sum() == 24


def test_parquet_needs_a_file(run: Run, store: Store) -> None:
    result = run("export", "--format", "parquet")
    assert result.exit_code == ExitCode.USAGE
    assert result.stderr == "Parquet needs a file: add --output FILE.\n"


def test_filters_of_export(run: Run, store: Store, records: list[Measurement]) -> None:
    run("export", "--format", "jsonl", "-o", "a", "--site", "site-1", "--since", "2025-12-02")
    assert list(read_lines(Path("a"))) == [records[5], records[7]]
    run("export", "--format", "jsonl", "-o", "b", "--until", "2025-12-01T12:00:02")
    assert list(read_lines(Path("b"))) == records[:2]
    assert run("export", "--since", "yesterday").exit_code == ExitCode.USAGE


def test_an_export_that_fails_leaves_the_old_file(run: Run, store: Store) -> None:
    Path("out.csv").write_text("precious")
    damaged = next(store.path.glob("samples/*/*.parquet"))
    damaged.write_bytes(b"")
    result = run("export", "--output", "out.csv")
    assert result.exit_code == ExitCode.TROUBLE
    assert str(damaged.name) in result.stderr
    assert Path("out.csv").read_text() == "precious"
    assert [path.name for path in Path().glob(".*.part")] == []


def test_an_export_to_a_full_disk_is_one_sentence(store: Store) -> None:
    program = "from pathbudget.agents.cli.main import run; run()"
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-c", program, "store", "export", str(store.path)],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == ExitCode.TROUBLE
    assert done.stderr == "standard output: the disk is full\n"


def test_compact_verify_recover(run: Run, store: Store, make: Make) -> None:
    store.write([make(30)])
    assert run("compact").stdout == "2 files became 1.\n"
    assert run("verify").stdout == "No problem found.\n"
    assert run("recover").stdout == "Nothing was left over.\n"
    with Journal.create(store.spool / "a.jsonl") as journal:
        journal.begin(0, make(31))
    result = run("verify")
    assert result.exit_code == ExitCode.TROUBLE
    assert result.stderr.endswith("finishes it\n1 problem.\n")
    assert run("recover").stdout == (
        "1 measurement brought into the store, 0 were there already.\n"
    )
    assert run("verify").exit_code == 0


def test_recover_names_what_it_leaves_alone(run: Run, store: Store, make: Make) -> None:
    with Journal.create(store.spool / "a.jsonl"):
        result = run("recover")
    assert result.exit_code == ExitCode.TROUBLE
    assert "a running campaign is writing it; left alone" in result.stderr


def test_the_command_starts_without_the_extra() -> None:
    program = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "from pathbudget.agents.cli.main import run\n"
        "sys.argv[1:] = ['store', 'list']\n"
        "run()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == ExitCode.TROUBLE
    assert done.stderr.strip().endswith("pip install 'pathbudget[store]'")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0.000000"),
        (1, "0.000001"),
        (-125, "-0.000125"),
        (15_000_001, "15.000001"),
        (-3_600_000_000_000, "-3600000.000000"),
        (None, ""),
    ],
)
def test_milliseconds_are_exact(ns: int | None, text: str) -> None:
    assert milliseconds(ns) == text


def test_times_keep_their_nanoseconds() -> None:
    assert utc_text(1_764_590_400_123_456_789) == "2025-12-01T12:00:00.123456789Z"
    assert utc_text(-1) == "1969-12-31T23:59:59.999999999Z"


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@sum", "\tx"])
def test_text_from_the_network_is_no_formula_in_a_spreadsheet(text: str) -> None:
    assert harmless(text) == f"'{text}"
    assert harmless(f"a{text}") == f"a{text}"


def say_nothing(*values: object) -> None:
    """Stands for print in the examples."""


def blocks(page: str, language: str) -> list[str]:
    """Fenced code of one language on a page of the documentation."""
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)


def test_the_commands_on_the_store_page_run(run: Run, store: Store) -> None:
    lines = [line for block in blocks("store.md", "sh") for line in block.splitlines()]
    assert len(lines) >= 7
    for line in lines:
        program, group, *words = shlex.split(line, comments=True)
        assert (program, group) == ("pathbudget", "store")
        assert run(*words).exit_code == 0, line


def test_the_python_on_the_store_page_runs(run: Run, store: Store) -> None:
    examples = blocks("store.md", "python")
    assert len(examples) >= 3
    for example in examples:
        exec(compile(example, "store.md", "exec"), {"print": say_nothing})


def test_the_sql_on_the_store_page_runs(run: Run, store: Store) -> None:
    queries = blocks("store.md", "sql")
    assert queries
    with duckdb.connect() as connection:
        for query in queries:
            assert connection.execute(query).fetchall(), query
