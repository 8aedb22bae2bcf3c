"""Every part of a fleet killed, away, revoked or expired: samples are accounted for all the same.

`ROUNDS` is how often something is killed; for more: PATHBUDGET_FAULT_ROUNDS=200.
"""

import os
import random
import signal
import subprocess
from datetime import timedelta
from unittest.mock import patch

import pytest
from tests.collector.fleet_run import OFFICE, PATIENCE_S, FleetRun
from tests.fleet.conftest import until
from tests.programs import program

from pathbudget.agents.fleet.authority import Authority
from pathbudget.agents.fleet.reload import CONFIGURATION
from pathbudget.agents.responder import issuing

pytestmark = [pytest.mark.needs("nats-server")]

ROUNDS = int(os.environ.get("PATHBUDGET_FAULT_ROUNDS", "4"))


def test_killed_at_random_moments_agent_collector_and_server_lose_nothing(run: FleetRun) -> None:
    rng = random.Random(11)
    run.push()
    run.start_collector()
    run.start_agent()
    for _ in range(ROUNDS):
        run.await_samples(rng.randrange(20, 80))
        victim = rng.choice(["agent", "collector", "server"])
        if victim == "agent":
            run.agents[OFFICE].kill()
            run.agents[OFFICE].wait(PATIENCE_S)
            run.start_agent()
        elif victim == "collector":
            run.collectors[-1].kill()
            run.collectors[-1].wait(PATIENCE_S)
            run.start_collector()
        else:
            run.kill_server()
    run.await_samples(20)
    run.end_agents()
    run.await_drained()
    assert run.accounts_for_all() >= 20 * ROUNDS


def test_revoked_an_agent_keeps_what_it_measures_and_says_why(run: FleetRun) -> None:
    run.push()
    run.start_agent()
    run.await_samples(20)
    run.served.folder.change(lambda registry: registry.revoked(OFFICE, 1))
    until(lambda: "Authorization Violation" in run.log(OFFICE), lambda: run.log(OFFICE))
    until(lambda: run.waiting() > 0, lambda: run.log(OFFICE))
    run.agents[OFFICE].send_signal(signal.SIGTERM)
    assert run.agents[OFFICE].wait(PATIENCE_S) == 0
    after = run.status()
    assert after is not None
    assert after.trouble
    assert run.log(OFFICE).count("Authorization Violation") < 4, "each try says the same"
    assert after.spool.made_samples == (
        after.spool.acknowledged_samples + after.spool.waiting_samples
    )


def test_an_expired_certificate_stops_deliveries_and_loses_nothing(run: FleetRun) -> None:
    run.push()
    run.start_agent()
    run.await_samples(20)
    tls = run.served.folder.path / "tls"
    good = {path: path.read_bytes() for path in (tls / "server.pem", tls / "server.key")}
    for path in good:
        path.unlink()
    with patch.object(issuing, "VALIDITY", timedelta(minutes=-1)):
        assert Authority(tls).server_pair(["127.0.0.1"])
    run.served.stop()  # `fleet serve` would renew it
    nats = run.served.folder.nats
    command = [program("nats-server"), "-c", CONFIGURATION]
    with subprocess.Popen(command, cwd=nats) as server:
        until(lambda: "certificate has expired" in run.log(OFFICE), lambda: run.log(OFFICE))
        until(lambda: run.waiting() > 0, lambda: run.log(OFFICE))
        server.terminate()
    for path, content in good.items():
        path.write_bytes(content)
    run.served.start()
    until(lambda: "the bus is back" in run.log(OFFICE), lambda: run.log(OFFICE))
    run.start_collector()
    run.end_agents()
    run.await_drained()
    run.accounts_for_all()


def test_without_a_server_an_agent_goes_on_with_the_plan_it_had(run: FleetRun) -> None:
    run.push()
    run.start_agent()
    run.await_samples(20)
    run.end_agents()
    run.served.stop()
    run.start_agent()
    run.await_samples(40)
    until(lambda: run.waiting() > 0, lambda: run.log(OFFICE))
    run.served.start()
    run.start_collector()
    until(lambda: run.collected().get("measurements", 0) > 0, lambda: run.log("collector"))
    run.end_agents()
    run.await_drained()
    run.accounts_for_all()
