"""How good bytes become bad ones, and when they arrive. Everything is drawn from one `Random`."""

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

MS = 1_000_000
PIECES = 24
"""Bytes that drip one by one, or pieces of one flight, at most."""
ENDLESS = 60
"""How often an endless sender says its piece; the deadline comes long before."""


class Step(NamedTuple):
    """Something arrives so long after what came before; `data` empty: the end, None: a reset."""

    after_ns: int
    data: bytes | None


def flip(rng: Random, data: bytes) -> bytes:
    """A few bits are the other way round."""
    changed = bytearray(data)
    for _ in range(rng.randint(1, 6)):
        if changed:
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def splice(rng: Random, data: bytes, other: bytes) -> bytes:
    """The beginning of one, the end of another."""
    return data[: rng.randint(0, len(data))] + other[rng.randint(0, len(other)) :]


def insert(rng: Random, data: bytes) -> bytes:
    """Garbage somewhere in the middle."""
    at = rng.randint(0, len(data))
    return data[:at] + rng.randbytes(rng.randint(1, 200)) + data[at:]


def repeat(rng: Random, data: bytes) -> bytes:
    """A part of it, many times."""
    at = rng.randint(0, len(data))
    end = min(len(data), at + rng.randint(1, 60))
    return data[:end] + data[at:end] * rng.randint(1, 40) + data[end:]


def extreme(rng: Random, data: bytes) -> bytes:
    """A field (of some length) holds the smallest or the largest number there is."""
    size = rng.choice((1, 2, 3, 4, 8))
    at = rng.randint(0, max(0, len(data) - size))
    return data[:at] + rng.choice((b"\0", b"\xff", b"\x7f", b"\x80")) * size + data[at + size :]


def spoil(rng: Random, data: bytes, other: bytes = b"") -> bytes:
    """The same bytes, or nearly."""
    way = rng.randrange(10)
    if way < 3:
        return data
    if way == 3:
        return data[: rng.randint(0, len(data))]
    if way == 4:
        return splice(rng, data, other or data)
    if way == 5:
        return rng.randbytes(rng.randint(1, 3_000))
    return rng.choice((flip, insert, repeat, extreme))(rng, data)


def deliver(rng: Random, data: bytes) -> list[Step]:
    """When which part of it arrives, and what comes behind."""
    way = rng.randrange(10)
    if way < 4:
        steps = [Step(0, data)]
    elif way < 7:
        steps = _in_pieces(rng, data, rng.choice((0, MS, 40 * MS)))
    elif way == 7:  # slow loris
        pause = rng.choice((5, 30, 200)) * MS
        steps = [Step(pause, data[n : n + 1]) for n in range(min(PIECES, len(data)))]
    elif way == 8:
        steps = [*_in_pieces(rng, data, MS), *endless(rng, data)]
    else:
        steps = [Step(rng.choice((900, 990, 999, 1_000, 1_001, 1_500)) * MS, data)]
    steps = [step for step in steps if step.data]
    ending = rng.randrange(4)
    if ending == 0:
        steps.append(Step(rng.choice((0, MS, 300 * MS)), b""))
    elif ending == 1:
        steps.append(Step(rng.choice((0, MS, 300 * MS)), None))
    return steps


def endless(rng: Random, data: bytes) -> list[Step]:
    """The last of it, again and again."""
    piece = data[-rng.choice((1, 20, 1_000)) :] * rng.choice((1, 1, 20))
    pause = rng.choice((5, 20, 40)) * MS
    return [Step(pause, piece)] * ENDLESS


def _in_pieces(rng: Random, data: bytes, pause_ns: int) -> list[Step]:
    cuts: Sequence[int] = sorted(rng.randint(0, len(data)) for _ in range(rng.randint(1, PIECES)))
    ends = [*cuts, len(data)]
    return [Step(pause_ns, data[a:b]) for a, b in zip([0, *cuts], ends, strict=True) if a < b]
