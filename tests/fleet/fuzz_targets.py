"""Fuzz targets of what comes to a registrar and into the bucket of plans. See tests/fuzzing.py."""

from pathbudget.agents.fleet.admission import answer
from pathbudget.agents.fleet.plan_bucket import looked_into
from pathbudget.agents.fleet.registry import Invitation, Registry, token_hash

NOW = 1_790_000_000_000_000_000
GUEST = "U" + "A" * 55
INVITED = Registry().invited(
    "dallas", Invitation(GUEST, token_hash("not this"), NOW, NOW + 1), again=False
)


def fuzz_one_request(data: bytes) -> None:
    """Whatever a guest sends, it is no agent without the token, and one try is counted."""
    after, said = answer(INVITED, "dallas", data, NOW)
    assert said.refused is not None
    member = after.members["dallas"]
    assert not member.key
    assert member.invitation is not None
    assert member.invitation.wrong == 1


def fuzz_one_envelope(data: bytes) -> None:
    """An envelope is looked into, or refused with a ValueError."""
    try:
        looked_into(data)
    except ValueError:
        return
