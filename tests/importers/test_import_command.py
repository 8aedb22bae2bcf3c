"""The command: store, summary, report, exit codes."""

import io
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pathbudget.agents.cli.main import application
from pathbudget.agents.importers.ripe_atlas import ImportReport, read_results
from pathbudget.agents.store.parquet import Store
from pathbudget.probes.record import Measurement

CATALOGUE = """
[[region]]
name = "home"
latitude = 52.37
longitude = 4.9

[[site]]
name = "candidate"
latitude = 50.11
longitude = 8.68

[[site.target]]
name = "reflector"
host = "example.net"
"""


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str) -> Any:
    return CliRunner().invoke(application, ["import", "ripe-atlas", *arguments])


def write(path: str, *results: object) -> str:
    Path(path).write_text("\n".join(map(json.dumps, results)))
    return path


def test_measurements_are_in_the_store_and_a_second_import_changes_nothing(
    work: Path, ping: Any
) -> None:
    file = write("results.json", *(ping(prb_id=number) for number in range(40)))
    first = run(file, "--store", "kept")
    assert first.exit_code == 0, first.output
    assert "40  new, 0 already there" in first.stdout
    second = run(file, "--store", "kept")
    assert "0  new, 40 already there" in second.stdout
    stored = list(Store(Path("kept")).measurements())
    assert len(stored) == 40
    assert {measurement.imported_from for measurement in stored} == {"results.json"}


def test_the_summary_names_what_was_not_imported_and_fits_80_columns(work: Path, ping: Any) -> None:
    head = {"msm_id": 1, "prb_id": 2, "timestamp": 3, "fw": 5020}
    results = [
        ping(result=[{"x": "*"}, {"rtt": 1.0}, {"late": 1, "rtt": 9.0}], sent=2, rcvd=1),
        {**head, "type": "dns"}, {**head, "type": "ntp"}, {**head, "type": "sslcert", "cert": []},
        {"broken": True}, {**head, "type": "nonsense"},
    ]  # fmt: skip
    shown = run(write("results.json", *results))
    assert shown.exit_code == 0
    assert "timeout/wait" in shown.stdout
    assert "dns: no probe of that kind yet" in shown.stdout
    assert "ntp: no probe of that kind yet" in shown.stdout
    assert "sslcert without times" in shown.stdout
    assert "results.json, line 5" in shown.stderr
    assert "results.json, line 6" in shown.stderr
    assert "unknown type of result 'nonsense'" in shown.stderr
    assert max(len(line) for line in shown.stdout.splitlines()) <= 80


def test_json(work: Path, ping: Any) -> None:
    shown = run(write("results.json", ping(), {}), "--format", "json")
    content = json.loads(shown.stdout)
    assert content["results"] == 2
    assert content["types"] == {"ping": 1}
    assert content["malformed"] == 1
    assert content["stored"] == {"written": 1, "already_there": 0}
    assert content["problems"][0]["where"] == "line 2"


def test_only_the_first_problems_are_named_and_all_are_counted(work: Path, ping: Any) -> None:
    shown = run(write("results.json", ping(), *[{}] * 25))
    assert shown.exit_code == 0
    assert shown.stderr.count("results.json, line") == 10
    assert "15 more" in shown.stderr


@pytest.mark.parametrize("content", ["", "{}", "[]", "not json", '{"type":"dns"}'])
def test_nothing_to_import_is_exit_code_4(work: Path, content: str) -> None:
    Path("results.json").write_text(content)
    shown = run("results.json")
    assert shown.exit_code == 4
    assert "Nothing could be imported." in shown.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("missing.json",),
        (".",),
        ("results.json", "--region-by", "country"),
        ("results.json", "--region-by", "nearest", "--probes", "probes.json"),
        ("results.json", "--region-by", "moon"),
        ("results.json", "--probes", "results.json"),
        ("results.json", "--report", "no/such/folder/report.html"),
        ("results.json", "--report", "."),
        ("results.json", "--report", "report.html", "--tier", "no-such-tier"),
        ("results.json", "--tier", "voice-ai"),
        ("results.json", "--catalogue", "results.json"),
    ],
)
def test_a_wrong_command_line_is_exit_code_2_and_stores_nothing(
    work: Path, ping: Any, arguments: tuple[str, ...]
) -> None:
    write("results.json", {"broken": 1}, ping())
    write("probes.json", {"id": 77})
    shown = run(*arguments)
    assert shown.exit_code == 2, shown.output
    assert not Path("pathbudget-store").exists()


def test_addresses_of_probes_are_kept_only_when_asked_for(work: Path, ping: Any) -> None:
    file = write("results.json", ping())
    run(file, "--store", "without")
    run(file, "--store", "with", "--keep-addresses")
    (without,) = Store(Path("without")).measurements()
    (kept,) = Store(Path("with")).measurements()
    assert "198.51.100.4" not in repr(without)
    assert kept.vantage.source_address == kept.vantage.host == "198.51.100.4"
    assert kept.id == without.id


def test_one_command_from_results_to_a_report(work: Path, ping: Any) -> None:
    Path("places.toml").write_text(CATALOGUE)
    probe = {"id": 77, "country_code": "NL", "latitude": 52.0, "longitude": 5.0}
    results = [ping(timestamp=1_600_000_000 + 240 * number) for number in range(60)]
    shown = run(
        write("results.json", *results),
        "--probes", write("probes.json", probe),
        "--catalogue", "places.toml", "--region-by", "nearest",
        "--tier", "voice-ai", "--report", "report.html",
    )  # fmt: skip
    assert shown.exit_code == 0, shown.output
    page = Path("report.html").read_text()
    assert "candidate" in page
    assert "home" in page
    assert "198.51.100.4" not in page


@pytest.mark.needs("data")
def test_a_report_out_of_real_files(work: Path, atlas: Path) -> None:
    files = [str(atlas / "fetchmesh_ping_2000.ndjson"), str(atlas / "monitor_1443162.jsonl")]
    anchors = str(atlas / "fetchmesh_anchors.json")
    shown = run(
        *files, "--probes", anchors, "--region-by", "country",
        "--tier", "chat", "--report", "report.html",
    )  # fmt: skip
    assert shown.exit_code == 0, shown.output
    assert Path("report.html").stat().st_size > 100_000


def test_ctrl_c_keeps_what_was_read_and_says_how_to_go_on(
    work: Path, ping: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pathbudget.agents.importers import ripe_atlas

    read = ripe_atlas.read_results

    def interrupted(*arguments: Any, **options: Any) -> Iterator[Measurement]:
        for number, measurement in enumerate(read(*arguments, **options)):
            if number == 30:
                raise KeyboardInterrupt
            yield measurement

    monkeypatch.setattr(ripe_atlas, "read_results", interrupted)
    file = write("results.json", *(ping(prb_id=number) for number in range(40)))
    shown = run(file, "--store", "kept")
    assert shown.exit_code == 130
    assert "import the same files again" in shown.stderr
    monkeypatch.setattr(ripe_atlas, "read_results", read)
    assert run(file, "--store", "kept").exit_code == 0
    assert len(list(Store(Path("kept")).measurements())) == 40


def test_a_store_that_cannot_be_written_is_told_before_anything_is_read(
    work: Path, ping: Any
) -> None:
    file = write("results.json", ping())
    shown = run(file, "--store", file)
    assert shown.exit_code == 5
    assert file in shown.stderr
    assert "Traceback" not in shown.output


def test_a_progress_bar_for_a_person_on_large_files(
    work: Path, ping: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pathbudget.agents.importers import import_progress

    file = Path(write("results.json", *[ping()] * 3000))
    report = ImportReport()
    screen = io.StringIO()
    monkeypatch.setattr(screen, "isatty", lambda: True)
    monkeypatch.setattr(import_progress, "SMALLEST", 0)
    monkeypatch.setattr("sys.stderr", screen)
    measurements = import_progress.shown(read_results([file], report=report), [file], report)
    assert sum(1 for _ in measurements) == 3000
    assert "reading" in screen.getvalue()


def test_results_come_through_a_pipe_as_well(work: Path, ping: Any) -> None:
    os.mkfifo("pipe")
    content = "\n".join(json.dumps(ping(prb_id=number)) for number in range(3))
    writer = threading.Thread(target=Path("pipe").write_text, args=(content,))
    writer.start()
    done = run("pipe", "--store", "kept")
    writer.join()
    assert done.exit_code == 0, done.output
    assert "3  new, 0 already there" in done.stdout


def test_traces_of_scamper_are_imported_once(work: Path) -> None:
    hops = [{"addr": "10.0.0.1", "probe_ttl": 1, "rtt": 0.5, "icmp_type": 11}]
    trace = {
        "type": "trace", "src": "192.0.2.1", "dst": "192.0.2.7", "start": {"sec": 1_600_000_000},
        "method": "icmp-echo-paris", "icmp_sum": 7, "stop_reason": "GAPLIMIT", "hops": hops,
    }  # fmt: skip
    file = write(
        "traces.jsonl", {"type": "cycle-start", "hostname": "h"}, trace, {"type": "tracelb"}
    )
    for stored in ("1  new, 0 already there", "0  new, 1 already there"):
        done = CliRunner().invoke(application, ["import", "scamper", file, "--vantage", "fra1"])
        assert done.exit_code == 0, done.output
        assert stored in done.stdout
        assert "traces.jsonl, line 3" in done.stderr
    (measurement,) = Store(Path("pathbudget-store")).measurements()
    assert (measurement.probe, measurement.vantage.name) == ("trace", "fra1")
    bad = write("bad.jsonl", {"type": "tracelb"})
    refused = CliRunner().invoke(application, ["import", "scamper", bad])
    assert refused.exit_code == 4
