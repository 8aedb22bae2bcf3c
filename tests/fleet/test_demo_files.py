"""What `pathbudget fleet demo` prepares: logins, plans and policies that agents would take."""

import asyncio
import time

import pytest
from tests.fleet.conftest import Served, done

from pathbudget.agents.bus.login import read_login
from pathbudget.agents.bus.subjects import OPERATOR
from pathbudget.agents.fleet.demo import REGIONS, SITES, demo
from pathbudget.agents.fleet.plan_bucket import list_plans
from pathbudget.agents.plans.keys import read_trusted
from pathbudget.agents.plans.policy_file import read_policy
from pathbudget.agents.plans.signing import admit, opened

pytestmark = pytest.mark.needs("nats-server")


def test_each_step_of_the_demo_is_one_that_agents_take(fleet: Served) -> None:
    said: list[str] = []
    for _ in range(2):  # a second demo finds what the first one made
        with demo(fleet.folder) as made:
            children = made.agents(said.append)
            assert [one.name for one in children] == [f"agent {name}" for name in REGIONS]
    place = fleet.folder.path / "demo"
    policy, keys = read_policy(place / "policy.toml"), read_trusted(place / "operator.pub")
    assert (place / "operator").stat().st_mode & 0o777 == 0o600
    listed = done("fleet", "plans", "--login", fleet.folder.login_file(OPERATOR))
    plans = asyncio.run(list_plans(fleet.login(OPERATOR), said.append))
    assert set(plans) == set(REGIONS)
    for name in REGIONS:
        assert name in listed
        login = read_login(place / f"{name}.login.toml")
        assert login.operators == (place / "operator.pub").read_text()
        found = plans[name]
        assert found is not None
        plan = admit(
            found.envelope,
            keys=keys,
            agent=name,
            now_unix_ns=time.time_ns(),
            last_serial=None,
            policy=policy,
        )
        assert plan == opened(found.envelope, keys)
        assert {one.target.site for one in plan.series} == set(SITES)
        assert {one.options["ca_file"] for one in plan.series} == {"ca.pem"}
        assert policy.localized(plan).series[0].options["ca_file"] == str(
            place / "files" / "ca.pem"
        )
