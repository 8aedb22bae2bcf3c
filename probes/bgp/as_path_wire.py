"""AS_PATH from bytes to its usual text, and what two-octet speakers left out (RFC 6793)."""

import struct
from collections.abc import Iterable
from dataclasses import dataclass

from pathbudget.probes.bgp.quarantine import MalformedError

SET, SEQUENCE, CONFEDERATION_SEQUENCE, CONFEDERATION_SET = 1, 2, 3, 4
_LAYOUT = {2: "H", 4: "I"}

Segment = tuple[int, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class AsPath:
    """Segments as they came: kind and AS numbers."""

    segments: tuple[Segment, ...]

    @classmethod
    def parse(cls, data: bytes, as_size: int) -> "AsPath":
        """The value of AS_PATH or AS4_PATH. Raises MalformedError."""
        segments: list[Segment] = []
        at = 0
        while at < len(data):
            if at + 2 > len(data):
                raise MalformedError("an AS path that is cut off")
            kind, count = data[at], data[at + 1]
            end = at + 2 + count * as_size
            if kind not in {SET, SEQUENCE, CONFEDERATION_SEQUENCE, CONFEDERATION_SET}:
                raise MalformedError("an AS path with an unknown kind of segment")
            if end > len(data):
                raise MalformedError("an AS path that is cut off")
            segments.append(
                (kind, struct.unpack(f">{count}{_LAYOUT[as_size]}", data[at + 2 : end]))
            )
            at = end
        return cls(tuple(segments))

    @property
    def text(self) -> str:
        """``65011 65012 {64512,64513}``; parts within a confederation in brackets (RFC 5065)."""
        return path_text(self.segments)

    @property
    def length(self) -> int:
        """As RFC 4271, 9.1.2.2 a counts: a set is one, a confederation nothing (RFC 5065)."""
        return sum(
            1 if kind == SET else len(numbers)
            for kind, numbers in self.segments
            if kind in {SET, SEQUENCE} and numbers
        )


def path_text(segments: Iterable[tuple[int, Iterable[int]]]) -> str:
    """The usual text of segments."""
    words: list[str] = []
    for kind, numbers in segments:
        texts = list(map(str, numbers))
        if not texts:
            continue
        if kind == SEQUENCE:
            words += texts
        elif kind == SET:
            words.append("{" + ",".join(texts) + "}")
        elif kind == CONFEDERATION_SET:
            words.append("[" + ",".join(texts) + "]")
        else:
            words.append("(" + " ".join(texts) + ")")
    return " ".join(words)


def merged(old: AsPath, new: AsPath) -> AsPath:
    """AS_PATH of a two-octet speaker with the end that AS4_PATH knows better (RFC 6793, 4.2.3).

    An AS4_PATH that is longer than AS_PATH is not believed.
    """
    ahead = old.length - new.length
    if ahead < 0:
        return old
    kept: list[Segment] = []
    for kind, numbers in old.segments:
        if kind in {CONFEDERATION_SEQUENCE, CONFEDERATION_SET}:
            kept.append((kind, numbers))
        elif ahead <= 0:
            break
        elif kind == SET:
            kept.append((kind, numbers))
            ahead -= 1
        else:
            kept.append((kind, numbers[:ahead]))
            ahead -= len(numbers)
    own = tuple(
        segment for segment in new.segments if segment[0] in {SET, SEQUENCE}
    )  # confederations do not belong into AS4_PATH (RFC 6793, 3)
    return AsPath((*kept, *own))
