"""A campaign over SSH is the campaign: same distributions, and every planned sample once."""

import json
import subprocess
import sys

import numpy as np
import pytest
from tests.lab.ssh_campaign import KILLED, PULLED, REGIONS, SITES, Result
from tests.lab.two_samples import p_value, rejected

LEVEL = 0.01
SHORTEST_SLACK_MS = 0.1


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Result:
    """Short, for every run of the tests; docs/ssh.md has the figures of a long one."""
    folder = tmp_path_factory.mktemp("ssh-campaign")
    command = [sys.executable, "-m", "tests.lab.ssh_campaign", str(folder), "6", "100", "3"]
    done = subprocess.run(
        command, cwd=request.config.rootpath, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return Result(**json.loads((folder / "result.json").read_text()))


@pytest.mark.needs("lab")
@pytest.mark.needs("root")
@pytest.mark.needs("sshd")
@pytest.mark.timeout(240)
class TestCampaign:
    def test_nothing_planned_is_lost_and_nothing_comes_twice(self, result: Result) -> None:
        assert len(result.planned) == len(REGIONS)
        assert result.stored == result.planned
        assert result.distinct == result.planned

    def test_what_the_pulled_link_swallowed_is_there_as_failures(self, result: Result) -> None:
        others = max(count for name, count in result.failed.items() if name != PULLED)
        assert result.failed[PULLED] > 10 * (1 + others)

    def test_every_host_has_lines_of_progress(self, result: Result) -> None:
        for name, *_ in REGIONS:
            assert f"{name}: measuring" in result.said
            assert f"{name}: done" in result.said

    def test_a_host_whose_connection_was_killed_came_back(self, result: Result) -> None:
        assert result.killed_processes
        away = result.said.index(f"{KILLED}: away: its host goes on measuring")
        assert f"{KILLED}: measuring" in result.said[away:]

    def test_distributions_are_those_of_the_local_run(self, result: Result) -> None:
        """Holm at 1 % over all pairs; a shift as large as the lab says it was late is granted."""
        slack_ms = slack_of(result)
        pairs = {f"{name} {site}" for name, *_ in REGIONS for site, *_ in SITES}
        assert result.local_ms.keys() == result.ssh_ms.keys() == pairs
        values = {
            pair: p_value(result.ssh_ms[pair], result.local_ms[pair], slack_ms) for pair in pairs
        }
        assert rejected(values, LEVEL) == {}, (slack_ms, result.error_us)


def slack_of(result: Result) -> float:
    """Of a round trip of two deliveries whose lateness counts, in either of the runs."""
    return max(SHORTEST_SLACK_MS, 2 * max(result.error_us.values()) / 1e3)


def test_the_test_of_two_samples_finds_what_is_more_than_the_slack() -> None:
    rng = np.random.default_rng(1)
    one, other = rng.exponential(0.5, 60) + 20, rng.exponential(0.5, 60) + 20
    assert p_value(list(one), list(other)) > 0.01
    assert p_value(list(one + 0.1), list(other), 0.1) > 0.01
    assert p_value(list(one + 0.6), list(other), 0.1) < LEVEL / 30
    assert p_value(list(one - 0.6), list(other), 0.1) < LEVEL / 30
    assert p_value(list(one), list(other * 5 - 80), 0.1) < LEVEL / 30


def test_holm_rejects_in_order_and_stops() -> None:
    values = {"a": 0.0001, "b": 0.0049, "c": 0.2}
    assert rejected(values, 0.01) == {"a": 0.0001, "b": 0.0049}
    assert rejected({"a": 0.004, "b": 0.0049, "c": 0.2}, 0.01) == {}
