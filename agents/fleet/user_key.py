"""NKeys of users: Ed25519 (RFC 8032) in base 32 with a prefix and a checksum, as NATS has them."""

import base64
import binascii
import re
import secrets
from typing import NamedTuple, cast

from pathbudget.agents.extras import require

_PUBLIC = re.compile(r"U[A-Z2-7]{55}")
_USER_PREFIX = 20 << 3
_CHECKSUM_OCTETS = 2


class UserKey(NamedTuple):
    """`seed` is the secret, ``SU...``; `public` is what servers know, ``U...``."""

    seed: str
    public: str


def new_user_key() -> UserKey:
    """A new one. Raises PathbudgetError where `nkeys` is not installed."""
    require("fleet", "nkeys")
    import nkeys

    return user_key_of(nkeys.encode_seed(secrets.token_bytes(32), nkeys.PREFIX_BYTE_USER).decode())


def user_key_of(seed: str) -> UserKey:
    """The pair of a seed. Raises ValueError for what is no seed of a user."""
    import nkeys

    try:
        octets = cast("bytes", nkeys.from_seed(seed.encode()).public_key)  # its own hint is wrong
    except (nkeys.NkeysError, ValueError, IndexError) as error:
        raise ValueError(f"no seed of a user: {type(error).__name__}") from None
    public = octets.decode()
    if not is_public(public):
        raise ValueError("a seed, but not of a user")
    return UserKey(seed, public)


def is_public(text: str) -> bool:
    """Whether it is a user's public key, checksum and all: servers refuse a whole file of users
    for one that is not.
    """
    import nkeys

    if not _PUBLIC.fullmatch(text):
        return False
    try:
        octets = base64.b32decode(text)
    except binascii.Error:
        return False
    content, checksum = octets[:-_CHECKSUM_OCTETS], octets[-_CHECKSUM_OCTETS:]
    return content[0] == _USER_PREFIX and checksum == bytes(nkeys.crc16_checksum(content))
