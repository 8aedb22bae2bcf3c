"""`pathbudget check` on real sockets: a responder, a refusing port, a name that does not exist."""

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest

from pathbudget.agents.responder.launch import ResponderProcess

PATHBUDGET = (sys.executable, "-c", "from pathbudget.agents.cli.main import run; run()")
RESPONDER = "127.0.9.1"


@pytest.fixture(scope="module")
def responder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("certificates")
    with ResponderProcess(folder, [RESPONDER], {"tls-port": 8443, "tcp-port": 8080}):
        yield f"{RESPONDER}:8443"


def check(*arguments: str, columns: int = 80) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*PATHBUDGET, "check", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={"COLUMNS": str(columns), "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
    )


def test_a_host_is_measured_from_tcp_to_the_tiers_in_80_columns(responder: str) -> None:
    done = check(f"{responder}@dallas", "--from", "dallas", "--insecure")
    assert done.returncode == 0, done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 80
    for words in ("TCP connect", "TLS flight cold", "TLS flight resumed", "set-up resumed"):
        assert words in done.stdout
    for tier in ("voice-ai", "chat", "rag"):
        assert tier in done.stdout
    assert "Light floor" in done.stdout


def test_resumption_is_proved_in_the_json(responder: str) -> None:
    done = check(responder, "--insecure", "--json")
    assert done.returncode == 0, done.stderr
    evaluation = json.loads(done.stdout)
    resumed = [
        one
        for one in evaluation["summaries"]
        if one["metric"] == "tls_handshake" and one["mode"] == "resumed"
    ]
    assert sum(one["n"] for one in resumed) >= 10
    assert sum(one["losses"] for one in resumed) == 0


def test_an_unverified_certificate_fails_unless_asked_otherwise(responder: str) -> None:
    done = check(responder)
    assert "certificate" in done.stdout


def test_failures_are_shown_and_nothing_answered_is_exit_code_4() -> None:
    done = check("nowhere.invalid")
    assert done.returncode == 4
    assert "name not found" in done.stdout or "resolver" in done.stdout
    assert "Not one probe was answered" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["https://example.com"], "is not usable"),
        (["localhost", "--from", "atlantis"], "--from"),
        (["localhost", "-4", "-6"], "exclude each other"),
        ([f"host{number}" for number in range(9)], "At most 8 hosts"),
        ([], "Missing argument"),
    ],
)
def test_bad_command_lines_are_explained(arguments: list[str], word: str) -> None:
    done = check(*arguments)
    assert done.returncode == 2
    assert word in done.stderr
