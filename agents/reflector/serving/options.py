"""What HTTPS is told, and how words of a command line become that. Needs no extra."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pathbudget.agents.reflector.limits import AllowedNetwork
from pathbudget.agents.reflector.serving.limits import DEFAULT_LIMITS, Limits
from pathbudget.probes.errors import ConfigError, Fault
from pathbudget.probes.reflector_http import HTTPS_PORT
from pathbudget.sites.toml_reader import read_text

COMMAND_LINE = "command line"
SHORTEST_TOKEN = 16
_TOKEN = f"{SHORTEST_TOKEN} or more letters, digits and signs"


@dataclass(frozen=True, slots=True)
class CertificateChoice:
    """Files of the site's own (`chain` and `key`), or where our own is kept, and what it covers."""

    chain: Path | None = None
    key: Path | None = None
    folder: Path | None = None
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HttpsOptions:
    """`tokens` guard uploads and streams; `retry`: every QUIC client has to show first that it is
    where it says (RFC 9000 section 8.1.2).
    """

    port: int = HTTPS_PORT
    certificate: CertificateChoice = CertificateChoice()
    retry: bool = False
    tokens: tuple[bytes, ...] = ()
    allowed: tuple[AllowedNetwork, ...] = ()
    limits: Limits = DEFAULT_LIMITS


def read_certificate(
    chain: Path | None, key: Path | None, folder: Path | None, names: tuple[str, ...]
) -> CertificateChoice:
    """Raises ConfigError where the words do not go together."""
    if (chain is None) != (key is None):
        missing = "--key" if key is None else "--certificate"
        raise ConfigError([Fault(COMMAND_LINE, missing, "not given", "both files, or neither")])
    if chain is not None and folder is not None:
        told = "given beside --certificate"
        raise ConfigError([Fault(COMMAND_LINE, "--certificate-directory", told, "one of them")])
    return CertificateChoice(chain, key, folder, names)


def read_tokens(file: Path) -> tuple[bytes, ...]:
    """The tokens of a file that only its owner may read, one a line. Raises ConfigError."""
    faults: list[Fault] = []
    text = read_text(file, faults)
    if text is None:
        raise ConfigError(faults)
    if file.stat().st_mode & 0o077:
        faults.append(Fault(str(file), "", "others may read it", f"chmod 600 {file}"))
    words = [(number, line.strip()) for number, line in enumerate(text.splitlines(), start=1)]
    words = [(number, word) for number, word in words if word and not word.startswith("#")]
    wrong = [number for number, word in words if not _is_token(word)]
    if (
        not words or len(wrong) == len(words) > 1
    ):  # some other file: one fault, not one for each of its lines
        faults.append(Fault(str(file), "", "no token in it", f"one a line, each {_TOKEN}"))
    else:
        faults += [Fault(str(file), f"line {line}", "no token", _TOKEN) for line in wrong]
    if faults:
        raise ConfigError(faults)
    return tuple(word.encode() for _, word in words)


def _is_token(word: str) -> bool:
    return len(word) >= SHORTEST_TOKEN and word.isascii() and word.isprintable() and " " not in word


Tell = Callable[[str], None]
"""Gets a line for a person."""
