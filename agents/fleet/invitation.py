"""What an operator gives to whoever sets up an agent: one file, good once, for one name."""

import os
import time
import tomllib
from pathlib import Path

import msgspec

from pathbudget.agents.bus.login import Login
from pathbudget.agents.bus.subjects import guest, is_agent_name
from pathbudget.agents.fleet.files import fault, write
from pathbudget.agents.fleet.folder import Folder
from pathbudget.agents.fleet.registry import Invitation, new_token, token_hash
from pathbudget.agents.fleet.user_key import new_user_key
from pathbudget.agents.fleet.users import quoted

SUFFIX = ".invitation.toml"
LARGEST = 1 << 20
_EXPECTED = "an invitation of `pathbudget fleet invite`"


class Ticket(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The invitation on paper. Both `seed` and `token` are secrets until it is used."""

    agent: str
    servers: tuple[str, ...]
    authority: str
    operators: str
    seed: str
    """Secret NKey of the guest."""
    token: str
    expires_unix_ns: int

    @property
    def guest(self) -> Login:
        """With what the guest enters."""
        return Login(guest(self.agent), self.servers, self.authority, self.seed)

    def login(self, seed: str) -> Login:
        """Of the agent that it makes, with the key of its own."""
        return Login(self.agent, self.servers, self.authority, seed, self.operators)


def invite(folder: Folder, agent: str, lifetime_ns: int, *, again: bool = False) -> Ticket:
    """Open an invitation; one that the name had before is void. Raises ConfigError."""
    settings, operators = folder.settings(), folder.trusted()
    key, token, now = new_user_key(), new_token(), time.time_ns()
    made = Invitation(key.public, token_hash(token), now, now + lifetime_ns)
    folder.change(lambda registry: registry.invited(agent, made, again=again))
    authority = folder.authority.certificate_text()
    return Ticket(
        agent, settings.servers, authority, operators, key.seed, token, made.expires_unix_ns
    )


def write_ticket(path: Path, ticket: Ticket) -> None:
    """Mode 600. Raises ConfigError."""
    names = msgspec.structs.fields(Ticket)
    lines = [f"{one.name} = {_toml(getattr(ticket, one.name))}" for one in names]
    write(path, ("\n".join(lines) + "\n").encode())


def read_ticket(path: Path) -> Ticket:
    """Raises ConfigError. The name in it becomes part of subjects and files: it is checked here."""
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
        ticket = msgspec.convert(tomllib.loads(content.decode()), Ticket)
    except OSError as error:
        raise fault(path, f"cannot be read: {error.strerror}", _EXPECTED) from None
    except (ValueError, RecursionError) as error:  # of TOML, of UTF-8 and of msgspec
        raise fault(path, str(error), _EXPECTED) from None
    if len(content) > LARGEST:
        raise fault(path, "is larger than a megabyte", _EXPECTED)
    if not is_agent_name(ticket.agent):
        raise fault(path, f"{ticket.agent[:80]!r} is no name of an agent", _EXPECTED)
    if path.stat().st_mode & 0o077:
        os.chmod(path, 0o600)  # noqa: PTH101 - it came by mail or by hand; from here on it is ours
    return ticket


def _toml(value: str | int | tuple[str, ...]) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(quoted, value))}]"
    return quoted(value) if isinstance(value, str) else str(value)
