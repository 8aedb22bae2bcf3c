"""The forms of the lines of a journal (docs/store.md shows them)."""

from typing import Any

import msgspec

from pathbudget.probes.record import ClockQuality, NoiseFloor, Sample

JOURNAL_VERSION = 1
"""Version of the line forms; the records inside have their own schema version."""


class End(msgspec.Struct, frozen=True):
    """What is known only when a measurement is over."""

    clock: ClockQuality | None
    noise: NoiseFloor | None
    duration_ns: int


class Line(msgspec.Struct):
    """Any line; which fields are there says which kind it is. Unknown fields are ignored."""

    journal: int | None = None
    begin: int | None = None
    measurement: dict[str, Any] | None = None
    in_: int | None = msgspec.field(default=None, name="in")
    sample: Sample | None = None
    count: int | None = None
    word: str = ""
    number: int = 0
    end: int | None = None
    with_: End | None = msgspec.field(default=None, name="with")
