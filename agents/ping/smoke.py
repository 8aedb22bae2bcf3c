"""Columns of a strip as characters: one line per host, or a chart with an axis. Pure.

Everything is told by shapes; colour repeats it, so that nothing is lost without colours.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from rich.text import Text

from pathbudget.agents.ping.strip import Column
from pathbudget.agents.ping.words import duration

LEVELS = 4
_LEFT_DOTS = (0x40, 0x04, 0x02, 0x01)
_RIGHT_DOTS = (0x80, 0x20, 0x10, 0x08)
BRAILLE = 0x2800
OUTER, INNER, MEDIAN = "\u2591", "\u2593", "\u2501"
"""p0 to p100, p25 to p75, and the median."""
BEYOND = "\u25b2"
"""In the top line of a chart: this column reaches beyond it."""
FAR = 2
"""So many times the height of nine columns of ten is too far to be shown."""
BLANK = " "
FEW_LOST, MANY_LOST, ALL_LOST = "o", "O", "X"
MANY = 0.2
AXIS = 8
"""Columns left of the chart."""


class Scale(NamedTuple):
    """Linear from `low_ns` to `high_ns`; `low_ns` < `high_ns`."""

    low_ns: float
    high_ns: float

    def level(self, value_ns: float, levels: int) -> int:
        """0 at the bottom to levels - 1 at the top."""
        place = (value_ns - self.low_ns) / (self.high_ns - self.low_ns)
        return max(0, min(levels - 1, math.floor(place * levels)))


def scale_of(columns: Sequence[Column | None], floor_ns: int, levels: int) -> Scale | None:
    """From the least to the greatest value in sight; None without any.

    A few columns that reach far higher than the others are cut off, and marked so. Where the whole
    is less than `levels` times the noise floor the scale is wider, so that noise does not look like
    smoke.
    """
    known = [one.quartiles_ns for one in columns if one is not None and one.quartiles_ns]
    if not known:
        return None
    low, high = min(one[0] for one in known), _top(known)
    return Scale(low, max(high, low + floor_ns * levels, low + 1))


def _top(known: Sequence[Sequence[int]]) -> int:
    """The highest value, or a lower one above which there are few columns and no middle halves."""
    tops = sorted(one[4] for one in known)
    usual = max(tops[len(tops) * 9 // 10], *(one[3] for one in known))
    low = min(one[0] for one in known)
    return usual if tops[-1] - low > FAR * (usual - low) else tops[-1]


def loss_glyph(column: Column) -> str:
    """Nothing lost, some, a fifth and more, all."""
    if not column.lost:
        return BLANK
    if column.lost == column.sent:
        return ALL_LOST
    return MANY_LOST if column.lost >= MANY * column.sent else FEW_LOST


def loss_style(column: Column) -> str:
    """The same as a colour."""
    if not column.lost:
        return "blue" if column.loaded else "green"
    if column.lost == column.sent:
        return "bold red"
    return "magenta" if column.lost >= MANY * column.sent else "yellow"


def smoke_line(columns: Sequence[Column | None], width: int, floor_ns: int = 0) -> Text:
    """One character per column: left dots p0 to p100, right dots p25 to p75; a letter for loss."""
    line = Text()
    scale = scale_of(columns[-width:], floor_ns, LEVELS)
    for column in columns[-width:]:
        if column is None:
            line.append(BLANK)
        elif column.lost or scale is None:
            line.append(loss_glyph(column), loss_style(column))
        else:
            line.append(_braille(column.quartiles_ns, scale), loss_style(column))
    return line


def _braille(quartiles: Sequence[int], scale: Scale) -> str:
    p0, p25, _, p75, p100 = (scale.level(one, LEVELS) for one in quartiles)
    dots = 0
    for level in range(LEVELS):
        dots |= _LEFT_DOTS[level] if p0 <= level <= p100 else 0
        dots |= _RIGHT_DOTS[level] if p25 <= level <= p75 else 0
    return chr(BRAILLE + dots)


def chart(
    columns: Sequence[Column | None], width: int, height: int, *, micro: bool, floor_ns: int = 0
) -> list[Text]:
    """`height` lines of smoke with an axis, and below them a line of losses."""
    shown = columns[-max(1, width - AXIS) :]
    scale = scale_of(shown, floor_ns, min(height, LEVELS))
    lines = [
        _chart_line(shown, scale, row, height, micro=micro) for row in range(height - 1, -1, -1)
    ]
    return [*lines, _loss_line(shown)]


def _chart_line(
    columns: Sequence[Column | None], scale: Scale | None, row: int, height: int, *, micro: bool
) -> Text:
    line = Text(_label(scale, row, height, micro=micro), "dim")
    for column in columns:
        if column is None or scale is None or not column.quartiles_ns:
            line.append(BLANK)
        else:
            line.append(_cell(column.quartiles_ns, scale, row, height), loss_style(column))
    return line


def _label(scale: Scale | None, row: int, height: int, *, micro: bool) -> str:
    """The value at the middle of a row, on every third row, the top and the bottom."""
    if scale is None or (row % 3 and row != height - 1):
        return " " * (AXIS - 1) + "\u2502"
    value = scale.low_ns + (row + 0.5) / height * (scale.high_ns - scale.low_ns)
    return f"{duration(value, micro=micro):>{AXIS - 2}} \u2524"


def _cell(quartiles: Sequence[int], scale: Scale, row: int, height: int) -> str:
    p0, p25, p50, p75, p100 = (scale.level(one, height) for one in quartiles)
    if row == height - 1 and quartiles[4] > scale.high_ns:
        return BEYOND
    if row == p50:
        return MEDIAN
    if p25 <= row <= p75:
        return INNER
    return OUTER if p0 <= row <= p100 else BLANK


def _loss_line(columns: Sequence[Column | None]) -> Text:
    line = Text(f"{'lost':>{AXIS - 2}} \u2514", "dim")
    for column in columns:
        if column is None:
            line.append(BLANK)
        else:
            glyph = loss_glyph(column)
            line.append("\u2500" if glyph == BLANK else glyph, loss_style(column))
    return line
