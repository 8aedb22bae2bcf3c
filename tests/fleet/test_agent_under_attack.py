"""A real agent whose bus was stolen: it says why it refuses, and goes on with the plan it has."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from tests.fleet.conftest import Served, entered, until
from tests.fleet.test_stolen_broker import AGENT, ATTACKS, FIRST, NOW, plan
from tests.plans.conftest import PRIVATE

from pathbudget.agents.bus.subjects import OPERATOR, PLANS, key_subject
from pathbudget.agents.plans.signing import sign

pytestmark = [pytest.mark.needs("nats-server"), pytest.mark.timeout(300)]


class AgentProcess:
    """`pathbudget agent --login`, which may probe loopback alone."""

    def __init__(self, place: Path, login: Path) -> None:
        self._state = place / "state"
        self._log = place / "agent.log"
        policy = place / "policy.toml"
        policy.write_text('allowed_networks = ["127.0.0.0/8"]\n')
        program = [str(Path(sys.executable).with_name("pathbudget")), "agent"]
        words = ["--login", str(login), "--policy", str(policy), "--state", str(self._state)]
        with self._log.open("wb") as log:
            self.process = subprocess.Popen([*program, *words], stdout=log, stderr=log)

    @property
    def log(self) -> str:
        """One line; the command breaks them to the width of a terminal."""
        return " ".join(self._log.read_text().split())

    @property
    def serial(self) -> int | None:
        """Of the plan that is carried out."""
        path = self._state / "status.json"
        return json.loads(path.read_bytes()).get("serial") if path.exists() else None

    def end(self) -> int:
        self.process.terminate()
        return self.process.wait(60)


@pytest.fixture
def agent(fleet: Served, tmp_path: Path) -> Iterator[AgentProcess]:
    """Enrolled in the fleet, and trusting the key that signs the plans of this test."""
    pem = (serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    keys = tmp_path / "operator.pub"
    keys.write_bytes(PRIVATE.public_key().public_bytes(*pem))
    fleet.folder.trust(keys)
    fleet.member(AGENT)
    running = AgentProcess(tmp_path, fleet.folder.path / f"{AGENT}.login.toml")
    try:
        yield running
    finally:
        if running.process.poll() is None:
            running.end()


async def test_each_attack_is_refused_with_its_reason_and_measuring_goes_on_though_revoked(
    fleet: Served, agent: AgentProcess
) -> None:
    async with entered(fleet.login(OPERATOR)) as thief:

        async def put(envelope: bytes) -> None:
            await thief.client.jetstream().publish(key_subject(PLANS, AGENT), envelope)

        async def comes(line: str, before: int) -> None:
            await asyncio.to_thread(
                until, lambda: agent.log.count(line) > before, lambda: f"{line}: {agent.log}"
            )

        await put(FIRST)
        await comes("plan 7: 1 series", 0)
        for name, (envelope, why) in ATTACKS.items():
            if name == "nothing":
                continue  # an empty value is how a key is deleted: no plan, and no refusal
            line = f"plan refused ({why}"
            before = agent.log.count(line)
            await put(envelope)
            await comes(line, before)
            assert agent.process.poll() is None
        assert agent.log.count("going on as before") == len(ATTACKS) - 1
        assert agent.serial == 7
        await put(sign(plan(serial=9), PRIVATE))
        await comes("plan 9: ", 0)
        await asyncio.to_thread(fleet.folder.change, lambda one: one.revoked(AGENT, NOW))
        await comes("uthorization", 0)
        assert agent.process.poll() is None, "it measures on, into its spool"
    assert await asyncio.to_thread(agent.end) == 0
    assert agent.log.count("203.0.113.5") == 1, "in the refusal, and nowhere else"
