"""Names for measurements: unique, and in the order of time when sorted as text."""

import random
import uuid

_LARGEST_MILLISECOND = (1 << 48) - 1


def new_id(unix_ns: int, rng: random.Random) -> str:
    """A UUID version 7 (RFC 9562) as text: ``0193f3e2-5f80-7a3c-9d11-6b1f0a4e2c77``.

    The first 60 free bits are the time, down to a quarter of a microsecond (method 3 of section
    6.2), the other 62 come from `rng`. Agents pass ``random.SystemRandom()``: two generators with
    one seed give two agents one name at one time. Raises ValueError for a time before 1970.
    """
    millisecond, rest = divmod(unix_ns, 1_000_000)
    if not 0 <= millisecond <= _LARGEST_MILLISECOND:
        raise ValueError(f"{unix_ns} ns is no time between the years 1970 and 10889")
    fraction = (rest << 12) // 1_000_000
    bits = millisecond << 80 | 0x7 << 76 | fraction << 64 | 0b10 << 62 | rng.getrandbits(62)
    return str(uuid.UUID(int=bits))
