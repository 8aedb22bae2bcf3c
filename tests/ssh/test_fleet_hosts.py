"""`pathbudget fleet install|upgrade|remove|status` on a real SSH server, under a root of its own.

No systemd runs here as the first process: `systemctl enable --root` and `systemd-sysusers --root`
are the real ones, `systemd-analyze verify` reads the unit, and starting and stopping is tried with
a systemctl that writes down what it is told.
"""

import json
import os
import stat
import subprocess
from pathlib import Path

import pytest
from tests.programs import program
from tests.ssh.conftest import PATHBUDGET, Folder
from tests.ssh.servers import host_table, other_python

from pathbudget.agents.bus.login import Login, write_login
from pathbudget.agents.ssh import host_scripts, service_setup, unit
from pathbudget.agents.ssh.unit import Service

pytestmark = [pytest.mark.needs("sshd"), pytest.mark.needs("root"), pytest.mark.needs("systemctl")]

SYSTEMCTL = """#!/bin/sh
echo "$@" >> {log}
case "$1" in show) printf 'ActiveState=active\\nSubState=running\\nStatusText=measuring\\n';; esac
"""


def fleet(folder: Folder, *words: str) -> "subprocess.CompletedProcess[str]":
    root = ["--hosts", "hosts.toml", "--root", str(folder.path / "root")]
    return subprocess.run(
        [*PATHBUDGET, "fleet", words[0], *root, *words[1:]],
        cwd=folder.path,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def installed(folder: Folder) -> Path:
    """The root under which the agent of the host "one" was set up."""
    server = folder.server()
    folder.hosts(host_table(server, "one", folder.path / "remote"))
    (folder.path / "logins").mkdir()
    login = Login("one", ("tls://127.0.0.1:4222",), "-- no authority --", "SU-secret")
    write_login(folder.path / "logins" / "one.toml", login)
    root = folder.path / "root"
    (root / "etc").mkdir(parents=True)
    done = fleet(folder, "install", "--logins", "logins")
    assert done.returncode == 0, done.stderr
    assert "one: install done" in done.stdout
    return root


def test_a_host_gets_the_service_keeps_its_login_and_loses_all_of_it(
    folder: Folder, installed: Path
) -> None:
    login = installed / "etc/pathbudget/login.toml"
    state = login.stat()
    assert stat.S_IMODE(state.st_mode) == 0o600
    users = (installed / "etc/passwd").read_text().splitlines()
    (user,) = (line.split(":") for line in users if line.startswith("pathbudget:"))
    assert state.st_uid == int(user[2]) != 0
    assert "SU-secret" in login.read_text()
    text = (installed / "etc/systemd/system" / unit.NAME).read_text()
    assert "AmbientCapabilities=CAP_NET_RAW\n" in text
    wants = installed / "etc/systemd/system/multi-user.target.wants" / unit.NAME
    assert wants.is_symlink()
    (bundle,) = (installed / "opt/pathbudget/bundles").glob("*.pyz")
    said = subprocess.run(
        [other_python(), "-I", "-S", str(bundle), "agent", "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "--login" in said.stdout

    bundle.rename(bundle.with_name("0" * 64 + ".pyz"))  # as if of an earlier version
    login.write_text("kept")
    done = fleet(folder, "upgrade")
    assert done.returncode == 0, done.stderr
    assert login.read_text() == "kept"
    (now,) = bundle.parent.glob("*.pyz")
    assert not now.name.startswith("0000")
    (only,) = json.loads(fleet(folder, "status", "--format", "json").stdout)
    assert (only["state"], only["current"]) == ("installed", True)

    (installed / "var/lib/pathbudget").mkdir(parents=True, exist_ok=True)
    assert fleet(folder, "remove").returncode == 0
    assert not (installed / "opt/pathbudget").exists()
    assert not (installed / "etc/pathbudget").exists()
    assert not wants.is_symlink()
    assert (installed / "var/lib/pathbudget").is_dir()
    assert fleet(folder, "remove", "--purge").returncode == 0
    assert not (installed / "var/lib/pathbudget").exists()
    assert "not installed" in fleet(folder, "status").stdout


def test_a_login_of_another_agent_or_open_to_others_is_refused(folder: Folder) -> None:
    server = folder.server()
    folder.hosts(
        host_table(server, "one", folder.path / "remote"),
        host_table(server, "two", folder.path / "remote"),
    )
    logins = folder.path / "logins"
    logins.mkdir()
    write_login(logins / "one.toml", Login("two", ("tls://h:1",), "a", "s"))
    write_login(logins / "two.toml", Login("two", ("tls://h:1",), "a", "s"))
    (logins / "two.toml").chmod(0o644)
    done = fleet(folder, "install", "--logins", "logins")
    assert done.returncode == 2
    assert "is the login of 'two'" in done.stderr
    assert "is open to others" in done.stderr


@pytest.mark.parametrize("realtime", [False, True])
def test_systemd_finds_no_fault_in_the_unit(tmp_path: Path, realtime: bool) -> None:
    path = tmp_path / unit.NAME
    text = unit.unit(Service("/bin/true", "/a b/100%.pyz", policy=True, realtime=realtime))
    path.write_text(text)
    done = subprocess.run(
        [program("systemd-analyze"), "verify", "--man=no", str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    said = [line for line in done.stderr.splitlines() if unit.NAME in line]
    assert said == []
    assert ("CAP_SYS_NICE" in text) == realtime
    path.write_text(text.replace("WatchdogSec=60", "WatchDogSec=soon"))
    done = subprocess.run(
        [program("systemd-analyze"), "verify", "--man=no", str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "WatchDogSec" in done.stderr  # it does read it


def test_what_systemctl_is_told(tmp_path: Path) -> None:
    """The part of the host alone, with a systemctl that writes down its words."""
    log, programs, root = tmp_path / "log", tmp_path / "programs", tmp_path / "root"
    for folder in (programs, root / "etc", root / "opt"):
        folder.mkdir(parents=True)
    (programs / "systemctl").write_text(SYSTEMCTL.format(log=log))
    (programs / "systemctl").chmod(0o755)
    (root / "opt" / "b.pyz").write_text("")
    orders = {
        "root": str(root),
        "start": True,
        "unit": unit.NAME,
        "text": "b.pyz",
        "user": unit.USER,
        "sysusers": unit.SYSUSERS,
        "bundle": "/opt/b.pyz",
        "login": "secret",
        "login_path": unit.LOGIN,
        "policy": "",
        "policy_path": unit.POLICY,
        "folders": ["/opt"],
    }

    def do(what: str) -> dict[str, object]:
        source = Path(service_setup.__file__).read_text()
        done = subprocess.run(
            ["sh", "-c", host_scripts.command(other_python())],
            input=host_scripts.first_line(source) + json.dumps(orders | {"do": what}).encode(),
            capture_output=True,
            check=True,
            env=os.environ | {"PATH": f"{programs}:{os.environ['PATH']}:/usr/sbin:/sbin"},
        )
        return dict(json.loads(done.stdout))

    assert do("install") == {}
    assert [line.split()[0] for line in log.read_text().splitlines()] == [
        "daemon-reload",
        f"--root={root}",
        "restart",
    ]
    said = do("status")
    assert (said["state"], said["says"], said["current"]) == ("active running", "measuring", True)
    log.write_text("")
    assert do("remove") == {}
    assert log.read_text().startswith("stop ")
    (programs / "systemctl").write_text("#!/bin/sh\necho no; exit 1\n")
    (root / "opt").mkdir()
    (root / "opt" / "b.pyz").write_text("")
    assert "systemctl daemon-reload: no" in str(do("install")["trouble"])
