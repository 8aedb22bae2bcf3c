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
from tests.fleet.conftest import Served, serving
from tests.programs import program

from pathbudget.agents.bus.subjects import COLLECTOR
from pathbudget.agents.watch.collector_metrics import COLLECTOR_METRICS, OTLP_METRICS, REJECTED
from pathbudget.agents.watch.host import DROPPED, HOST_METRICS, INFO
from pathbudget.agents.watch.text import FIXED, delay_family
from pathbudget.probes.record import Metric

pytestmark = [
    *(pytest.mark.needs(name) for name in ("prometheus", "promtool", "nats-server")),
    pytest.mark.timeout(300),  # of which most is waiting for scrapes and for a piece of results
]
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
  - job_name: collectors
    static_configs:
      - targets: [COLLECTOR]
"""
HAS_NOT_HAPPENED = frozenset(
    {
        *("pathbudget_spool_oldest_timestamp_seconds", "pathbudget_clock_error_bound_seconds"),
        *(DROPPED, "pathbudget_clock_synchronised"),
        *(REJECTED, "pathbudget_collector_oldest_timestamp_seconds"),
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
    collector_metrics: str

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

    def text(self, url: str) -> bytes:
        with urllib.request.urlopen(url, timeout=20) as answer:
            body: bytes = answer.read()
        return body


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    yield from serving(tmp_path_factory.mktemp("bus"))


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory, served: Served) -> Iterator[Watched]:
    """One agent of a fleet, its collector, and who looks at both."""
    folder = tmp_path_factory.mktemp("watched")
    host = AgentHost(folder)
    host.write()
    stamp, https, closed, listen = free_ports(4)
    (folder / "catalogue.toml").write_text(CATALOGUE)
    told = CAMPAIGN.replace("CLOSED", str(closed)).replace("HTTPS", str(https))
    (folder / "campaign.toml").write_text(told)
    (folder / "policy.toml").write_text(f"{POLICY}bytes_per_day = 100_000_000_000\n")
    served.member("office")
    login = served.folder.path / "office.login.toml"
    processes = [_reflector(folder, stamp, https), _collector(folder, served)]
    host.start("--metrics", "127.0.0.1:0", "--login", str(login))
    try:
        until(lambda: "/metrics" in host.log, "the agent")
        urls = [_metrics(host.log), _metrics((folder / "collector.txt").read_text())]
        config = PROMETHEUS.replace("AGENT", _address(urls[0]))
        (folder / "prometheus.yml").write_text(config.replace("COLLECTOR", _address(urls[1])))
        processes.append(_prometheus(folder, listen))
        one = Watched(host, f"http://127.0.0.1:{listen}", *urls)
        until(lambda: _scraped(one), "scrapes")
        # another plan closes what was measured under the first one, and that is delivered
        (folder / "campaign.toml").write_text(told.replace('"50ms"', '"60ms"'))
        until(lambda: one.ask("pathbudget_last_delivery_timestamp_seconds"), "a delivery")
        until(lambda: one.ask("pathbudget_collector_measurements_total >= 5"), "the collector")
        until(
            lambda: one.ask('pathbudget_first_byte_seconds_count{job="collectors"}'), "its series"
        )
        until(lambda: one.ask('pathbudget_plan_serial{job="collectors"}'), "a heartbeat")
        yield one
    finally:
        for process in (*host.running, *processes):
            process.send_signal(signal.SIGTERM)
        for process in (*host.running, *processes):
            process.wait(PATIENCE_S)


def _metrics(log: str) -> str:
    return str(re.findall(r"http://\S+/metrics", log)[-1])


def _address(url: str) -> str:
    return url.removeprefix("http://").removesuffix("/metrics")


def _collector(folder: Path, served: Served) -> "subprocess.Popen[Any]":
    login = served.folder.login_file(COLLECTOR)
    words = ["--login", str(login), "--store", str(folder / "store"), "--metrics", "127.0.0.1:0"]
    words += ["--otlp", f"http://127.0.0.1:{free_ports(1)[0]}"]
    command = [sys.executable, "-m", "pathbudget.agents.cli.main", "collector", *words]
    with (folder / "collector.txt").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    until(lambda: "/metrics" in (folder / "collector.txt").read_text(), "the collector")
    return process


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
    for url in (watched.metrics, watched.collector_metrics):
        result = subprocess.run(
            [program("promtool"), "check", "metrics"], input=watched.text(url), capture_output=True
        )
        assert (result.returncode, result.stdout + result.stderr) == (0, b"")


def test_everything_that_the_dashboard_asks_has_an_answer(watched: Watched) -> None:
    known = set(watched.get("metadata"))
    empty: set[str] = set()
    for title, expression in expressions():
        asked = expression.replace("$__rate_interval", "20s")
        asked = asked.replace("$agent", ".*").replace("$site", ".*").replace("$job", ".*")
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
    (plan,) = watched.ask('pathbudget_plan_series{job="agents"}')
    assert float(plan["value"][1]) == 5
    assert plan["metric"]["agent"] == "office"
    (info,) = watched.ask('pathbudget_agent_info{job="agents"}')
    assert info["metric"]["campaign"] == "watched"
    assert [one["value"][1] for one in watched.ask("up")] == ["1", "1"]
    made, acknowledged = (
        watched.ask(f'pathbudget_spool_{word}_samples_total{{job="agents"}}')
        for word in ("made", "acknowledged")
    )
    assert float(made[0]["value"][1]) >= float(acknowledged[0]["value"][1]) > 0


def test_the_collector_shows_what_its_agents_measure_and_how_they_are(watched: Watched) -> None:
    (heard,) = watched.ask('pathbudget_agent_info{job="collectors"}')
    assert heard["metric"]["agent"] == "office"
    (stored,) = watched.ask("pathbudget_collector_measurements_total")
    assert float(stored["value"][1]) >= 5
    (seen,) = watched.ask('pathbudget_first_byte_seconds_count{job="collectors"}')
    assert seen["metric"]["site"] == "loop"
    assert float(seen["value"][1]) >= 2
    until(lambda: watched.ask("pathbudget_otlp_waiting_measurements"), "what OTLP is told")


def test_a_refused_port_is_a_loss_with_kind_and_stage(watched: Watched) -> None:
    (loss,) = watched.ask(
        'sum by (probe) (rate(pathbudget_probes_total{job="agents",outcome="lost",'
        'probe="tcp"}[20s])) / '
        'sum by (probe) (rate(pathbudget_probes_total{job="agents",outcome!="not_measured",'
        'probe="tcp"}[20s]))'
    )
    assert float(loss["value"][1]) == 1
    (failures,) = watched.ask('pathbudget_probe_failures_total{job="agents",probe="tcp"} > 0')
    assert failures["metric"]["kind"] == "refused"
    assert failures["metric"]["stage"] == "connect"


def test_the_page_lists_every_metric(watched: Watched) -> None:
    page = (ROOT / "docs/watching.md").read_text()
    listed = set(re.findall(r"^\| `(pathbudget_\w+)`", page, re.MULTILINE))
    families = {delay_family(metric).name for metric in Metric} | {"pathbudget_METRIC_seconds"}
    fixed = {
        *(one.name for one in (*FIXED, *COLLECTOR_METRICS)),
        *(one.full_name for one in HOST_METRICS),
        *(INFO, DROPPED, REJECTED, *OTLP_METRICS),
    }
    assert fixed <= listed
    for url in (watched.metrics, watched.collector_metrics):
        served = set(re.findall(rb"^# TYPE (pathbudget_\w+)", watched.text(url), re.MULTILINE))
        assert {name.decode() for name in served} <= listed | families
