"""A folder with a campaign for two hosts, real SSH servers for them, and the command run in it."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.ssh.servers import Server, free_port, host_table, make_key

from pathbudget.agents.campaign.campaign_file import load_campaign
from pathbudget.agents.campaign.plan import due_shots
from pathbudget.agents.store.parquet import Store
from pathbudget.probes.table import probe_table

PATHBUDGET = (sys.executable, "-c", "from pathbudget.agents.cli.main import run; run()")
CATALOGUE = """
[[region]]
name = "here"
latitude = 1.0
longitude = 2.0
[[site]]
name = "there"
latitude = 3.0
longitude = 4.0
[[site.target]]
name = "there"
host = "127.0.0.1"
port = {port}
"""
CAMPAIGN = """
name = "over-ssh"
catalogue = "catalogue.toml"
duration = "{duration}"
seed = 11
[[probe]]
kind = "tcp"
interval = "50ms"
"""
VANTAGE = '[[vantage]]\nname = "{name}"\nregion = "here"\n'


class Folder:
    """Where the command is run."""

    def __init__(self, path: Path, target_port: int) -> None:
        self.path = path
        self.user_key = make_key(path / "user_key")
        self.servers: list[Server] = []
        (path / "catalogue.toml").write_text(CATALOGUE.format(port=target_port))

    def server(self, name: str = "sshd") -> Server:
        made = Server(self.path / name, "127.0.0.1", free_port(), self.user_key)
        self.servers.append(made)
        return made.up().wait()

    def campaign(self, *vantages: str, duration: str = "1s") -> None:
        text = CAMPAIGN.format(duration=duration)
        text += "".join(VANTAGE.format(name=name) for name in vantages)
        (self.path / "campaign.toml").write_text(text)

    def hosts(self, *tables: str) -> None:
        (self.path / "hosts.toml").write_text("".join(tables))
        known = "".join(server.known_hosts_line for server in self.servers)
        (self.path / "known_hosts").write_text(known)

    def one_host(self, *, duration: str = "1s", **more: str) -> Server:
        """A campaign of the vantage "one" and its server."""
        server = self.server()
        self.campaign("one", duration=duration)
        self.hosts(host_table(server, "one", self.path / "remote", **more))
        return server

    def spawn(self, *words: str) -> "subprocess.Popen[str]":
        options = ["--hosts", "hosts.toml", "--store", "store", "--realtime", "off"]
        return subprocess.Popen(
            [*PATHBUDGET, "run", "campaign.toml", *options, *words],
            cwd=self.path,
            env=os.environ | {"NO_COLOR": "1", "COLUMNS": "200"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *words: str) -> "subprocess.CompletedProcess[str]":
        process = self.spawn(*words)
        output, errors = process.communicate()
        return subprocess.CompletedProcess(process.args, process.returncode, output, errors)

    def planned(self) -> int:
        plan = load_campaign(self.path / "campaign.toml", probe_table()).plan
        return sum(1 for one in plan.vantages for _ in due_shots(one))

    def stored(self) -> list[tuple[str, int]]:
        """Vantage and number of every sample of the metric that each probe has once."""
        return [
            (one.vantage.name, sample.seq)
            for one in Store(self.path / "store").measurements()
            for sample in one.samples
            if sample.metric == probe_table()["tcp"].primary_metric
        ]

    def whole(self) -> bool:
        """Whether everything planned is stored, once."""
        found = self.stored()
        return len(found) == len(set(found)) == self.planned()

    def runs(self, folder: str = "remote") -> list[str]:
        return sorted(one.name for one in (self.path / folder / "runs").glob("*"))


def wait_for(process: "subprocess.Popen[str]", text: str) -> list[str]:
    """Lines of standard error up to the one that has `text` in it."""
    assert process.stderr is not None
    lines: list[str] = []
    for line in process.stderr:
        lines.append(line.rstrip())
        if text in line:
            return lines
    raise AssertionError("\n".join(lines))


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.fixture(scope="session", autouse=True)
def bundles_elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Bundles that are made here are kept out of the home of whoever runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    target = Server(tmp_path / "target", "127.0.0.1", free_port(), make_key(tmp_path / "nobody"))
    target.up().wait()  # something that accepts connections
    made = Folder(tmp_path, target.port)
    yield made
    for server in (target, *made.servers):
        server.down()
