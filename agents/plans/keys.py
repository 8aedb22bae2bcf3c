"""Ed25519 keys (RFC 8032) that plans are signed with: PEM files, as OpenSSL reads and writes them.

The operator keeps the private one (mode 600, never on an agent or a broker). Agents have the public
ones they trust in one file, one PEM block after another, so that a key can be followed by the next.
"""

import hashlib
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pathbudget.agents.extras import require
from pathbudget.agents.plans.trusted import PublicKey, from_pem
from pathbudget.probes.errors import ConfigError, Fault

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

_BLOCK = re.compile(rb"-----BEGIN PUBLIC KEY-----.*?-----END PUBLIC KEY-----", re.DOTALL)
_EXPECTED = "an Ed25519 key of `pathbudget plan keygen`"


def key_id(key: PublicKey) -> str:
    """Sixteen hex digits that name a key: of the SHA-256 of its 32 bytes."""
    return hashlib.sha256(key.public_bytes_raw()).hexdigest()[:16]


def generate(private: Path, public: Path) -> str:
    """Make a pair of files, neither of which may be there yet; return the id of the key.

    Raises ConfigError.
    """
    require("fleet", "cryptography")
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.generate()
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    for path in (private, public):
        if path.exists():
            raise _fault(path, "is there already", "a name that is free: keys are not overwritten")
    _create(private, pem, 0o600)
    _create(public, _public_pem(key.public_key()), 0o644)
    return key_id(key.public_key())


def read_private(path: Path) -> "Ed25519PrivateKey":
    """The key to sign with. Raises ConfigError, also where others than its owner may read it."""
    require("fleet", "cryptography")
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    content = _content(path)
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise _fault(path, "others than its owner may read it", f"mode 600: chmod 600 {path}")
    try:
        key = serialization.load_pem_private_key(content, password=None)
    except (ValueError, TypeError):
        raise _fault(path, "holds no private key without a password", _EXPECTED) from None
    if not isinstance(key, Ed25519PrivateKey):
        raise _fault(path, f"holds a key of another kind ({type(key).__name__})", _EXPECTED)
    return key


def read_trusted(path: Path) -> Mapping[str, PublicKey]:
    """All public keys of a file by their ids. Raises ConfigError for a file without one."""
    return _trusted(_content(path), path)


def trusted_of(text: str, where: str) -> Mapping[str, PublicKey]:
    """The same of PEM blocks in a text, which is part of `where`."""
    return _trusted(text.encode(), Path(where))


def _trusted(content: bytes, path: Path) -> Mapping[str, PublicKey]:
    require("fleet", "nacl", "cryptography")
    found: dict[str, PublicKey] = {}
    for number, block in enumerate(_BLOCK.findall(content), 1):
        try:
            key = from_pem(block)
        except ValueError:
            raise _fault(path, f"key {number} cannot be read", _EXPECTED) from None
        if key is None:
            raise _fault(path, f"key {number} is of another kind", _EXPECTED)
        found[key_id(key)] = key
    if not found:
        raise _fault(path, "holds no public key", "at least one PEM block of a public key")
    return found


def _public_pem(key: "Ed25519PublicKey") -> bytes:
    from cryptography.hazmat.primitives import serialization

    return key.public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def _create(path: Path, content: bytes, mode: int) -> None:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
    except OSError as error:
        raise _fault(path, f"cannot be written: {error.strerror}", "a folder to write in") from None


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise _fault(path, f"cannot be read: {error.strerror}", _EXPECTED) from None


def _fault(path: Path, problem: str, expected: str) -> ConfigError:
    return ConfigError([Fault(str(path), "", problem, expected)])
