"""A real Alertmanager shows our alerts, and that they are over."""

import json
import signal
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.alerts.conftest import HOUR, MINUTE, a_signal, free_port
from tests.programs import program

from pathbudget.agents.alerts import alertmanager
from pathbudget.agents.alerts.delivery import Receipt
from pathbudget.agents.alerts.receivers import Alertmanager
from pathbudget.agents.alerts.trying import trial
from pathbudget.analysis.alerts.model import AlertKind, AlertState, Phase

PATIENCE_S = 60.0
CONFIGURATION = """
route:
  receiver: nobody
receivers:
  - name: nobody
"""


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[Alertmanager]:
    file, port = tmp_path / "alertmanager.yml", free_port()
    file.write_text(CONFIGURATION)
    process = subprocess.Popen(
        [
            program("prometheus-alertmanager"),
            f"--config.file={file}",
            f"--storage.path={tmp_path / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
            "--cluster.listen-address=",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    found = Alertmanager(name="am", url=f"http://127.0.0.1:{port}/")
    try:
        until_ready(found)
        yield found
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE_S)


def until_ready(receiver: Alertmanager) -> None:
    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            with urllib.request.urlopen(f"{receiver.url}-/ready", timeout=5):
                return
        except OSError:
            assert time.monotonic() < end
            time.sleep(0.05)


def shown(receiver: Alertmanager) -> list[dict[str, Any]]:
    with urllib.request.urlopen(f"{receiver.url}api/v2/alerts", timeout=5) as response:
        found: list[dict[str, Any]] = json.loads(response.read())
    return found


@pytest.mark.needs("prometheus-alertmanager")
def test_an_alert_is_shown_while_it_fires_and_gone_when_it_is_over(receiver: Alertmanager) -> None:
    now = time.time_ns()
    state = AlertState(a_signal(labels={"agent": "one"}), Phase.FIRING, now, now, now - MINUTE)
    incident = AlertState(
        a_signal(
            key="routes/x", kind=AlertKind.ROUTE_INCIDENT, labels={"cause": "flap", "blamed": ""}
        ),
        Phase.FIRING,
        now,
        now,
        now - MINUTE,
    )
    pending = AlertState(a_signal(key="r/pending"), Phase.PENDING, now, now)
    posted = alertmanager.payload(receiver, [state, incident, pending], now)
    for _ in range(2):  # told again, it is the same one
        assert isinstance(alertmanager.send(receiver, posted), Receipt)
    first, second = sorted(shown(receiver), key=lambda one: one["labels"]["alertname"])
    assert first["labels"] == {
        "alertname": "PathbudgetAgentSilent",
        "severity": "ticket",
        "rule": "r",
        "subject": "r/one",
        "agent": "one",
    }
    assert first["annotations"]["summary"] == "agent one is silent."
    assert second["annotations"]["cause"] == "flap"
    assert "cause" not in second["labels"]
    over = AlertState(
        state.signal, Phase.OVER, now, now, fired_unix_ns=now - MINUTE, over_unix_ns=now
    )
    assert isinstance(
        alertmanager.send(receiver, alertmanager.payload(receiver, [over], now + MINUTE)), Receipt
    )
    assert [one["labels"]["rule"] for one in shown(receiver)] == ["r"]
    assert shown(receiver)[0]["labels"]["alertname"] == "PathbudgetRouteIncident"
    alertmanager.send(receiver, alertmanager.trial(trial(now)))
    assert {"PathbudgetTest"} <= {one["labels"]["alertname"] for one in shown(receiver)}


def test_what_is_long_over_is_told_no_more() -> None:
    receiver = Alertmanager(name="am", url="http://127.0.0.1:9093")
    state = AlertState(a_signal(), Phase.OVER, 0, 0, fired_unix_ns=0, over_unix_ns=HOUR)
    assert alertmanager.payload(receiver, [state], HOUR + MINUTE)
    assert not alertmanager.payload(receiver, [state], 2 * HOUR)
