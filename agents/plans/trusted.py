"""Public keys of operators, and signatures checked with them, as an agent does it for months.

By libsodium (PyNaCl), which an agent of a fleet has loaded anyway for its own key. `cryptography`,
which makes and reads all other keys, takes 8 MB that stay.
"""

import base64
import binascii
from dataclasses import dataclass
from typing import Protocol

BEGIN, END = b"-----BEGIN PUBLIC KEY-----", b"-----END PUBLIC KEY-----"
_ED25519 = bytes.fromhex("302a300506032b6570032100")
"""SubjectPublicKeyInfo of an Ed25519 key (RFC 8410, 4) up to the 32 bytes of the key itself."""
RAW_BYTES = 32


class PublicKey(Protocol):
    """Ours, or one of `cryptography`."""

    def public_bytes_raw(self) -> bytes:
        """The 32 bytes of RFC 8032."""
        ...


@dataclass(frozen=True, slots=True)
class TrustedKey:
    """An Ed25519 key that plans may be signed with."""

    raw: bytes

    def public_bytes_raw(self) -> bytes:
        """See `PublicKey`."""
        return self.raw


def from_pem(block: bytes) -> TrustedKey | None:
    """The key of one PEM block; None where it is of another kind. Raises ValueError: no key."""
    body = b"".join(block.removeprefix(BEGIN).removesuffix(END).split())
    try:
        found = base64.b64decode(body, validate=True)
    except binascii.Error as error:
        raise ValueError("no base64") from error
    if not found.startswith(b"\x30"):  # a SEQUENCE, as every key
        raise ValueError("no key")
    if not found.startswith(_ED25519) or len(found) != len(_ED25519) + RAW_BYTES:
        return None
    return TrustedKey(found[len(_ED25519) :])


def is_signature(signature: bytes, key: PublicKey, message: bytes) -> bool:
    """Whether the holder of `key` has signed `message` (Ed25519, RFC 8032)."""
    from nacl.exceptions import CryptoError
    from nacl.exceptions import ValueError as WrongLengthError
    from nacl.signing import VerifyKey

    try:
        VerifyKey(key.public_bytes_raw()).verify(message, signature)
    except (CryptoError, WrongLengthError):
        return False
    return True
