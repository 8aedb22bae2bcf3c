"""What an agent must not forget of the plans it took, or an old one could be played to it again."""

from pathlib import Path

import msgspec

from pathbudget.agents.store.disk import explain_os_error, replace_file
from pathbudget.probes.errors import SpoolError


class Taken(msgspec.Struct, frozen=True):
    """The last plan that was taken, whole: an agent without its operator goes on with it."""

    serial: int
    digest: str
    envelope: bytes


def remember(path: Path, taken: Taken) -> None:
    """Write, fsync, rename: before the plan is carried out. Raises SpoolError."""
    try:
        replace_file(path, msgspec.json.encode(taken))
    except OSError as error:
        raise SpoolError(f"{path}: cannot be written: {explain_os_error(error)}") from None


def recall(path: Path) -> Taken | None:
    """What was remembered; None on a new agent. Raises SpoolError where it cannot be read: an agent
    that has forgotten must be told so by a person, who removes the file.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=Taken)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        text = "remove it to take the next plan whatever its serial is"
        raise SpoolError(f"{path}: cannot be read: {why}; {text}") from None
