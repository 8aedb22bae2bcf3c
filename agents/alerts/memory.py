"""What must outlast a restart, as one small file: written whole, or not at all."""

from pathlib import Path

import msgspec

from pathbudget.agents.alerts.outbox import Outbox
from pathbudget.agents.store.disk import explain_os_error, replace_file
from pathbudget.analysis.alerts.gathering import Gathered
from pathbudget.analysis.alerts.incidents import IncidentBook
from pathbudget.analysis.alerts.model import AlertState
from pathbudget.probes.errors import StoreError

VERSION = 1


class Memory(msgspec.Struct):
    """All of it."""

    version: int = VERSION
    first_look_unix_ns: int = 0
    last_look_unix_ns: int = 0
    """0: nobody has looked yet."""
    states: dict[str, AlertState] = {}
    gathered: Gathered = msgspec.field(default_factory=Gathered)
    book: IncidentBook = msgspec.field(default_factory=IncidentBook)
    outboxes: dict[str, Outbox] = {}


def memory_of(rules: Path) -> Path:
    """Where the memory of a file of rules is unless somebody says otherwise: beside it."""
    return rules.with_name(f"{rules.stem}.memory.json")


def read_memory(path: Path) -> Memory:
    """An empty one where there is no file. Raises StoreError for one that cannot be read.

    To begin anew without being asked would tell everything again, or lose what waits.
    """
    try:
        found = msgspec.json.decode(path.read_bytes(), type=Memory)
    except FileNotFoundError:
        return Memory()
    except OSError as error:
        raise StoreError(f"{path}: cannot be read: {explain_os_error(error)}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise StoreError(f"{path}: no memory of alerts: {error}; move it away to begin") from None
    if found.version != VERSION:
        raise StoreError(f"{path}: a memory of version {found.version}; this one reads {VERSION}")
    return found


def write_memory(path: Path, memory: Memory) -> None:
    """Durably. Raises StoreError; the old one is there then."""
    try:
        replace_file(path, msgspec.json.encode(memory) + b"\n")
    except OSError as error:
        raise StoreError(f"{path}: cannot be written: {explain_os_error(error)}") from None
