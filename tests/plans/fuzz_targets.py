"""Fuzz target of signed plans. See tests/fuzzing.py."""

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from pathbudget.agents.plans.keys import key_id
from pathbudget.agents.plans.refusal import PlanRefusedError
from pathbudget.agents.plans.signing import opened

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
KEYS = {key_id(KEY.public_key()): KEY.public_key()}


def fuzz_one(data: bytes) -> None:
    """Nothing that was not signed is ever opened, and nothing but a refusal is raised."""
    try:
        opened(data, KEYS)
    except PlanRefusedError:
        return
    raise AssertionError("an envelope that nobody signed was opened")
