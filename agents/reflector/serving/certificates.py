"""Which certificate HTTPS shows: files of the site's (as ACME clients write them), or our own."""

import os
import socket
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pathbudget.agents.reflector.serving.options import CertificateChoice
from pathbudget.agents.responder.certificate import certificate_files
from pathbudget.probes.errors import ReflectorError

LOCAL = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class Shown:
    """A chain and its key, as files; `authority` is what clients trust where it is our own."""

    certificate: Path
    key: Path
    authority: Path | None = None
    folder: "tempfile.TemporaryDirectory[str] | None" = None
    """What our own lies in where there is no place to keep it."""

    def state(self) -> tuple[tuple[int, int], ...]:
        """Something else as soon as one of the files is another. Raises OSError."""
        found = (file.stat() for file in (self.certificate, self.key))
        return tuple((status.st_ino, status.st_mtime_ns) for status in found)


def shown_certificate(choice: CertificateChoice, addresses: Sequence[str]) -> Shown:
    """The certificate for a reflector on `addresses`. Raises ReflectorError."""
    if choice.chain is not None and choice.key is not None:
        return Shown(choice.chain, choice.key)
    return own_certificate(choice.folder, addresses, choice.names)


def own_certificate(folder: Path | None, addresses: Sequence[str], names: Sequence[str]) -> Shown:
    """Our own, kept in `folder`: without one, in the place for such things, or else only for as
    long as this process lives. Raises ReflectorError.
    """
    covered = [*names, *(one for one in addresses if one not in ("0.0.0.0", "::"))]  # noqa: S104
    covered = list(dict.fromkeys([*covered, socket.gethostname(), *LOCAL]))
    if folder is not None:
        return _in(folder, covered)
    try:
        return _in(usual_folder(), covered)
    except ReflectorError as error:
        if not isinstance(error.__cause__, OSError):
            raise
    temporary = tempfile.TemporaryDirectory(prefix="pathbudget-reflector-")
    shown = _in(Path(temporary.name), covered)
    return Shown(shown.certificate, shown.key, shown.authority, temporary)


def usual_folder() -> Path:
    """What systemd gives (StateDirectory=), or the user's folder for state (XDG)."""
    given = os.environ.get("STATE_DIRECTORY", "").partition(":")[0]
    if given:
        return Path(given)
    state = os.environ.get("XDG_STATE_HOME", "")
    base = Path(state) if state else Path("~/.local/state").expanduser()
    return base / "pathbudget" / "reflector"


def _in(folder: Path, names: Sequence[str]) -> Shown:
    certificate, key = certificate_files(folder, names)
    authority = folder / "ca.pem"
    return Shown(certificate, key, authority if authority.exists() else None)
