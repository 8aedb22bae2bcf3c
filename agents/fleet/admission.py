"""What a registrar answers a new agent. Pure: a registry and a message in, both anew out."""

import hmac
from enum import StrEnum

import msgspec

from pathbudget.agents.fleet.registry import MOST_WRONG, Invitation, Registry, token_hash
from pathbudget.agents.fleet.user_key import is_public

LARGEST_REQUEST = 4096
"""Octets of a request; it has about 150."""


class Request(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a new agent sends: the seed of its key stays where it was made."""

    token: str
    key: str


class Refused(StrEnum):
    """Why an agent is not taken in: a closed list."""

    UNREADABLE = "unreadable"
    NOT_INVITED = "not_invited"
    USED = "used"
    EXPIRED = "expired"
    VOID = "void"
    WRONG_TOKEN = "wrong_token"  # noqa: S105
    BAD_KEY = "bad_key"


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """What it hears. No word of refusal: it is enrolled."""

    refused: Refused | None = None


def answer(
    registry: Registry, name: str, message: bytes, now_unix_ns: int
) -> tuple[Registry, Answer]:
    """Enrol the agent called `name`, or say why not.

    Each refusal counts against the invitation, and the fifth makes it void: nobody tries many
    tokens. The same request again, once it was granted, is granted again and changes nothing.
    """
    member = registry.members.get(name)
    if member is None or member.invitation is None:
        return registry, Answer(Refused.NOT_INVITED)
    request, invitation = _read(message), member.invitation
    if invitation.wrong >= MOST_WRONG:
        return registry, Answer(Refused.VOID)
    if request is not None and invitation.used_unix_ns is not None:
        same = _is_token(request, invitation) and request.key == member.key
        if same and invitation.lets_in(now_unix_ns):
            return registry, Answer()
    why = _objection(registry, request, invitation, now_unix_ns)
    if why is None and request is not None:
        return registry.enrolled(name, request.key, now_unix_ns), Answer()
    worse = msgspec.structs.replace(invitation, wrong=invitation.wrong + 1)
    return registry.with_member(msgspec.structs.replace(member, invitation=worse)), Answer(why)


def _read(message: bytes) -> Request | None:
    if len(message) > LARGEST_REQUEST:
        return None
    try:
        return msgspec.json.decode(message, type=Request)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None


def _objection(
    registry: Registry, request: Request | None, invitation: Invitation, now_unix_ns: int
) -> Refused | None:
    if request is None:
        return Refused.UNREADABLE
    if not _is_token(request, invitation):
        return Refused.WRONG_TOKEN
    if invitation.used_unix_ns is not None:
        return Refused.USED
    if now_unix_ns >= invitation.expires_unix_ns:
        return Refused.EXPIRED
    if not is_public(request.key) or registry.knows(request.key):
        return Refused.BAD_KEY
    return None


def _is_token(request: Request, invitation: Invitation) -> bool:
    """In a time that tells nothing of the token."""
    return hmac.compare_digest(token_hash(request.token), invitation.token)
