"""Which columns fit: a path must be readable at 80 columns and at 40. Pure."""

from collections.abc import Sequence
from typing import NamedTuple

from pathbudget.agents.trace.hop_rows import HopRow

NARROWEST = 40
LIMIT, LABEL = 2, 2
"""Columns of the hop limit, and of the bracket and letter of a branch."""
LEAST_STRIP, LEAST_SOURCES = 8, 0
NUMBERS = (("loss", 4), ("p50", 5), ("min", 5), ("p95", 5))
"""In the order in which they are given up, the last first."""
ORDER = ("loss", "min", "p50", "p95")
AS = 9


class Layout(NamedTuple):
    """Widths in columns; 0 is not shown. `stacked`: numbers stand below their address."""

    width: int
    sources: int
    address: int
    flows: int
    numbers: tuple[str, ...]
    origin: int
    strip: int
    stacked: bool = False

    @property
    def indent(self) -> int:
        """Where the details of a hop begin."""
        return LIMIT + 1 + LABEL + self.sources + 1


def layout_of(rows: Sequence[HopRow], width: int, *, origins: bool, strips: bool = True) -> Layout:
    """All that fits into `width`, the most important first."""
    width = max(width, NARROWEST)
    branches = [one for row in rows for one in row.branches]
    address = max((len(one.address) for one in branches), default=7)
    sources = max((len(one.comes_from) + 1 for one in branches if one.comes_from), default=0)
    sources = min(sources, 6)
    flows = max((len(f"{row.asked}/{row.asked}") for row in rows), default=3)
    flows = max(flows, len("flows"))
    before = LIMIT + 1 + LABEL + sources + 1
    needed = before + address + 1 + flows + sum(size + 1 for _, size in NUMBERS[:2])
    stacked = needed > width
    left = width - (before + 4 if stacked else before + address) - 1 - flows
    numbers: list[str] = []
    for name, size in NUMBERS:
        if left >= size + 1:
            numbers.append(name)
            left -= size + 1
    origin = AS if origins and not stacked and left >= AS + 1 else 0
    left -= origin + 1 if origin else 0
    strip = left - 1 if strips and left - 1 >= LEAST_STRIP else 0
    shown = tuple(name for name in ORDER if name in numbers)
    return Layout(width, sources, address, flows, shown, origin, strip, stacked)
