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
    tokens: list[bytes] = []
    for number, line in enumerate(text.splitlines(), start=1):
        word = line.strip()
        if not word or word.startswith("#"):
            continue
        if len(word) < SHORTEST_TOKEN or not (word.isascii() and word.isprintable()) or " " in word:
            expected = f"a token of {SHORTEST_TOKEN} or more letters, digits and signs"
            faults.append(Fault(str(file), f"line {number}", "no token", expected))
        tokens.append(word.encode())
    if not tokens and not faults:
        faults.append(Fault(str(file), "", "no token in it", "one a line"))
    if faults:
        raise ConfigError(faults)
    return tuple(tokens)


Tell = Callable[[str], None]
"""Gets a line for a person."""
