"""A campaign signed for the agent of its vantage."""

import time
from pathlib import Path

from pathbudget.agents.plans.from_campaign import agent_plans
from pathbudget.agents.plans.keys import generate, read_private
from pathbudget.agents.plans.signing import sign
from pathbudget.probes.table import probe_table

DAY_NS = 86_400_000_000_000


def sign_campaign(folder: Path, serial: int | None = None) -> str:
    """Name of the file with the plan; the keys are made where there are none."""
    key = folder / "operator"
    if not key.exists():
        generate(key, folder / "operator.pub")
    (plan,) = agent_plans(
        folder / "campaign.toml",
        probe_table(),
        issued_unix_ns=time.time_ns(),
        lifetime_ns=DAY_NS,
        serial=serial,
    ).values()
    path = folder / "office.plan.json"
    path.write_bytes(sign(plan, read_private(key)))
    return path.name
