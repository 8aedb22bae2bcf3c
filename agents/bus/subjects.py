"""Where on the bus what is said, and who may say it (docs/fleet.md).

Each agent has subjects of its own, with its name as the last token, and the server lets it use no
others. A name has neither dot nor wildcard in it (`AGENT_NAME`), so it is one token.
"""

from typing import NamedTuple

from pathbudget.agents.plans.plan import AGENT_NAME

RESULTS = "pathbudget.results"
"""Measurements, one message each: `codec.encode_line`; message id: `Measurement.id`."""
ASK = "pathbudget.ask"
"""Requests for a probe at once: a signed plan; the answer: what was measured."""
ENROL = "pathbudget.enrol"
"""A new agent's public key, with a token that works once."""

RESULTS_STREAM = "pathbudget-results"
COLLECTORS = "collectors"
"""The consumer that all collectors share."""
PLANS = "pathbudget-plans"
"""Key-value bucket: the signed plan of each agent, under its name."""
STATUS = "pathbudget-status"
"""Key-value bucket: what each agent said of itself last (`AgentStatus` as JSON): its heartbeat."""

MOST_OCTETS = 8 << 20
"""Of one message."""


OPERATOR, COLLECTOR, REGISTRAR = "operator", "collector", "registrar"
"""Users that are no agents."""
_GUEST = "guest-"
_API = "$JS.API"


class Permissions(NamedTuple):
    """What the server lets one user do."""

    publish: tuple[str, ...]
    subscribe: tuple[str, ...]
    answers: bool = False
    """Whether it may answer requests, wherever the answer is wanted."""


def key_subject(bucket: str, key: str) -> str:
    """Where values of a key are published, and can be listened to."""
    return f"$KV.{bucket}.{key}"


def value_subject(bucket: str, key: str) -> str:
    """Where the last value of a key is asked for: the subject names the key, so that reading can be
    permitted key by key (direct get of a stream, ADR-31 of NATS).
    """
    return f"$JS.API.DIRECT.GET.KV_{bucket}.{key_subject(bucket, key)}"


def inbox(user: str) -> str:
    """Prefix of the answers that a user gets: nobody else may listen there."""
    return f"_INBOX_{user}"


def agent_permissions(agent: str) -> Permissions:
    """Of an enrolled agent. Raises ValueError for what is no name of one."""
    name = _named(agent)
    return Permissions(
        publish=(
            f"{RESULTS}.{name}",
            key_subject(STATUS, name),
            value_subject(PLANS, name),
        ),
        subscribe=(
            f"{ASK}.{name}",
            key_subject(PLANS, name),
            f"{inbox(name)}.>",
        ),
        answers=True,
    )


def guest_permissions(agent: str) -> Permissions:
    """Of whoever has an invitation for this agent and is not enrolled yet."""
    name = _named(agent)
    return Permissions((f"{ENROL}.{name}",), (f"{inbox(guest(name))}.>",))


def operator_permissions() -> Permissions:
    """Of whoever brings plans, asks for probes, and looks after the streams."""
    buckets = tuple(key_subject(bucket, ">") for bucket in (PLANS, STATUS))
    return Permissions(
        publish=(f"{_API}.>", "$JS.ACK.>", "$JS.FC.>", f"{ASK}.*", *buckets),
        subscribe=(f"{inbox(OPERATOR)}.>", *buckets),
    )


def collector_permissions() -> Permissions:
    """Of all collectors: results out of their stream, and how agents are. They change nothing."""
    consumer = f"{RESULTS_STREAM}.{COLLECTORS}"
    return Permissions(
        publish=(
            f"{_API}.CONSUMER.MSG.NEXT.{consumer}",
            f"{_API}.CONSUMER.INFO.{consumer}",
            f"$JS.ACK.{consumer}.>",
            *(f"{_API}.STREAM.INFO.{name}" for name in (RESULTS_STREAM, f"KV_{STATUS}")),
            value_subject(STATUS, "*"),
        ),
        subscribe=(f"{inbox(COLLECTOR)}.>", key_subject(STATUS, "*")),
    )


def registrar_permissions() -> Permissions:
    """Of the one that answers new agents, and does nothing else.

    It answers by subject, not by right of having been asked: that right is forgotten whenever the
    users are read anew, which is what its own answers bring about.
    """
    return Permissions(("_R_.>",), (f"{ENROL}.*", f"{inbox(REGISTRAR)}.>"))


def guest(agent: str) -> str:
    """Name of the user that an invitation stands for."""
    return f"{_GUEST}{agent}"


def is_agent_name(name: str) -> bool:
    """Whether an agent may be called so. The names of other users are not free: an agent with one
    of them could listen to the answers that they get.
    """
    reserved = name in (OPERATOR, COLLECTOR, REGISTRAR) or name.startswith(_GUEST)
    return AGENT_NAME.fullmatch(name) is not None and not reserved


def _named(agent: str) -> str:
    if not is_agent_name(agent):
        raise ValueError(f"{agent[:80]!r} is no name of an agent")
    return agent
