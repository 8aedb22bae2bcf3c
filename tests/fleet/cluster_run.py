"""A bus of three servers on loopback, each a process that can be killed and started again."""

import signal
import subprocess
from pathlib import Path

from tests.fleet.conftest import PATIENCE_S, Served, done, free_ports, until
from tests.programs import program

CARRY = """#!/bin/sh
for node in "$(dirname "$1")"/nodes/*; do
    cp "$1" "$node/.users.new" && mv "$node/.users.new" "$node/users.conf"
    kill -HUP "$(cat "$node/nats-server.pid")"
done
exit 0
"""


class ServedCluster(Served):
    """`fleet serve` beside three servers. One is as far as the last of them."""

    @property
    def server_log(self) -> str:
        """What all of them have said."""
        return "\n".join(self._logs())

    @property
    def reloads(self) -> int:
        """How often each server has read its users anew, at least."""
        return min(log.count("Reloaded server configuration") for log in self._logs())

    def _logs(self) -> list[str]:
        return [log_of(one) for one in sorted((self.folder.path / "nodes").iterdir())]


class Cluster:
    """Three servers, and who serves their fleet."""

    def __init__(self, place: Path) -> None:
        ports = free_ports(6)
        words = [f"127.0.0.1:{ports[one]}:{ports[one + 3]}" for one in range(3)]
        self.said = done("fleet", "cluster", *words, "--out", place / "fleet")
        self.folders = sorted((place / "fleet" / "nodes").iterdir())
        self.servers: dict[str, subprocess.Popen[bytes]] = {}
        for one in self.folders:
            self.start(one.name)
        carry = place / "carry"
        carry.write_text(CARRY)
        carry.chmod(0o700)
        self.served = ServedCluster(place / "fleet", "--no-collector", "--after-change", carry)

    def start(self, name: str) -> None:
        """One server; again, when it was killed."""
        folder = next(one for one in self.folders if one.name == name)
        words = [program("nats-server"), "-c", "nats-server.conf"]
        self.servers[name] = subprocess.Popen(words, cwd=folder)

    def kill(self, name: str) -> None:
        """At once, as a machine that is switched off kills it."""
        self.servers[name].send_signal(signal.SIGKILL)
        self.servers[name].wait(PATIENCE_S)

    def is_up(self, name: str) -> bool:
        """Whether it runs; it may not serve yet."""
        return self.servers[name].poll() is None

    def serve(self) -> None:
        """Until each server has the users that the fleet has now."""
        self.served.start()
        until(lambda: self.served.reloads > 0, lambda: self.served.server_log)

    @property
    def users(self) -> list[Path]:
        return [one / "users.conf" for one in self.folders]

    def log(self, name: str) -> str:
        return log_of(next(one for one in self.folders if one.name == name))

    def stop(self) -> None:
        if self.served.process is not None:
            self.served.stop()
        for one in self.servers.values():
            one.terminate()
            one.wait(PATIENCE_S)


def log_of(folder: Path) -> str:
    """What the server of a folder has said."""
    path = folder / "nats-server.log"
    return path.read_text(errors="replace") if path.exists() else ""
