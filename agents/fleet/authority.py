"""The authority of a fleet and what it issues: the servers' certificates, and nothing else.

Agents are known by their keys, not by certificates, so that one of them is revoked by a line in a
file. P-256 (agents/responder/issuing.py); ten years; renewed when less than 30 days are left.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pathbudget.agents.extras import require
from pathbudget.agents.fleet.files import PRIVATE, PUBLIC, fault, write

if TYPE_CHECKING:
    from pathbudget.agents.responder.issuing import Pair

SUBJECT = "pathbudget fleet"


class Authority:
    """In one folder: ``ca.pem``, ``ca.key``, and the pair of a single server."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.certificate = folder / "ca.pem"
        self._key = folder / "ca.key"

    def certificate_text(self) -> str:
        """What agents trust; made when it is not there. Raises ConfigError."""
        return self._authority().certificate_pem().decode()

    def server_pair(self, names: Sequence[str], folder: Path | None = None) -> bool:
        """Have ``server.pem`` and ``server.key`` in `folder` (the authority's own by default) cover
        `names` and last for more than 30 days. Says whether they had to be made.

        Raises ConfigError.
        """
        require("fleet", "cryptography")
        from pathbudget.agents.responder import issuing

        authority, place = self._authority(), folder or self.folder
        certificate, key = place / "server.pem", place / "server.key"
        try:
            shown = issuing.load_pair(certificate, key)
            covered = issuing.names_of(shown, authority)
        except (OSError, ValueError) as error:
            raise fault(certificate, f"no certificate: {error}", "remove both files") from None
        if shown is not None and set(names) <= set(covered):
            return False
        self._make(place)
        made = issuing.new_server(names, authority, subject=SUBJECT, also_client=True)
        write(key, made.key_pem(), PRIVATE)
        write(certificate, made.certificate_pem(), PUBLIC)
        return True

    def _authority(self) -> "Pair":
        require("fleet", "cryptography")
        from pathbudget.agents.responder import issuing

        there = [one.exists() for one in (self.certificate, self._key)]
        if not any(there):
            self._make(self.folder)
            made = issuing.new_authority(f"{SUBJECT} authority")
            write(self._key, made.key_pem(), PRIVATE)
            write(self.certificate, made.certificate_pem(), PUBLIC)
            return made
        try:
            found = issuing.load_pair(self.certificate, self._key)
        except (OSError, ValueError) as error:
            raise fault(self.certificate, f"no authority: {error}", "the one of a backup") from None
        if found is None:  # a new one would lock all agents out, so that is for a person to do
            problem = "ends within 30 days" if all(there) else "has no key (or the key no ca.pem)"
            raise fault(self.certificate, problem, "ca.pem and ca.key; docs/fleet.md, Certificates")
        return found

    @staticmethod
    def _make(folder: Path) -> None:
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise fault(folder, f"cannot be made: {error.strerror}", "a folder") from None
