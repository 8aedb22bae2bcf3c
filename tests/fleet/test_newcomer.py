"""The four commands of the README, as they are written there."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from tests.fleet.conftest import until
from tests.programs import PACKAGES

from pathbudget.agents.fleet.demo import REGIONS, SITES
from pathbudget.agents.store.parquet import Store

pytestmark = pytest.mark.needs("nats-server")

ROOT = Path(__file__).resolve().parents[2]


def commands_of(page: Path, heading: str) -> list[str]:
    """Lines of the first block under a heading."""
    section = page.read_text().split(f"\n## {heading}\n")[1]
    return section.split("```\n")[1].strip().splitlines()


COMMANDS = commands_of(ROOT / "README.md", "A fleet of agents, on one machine first")


class Shell:
    """Runs what was typed in a folder, with `pathbudget` as it would be after `pip install`."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self._path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self.log = place / "background.log"

    @property
    def _environment(self) -> dict[str, str]:
        return {**os.environ, "PATH": self._path}

    def background(self, line: str) -> "subprocess.Popen[bytes]":
        assert line.endswith(" &")
        with self.log.open("wb") as log:
            return subprocess.Popen(
                shlex.split(line[:-2]),
                cwd=self.place,
                env=self._environment,
                stdout=log,
                stderr=log,
            )

    def run(self, line: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            shlex.split(line),
            cwd=self.place,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )


def test_the_page_of_fleets_has_the_same_four_commands() -> None:
    assert len(COMMANDS) == 4
    assert commands_of(ROOT / "docs/fleet.md", "Four commands on one machine") == COMMANDS


def test_the_first_two_install_what_the_others_need() -> None:
    """CI installs the same package, and tests/repository/test_wheel.py the same wheel."""
    project: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert shlex.split(COMMANDS[0])[-1] == PACKAGES["nats-server"]
    extra = re.fullmatch(r"pip install '\.\[(\w+)\]'", COMMANDS[1])
    assert extra is not None
    (everything,) = project["project"]["optional-dependencies"][extra[1]]
    assert {"fleet", "store", "lab"} <= set(re.split(r"[\[\],]", everything))


@pytest.mark.timeout(300)
def test_a_newcomer_sees_two_regions_measured_after_four_commands(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    demo = shell.background(COMMANDS[2])
    try:
        until(lambda: shell.log.read_text().count("is started") == len(REGIONS))
        until(lambda: heard(shell) == set(REGIONS), shell.log.read_text, pause_s=3.0)
        table = shell.run(COMMANDS[3])
        assert table.returncode == 0, table.stderr
        assert all(name in table.stdout for name in REGIONS)
        store = Store(tmp_path / "pathbudget-fleet" / "store")
        pairs = {(region, site) for region in REGIONS for site in SITES}
        until(lambda: measured(store) >= pairs, shell.log.read_text, pause_s=1.0)
    finally:
        demo.send_signal(signal.SIGINT)  # what Ctrl-C is, had it been in front
        code = demo.wait(60)
    assert code == 0, shell.log.read_text()
    assert "has ended" not in shell.log.read_text(), "no part of it died"


def heard(shell: Shell) -> set[str]:
    """Agents that measure, says the last command."""
    found = shell.run(f"{COMMANDS[3]} --json")
    if found.returncode:
        return set()
    agents = json.loads(found.stdout)["agents"]
    return {one["agent"] for one in agents if one["state"] == "measuring"}


def measured(store: Store) -> set[tuple[str, str]]:
    """Regions and sites that have samples in the store."""
    if not (store.path / "measurements").is_dir():
        return set()
    return {
        (one.vantage.region, one.target.site)
        for one in store.measurements()
        if any(sample.value_ns for sample in one.samples)
    }
