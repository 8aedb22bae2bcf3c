"""What a session has to say."""

from typing import NamedTuple

from pathbudget.probes.record import Sample


class Outcome(NamedTuple):
    """How a question ended."""

    series: int
    sample: Sample


class Counted(NamedTuple):
    """Something that is no outcome; series -1 where it cannot be told."""

    series: int
    word: str


Event = Outcome | Counted
