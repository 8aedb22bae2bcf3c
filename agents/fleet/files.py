"""Files of a fleet's folder: whole or not at all, and secrets for their owner alone."""

import os
from pathlib import Path
from typing import TypeVar

import msgspec

from pathbudget.agents.store.disk import explain_os_error, sync
from pathbudget.probes.errors import ConfigError, Fault

PRIVATE, PUBLIC = 0o600, 0o644
Document = TypeVar("Document")


def write(path: Path, content: bytes, mode: int = PRIVATE) -> None:
    """Durably, over what was there; nobody ever sees half of it, or a wider mode. ConfigError."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.unlink(missing_ok=True)
        number = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(number, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        sync(path.parent)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise fault(path, f"cannot be written: {explain_os_error(error)}", "room there") from None


def write_document(path: Path, value: msgspec.Struct, mode: int = PRIVATE) -> None:
    """A record as JSON that a person can read."""
    write(path, msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n", mode)


def read_document(path: Path, kind: type[Document]) -> Document | None:
    """None where there is no such file. Raises ConfigError for one that cannot be understood."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise fault(path, f"cannot be read: {error.strerror}", "a file of this fleet") from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise fault(path, str(error), "what `pathbudget fleet` wrote") from None


def fault(path: Path, problem: str, expected: str) -> ConfigError:
    """One fault of one file, to be raised."""
    return ConfigError([Fault(str(path), "", problem, expected)])
