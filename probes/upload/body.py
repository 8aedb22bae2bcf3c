"""The body of an upload: looks like a prompt in JSON, and cannot be compressed much. Sans-IO."""

import base64
import random

OPENING = b'{"model":"pathbudget","stream":true,"messages":[{"role":"user","content":"'
CLOSING = b'"}]}'


def make_body(size: int, rng: random.Random) -> bytes:
    """A body of exactly so many bytes; JSON where it is long enough for that."""
    inner = size - len(OPENING) - len(CLOSING)
    if inner < 0:
        return _random_text(size, rng)
    return b"".join((OPENING, _random_text(inner, rng), CLOSING))


def _random_text(size: int, rng: random.Random) -> bytes:
    """Letters, digits, plus and slash: three quarters of a byte of randomness in each."""
    return base64.b64encode(rng.randbytes(size * 3 // 4 + 3))[:size]
