"""What a report is made of, before it is HTML or Markdown.

    Section   a heading and its blocks
    Block     Paragraph | Bullets | Facts | Table | Figure | Drawings

Every text in here is plain: the renderers escape it. A `Figure` names a chart that only HTML draws;
the table beside it carries the same numbers.
"""

from dataclasses import dataclass
from enum import StrEnum


class Tone(StrEnum):
    """How a text or a cell is to be read. Never shown by colour alone."""

    PLAIN = ""
    LEAD = "lead"
    CAUTION = "caution"
    PASS = "pass"  # noqa: S105
    FAIL = "fail"
    UNDECIDED = "undecided"
    CHOSEN = "chosen"


@dataclass(frozen=True, slots=True)
class Paragraph:
    """One paragraph."""

    text: str
    tone: Tone = Tone.PLAIN


@dataclass(frozen=True, slots=True)
class Bullets:
    """A short list with a lead-in, which may be empty."""

    lead: str
    items: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Facts:
    """Pairs of a word and what there is to say about it, under a title of their own."""

    title: str
    answer: str
    tone: Tone
    pairs: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell: its text, smaller lines below it, and its tone."""

    text: str
    details: tuple[str, ...] = ()
    tone: Tone = Tone.PLAIN


@dataclass(frozen=True, slots=True)
class Column:
    """Head of a column; numbers are set flush right."""

    name: str
    numeric: bool = False


Row = tuple[Cell | str, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A table; the first cell of a row is the head of that row.

    `note` says what is not shown. A folded table is closed until a reader opens it. The rows of a
    stacked one become cards where a page is too narrow for its columns.
    """

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    note: str = ""
    folded: bool = False
    stacked: bool = False


@dataclass(frozen=True, slots=True)
class Figure:
    """The place of a chart: the key of its drawing, what it shows, and the same in words."""

    key: str
    caption: str
    description: str


@dataclass(frozen=True, slots=True)
class Drawing:
    """A picture of its own: SVG that this product made, safe as it is, and its width in pixels."""

    title: str
    detail: str
    svg: str
    width: int


@dataclass(frozen=True, slots=True)
class Drawings:
    """Pictures side by side. Only HTML shows them; a table has the same in words."""

    caption: str
    drawings: tuple[Drawing, ...]
    note: str = ""


Block = Paragraph | Bullets | Facts | Table | Figure | Drawings


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what stands below it."""

    key: str
    title: str
    blocks: tuple[Block, ...]


def column(name: str) -> Column:
    """Head of a column of words."""
    return Column(name)


def number(name: str) -> Column:
    """Head of a column of numbers."""
    return Column(name, numeric=True)


def shortened(rows: tuple[Row, ...], limit: int, what: str) -> tuple[tuple[Row, ...], str]:
    """At most `limit` rows, and the sentence that says how many are left out (or nothing)."""
    if len(rows) <= limit:
        return rows, ""
    left = len(rows) - limit
    one = left == 1
    words = f"1 more {what.removesuffix('s')} is" if one else f"{left:,} more {what} are"
    return rows[:limit], f"{words} left out here; the JSON report has all of them."
