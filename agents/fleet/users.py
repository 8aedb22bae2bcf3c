"""The users of the bus as nats-server reads them: two accounts, and permissions for each user.

Permissions alone are not enough. A server publishes its own answers (an acknowledgement, the value
of a key) wherever a request wants them, without asking whether the one who requested may publish
there: with all users in one account, an agent could have a stream emptied, or another agent's plan
replaced, by naming that as the subject of its answer (docs/adr/0270). So agents and guests have an
account of their own, whose subjects reach the account of the fleet only where they are exported.
"""

from collections.abc import Iterable, Mapping

import msgspec

from pathbudget.agents.bus.subjects import (
    ASK,
    COLLECTOR,
    ENROL,
    OPERATOR,
    PLANS,
    REGISTRAR,
    RESULTS,
    STATUS,
    Permissions,
    agent_permissions,
    collector_permissions,
    guest_permissions,
    key_subject,
    operator_permissions,
    registrar_permissions,
    value_subject,
)
from pathbudget.agents.fleet.registry import Member, Registry

FLEET, AGENTS = "FLEET", "AGENTS"
SERVICES = (
    f"{RESULTS}.*",
    key_subject(STATUS, "*"),
    value_subject(PLANS, "*"),
    f"{ENROL}.*",
)
"""What agents send to the account of the fleet, with the answers to it."""
PLANS_FEED = key_subject(PLANS, "*")
ASKED = f"{ASK}.*"
ANSWER_WITHIN = "10m"
"""How long after a request an agent may answer it, once."""
STAFF = {
    OPERATOR: operator_permissions,
    COLLECTOR: collector_permissions,
    REGISTRAR: registrar_permissions,
}


def users_text(registry: Registry, staff: Mapping[str, str], now_unix_ns: int) -> str:
    """The file that each server includes. `staff`: public keys of the users that are no agents."""
    members = sorted(registry.members.values(), key=lambda one: one.name)
    outside = [line for one in members for line in _of_member(one, now_unix_ns)]
    inside = [_user(staff[name], permissions()) for name, permissions in STAFF.items()]
    return f"""# Written by `pathbudget fleet`; what is changed here by hand is lost.
accounts {{
  {FLEET} {{
    jetstream: enabled
    users: [
{_indented(inside)}
    ]
    exports: [
{_indented(_export("service", one) for one in SERVICES)}
{_indented([_export("stream", PLANS_FEED)])}
    ]
    imports: [
{_indented([_import("service", AGENTS, ASKED)])}
    ]
  }}
  {AGENTS} {{
    users: [
{_indented(outside)}
    ]
    exports: [
{_indented([_export("service", ASKED, FLEET)])}
    ]
    imports: [
{_indented(_import("service", FLEET, one) for one in SERVICES)}
{_indented([_import("stream", FLEET, PLANS_FEED)])}
    ]
  }}
}}
"""


def _of_member(member: Member, now_unix_ns: int) -> list[str]:
    found: list[str] = []
    if member.key:
        found.append(_user(member.key, agent_permissions(member.name)))
    if member.invitation is not None and member.invitation.lets_in(now_unix_ns):
        found.append(_user(member.invitation.guest, guest_permissions(member.name)))
    return found


def _user(key: str, allowed: Permissions) -> str:
    words = f"publish: {_rule(allowed.publish)}, subscribe: {_rule(allowed.subscribe)}"
    if allowed.answers:
        words += f', allow_responses: {{max: 1, expires: "{ANSWER_WITHIN}"}}'
    return f"{{nkey: {key}, permissions: {{{words}}}}}"


def _rule(subjects: tuple[str, ...]) -> str:
    """Allowed subjects; a list without one would allow everything."""
    return f"{{allow: {_list(subjects)}}}" if subjects else '{deny: ">"}'


def _list(subjects: tuple[str, ...]) -> str:
    return "[" + ", ".join(quoted(one) for one in subjects) + "]"


def _export(kind: str, subject: str, only: str = "") -> str:
    to_whom = f", accounts: [{only or AGENTS}]"
    return f"{{{kind}: {quoted(subject)}{to_whom}}}"


def _import(kind: str, account: str, subject: str) -> str:
    return f"{{{kind}: {{account: {account}, subject: {quoted(subject)}}}}}"


def _indented(lines: Iterable[str]) -> str:
    return "\n".join(f"      {line}" for line in lines)


def quoted(text: str) -> str:
    """A string of nats-server's configuration: in quotes, with the escapes of JSON."""
    return msgspec.json.encode(text).decode()
