"""`pathbudget check` on real sockets: a responder, a refusing port, a name that does not exist."""

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest

from pathbudget.agents.responder.launch import ResponderProcess

PATHBUDGET = (sys.executable, "-c", "from pathbudget.agents.cli.main import run; run()")
RESPONDER = "127.0.9.1"
HOST = f"{RESPONDER}:8443"

Looks = dict[str, "subprocess.CompletedProcess[str]"]
LOOKS = {
    "table": (f"{HOST}@dallas", "--from", "dallas", "--insecure"),
    "json": (HOST, "--insecure", "--json"),
    "verified": (HOST,),
    "unknown": ("nowhere.invalid",),
    "unknown beside another": ("nowhere.invalid", HOST, "--insecure"),
    "longer": (HOST, "--insecure", "--json", "--duration", "6s"),
    "closed": (f"{RESPONDER}:9",),
    "no zone": ("[fe80::cd:1]:443",),
}
"""Looks that take their seconds all at once."""
WITHOUT_ICMP = (
    "from pathbudget.probes import network\n"
    "def refuse(family, *, privileged): raise PermissionError(1, 'no')\n"
    "network.try_icmp = refuse\n"
)


def start(*arguments: str, before: str = "") -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [*PATHBUDGET[:-1], before + PATHBUDGET[-1], "check", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={"COLUMNS": "80", "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
    )


def end(process: "subprocess.Popen[str]") -> "subprocess.CompletedProcess[str]":
    said, complained = process.communicate()
    return subprocess.CompletedProcess(process.args, process.returncode, said, complained)


@pytest.fixture(scope="module")
def looks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Looks]:
    folder = tmp_path_factory.mktemp("certificates")
    with ResponderProcess(folder, [RESPONDER], {"tls-port": 8443, "tcp-port": 8080}):
        running = {name: start(*arguments) for name, arguments in LOOKS.items()}
        running["no icmp"] = start(*LOOKS["table"], before=WITHOUT_ICMP)
        yield {name: end(process) for name, process in running.items()}


def test_a_host_is_measured_from_tcp_to_the_tiers_in_80_columns(looks: Looks) -> None:
    done = looks["table"]
    assert done.returncode == 0, done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 80
    for words in ("TCP connect", "TLS flight cold", "TLS flight resumed", "set-up resumed"):
        assert words in done.stdout
    for tier in ("voice-ai", "chat", "rag"):
        assert tier in done.stdout
    assert "Light floor" in done.stdout


def test_resumption_is_proved_in_the_json(looks: Looks) -> None:
    done = looks["json"]
    assert done.returncode == 0, done.stderr
    resumed = [
        one
        for one in json.loads(done.stdout)["summaries"]
        if one["metric"] == "tls_handshake" and one["mode"] == "resumed"
    ]
    assert sum(one["n"] for one in resumed) >= 10
    assert sum(one["losses"] for one in resumed) == 0


def test_an_unverified_certificate_fails_unless_asked_otherwise(looks: Looks) -> None:
    assert "certificate" in looks["verified"].stdout
    assert "certificate" not in looks["table"].stdout


def test_without_icmp_there_are_connects_enough_for_a_p95(looks: Looks) -> None:
    done = looks["no icmp"]
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("probe icmp does not run") == 1
    (connect,) = [row for row in done.stdout.splitlines() if row.startswith("TCP connect  ")]
    assert int(connect.split()[2]) >= 130


def test_failures_are_shown_and_nothing_answered_is_exit_code_4(looks: Looks) -> None:
    done = looks["unknown"]
    assert done.returncode == 4
    assert "nowhere.invalid: " in done.stderr
    assert "nothing was sent; " in done.stderr
    assert "/etc/resolv.conf" in done.stderr
    assert "lost" not in done.stdout
    beside = looks["unknown beside another"]
    assert beside.returncode == 0
    assert "nowhere.invalid: " in beside.stderr
    assert "TCP connect" in beside.stdout


def test_a_duration_is_kept_to(looks: Looks) -> None:
    (echoes,) = [
        one
        for one in json.loads(looks["longer"].stdout)["summaries"]
        if one["metric"] == "rtt" and one["probe"] == "icmp"
    ]
    assert 262 <= echoes["n"] <= 268  # 6 s at 200 in 4.5 s


def test_a_port_that_refuses_is_a_round_trip_and_no_connection(looks: Looks) -> None:
    rows = looks["closed"].stdout.splitlines()
    (connect,) = [row for row in rows if row.startswith("TCP connect  ")]
    assert connect.split()[2:] == ["15", "15", "refused"]
    (refusal,) = [row for row in rows if row.startswith("TCP refusal  ")]
    assert refusal.split()[2:4] == ["15", "0"]
    assert "pass" not in looks["closed"].stdout.split()
    assert "no service answers" in looks["closed"].stdout
    assert max(len(row) for row in rows if not row.startswith(("Note", "Undecided"))) <= 80


def test_a_host_is_printed_as_it_was_written(looks: Looks) -> None:
    assert "[fe80::cd:1]:443" in looks["no zone"].stdout


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["https://example.com"], "is not usable"),
        (["localhost", "--from", "atlantis"], "--from"),
        (["localhost", "-4", "-6"], "exclude each other"),
        ([f"host{number}" for number in range(9)], "At most 8 hosts"),
        ([], "Missing argument"),
        (["localhost", "--duration", "1"], "no duration"),
        (["localhost", "--duration", "2s"], "from 4.5s to 10m"),
        (["a\x1b[31m.example"], "is not usable"),
    ],
)
def test_bad_command_lines_are_explained(arguments: list[str], word: str) -> None:
    done = end(start(*arguments))
    assert done.returncode == 2
    assert word in done.stderr


def test_what_looks_until_it_is_decided_has_intervals_that_hold_at_every_look(
    looks: Looks,
) -> None:
    once, until = json.loads(looks["longer"].stdout), json.loads(looks["json"].stdout)
    assert not once["provenance"]["always_valid"]
    assert until["provenance"]["always_valid"]
    assert "hold at every look" in looks["table"].stdout
