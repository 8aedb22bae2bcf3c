"""With what a process enters the bus: where the servers are, whom to trust, and its own secret."""

import os
import tomllib
from pathlib import Path

import msgspec

from pathbudget.probes.errors import ConfigError, Fault

SECRET_MODE = 0o600


class Login(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One user of the bus."""

    user: str
    """Name of the agent; ``operator`` or ``collector`` for those who are none."""
    servers: tuple[str, ...]
    """``tls://host:port``, in any order."""
    authority: str
    """Certificates (PEM) that the servers' own must lead to."""
    seed: str
    """Secret NKey (``SU...``)."""
    operators: str = ""
    """Public keys (PEM) of those whose plans this agent takes; empty for others than agents."""


def read_login(path: Path) -> Login:
    """Raises ConfigError, also where others than the owner may read the file: it is a secret."""
    try:
        mode = path.stat().st_mode
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise _fault(path, f"cannot be read: {error}", "a login file") from None
    if mode & 0o077:
        raise _fault(path, f"is open to others (mode {mode & 0o777:o})", "mode 600")
    try:
        return msgspec.convert(tomllib.loads(text), Login)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise _fault(path, str(error), "a login file") from None


def write_login(path: Path, login: Login) -> None:
    """Make the file, readable by its owner alone. Raises ConfigError where there is one already."""
    lines = [
        f"user = {_quoted(login.user)}",
        f"servers = [{', '.join(_quoted(one) for one in login.servers)}]",
        f"seed = {_quoted(login.seed)}",
        f"authority = {_quoted(login.authority)}",
    ]
    if login.operators:
        lines.append(f"operators = {_quoted(login.operators)}")
    try:
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, SECRET_MODE)
    except OSError as error:
        raise _fault(path, f"cannot be made: {error.strerror}", "a new file") from None
    with os.fdopen(number, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
        file.flush()
        os.fsync(file.fileno())


def _quoted(text: str) -> str:
    """A TOML basic string: escapes are those of JSON."""
    return msgspec.json.encode(text).decode()


def _fault(path: Path, problem: str, expected: str) -> ConfigError:
    return ConfigError([Fault(str(path), "", problem, expected)])
