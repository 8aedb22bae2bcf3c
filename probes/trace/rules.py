"""What a trace is told, and the words for what it asks and how it ends."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

WINDOW = 6
"""Hop limits that the first flow asks at once, beyond what it knows of."""
AT_ONCE = 32
"""Flows sent out at once to find some that pass one vertex."""
TRIED_FOR_ONE = 4
"""Flows asked for each that is needed, where many are not answered, before a hop is given up."""
RESTARTS = 2
"""Times that a path may change under way before the trace gives up."""


class Want(NamedTuple):
    """A packet to send. `asked` goes back with its answer."""

    flow: int
    limit: int
    asked: int


class Algorithm(StrEnum):
    """How the flows are chosen."""

    PARIS = "paris"
    MDA = "mda"
    MDA_LITE = "mda-lite"


class Stopped(StrEnum):
    """Why a trace ended (`HopNote.STOPPED`)."""

    ARRIVED = "arrived"
    GAP = "gap"
    LIMIT = "limit"
    UNREACHABLE = "unreachable"
    LOOP = "loop"
    BUDGET = "budget"


@dataclass(frozen=True, slots=True)
class Rules:
    """What one trace was told. `flows` is the number of flows of paris, and the most of the others;
    `confidence` that of all links of the trace together, or of each vertex (`per_vertex`).
    """

    algorithm: Algorithm = Algorithm.MDA_LITE
    confidence: float = 0.95
    per_vertex: bool = False
    flows: int = 512
    first_hop: int = 1
    max_hops: int = 32
    gap: int = 5
    attempts: int = 2
    most_packets: int = 10_000
