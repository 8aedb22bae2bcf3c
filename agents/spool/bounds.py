"""How much a spool may hold, and what goes when it is too much."""

from dataclasses import dataclass
from enum import StrEnum

DAY_NS = 86_400_000_000_000
SEGMENTS = 64
"""A spool that is full has about so many files: what goes oldest first, goes by whole files."""
LEAST_SEGMENT, LARGEST_SEGMENT = 4096, 1 << 30


class DropPolicy(StrEnum):
    """Which of what does not fit is dropped, and counted."""

    OLDEST = "oldest"
    """The oldest that wait: what is left is the latest, without a gap before it."""
    NEWEST = "newest"
    """What comes: what is left is how it began."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """`bytes` of files; `age_ns` of an entry, by a clock that no step of the wall clock moves."""

    bytes: int = 256 << 20
    age_ns: int = 30 * DAY_NS
    drop: DropPolicy = DropPolicy.OLDEST

    @property
    def segment_bytes(self) -> int:
        """Beyond which a new file is begun."""
        return min(max(LEAST_SEGMENT, self.bytes // SEGMENTS), LARGEST_SEGMENT)
