"""Prefixes as numbers, to tell which lies within which."""

import functools
import socket
from typing import NamedTuple


class PrefixBits(NamedTuple):
    """`width` is 32 or 128, `network` the address as a number, `bits` the length."""

    width: int
    network: int
    bits: int

    def covers(self, other: "PrefixBits") -> bool:
        """Whether `other` is this prefix or lies within it."""
        return (
            self.width == other.width
            and self.bits <= other.bits
            and (self.network ^ other.network) >> (self.width - self.bits) == 0
        )

    def cut_to(self, bits: int) -> "PrefixBits":
        """The prefix of so many bits that it lies in."""
        rest = self.width - bits
        return PrefixBits(self.width, self.network >> rest << rest, bits)

    def __str__(self) -> str:
        family = socket.AF_INET if self.width == 32 else socket.AF_INET6
        octets = self.network.to_bytes(self.width // 8, "big")
        return f"{socket.inet_ntop(family, octets)}/{self.bits}"


@functools.lru_cache(maxsize=65536)
def prefix_bits(text: str) -> PrefixBits:
    """A prefix, or an address as the longest one. Raises ValueError.

    Bits beyond the length mean nothing.
    """
    place, slash, length = text.partition("/")
    family = socket.AF_INET6 if ":" in place else socket.AF_INET
    try:
        octets = socket.inet_pton(family, place)
    except OSError:
        raise ValueError(f"{text!r} is no prefix") from None
    width = 8 * len(octets)
    known = length.isascii() and length.isdecimal() and len(length) <= 3 and int(length) <= width
    if slash and not known:
        raise ValueError(f"{text!r} is no prefix")
    bits = int(length) if slash else width
    return PrefixBits(width, int.from_bytes(octets, "big"), bits).cut_to(bits)
