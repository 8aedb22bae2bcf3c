"""The command: what it says, how it ends, and what it cannot do."""

import errno
import json
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pathbudget.agents.cli.main import application
from pathbudget.agents.reflector.status import Status, text_line

SECRET = "00112233445566778899aabbccddeeff"


def refused(*words: str) -> tuple[int, str]:
    """Exit code and stderr of a reflector that does not start."""
    ran = CliRunner().invoke(
        application, ["reflector", "--duration", "0.1", "--https-port", "0", *words]
    )
    return ran.exit_code, ran.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_in_good_order_with_the_counters(
    command: Callable[..., Any], peer: Any, number: int
) -> None:
    with command("--json") as running:
        client = peer(running.address, running.port)
        assert len(client.ask(bytes(44))) == 44
        assert client.silence(b"short")
        running.process.send_signal(number)
        said, complaints = running.process.communicate(timeout=20)
    assert running.process.returncode == 0
    assert complaints == ""
    last = json.loads(said.splitlines()[-1])
    assert last["final"] is True
    assert (last["received"], last["reflected"]) == (2, 1)
    assert last["refused"] == {"too_short": 1}


def test_status_lines_come_at_their_times(command: Callable[..., Any]) -> None:
    with command("--json", "--status-every", "0.1", "--duration", "0.5") as running:
        said, _ = running.process.communicate(timeout=20)
    lines = [json.loads(line) for line in said.splitlines()]
    assert [line["final"] for line in lines] == [False] * (len(lines) - 1) + [True]
    assert len(lines) >= 3


def test_it_goes_on_without_a_reader_of_its_status_until_told_to_write(
    command: Callable[..., Any],
) -> None:
    with command("--status-every", "0.2") as running:
        assert running.process.stdout is not None
        running.process.stdout.close()
        assert running.process.wait(timeout=20) == 141


def test_two_reflectors_on_one_port(command: Callable[..., Any], own_address: str) -> None:
    with command(address=own_address):
        code, said = refused("--listen", own_address)
    assert code == 5
    assert (
        said == f"cannot listen on {own_address} port 8620: another program listens there already\n"
    )


def test_addresses_that_are_not_there() -> None:
    code, said = refused("--listen", "192.0.2.7")
    assert (code, said) == (
        5,
        "cannot listen on 192.0.2.7 port 8620: this machine has no such address\n",
    )


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["--listen", "example"], '--listen: "example"'),
        (["--listen", "224.0.0.1"], '--listen: "224.0.0.1"'),
        (["--listen", "::ffff:224.0.0.1"], '--listen: "::ffff:224.0.0.1"'),
        (["--listen", "ff02::1"], '--listen: "ff02::1"'),
        (["--listen", "255.255.255.255"], '--listen: "255.255.255.255"'),
        (["--allow", "192.0.2.7/24"], "host bits set"),
        (["--allow", "everybody"], '--allow: "everybody"'),
        (["--key-file", "/nowhere/keys"], "/nowhere/keys"),
    ],
)
def test_words_that_make_no_sense(words: list[str], what: str) -> None:
    code, said = refused(*words)
    assert code == 2
    assert what in said
    assert "Traceback" not in said


def test_a_key_is_never_printed(tmp_path: Path, command: Callable[..., Any], peer: Any) -> None:
    keys = tmp_path / "keys"
    keys.write_text(f"lab {SECRET}\n")
    keys.chmod(0o600)
    with command("--key-file", str(keys)) as running:
        assert peer(running.address, running.port).silence(bytes(112))
        running.process.terminate()
        said, complaints = running.process.communicate(timeout=20)
    assert "1 unauthenticated" in said
    assert SECRET not in said + complaints
    keys.chmod(0o644)
    code, told = refused("--key-file", str(keys))
    assert code == 2
    assert "chmod 600" in told
    assert SECRET not in told


def test_a_port_that_only_root_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    """As an ordinary user sees it, whoever runs this test."""

    def bind(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("pathbudget.probes.socket_setup.bind_source", bind)
    code, said = refused("--port", "862")
    assert (code, said) == (
        3,
        "CAP_NET_BIND_SERVICE: not permitted; choose a port above 1023, not 862\n",
    )


def test_a_line_for_a_person_fits_the_terminal() -> None:
    status = Status(0, 1200, 1100, 1, {"over_source_rate": 90, "too_short": 10}, {})
    line = text_line(status)
    assert line == (
        "00:00:00Z 1100 of 1200 reflected, 1 session; "
        "100 refused: 90 over_source_rate, 10 too_short\n"
    )


def test_without_ipv6_it_listens_on_ipv4_alone(tmp_path: Path) -> None:
    """A kernel without IPv6, as Python sees it: the socket call says so."""
    code = (
        "import errno, socket; plain = socket.socket\n"
        "class Socket(plain):\n"
        "    def __init__(self, family=-1, *rest, **named):\n"
        "        if family == socket.AF_INET6: raise OSError(errno.EAFNOSUPPORT, 'no')\n"
        "        super().__init__(family, *rest, **named)\n"
        "socket.socket = Socket\n"
        "from pathbudget.agents.cli.main import application\n"
        "import sys; application(sys.argv[1:])\n"
    )
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.bind(("0.0.0.0", 0))
        port = one.getsockname()[1]
    words = [sys.executable, "-c", code, "reflector", "--port", str(port)]
    words += ["--duration", "0.1", "--https-port", "0"]
    ran = subprocess.run(words, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "Listening on 0.0.0.0: UDP" in ran.stderr
    ran = subprocess.run([*words, "--listen", "::1"], capture_output=True, text=True, check=False)
    assert ran.returncode == 5
    assert ran.stderr == "cannot listen on ::1: this kernel has no ipv6\n"


def test_more_addresses_than_it_can_listen_on() -> None:
    words = [word for at in range(65) for word in ("--listen", f"127.9.9.{at + 1}")]
    code, said = refused(*words)
    assert code == 2
    assert "65 addresses" in " ".join(said.split())
    assert "at most 64" in " ".join(said.split())
