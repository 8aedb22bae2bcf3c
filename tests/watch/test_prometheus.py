"""A real Prometheus that scrapes a real agent, and asks everything that the dashboard asks."""

import json
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from tests.daemon.conftest import CATALOGUE, POLICY, AgentHost
from tests.programs import program

from pathbudget.agents.watch.host import DROPPED, HOST_METRICS, INFO
from pathbudget.agents.watch.text import FIXED, delay_family
from pathbudget.probes.record import Metric

pytestmark = [pytest.mark.needs("prometheus"), pytest.mark.needs("promtool")]
PATIENCE_S = 60.0
ROOT = Path(__file__).resolve().parents[2]
CAMPAIGN = """
name = "watched"
catalogue = "catalogue.toml"
duration = "10s"
seed = 7

[[vantage]]
name = "office"
region = "here"

[[probe]]
kind = "icmp"
interval = "50ms"
[[probe]]
kind = "tcp"
interval = "100ms"
port = CLOSED
[[probe]]
kind = "http"
interval = "300ms"
answer_bytes = 2000
verify = false
port = HTTPS
[[probe]]
kind = "upload"
interval = "500ms"
verify = false
port = HTTPS
[[probe]]
kind = "token_stream"
interval = "1s"
chunks = 5
interval_ms = 5
verify = false
port = HTTPS
"""
PROMETHEUS = """
global:
  scrape_interval: 1s
  scrape_timeout: 1s
scrape_configs:
  - job_name: agents
    static_configs:
      - targets: [AGENT]
"""
HAS_NOT_HAPPENED = frozenset(
    {
        *("pathbudget_spool_oldest_timestamp_seconds", "pathbudget_clock_error_bound_seconds"),
        *(DROPPED, "pathbudget_clock_synchronised"),
    }
)
"""What an agent on a good day, or on a host without a time daemon, has nothing to say of."""


def until(holds: Callable[[], object], what: str) -> None:
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end, f"not within {PATIENCE_S:.0f} s: {what}"
        time.sleep(0.1)


def free_ports(count: int) -> list[int]:
    found = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [int(one.getsockname()[1]) for one in found]
    for one in found:
        one.close()
    return ports


@dataclass
class Watched:
    """An agent, and the Prometheus that looks at it."""

    host: AgentHost
    api: str
    metrics: str

    def get(self, path: str, **words: str) -> Any:
        """What the API of Prometheus answers; an error of it fails the test."""
        url = f"{self.api}/api/v1/{path}?{urllib.parse.urlencode(words)}"
        with urllib.request.urlopen(url, timeout=20) as answer:
            found = json.load(answer)
        assert found["status"] == "success", (words, found)
        return found["data"]

    def ask(self, expression: str) -> list[Any]:
        result: list[Any] = self.get("query", query=expression)["result"]
        return result

    def text(self) -> bytes:
        with urllib.request.urlopen(self.metrics, timeout=20) as answer:
            body: bytes = answer.read()
        return body


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    folder = tmp_path_factory.mktemp("watched")
    host = AgentHost(folder)
    host.write()
    stamp, https, closed, listen = free_ports(4)
    (folder / "catalogue.toml").write_text(CATALOGUE)
    told = CAMPAIGN.replace("CLOSED", str(closed)).replace("HTTPS", str(https))
    (folder / "campaign.toml").write_text(told)
    (folder / "policy.toml").write_text(f"{POLICY}bytes_per_day = 100_000_000_000\n")
    processes = [_reflector(folder, stamp, https)]
    host.start("--metrics", "127.0.0.1:0")
    try:
        until(lambda: "/metrics" in host.log, "the agent")
        metrics = re.findall(r"http://\S+/metrics", host.log)[-1]
        address = metrics.removeprefix("http://").removesuffix("/metrics")
        (folder / "prometheus.yml").write_text(PROMETHEUS.replace("AGENT", address))
        processes.append(_prometheus(folder, listen))
        one = Watched(host, f"http://127.0.0.1:{listen}", metrics)
        until(lambda: _scraped(one), "scrapes")
        # another plan closes what was measured under the first one, and that is delivered
        (folder / "campaign.toml").write_text(told.replace('"50ms"', '"60ms"'))
        until(lambda: one.ask("pathbudget_last_delivery_timestamp_seconds"), "a delivery")
        yield one
    finally:
        for process in (*processes, *host.running):
            process.send_signal(signal.SIGTERM)
        for process in (*processes, *host.running):
            process.wait(PATIENCE_S)


def _reflector(folder: Path, stamp: int, https: int) -> "subprocess.Popen[Any]":
    words = ["--listen", "127.0.0.1", "--port", str(stamp), "--https-port", str(https)]
    folder = folder / "certificates"
    command = [sys.executable, "-m", "pathbudget.agents.cli.main", "reflector", *words]
    with (folder.parent / "reflector.txt").open("w") as log:
        process = subprocess.Popen(
            [*command, "--certificate-directory", str(folder)], stdout=log, stderr=log
        )
    until(lambda: "Listening" in (folder.parent / "reflector.txt").read_text(), "the reflector")
    return process


def _prometheus(folder: Path, port: int) -> "subprocess.Popen[Any]":
    with (folder / "prometheus.txt").open("w") as log:
        return subprocess.Popen(
            [
                program("prometheus"),
                f"--config.file={folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={folder / 'tsdb'}",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            stdout=log,
            stderr=log,
        )


def _scraped(one: Watched) -> bool:
    """Twice each thing that the agent measures, so that there is a rate."""
    assert one.host.running[-1].poll() is None, one.host.log
    names = ("first_byte", "upload", "ttft", "rtt", "setup")
    try:
        rates = [one.ask(f"rate(pathbudget_{name}_seconds_count[20s]) > 0") for name in names]
        return all(rates)
    except OSError:
        return False


def expressions() -> list[tuple[str, str]]:
    """Panel and expression of everything that the dashboard asks."""
    text = resources.files("pathbudget.agents.watch").joinpath("dashboard.json").read_text()
    board = json.loads(text)
    return [
        (panel["title"], target["expr"])
        for panel in board["panels"]
        for target in panel.get("targets", ())
    ]


def test_promtool_finds_nothing_to_say(watched: Watched) -> None:
    result = subprocess.run(
        [program("promtool"), "check", "metrics"], input=watched.text(), capture_output=True
    )
    assert (result.returncode, result.stdout + result.stderr) == (0, b"")


def test_everything_that_the_dashboard_asks_has_an_answer(watched: Watched) -> None:
    known = set(watched.get("metadata"))
    empty: set[str] = set()
    for title, expression in expressions():
        asked = expression.replace("$__rate_interval", "20s")
        asked = asked.replace("$agent", ".*").replace("$site", ".*")
        assert "$" not in asked, title
        names = set(re.findall(r"pathbudget_\w+", asked))
        for name in names:
            family = re.sub(r"_(bucket|sum|count)$", "", name)
            assert family in known, f"{title}: nobody serves {name}"
        if not watched.ask(asked):
            empty |= names
    assert empty <= HAS_NOT_HAPPENED


def test_variables_of_the_dashboard_are_labels_with_values(watched: Watched) -> None:
    text = (ROOT / "agents/watch/dashboard.json").read_text()
    queries = re.findall(r"label_values\((\w+), (\w+)\)", text)
    assert queries
    for metric, label in queries:
        assert watched.get(f"label/{label}/values", **{"match[]": metric}), (metric, label)


def test_prometheus_has_what_the_agent_says_of_itself(watched: Watched) -> None:
    (plan,) = watched.ask("pathbudget_plan_series")
    assert float(plan["value"][1]) == 5
    assert plan["metric"]["agent"] == "office"
    (info,) = watched.ask("pathbudget_agent_info")
    assert info["metric"]["campaign"] == "watched"
    assert watched.ask("up")[0]["value"][1] == "1"
    made, acknowledged = (
        watched.ask(f"pathbudget_spool_{word}_samples_total") for word in ("made", "acknowledged")
    )
    assert float(made[0]["value"][1]) >= float(acknowledged[0]["value"][1]) > 0


def test_a_refused_port_is_a_loss_with_kind_and_stage(watched: Watched) -> None:
    (loss,) = watched.ask(
        'sum by (probe) (rate(pathbudget_probes_total{outcome="lost",probe="tcp"}[20s])) / '
        'sum by (probe) (rate(pathbudget_probes_total{outcome=~"lost|answered",probe="tcp"}[20s]))'
    )
    assert float(loss["value"][1]) == 1
    (failures,) = watched.ask('pathbudget_probe_failures_total{probe="tcp"} > 0')
    assert failures["metric"]["kind"] == "refused"
    assert failures["metric"]["stage"] == "connect"


def test_the_page_lists_every_metric(watched: Watched) -> None:
    page = (ROOT / "docs/watching.md").read_text()
    listed = set(re.findall(r"^\| `(pathbudget_\w+)`", page, re.MULTILINE))
    families = {delay_family(metric).name for metric in Metric} | {"pathbudget_METRIC_seconds"}
    fixed = {*(one.name for one in FIXED), *(one.full_name for one in HOST_METRICS), INFO, DROPPED}
    assert fixed <= listed
    served = set(re.findall(rb"^# TYPE (pathbudget_\w+)", watched.text(), re.MULTILINE))
    assert {name.decode() for name in served} <= listed | families
