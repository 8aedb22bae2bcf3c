"""A plan, the key that signs it, and an agent that trusts the key."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from pathbudget.agents.campaign.plan import SeriesPlan
from pathbudget.agents.plans.keys import key_id
from pathbudget.agents.plans.plan import AgentPlan
from pathbudget.agents.plans.policy import Policy
from pathbudget.agents.plans.signing import admit
from pathbudget.probes.record import Target, Vantage

NOW = 1_790_000_000_000_000_000
DAY = 86_400_000_000_000

PRIVATE = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
STRANGER = Ed25519PrivateKey.from_private_bytes(bytes(range(1, 33)))
KEYS: Mapping[str, Ed25519PublicKey] = {key_id(PRIVATE.public_key()): PRIVATE.public_key()}


def a_series(host: str = "198.51.100.7", kind: str = "icmp", **values: Any) -> SeriesPlan:
    """One series to a host, once a second."""
    given: dict[str, Any] = {"interval_ns": 1_000_000_000, "timeout_ns": 2_000_000_000, **values}
    return SeriesPlan(Target("a", host, "s1", 443), kind, kind, **given)


def a_plan(*series: SeriesPlan, **values: Any) -> AgentPlan:
    """A plan for agent dallas-1, issued now, good for a day."""
    given: dict[str, Any] = {
        "agent": "dallas-1",
        "serial": 7,
        "issued_unix_ns": NOW,
        "expires_unix_ns": NOW + DAY,
        "vantage": Vantage("dallas-1", "dallas"),
        "series": series or (a_series(),),
        "seed": 7,
        **values,
    }
    return AgentPlan(**given)


@pytest.fixture
def take() -> Callable[..., AgentPlan]:
    """`admit` as agent dallas-1 does it, with what a test wants otherwise."""

    def taken(envelope: bytes, **values: Any) -> AgentPlan:
        given: dict[str, Any] = {
            "keys": KEYS,
            "agent": "dallas-1",
            "now_unix_ns": NOW + DAY // 2,
            "last_serial": None,
            "policy": Policy(),
            **values,
        }
        return admit(envelope, **given)

    return taken
