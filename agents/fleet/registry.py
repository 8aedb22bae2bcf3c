"""Who belongs to a fleet: names, public keys, invitations that are open, what was revoked.

No secret of an agent is here: keys are public, tokens are hashes. Everything in this file is pure.
"""

import hashlib
import secrets
from collections.abc import Iterable

import msgspec

from pathbudget.agents.bus.subjects import is_agent_name
from pathbudget.agents.plans.plan import NAME_RULE
from pathbudget.probes.errors import ConfigError, Fault

MOST_WRONG = 5
"""Wrong requests of a guest after which the invitation is void."""
GRACE_NS = 60_000_000_000
"""For which a guest whose invitation was used may ask again: the answer may have been lost."""


COMMAND_LINE = "command line"


class Invitation(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an operator gave out for one name."""

    guest: str
    """Public NKey with which the guest enters."""
    token: str
    """SHA-256 of the token, in hex digits."""
    made_unix_ns: int
    expires_unix_ns: int
    wrong: int = 0
    """Requests that were refused."""
    used_unix_ns: int | None = None

    def lets_in(self, now_unix_ns: int) -> bool:
        """Whether the guest is a user of the servers now."""
        until = self.expires_unix_ns
        if self.used_unix_ns is not None:
            until = min(until, self.used_unix_ns + GRACE_NS)
        return now_unix_ns < until and self.wrong < MOST_WRONG


class Member(msgspec.Struct, frozen=True, omit_defaults=True):
    """One agent, or the name of one that is invited."""

    name: str
    key: str = ""
    """Public NKey; empty: none may enter under this name."""
    enrolled_unix_ns: int | None = None
    revoked_unix_ns: int | None = None
    invitation: Invitation | None = None

    def state(self, now_unix_ns: int) -> str:
        """One or two words for a person."""
        open_one = self.invitation
        if open_one is None or open_one.used_unix_ns is not None:
            word = ""
        elif open_one.wrong >= MOST_WRONG:
            word = "invitation void"
        else:
            word = "invited" if open_one.lets_in(now_unix_ns) else "invitation expired"
        if self.key:
            return f"enrolled, {word}" if word else "enrolled"
        return word or "revoked"


class Registry(msgspec.Struct, frozen=True, omit_defaults=True):
    """All members by name, and the keys that were theirs once and are not taken again."""

    members: dict[str, Member] = {}
    retired: tuple[str, ...] = ()

    def knows(self, key: str) -> bool:
        """Whether a public key is in use or was: no two users may have the same."""
        guests = (one.invitation.guest for one in self.members.values() if one.invitation)
        return key in self.retired or key in guests or key in self._keys()

    def _keys(self) -> Iterable[str]:
        return (one.key for one in self.members.values() if one.key)

    def with_member(self, member: Member) -> "Registry":
        """The same with one member added or changed; a key that it had before is retired."""
        before = self.members.get(member.name)
        retired = self.retired
        if before is not None and before.key and before.key != member.key:
            retired = (*retired, before.key)
        return Registry({**self.members, member.name: member}, retired)

    def invited(self, name: str, invitation: Invitation, *, again: bool) -> "Registry":
        """Raises ConfigError for what is no name, and for one that is taken unless `again`: the key
        of before is good until the new one comes.
        """
        if not is_agent_name(name):
            problem, expected = "cannot be the name of an agent", f"{NAME_RULE}; no other user's"
            raise ConfigError([Fault(COMMAND_LINE, repr(name[:80]), problem, expected)])
        member = self.members.get(name, Member(name))
        if member.key and not again:
            raise ConfigError(
                [Fault(COMMAND_LINE, name, "is enrolled", "--again for another host")]
            )
        return self.with_member(msgspec.structs.replace(member, invitation=invitation))

    def enrolled(self, name: str, key: str, now_unix_ns: int) -> "Registry":
        """The same with the key of one that was invited."""
        member = self.members[name]
        assert member.invitation is not None, "enrolled without an invitation"
        used = msgspec.structs.replace(member.invitation, used_unix_ns=now_unix_ns)
        return self.with_member(
            Member(name, key, enrolled_unix_ns=now_unix_ns, invitation=used),
        )

    def revoked(self, name: str, now_unix_ns: int) -> "Registry":
        """Neither its key nor its invitation is good any more. Raises ConfigError."""
        if name not in self.members:
            raise ConfigError(
                [Fault(COMMAND_LINE, repr(name[:80]), "is not known", "one of the list")]
            )
        return self.with_member(Member(name, revoked_unix_ns=now_unix_ns))


def new_token() -> str:
    """256 bits that nobody guesses."""
    return secrets.token_urlsafe(32)


def token_hash(token: str) -> str:
    """What is kept of a token."""
    return hashlib.sha256(token.encode()).hexdigest()
