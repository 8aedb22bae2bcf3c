"""Plans in signed envelopes, and the questions that an agent asks before it takes one.

The envelope is JSON: the plan as base64 of the exact bytes that were signed (so nothing depends on
how somebody writes JSON), the id of the key, and an Ed25519 signature (RFC 8032) over `CONTEXT`
and those bytes. A broker carries envelopes, and can neither make nor change one.
"""

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from pathbudget.agents.plans.keys import key_id
from pathbudget.agents.plans.plan import AGENT_NAME, LARGEST_PLAN, AgentPlan
from pathbudget.agents.plans.policy import Policy
from pathbudget.agents.plans.refusal import PlanRefusedError, RefusalReason
from pathbudget.agents.plans.trusted import PublicKey, is_signature

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

CONTEXT = b"pathbudget agent plan 1\0"
"""What keeps a signature of ours from being one of something else under the same key."""
CLOCK_SLACK_NS = 300_000_000_000
"""By how much the clock of an agent may be behind that of its operator."""


class Envelope(msgspec.Struct, frozen=True):
    """What travels and lies in files."""

    plan: bytes
    key: str
    signature: bytes


def sign(plan: AgentPlan, private_key: "Ed25519PrivateKey") -> bytes:
    """The envelope of a plan."""
    return sign_bytes(msgspec.json.encode(plan), private_key, CONTEXT)


def sign_bytes(payload: bytes, private_key: "Ed25519PrivateKey", context: bytes) -> bytes:
    """The envelope of something. `context` says what it is, and ends with a zero byte."""
    signature = private_key.sign(context + payload)
    return msgspec.json.encode(Envelope(payload, key_id(private_key.public_key()), signature))


def digest(envelope: bytes) -> str:
    """What tells one envelope from another of the same serial."""
    return hashlib.sha256(envelope).hexdigest()


def opened(envelope: bytes, keys: Mapping[str, PublicKey]) -> AgentPlan:
    """The plan of an envelope that one of `keys` has signed. Raises PlanRefusedError."""
    payload = verified(envelope, keys, CONTEXT)
    try:
        return msgspec.json.decode(payload, type=AgentPlan)
    except (msgspec.DecodeError, RecursionError) as error:
        text = f"signed, but not a plan that this version knows: {error}"
        raise _refused(RefusalReason.UNREADABLE, text) from None


def verified(envelope: bytes, keys: Mapping[str, PublicKey], context: bytes) -> bytes:
    """The bytes that one of `keys` has signed as what `context` says. Raises PlanRefusedError."""
    parts = _parts(envelope)
    if not parts.signature:
        raise _refused(RefusalReason.UNSIGNED, "it has no signature")
    key = keys.get(parts.key)
    if key is None:
        text = f"signed by {parts.key[:32]!r}, which is no key that is trusted here"
        raise _refused(RefusalReason.UNKNOWN_KEY, text)
    if not is_signature(parts.signature, key, context + parts.plan):
        text = f"the signature is not one of key {parts.key} over this plan"
        raise _refused(RefusalReason.WRONG_SIGNATURE, text)
    return parts.plan


def admit(
    envelope: bytes,
    *,
    keys: Mapping[str, PublicKey],
    agent: str,
    now_unix_ns: int,
    last_serial: int | None,
    policy: Policy,
    last_digest: str = "",
) -> AgentPlan:
    """The plan, if this agent is to carry it out now. Raises PlanRefusedError.

    `last_serial` and `last_digest` are of the plan it took last: a lower serial is a replay, and so
    is the same one on another envelope; the very same envelope is taken again (after a restart).
    """
    plan = opened(envelope, keys)
    check(
        plan,
        agent=agent,
        now_unix_ns=now_unix_ns,
        last_serial=last_serial,
        taken_again=plan.serial == last_serial and last_digest == digest(envelope),
        policy=policy,
    )
    return plan


def check(
    plan: AgentPlan,
    *,
    agent: str,
    now_unix_ns: int,
    last_serial: int | None,
    taken_again: bool,
    policy: Policy,
) -> None:
    """Whether this agent is to carry out a plan whose signature holds. Raises PlanRefusedError."""
    if plan.agent != agent:
        text = f"it is for agent {plan.agent[:64]!r}, this is {agent}"
        raise _refused(RefusalReason.OTHER_AGENT, text)
    if not AGENT_NAME.fullmatch(plan.agent):
        raise _refused(RefusalReason.UNREADABLE, "its agent has no name of an agent")
    if now_unix_ns >= plan.expires_unix_ns:
        past = (now_unix_ns - plan.expires_unix_ns) // 1_000_000_000
        raise _refused(RefusalReason.EXPIRED, f"by the clock of this host {past} s ago")
    if plan.issued_unix_ns > now_unix_ns + CLOCK_SLACK_NS:
        ahead = (plan.issued_unix_ns - now_unix_ns) // 1_000_000_000
        text = f"issued {ahead} s after the clock of this host: one of the two clocks is wrong"
        raise _refused(RefusalReason.NOT_YET, text)
    if last_serial is not None and plan.serial <= last_serial and not taken_again:
        raise _refused(RefusalReason.REPLAYED, f"serial {plan.serial} after {last_serial}")
    if refusals := policy.refusals(plan):
        more = f", and {len(refusals) - 1} more" if len(refusals) > 1 else ""
        raise _refused(RefusalReason.OUT_OF_POLICY, refusals[0] + more)


def _parts(envelope: bytes) -> Envelope:
    if len(envelope) > LARGEST_PLAN:
        raise _refused(RefusalReason.UNREADABLE, f"{len(envelope)} bytes, over {LARGEST_PLAN}")
    try:
        return msgspec.json.decode(envelope, type=Envelope)
    except (msgspec.DecodeError, RecursionError) as error:
        raise _refused(RefusalReason.UNREADABLE, f"no envelope of a plan: {error}") from None


def _refused(reason: RefusalReason, text: str) -> PlanRefusedError:
    return PlanRefusedError(reason, text)
