"""`pathbudget run --hosts` against real SSH servers: all of it, and what may break on the way."""

import os
import re
import shlex
import signal
import subprocess
from pathlib import Path

import pytest
from tests.ssh.conftest import Folder, until, wait_for
from tests.ssh.servers import USER, Server, free_port, host_table, make_key

pytestmark = [pytest.mark.needs("sshd")]


def worker_of(folder: Folder) -> int:
    """The process that measures, found by the run's folder in its command line."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        words = path.read_bytes().split(b"\0") if path.exists() else []
        if b"work" in words and words[-2].startswith(os.fsencode(folder.path / "remote")):
            return int(path.parent.name)
    raise AssertionError("no worker")


def test_two_hosts_one_behind_a_jump_host_and_nothing_is_left(folder: Folder) -> None:
    near, far = folder.server("near"), folder.server("far")
    folder.campaign("one", "two")
    jump = (
        f'[[jump]]\nname = "bastion"\nhost = "127.0.0.1"\nport = {near.port}\nuser = "{USER}"\n'
        f'keys = ["user_key"]\nagent = false\nknown_hosts = "known_hosts"\n'
    )
    folder.hosts(
        jump,
        host_table(near, "one", folder.path / "remote"),
        host_table(far, "two", folder.path / "other", jump='"bastion"'),
    )
    done = folder.run("--remove-bundle")
    assert done.returncode == 0, done.stderr
    assert folder.whole()
    assert "two: measuring" in done.stderr
    assert "two: done" in done.stderr
    log = (folder.path / "far" / "log").read_text()
    assert "Accepted publickey" in log
    assert "direct-tcpip" in (folder.path / "near" / "log").read_text() or "127.0.0.1" in log
    assert not (folder.path / "remote").exists()
    assert not (folder.path / "other").exists()
    assert list((folder.path / "store" / "spool").iterdir()) == []


def test_an_unknown_host_key_is_refused(folder: Folder) -> None:
    server = folder.one_host()
    (folder.path / "known_hosts").write_text("")
    done = folder.run()
    assert done.returncode == 5
    assert "unknown host key (ssh-ed25519 SHA256:" in done.stderr
    assert str(folder.path / "known_hosts") in done.stderr or "known_hosts:" in done.stderr
    assert server.known_hosts_line.strip() in done.stderr
    assert "Accepted" not in (server.folder / "log").read_text()
    assert not (folder.path / "remote").exists()


def test_a_changed_host_key_is_refused_and_told_apart(folder: Folder) -> None:
    server = folder.one_host()
    other = make_key(folder.path / "other_key").with_suffix(".pub").read_text().split()
    line = f"[127.0.0.1]:{server.port} {other[0]} {other[1]}\n"
    (folder.path / "known_hosts").write_text(line)
    done = folder.run()
    assert done.returncode == 5
    assert "HOST KEY HAS CHANGED" in done.stderr
    assert "ssh-keygen -R" in done.stderr
    assert "Accepted" not in (server.folder / "log").read_text()


def test_no_key_that_opens_is_told_and_nobody_is_asked(folder: Folder) -> None:
    folder.one_host()
    make_key(folder.path / "stranger")
    hosts = folder.path / "hosts.toml"
    hosts.write_text(hosts.read_text().replace("/user_key", "/stranger"))
    done = folder.run()
    assert done.returncode == 5
    assert "is not let in" in done.stderr
    make_key(folder.path / "stranger", passphrase="secret")
    done = folder.run()
    assert "locked by a passphrase" in done.stderr
    assert "ssh-add" in done.stderr


def test_hosts_without_a_python_that_is_new_enough_say_so(folder: Folder) -> None:
    old = folder.path / "python3"
    answer = '{"python": [3, 9, 2], "machine": "x86_64", "suffixes": [], "home": "/root", '
    answer += '"installed": [], "has_bundle": false, "root": false, "executable": ""}'
    old.write_text(f"#!/bin/sh\ncat >/dev/null\necho '{answer}'\n")
    old.chmod(0o755)
    server = folder.server()
    folder.campaign("one", "two", "three")
    remote = folder.path / "remote"
    foreign = folder.path / "python-of-another-machine"
    foreign.write_text(old.read_text().replace("[3, 9, 2]", "[3, 12, 1]"))
    foreign.chmod(0o755)
    folder.hosts(
        host_table(server, "one", remote, python=f'"{old}"'),
        host_table(server, "two", remote, python='"/nowhere/python3"'),
        host_table(server, "three", remote, python=f'"{foreign}"'),
    )
    done = folder.run()
    assert done.returncode == 5
    assert "one: Python 3.11 or later is needed" in done.stderr
    assert "is 3.9.2" in done.stderr
    assert "two: Python 3.11 or later is needed, and no /nowhere/python3 there" in done.stderr
    assert "three: " in done.stderr
    assert "pip install msgspec==" in done.stderr


def test_one_host_that_is_away_keeps_all_from_sending_and_leaves_nothing(folder: Folder) -> None:
    here = folder.server()
    gone = folder.server("gone")
    gone.down()
    folder.campaign("one", "two")
    remote = folder.path / "remote"
    folder.hosts(host_table(here, "one", remote), host_table(gone, "two", folder.path / "other"))
    done = folder.run()
    assert done.returncode == 5
    assert f"two: 127.0.0.1:{gone.port}: cannot be reached" in done.stderr
    assert "one: measuring" not in done.stderr
    assert folder.runs() == []
    assert list((folder.path / "store" / "spool").iterdir()) == []


def test_a_vantage_without_a_host_is_a_fault_of_the_file(folder: Folder) -> None:
    folder.one_host()
    folder.campaign("one", "two")
    done = folder.run()
    assert done.returncode == 2
    assert 'no host for the vantage "two"' in done.stderr


def test_a_connection_that_is_killed_comes_back_and_nothing_is_lost(folder: Folder) -> None:
    server = folder.one_host(duration="4s")
    running = folder.spawn()
    wait_for(running, "one: measuring")
    assert server.cut()
    wait_for(running, "one: away")
    wait_for(running, "one: measuring")
    _, errors = running.communicate()
    assert running.returncode == 0, errors
    assert folder.whole()
    assert folder.runs() == []


def test_who_controls_may_be_killed_and_resumes_the_run_that_went_on(folder: Folder) -> None:
    folder.one_host(duration="4s")
    running = folder.spawn()
    wait_for(running, "one: measuring")
    until(lambda: bool(list((folder.path / "store" / "spool").glob("*.partial"))))
    worker = worker_of(folder)
    running.send_signal(signal.SIGKILL)
    running.communicate()
    os.kill(worker, 0)  # goes on
    done = folder.run("--resume")
    assert done.returncode == 0, done.stderr
    assert folder.whole()
    assert folder.runs() == []


def test_a_worker_that_is_killed_is_told_and_resumed(folder: Folder) -> None:
    folder.one_host(duration="4s")
    running = folder.spawn()
    wait_for(running, "one: measuring")
    until(lambda: len(journal_of(folder)) > 5000)
    os.kill(worker_of(folder), signal.SIGKILL)
    output, errors = running.communicate()
    assert running.returncode == 5, output + errors
    assert "was killed" in errors
    assert "--resume" in errors
    before = set(folder.stored())
    assert before
    done = folder.run("--resume")
    assert done.returncode == 0, done.stderr
    assert before < set(folder.stored())
    assert len(set(folder.stored())) == folder.planned()


def journal_of(folder: Folder) -> bytes:
    found = list((folder.path / "remote" / "runs").glob("*/journal.jsonl"))
    return found[0].read_bytes().rstrip(b"\0") if found else b""


def test_ctrl_c_stops_the_host_and_brings_what_it_has(folder: Folder) -> None:
    folder.one_host(duration="30s")
    running = folder.spawn()
    wait_for(running, "one: measuring")
    until(lambda: len(journal_of(folder)) > 5000)
    running.send_signal(signal.SIGINT)
    _, errors = running.communicate()
    assert running.returncode == 130, errors
    assert folder.stored()
    assert folder.runs() == []


def test_a_bundle_that_was_changed_on_the_host_is_brought_anew(folder: Folder) -> None:
    folder.one_host()
    assert folder.run().returncode == 0
    (bundle,) = (folder.path / "remote" / "bundles").glob("*.pyz")
    right = bundle.read_bytes()
    bundle.write_bytes(b"import os; os.abort()")
    done = folder.run()
    assert done.returncode == 0, done.stderr
    assert "bringing the bundle" in done.stderr
    assert bundle.read_bytes() == right
    assert "bringing the bundle" not in folder.run().stderr


@pytest.mark.needs("root")
@pytest.mark.needs("lab")
@pytest.mark.parametrize(
    ("size", "duration", "said"),
    [
        pytest.param("2m", "1s", "the bundle cannot be kept in", id="no room for the bundle"),
        pytest.param("12m", "10h", "no journal can be begun", id="no room for the samples"),
    ],
)
def test_a_full_disk_of_the_host_is_told(
    folder: Folder, size: str, duration: str, said: str
) -> None:
    """The server, and so all that it starts, sees a small file system in place of the folder."""
    remote = folder.path / "remote"
    remote.mkdir()

    def in_small_world(command: list[str]) -> "subprocess.Popen[bytes]":
        mount = f"mount -t tmpfs -o size={size} tmpfs {remote} && exec {shlex.join(command)}"
        return subprocess.Popen(["unshare", "--mount", "sh", "-c", mount])

    server = Server(
        folder.path / "sshd", "127.0.0.1", free_port(), folder.user_key, start=in_small_world
    )
    folder.servers.append(server.up().wait())
    folder.campaign("one", duration=duration)
    folder.hosts(host_table(server, "one", remote))
    done = folder.run()
    assert done.returncode == 5
    assert f"one{': ' if size == '2m' else ' ('}" in done.stderr
    told = " ".join(done.stderr.split())  # lines end where the terminal does
    assert said in told
    assert re.search("disk is full|No space left", told)
    assert not list((folder.path / "store" / "spool").iterdir())
