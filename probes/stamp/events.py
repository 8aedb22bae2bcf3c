"""What a Session-Sender has to say."""

from typing import NamedTuple

from pathbudget.probes.record import Sample


class Outcome(NamedTuple):
    """How a shot ended: its RTT sample or failure comes first, then what was measured beside it."""

    series: int
    samples: tuple[Sample, ...]


class Counted(NamedTuple):
    """Something that is no outcome; series -1 where it cannot be told."""

    series: int
    word: str


Event = Outcome | Counted
