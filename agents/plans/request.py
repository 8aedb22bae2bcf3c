"""Requests for a probe at once: signed as plans are, but not as a plan.

A signature has another context than that of a plan. So nobody who holds a request can put it into
the bucket of plans, where it would replace the schedule, nor have a plan carried out as a request.
"""

import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from pathbudget.agents.plans.plan import AgentPlan
from pathbudget.agents.plans.policy import Policy
from pathbudget.agents.plans.refusal import PlanRefusedError, RefusalReason
from pathbudget.agents.plans.signing import check, sign_bytes, verified
from pathbudget.agents.plans.trusted import PublicKey
from pathbudget.probes.contract import ProbeSpec

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
    )

CONTEXT = b"pathbudget probe request 1\0"
LIFETIME_NS = 300_000_000_000
"""Of a request; so far may the clock of an agent be ahead of that of its operator."""
LONGEST_NS = 60_000_000_000
MOST_SERIES = 50
MOST_PACKETS = 3_000
"""Of one request, both directions. More is a plan."""
SECOND_NS = 1_000_000_000


class ProbeRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What an operator wants to know now. The plan's serial is its time of issue in ns."""

    plan: AgentPlan
    duration_ns: int


def sign_request(request: ProbeRequest, private_key: "Ed25519PrivateKey") -> bytes:
    """The envelope of a request."""
    return sign_bytes(msgspec.json.encode(request), private_key, CONTEXT)


def admit_request(
    envelope: bytes,
    *,
    keys: Mapping[str, PublicKey],
    agent: str,
    now_unix_ns: int,
    last_serial: int | None,
    policy: Policy,
) -> ProbeRequest:
    """The request, if this agent is to carry it out now. Raises PlanRefusedError.

    `last_serial` is of the request it carried out last: the same one again is a replay.
    """
    payload = verified(envelope, keys, CONTEXT)
    try:
        request = msgspec.json.decode(payload, type=ProbeRequest)
    except (msgspec.DecodeError, RecursionError) as error:
        text = f"signed, but not a request that this version knows: {error}"
        raise PlanRefusedError(RefusalReason.UNREADABLE, text) from None
    check(
        request.plan,
        agent=agent,
        now_unix_ns=now_unix_ns,
        last_serial=last_serial,
        taken_again=False,
        policy=replace(policy, bytes_per_day=sys.maxsize),  # it lasts no day: `excess` knows
    )
    return request


def excess(
    request: ProbeRequest,
    under_way: AgentPlan | None,
    policy: Policy,
    bytes_today: int,
    table: Mapping[str, ProbeSpec],
) -> str:
    """What of a request, whose probes are known, is too much; empty where nothing is.

    `under_way` is what the agent measures meanwhile: both together keep to the policy's rate.
    """
    plan, duration_ns = request.plan, request.duration_ns
    if not 0 < duration_ns <= LONGEST_NS:
        return f"{duration_ns / SECOND_NS:g} s; a request lasts {LONGEST_NS // SECOND_NS} s at most"
    if not 0 < len(plan.series) <= MOST_SERIES:
        return f"{len(plan.series)} series; a request has 1 to {MOST_SERIES}"
    packets, octets = _rates(plan, table)
    seconds = duration_ns / SECOND_NS
    if packets * seconds > MOST_PACKETS:
        return f"{packets * seconds:.0f} packets; a request has {MOST_PACKETS} at most"
    busy = 0.0 if under_way is None else _rates(under_way, table)[0]
    if packets + busy > policy.packets_per_second:
        both = f"{packets:.0f} packets per second beside {busy:.0f} of the plan"
        return f"{both}, at most {policy.packets_per_second} are allowed"
    if bytes_today + octets * seconds > policy.bytes_per_day:
        return "more than what is left of the bytes of today"
    return ""


def _rates(plan: AgentPlan, table: Mapping[str, ProbeSpec]) -> tuple[float, float]:
    """Packets and octets per second, on average."""
    packets = octets = 0.0
    for series in plan.series:
        cost, rate = table[series.kind].cost(series.options), series.expected_shots(SECOND_NS)
        packets += rate * cost.packets
        octets += rate * cost.bytes
    return packets, octets
