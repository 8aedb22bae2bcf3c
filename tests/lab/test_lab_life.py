"""Labs for everybody, and nothing left of them: ordinary users, kill -9, exit codes."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from pathlib import Path

import pytest

from pathbudget.agents.lab.container import command_inside

PLAIN_USER = Path(__file__).parent / "plain_user.py"
ROOT = Path(__file__).resolve().parents[2]
WORLD = ROOT / "examples" / "world.toml"
COMMAND = [str(Path(sys.executable).parent / "pathbudget"), "lab", "run", str(WORLD), "--"]
NOBODY = 65534
GONE_SECONDS = 10.0

pytestmark = pytest.mark.needs("lab")


def as_plain_user(command: list[str]) -> list[str]:
    """The same command without any right, also when the tests run as root."""
    if os.geteuid():
        return command
    return [sys.executable, str(PLAIN_USER), str(NOBODY), "--", *command]


def run(command: list[str]) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)


@pytest.fixture(params=["as we are", "as a plain user"])
def prefix(request: pytest.FixtureRequest) -> list[str]:
    return as_plain_user(COMMAND) if request.param == "as a plain user" else COMMAND


def processes_with(marker: str) -> list[int]:
    """Processes with the marker in their environment, which every child inherits."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                if marker.encode() in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
    return found


@contextlib.contextmanager
def marked(
    command: list[str], marker: str, **variables: str
) -> Generator["subprocess.Popen[bytes]"]:
    environment = {**os.environ, "LAB_TEST_MARKER": marker, **variables}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@contextlib.contextmanager
def temporary_folder() -> Generator[Path]:
    """A folder that any user may write to; other tests use /tmp at the same time."""
    with tempfile.TemporaryDirectory(prefix="lab-life-") as name:
        folder = Path(name)
        folder.chmod(0o1777)
        yield folder


def gone(marker: str) -> bool:
    """Whether every process with the marker ends soon."""
    deadline = time.monotonic() + GONE_SECONDS
    while time.monotonic() < deadline:
        if not processes_with(marker):
            return True
        time.sleep(0.01)
    return False


def test_a_command_runs_in_the_lab_and_its_code_comes_back(prefix: list[str]) -> None:
    code = (
        "import os, socket, sys; from pathbudget.agents.lab import session; "
        "from pathbudget.agents.lab.namespaces import enter; lab = session.current(); "
        "enter(lab.nodes['tokyo'].namespace); "
        "socket.create_connection((lab.nodes['singapore'].ipv4, 8443), 20).close(); "
        "print('connected', os.geteuid()); sys.exit(7)"
    )
    ran = run([*prefix, sys.executable, "-c", code])
    assert ran.returncode == 7, ran.stderr
    assert ran.stdout == "connected 0\n"
    assert ran.stderr.startswith("lab: ")
    assert "own error p50" in ran.stderr
    assert max(map(len, ran.stderr.splitlines())) <= 80


def test_the_command_sees_no_network_but_the_lab(prefix: list[str]) -> None:
    ran = run([*prefix, "cat", "/proc/net/dev"])
    assert [line.split(":")[0].strip() for line in ran.stdout.splitlines()[2:]] == ["lo"]


def test_a_signal_is_passed_on_and_becomes_the_exit_code(prefix: list[str]) -> None:
    with marked([*prefix, "sh", "-c", "echo up; exec sleep 1000"], f"t{os.getpid()}") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
        assert process.returncode == 128 + signal.SIGTERM
        assert gone(f"t{os.getpid()}")


def test_nothing_is_left_after_kill_9(prefix: list[str]) -> None:
    marker = f"kill-{os.getpid()}-{len(prefix)}"
    before = Path("/proc/self/mountinfo").read_text()
    script = "(setsid sleep 1000 &) ; echo up; sleep 1000"
    with (
        temporary_folder() as folder,
        marked([*prefix, "sh", "-c", script], marker, TMPDIR=str(folder)) as process,
    ):
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        alive = processes_with(marker)
        assert len(alive) >= 7  # container, init, stage, emulator, responders, sh, two sleeps
        process.kill()
        assert gone(marker)
        assert not list(folder.iterdir())
    assert Path("/proc/self/mountinfo").read_text() == before


def test_helpers_of_a_lab_in_process_die_with_it_too() -> None:
    marker = f"process-{os.getpid()}"
    code = (
        "import time; from pathlib import Path; "
        "from pathbudget.agents.lab.world_file import load_world; "
        "from pathbudget.agents.lab.running import Lab; "
        f"lab = Lab(load_world(Path({str(WORLD)!r}))); lab.__enter__(); "
        "print('up', flush=True); time.sleep(1000)"
    )
    command = [sys.executable, "-c", code]
    if os.geteuid():
        command = command_inside(command, with_parent=True)
    with marked(command, marker) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        assert len(processes_with(marker)) >= 4
        process.kill()
        assert gone(marker)


def test_a_dead_emulator_ends_the_command(prefix: list[str]) -> None:
    emulator = "$(grep -l '[l]ab.emulator' /proc/[0-9]*/cmdline | cut -d/ -f3)"
    script = f"kill -9 {emulator}; sleep 1000"
    ran = run([*prefix, "sh", "-c", script])
    assert ran.returncode == 5, ran.stderr
    assert "link emulator of the lab died (SIGKILL)" in ran.stderr


def test_a_command_that_is_not_there(prefix: list[str]) -> None:
    ran = run([*prefix, "no-such-command"])
    # A folder of PATH that the user may not enter makes it "permission denied".
    assert ran.returncode in (126, 127)
    assert "no-such-command: " in ran.stderr


def test_a_faulty_world_starts_nothing(tmp_path: Path) -> None:
    world = tmp_path / "bad.toml"
    world.write_text("[[region]]\nnme = 'x'\n")
    command = [*COMMAND[:3], str(world), "--", "touch", str(tmp_path / "touched")]
    ran = run(command)
    assert ran.returncode == 2
    assert "region[1].nme" in ran.stderr
    assert "faults; nothing was loaded" in ran.stderr
    assert not (tmp_path / "touched").exists()


def test_a_program_can_go_on_as_root_of_its_own() -> None:
    code = (
        "import os, sys; from pathbudget.agents.lab.rootless import reexec_in_user_namespace\n"
        "if os.geteuid(): print(os.getpid(), flush=True); reexec_in_user_namespace(sys.argv)\n"
        "print('root', *sys.argv[1:]); sys.exit(9)"
    )
    folder = Path("/dev/shm")
    script = folder / f"reexec-{os.getpid()}.py"
    script.write_text(code)
    try:
        ran = run(as_plain_user([sys.executable, str(script), "one", "two words"]))
    finally:
        script.unlink()
    assert ran.returncode == 9, ran.stderr
    assert ran.stdout.endswith("root one two words\n")


def test_check_and_show_are_tables_for_the_terminal() -> None:
    for verb, word in (("check", "no fault"), ("show", "loss %")):
        ran = run([*COMMAND[:2], verb, str(WORLD)])
        assert ran.returncode == 0, ran.stderr
        assert word in ran.stdout
        assert "frankfurt" in ran.stdout
        assert max(map(len, ran.stdout.splitlines())) <= 80


ASK = (
    "import socket, sys\n"
    "found = socket.getaddrinfo('singapore.lab', 8443, 0, socket.SOCK_STREAM)\n"
    "print(sorted(entry[4][0] for entry in found))\n"
    "print(socket.create_connection(('singapore.lab', 8443), 10).getsockname()[0])\n"
)


def test_a_command_at_a_node_sends_as_that_node_and_knows_the_others_by_name(
    prefix: list[str],
) -> None:
    at = [*prefix[:-1], "--at", "tokyo", "--", sys.executable, "-c", ASK]
    before = Path("/etc/hosts").read_bytes()
    ran = run(at)
    assert ran.returncode == 0, ran.stderr
    addresses, own = ran.stdout.splitlines()
    assert addresses == "['10.48.0.1', 'fd70:6274:3::1']"
    assert own in ("10.16.0.1", "fd70:6274:1::1")
    assert Path("/etc/hosts").read_bytes() == before


def test_an_unknown_node_is_answered_before_a_lab_starts() -> None:
    ran = run([*COMMAND[:-1], "--at", "tokio", "--", "true"])
    assert ran.returncode == 2
    assert '"tokyo" (did you mean that?)' in ran.stderr
