"""A path moves in the lab, by real BGP, and back: one incident, with its time, cost and name.

Weeks of every kind of trouble, by seed: benchmarks/route_week.py.
"""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.route_changes.lab_truth import injected_of

from pathbudget.agents.lab.ledger import Ledger
from pathbudget.agents.routes.evaluation import RouteWish, routes_of_store
from pathbudget.agents.store.parquet import Store
from pathbudget.analysis.routes.model import Cause
from pathbudget.sites.catalogue_file import load_catalogue

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "lab"
PATHBUDGET = str(Path(sys.executable).with_name("pathbudget"))
SECOND = 1_000_000_000

EVENT = """
# The week.

[[event]]
at = "6s"
kind = "prefer"
for = "4s"
node = "east"
neighbour = "comet-3"
local_preference = 300
"""

CAMPAIGN = """
name = "moved"
catalogue = "{catalogue}"
duration = "17s"
seed = 7

[limits]
packets_per_second = 3000
packets_per_second_per_target = 3000

[[vantage]]
name = "east"
region = "east"
namespace = "lab:east"

[[probe]]
kind = "icmp"
families = ["ipv4"]
interval = "20ms"
schedule = "periodic"

[[probe]]
kind = "trace"
families = ["ipv4"]
interval = "1s"
max_packets = 120
"""


@pytest.mark.needs("lab")
@pytest.mark.needs("bird")
def test_a_move_is_one_incident_with_its_cost(tmp_path: Path) -> None:
    catalogue, world = EXAMPLES / "routes-catalogue.toml", tmp_path / "world.toml"
    text = (EXAMPLES / "routes.toml").read_text()
    world.write_text(text[: text.index("# The week.")] + EVENT)
    (tmp_path / "campaign.toml").write_text(CAMPAIGN.format(catalogue=catalogue))
    ran = subprocess.run(
        [
            PATHBUDGET, "lab", "run", str(world), "--ledger", "truth.json",
            "--", PATHBUDGET, "run", "campaign.toml", "--store", "store",
        ],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=100,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    (truth,) = injected_of(Ledger.decode((tmp_path / "truth.json").read_bytes()))
    report = routes_of_store(
        Store(tmp_path / "store"), RouteWish(time_scale=0.05), load_catalogue([catalogue])
    )
    costly = [
        one
        for one in report.incidents
        if one.cost is not None and any(each.site == "paris" for each in one.series)
        and one.window.after_unix_ns - SECOND <= truth.at_unix_ns <= one.window.by_unix_ns + SECOND
    ]  # fmt: skip
    (incident,) = costly
    assert incident.cause in (Cause.PATH_MOVED, Cause.FLAP), incident.reason
    assert incident.over is not None
    assert incident.cost is not None
    slack_ns = 500_000  # the host may be late to deliver
    assert any(
        incident.cost.low_ns - slack_ns <= cost <= incident.cost.high_ns + slack_ns
        for cost in truth.cost_ns
    ), incident.cost
    assert {each.region for each in incident.series} == {"east"}
