"""Real SSH servers (OpenSSH) on this machine, each with a host key of its own, and a user's key."""

import contextlib
import os
import pwd
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import asyncssh
from tests.programs import program

Start = Callable[[list[str]], "subprocess.Popen[bytes]"]
USER = pwd.getpwuid(os.getuid()).pw_name
SEPARATION = Path("/run/sshd")
"""sshd of root wants this folder for its unprivileged half."""


def make_key(path: Path, *, passphrase: str | None = None) -> Path:
    key = asyncssh.generate_private_key("ssh-ed25519")
    # The format of OpenSSH cannot be locked without one more library.
    key.write_private_key(str(path), "pkcs8-pem" if passphrase else "openssh", passphrase)
    path.chmod(0o600)
    key.write_public_key(f"{path}.pub")
    return path


def own_process(command: list[str]) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(command, stderr=subprocess.DEVNULL)


def descendants(process: int) -> list[int]:
    """Processes that it has started, and those that they have started."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parent = int(path.read_text().rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(path.parent.name))
    found = list(children.get(process, []))
    for one in found:
        found += children.get(one, [])
    return found


def is_sshd(process: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process}/comm").read_text().startswith("sshd")
    return False


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


@dataclass
class Server:
    """One sshd. `folder` holds its key and its log."""

    folder: Path
    address: str
    port: int
    user_key: Path
    start: Start = own_process
    process: "subprocess.Popen[bytes] | None" = field(default=None)

    def up(self) -> "Server":
        self.folder.mkdir(parents=True, exist_ok=True)
        if os.geteuid() == 0:
            SEPARATION.mkdir(exist_ok=True, mode=0o755)
        if not self.key.exists():
            make_key(self.key)
        config = self.folder / "sshd_config"
        config.write_text(
            f"ListenAddress {self.address}\nPort {self.port}\nHostKey {self.key}\n"
            f"AuthorizedKeysFile {self.user_key}.pub\nPidFile none\nUsePAM no\nStrictModes no\n"
            "PasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin yes\n"
            "UseDNS no\nMaxStartups 100\nAllowTcpForwarding yes\nLogLevel VERBOSE\n"
        )
        log = str(self.folder / "log")
        self.process = self.start([program("sshd"), "-D", "-f", str(config), "-E", log])
        return self

    def wait(self) -> "Server":
        """Until it listens; it must be where this process is."""
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            assert self.process is not None
            assert self.process.poll() is None, (self.folder / "log").read_text()
            with socket.socket() as sock:
                if sock.connect_ex((self.address, self.port)) == 0:
                    return self
            time.sleep(0.02)
        raise AssertionError("sshd does not listen")

    @property
    def key(self) -> Path:
        return self.folder / "host_key"

    @property
    def known_hosts_line(self) -> str:
        kind, key, *_ = self.key.with_suffix(".pub").read_text().split()
        name = self.address if self.port == 22 else f"[{self.address}]:{self.port}"
        return f"{name} {kind} {key}\n"

    def cut(self) -> int:
        """Kill the processes of all connections, as a crash would. How many that were."""
        assert self.process is not None
        found = [one for one in descendants(self.process.pid) if is_sshd(one)]
        for one in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(one, signal.SIGKILL)
        return len(found)

    def down(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.cut()
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()


def host_table(server: Server, vantage: str, folder: Path, **more: str) -> str:
    """One [[host]] of a hosts file; `more` holds further keys as TOML values."""
    lines = [
        "[[host]]",
        f'vantage = "{vantage}"',
        f'host = "{server.address}"',
        f"port = {server.port}",
        f'user = "{USER}"',
        f'keys = ["{server.user_key}"]',
        "agent = false",
        f'folder = "{folder}"',
    ]
    values = {"python": f'"{other_python()}"', "known_hosts": '"known_hosts"'} | more
    return "\n".join([*lines, *(f"{key} = {value}" for key, value in values.items())]) + "\n"


def other_python() -> str:
    """The Python under the environment of the tests: of the same version, without packages."""
    found = Path(sys.base_prefix) / "bin" / f"python{sys.version_info[0]}.{sys.version_info[1]}"
    assert found.exists(), found
    return str(found)
