"""Messages that were rejected, kept for whoever wants to know why; the oldest make room."""

import json
import time
from pathlib import Path

FOLDER = "rejected"
MOST_FILES = 200
MOST_OCTETS = 1 << 20
"""Of one message; the rest of it is left out."""


class Quarantine:
    """A folder with a file for each message. A disk that takes none keeps none: they are counted
    elsewhere.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._number = 0

    def keep(self, subject: str, message_id: str, reason: str, data: bytes) -> None:
        """First line: what it is and why, as JSON; then the message."""
        self._number += 1
        about = {"subject": subject, "id": message_id, "reason": reason, "octets": len(data)}
        name = f"{time.time_ns():020d}-{self._number}.message"  # nothing of the message in a name
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            (self._folder / name).write_bytes(
                json.dumps(about).encode() + b"\n" + data[:MOST_OCTETS]
            )
            for path in sorted(self._folder.glob("*.message"))[:-MOST_FILES]:
                path.unlink(missing_ok=True)
        except OSError:
            return
