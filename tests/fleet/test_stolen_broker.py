"""What a stolen bus can hand to an agent, and what the agent makes of it.

The thief has the operator's login and puts envelopes into the bucket by hand; the agent reads its
key with its own login and asks `admit`, with a policy of loopback alone.
"""

import ipaddress
import time

import msgspec
import pytest
from tests.fleet.conftest import DAY_NS, Served, entered
from tests.plans.conftest import KEYS, PRIVATE, STRANGER, a_plan, a_series

from pathbudget.agents.bus.subjects import OPERATOR, PLANS, key_subject, value_subject
from pathbudget.agents.plans.plan import AgentPlan
from pathbudget.agents.plans.policy import Policy
from pathbudget.agents.plans.refusal import PlanRefusedError, RefusalReason
from pathbudget.agents.plans.signing import Envelope, admit, digest, sign

pytestmark = pytest.mark.needs("nats-server")

AGENT = "faithful"
NOW = time.time_ns()
POLICY = Policy(allowed_networks=(ipaddress.ip_network("127.0.0.0/8"),))


def plan(host: str = "127.0.0.1", **values: object) -> AgentPlan:
    given = {"agent": AGENT, "issued_unix_ns": NOW, "expires_unix_ns": NOW + DAY_NS, **values}
    return a_plan(a_series(host), **given)


FIRST = sign(plan(serial=7), PRIVATE)
PARTS = msgspec.json.decode(FIRST, type=Envelope)
FORGED = msgspec.json.encode(plan("203.0.113.5", serial=8))


def envelope(payload: bytes, key: str, signature: bytes) -> bytes:
    return msgspec.json.encode(Envelope(payload, key, signature))


ATTACKS = {
    "unsigned": (envelope(FORGED, PARTS.key, b""), RefusalReason.UNSIGNED),
    "forged": (envelope(FORGED, PARTS.key, PARTS.signature), RefusalReason.WRONG_SIGNATURE),
    "by a stranger": (sign(plan(serial=8), STRANGER), RefusalReason.UNKNOWN_KEY),
    "of another agent": (
        sign(plan(serial=8, agent="other"), PRIVATE),
        RefusalReason.OTHER_AGENT,
    ),
    "expired": (sign(plan(serial=8, expires_unix_ns=NOW), PRIVATE), RefusalReason.EXPIRED),
    "from the future": (
        sign(plan(serial=8, issued_unix_ns=NOW + DAY_NS // 2), PRIVATE),
        RefusalReason.NOT_YET,
    ),
    "an older one again": (sign(plan(serial=6), PRIVATE), RefusalReason.REPLAYED),
    "another of the same serial": (sign(plan(serial=7, seed=8), PRIVATE), RefusalReason.REPLAYED),
    "at a third party": (
        sign(plan("203.0.113.5", serial=8), PRIVATE),
        RefusalReason.OUT_OF_POLICY,
    ),
    "garbage": (b"\x00\xff" * 1000, RefusalReason.UNREADABLE),
    "nothing": (b"", RefusalReason.UNREADABLE),
    "too large": (b"{" + b" " * (5 << 20), RefusalReason.UNREADABLE),
}


@pytest.mark.parametrize("attack", ATTACKS)
async def test_what_lies_in_the_bucket_is_taken_only_as_it_was_signed_for_here_and_now(
    fleet: Served, attack: str
) -> None:
    content, why = ATTACKS[attack]
    async with entered(fleet.login(OPERATOR)) as thief, entered(fleet.member(AGENT)) as agent:
        watch = await agent.client.subscribe(key_subject(PLANS, AGENT))
        await agent.client.flush()

        async def taken(put: bytes, last: bytes | None) -> AgentPlan:
            await thief.client.jetstream().publish(key_subject(PLANS, AGENT), put)
            pushed = await watch.next_msg(10)
            pulled = await agent.client.request(value_subject(PLANS, AGENT), timeout=10)
            assert pushed.data == pulled.data == put
            return admit(
                pulled.data,
                keys=KEYS,
                agent=AGENT,
                now_unix_ns=NOW + 1,
                last_serial=None if last is None else 7,
                last_digest="" if last is None else digest(last),
                policy=POLICY,
            )

        assert (await taken(FIRST, None)).serial == 7
        with pytest.raises(PlanRefusedError) as refusal:
            await taken(content, FIRST)
        assert refusal.value.reason is why
        assert (await taken(FIRST, FIRST)).serial == 7
