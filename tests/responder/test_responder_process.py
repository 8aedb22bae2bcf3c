"""The responder as a process: ready line, SIGTERM, death of the parent, messages."""

import os
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pathbudget.agents.responder.launch import ResponderProcess
from pathbudget.probes.errors import ReflectorError

MODULE = "pathbudget.agents.responder"
PARENT = """
import subprocess, sys, time
subprocess.Popen([sys.executable, "-m", "pathbudget.agents.responder", *sys.argv[1:]],
                 pass_fds=[int(sys.argv[-1])])
time.sleep(60)
"""


def can_connect(address: str, port: int) -> bool:
    try:
        socket.create_connection((address, port), timeout=2).close()
    except OSError:
        return False
    return True


def seconds_until_gone(pid: int) -> float:
    """How long a process that is not our child still exists; fails after 10 s."""
    begun = time.monotonic()
    while time.monotonic() - begun < 10:
        try:
            status = Path(f"/proc/{pid}/stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            return time.monotonic() - begun
        if status.rpartition(")")[2].split()[0] == "Z":
            return time.monotonic() - begun
        time.sleep(0.02)
    pytest.fail(f"process {pid} is still there after 10 s")


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", MODULE, *words], capture_output=True, text=True, timeout=60
    )


def test_it_listens_when_it_says_so_and_sigterm_ends_it(tmp_path: Path, own_address: str) -> None:
    with ResponderProcess(tmp_path, [own_address], {}) as responder:
        assert can_connect(own_address, 8443)
        assert can_connect(own_address, 8080)
        held = socket.create_connection((own_address, 8080))
        responder.check()
        assert responder.pid is not None
        os.kill(responder.pid, signal.SIGTERM)
        assert os.waitid(os.P_PID, responder.pid, os.WEXITED | os.WNOWAIT) is not None
        with held:
            held.settimeout(5)
            assert held.recv(1) == b""
        with pytest.raises(ReflectorError, match="not running"):
            responder.check()
    assert not can_connect(own_address, 8443)


def test_sigterm_ends_it_soon_with_exit_code_0(tmp_path: Path, own_address: str) -> None:
    reader, writer = os.pipe()
    words = ["--bind", own_address, "--certificate-directory", str(tmp_path)]
    process = subprocess.Popen(
        [sys.executable, "-m", MODULE, *words, "--ready-fd", str(writer)], pass_fds=[writer]
    )
    os.close(writer)
    assert os.read(reader, 100) == b"ready\n"
    assert os.read(reader, 100) == b""
    os.close(reader)
    with socket.create_connection((own_address, 8443)):
        process.terminate()
        assert process.wait(timeout=5) == 0


def test_it_dies_with_its_parent_when_asked(tmp_path: Path, own_address: str) -> None:
    reader, writer = os.pipe()
    words = ["--bind", own_address, "--certificate-directory", str(tmp_path)]
    words += ["--die-with-parent", "--ready-fd", str(writer)]
    parent = subprocess.Popen([sys.executable, "-c", PARENT, *words], pass_fds=[writer])
    os.close(writer)
    try:
        assert os.read(reader, 100) == b"ready\n"
        children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text().split()
    finally:
        parent.kill()
        parent.wait()
        os.close(reader)
    assert len(children) == 1
    seconds_until_gone(int(children[0]))
    assert not can_connect(own_address, 8443)


def test_nobody_waiting_for_the_ready_line_is_the_end(tmp_path: Path, own_address: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    words = ["--bind", own_address, "--certificate-directory", str(tmp_path)]
    process = subprocess.run(
        [sys.executable, "-m", MODULE, *words, "--ready-fd", str(writer)],
        pass_fds=[writer],
        timeout=30,
    )
    os.close(writer)
    assert process.returncode == 0


def test_a_name_instead_of_an_address_is_a_usage_error(tmp_path: Path) -> None:
    result = run("--bind", "localhost", "--bind", "1.2.3", "--certificate-directory", str(tmp_path))
    assert result.returncode == 2
    assert "--bind: 'localhost'; expected an IPv4 or IPv6 address" in result.stderr
    assert "--bind: '1.2.3'; expected an IPv4 or IPv6 address" in result.stderr
    assert result.stderr.count("command line: --bind: ") == 2
    assert list(tmp_path.iterdir()) == []


def test_one_port_for_both_is_a_usage_error(tmp_path: Path) -> None:
    words = ["--bind", "127.0.0.1", "--certificate-directory", str(tmp_path)]
    result = run(*words, "--tcp-port", "8443")
    assert result.returncode == 2
    assert "--tcp-port: 8443; expected another port than --tls-port" in result.stderr


def test_a_person_is_told_where_it_listens_and_what_happened(
    tmp_path: Path, own_address: str
) -> None:
    words = ["--bind", own_address, "--bind", own_address]
    words += ["--certificate-directory", str(tmp_path)]
    process = subprocess.Popen(
        [sys.executable, "-m", MODULE, *words], stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    assert process.stderr.readline() == (
        f"Listening on {own_address}: TLS 8443, TCP 8080. Ctrl-C ends it.\n"
    )
    assert process.stderr.readline() == f"Clients trust {tmp_path}/ca.pem.\n"
    with socket.create_connection((own_address, 8080)) as held:
        held.sendall(b"x")
        time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=10)
    assert (process.returncode, told) == (0, "Stopped. 1 accepted.\n")


def test_few_descriptors_mean_few_connections(tmp_path: Path, own_address: str) -> None:
    """50 descriptors, 34 of them spoken for: 16 connections live, the others are reset."""
    words = ["--bind", own_address, "--certificate-directory", str(tmp_path)]
    reader, writer = os.pipe()
    script = 'ulimit -n 50; exec "$@"'
    program = [sys.executable, "-m", MODULE, *words, "--ready-fd", str(writer)]
    process = subprocess.Popen(["sh", "-c", script, "sh", *program], pass_fds=[writer])
    os.close(writer)
    assert os.read(reader, 100) == b"ready\n"
    os.close(reader)
    opened = [socket.create_connection((own_address, 8080)) for _ in range(20)]
    assert ended(opened, count=4) == opened[16:]
    for connection in opened[16:]:
        with pytest.raises(ConnectionResetError):
            connection.recv(1)
    for connection in opened:
        connection.close()
    process.terminate()
    assert process.wait(timeout=10) == 0


def ended(opened: list[socket.socket], count: int) -> list[socket.socket]:
    """Those that the other side ended, once there are `count` of them, or after 5 s."""
    deadline = time.monotonic() + 5
    while True:
        readable = select.select(opened, [], [], 0.1)[0]
        if len(readable) >= count or time.monotonic() > deadline:
            return readable
        time.sleep(0.02)


def test_too_few_descriptors_are_one_sentence(tmp_path: Path, own_address: str) -> None:
    words = ["--bind", own_address, "--certificate-directory", str(tmp_path)]
    script = 'ulimit -n 34; exec "$@"'
    result = subprocess.run(
        ["sh", "-c", script, "sh", sys.executable, "-m", MODULE, *words],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert result.returncode == 5
    assert "may open 34 files; expected more than 34 (ulimit -n)" in result.stderr


def test_a_taken_port_is_one_sentence(tmp_path: Path, own_address: str) -> None:
    with socket.create_server((own_address, 8443)):
        result = run("--bind", own_address, "--certificate-directory", str(tmp_path))
    assert result.returncode == 5
    assert result.stderr == (
        f"cannot listen on {own_address} port 8443: another program listens there already\n"
    )


def test_a_broken_descriptor_for_the_ready_line_is_one_sentence(
    tmp_path: Path, own_address: str
) -> None:
    words = ["--bind", own_address, "--certificate-directory", str(tmp_path)]
    result = run(*words, "--ready-fd", "99")
    assert result.returncode == 5
    assert result.stderr == "cannot write to descriptor 99: Bad file descriptor\n"


def test_a_faulty_delays_file_is_named_with_the_place(tmp_path: Path, own_address: str) -> None:
    faulty = tmp_path / "delays.json"
    faulty.write_text('{"pairs": [{"source": "127.1.0.1", "destination": "x", "minimum_ms": -1}]}')
    words = ["--bind", own_address, "--certificate-directory", str(tmp_path / "c")]
    result = run(*words, "--delays", str(faulty))
    assert result.returncode == 2
    assert "$.pairs[0]: minimum_ms is -1.0; expected 0 to 60000" in result.stderr


def test_what_the_process_said_is_in_the_error(tmp_path: Path, own_address: str) -> None:
    with (
        socket.create_server((own_address, 8080)),
        pytest.raises(ReflectorError, match="does not start: cannot listen on"),
        ResponderProcess(tmp_path, [own_address], {}),
    ):
        pass
