"""Loss at a hop of a trace: real, or a router that answers only so many probes a second.

A router forwards in hardware and answers in software, slowly and under a limit (RFC 1812 section
4.3.2.8). What it does not answer says nothing of what it forwards: loss is real only if every later
hop, to the destination, loses at least as much.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from pathbudget.analysis.proportion import clopper_pearson


class HopVerdict(StrEnum):
    """What the missing answers of a hop mean."""

    CLEAN = "clean"
    """It answered everything."""
    RATE_LIMITED = "rate-limited responder"
    """It answered less than a later hop, which every packet had to reach through it."""
    SILENT = "silent"
    """It never answered, and later hops did."""
    LOSS = "loss"
    """All later hops miss at least as much, to the destination: packets are lost up to here."""
    UNDECIDED = "undecided"
    """The destination never answered, or the intervals cannot tell."""


@dataclass(frozen=True, slots=True)
class Hop:
    """How many probes were sent with this hop limit, and how many it answered."""

    ttl: int
    sent: int
    answered: int

    @property
    def missing(self) -> int:
        """Probes without an answer."""
        return self.sent - self.answered


@dataclass(frozen=True, slots=True)
class JudgedHop:
    """A hop and what its missing answers mean."""

    hop: Hop
    verdict: HopVerdict
    lost_at_least: float
    """Share of the packets that is surely lost on the way up to this hop and back."""


def judge_hops(
    hops: Sequence[Hop], *, reached: bool, confidence: float = 0.95
) -> tuple[JudgedHop, ...]:
    """One verdict per hop, in order of hop limit. `reached`: the last hop is the destination.

    The loss up to a hop is at most the upper end of the loss of any later hop. A hop whose own
    lower end lies above that does not answer all that it forwards.
    """
    return tuple(
        _judged(hop, hops[i + 1 :], reached=reached, confidence=confidence)
        for i, hop in enumerate(hops)
    )


def _judged(hop: Hop, later: Sequence[Hop], *, reached: bool, confidence: float) -> JudgedHop:
    low, _ = clopper_pearson(hop.missing, hop.sent, confidence)
    bounds = [clopper_pearson(one.missing, one.sent, confidence) for one in later if one.sent]
    if hop.missing == 0 or not hop.sent:
        return JudgedHop(hop, HopVerdict.CLEAN if hop.sent else HopVerdict.UNDECIDED, 0.0)
    if bounds and low > min(high for _, high in bounds):
        silent = hop.answered == 0
        return JudgedHop(hop, HopVerdict.SILENT if silent else HopVerdict.RATE_LIMITED, 0.0)
    persists = [low, *(its_low for its_low, _ in bounds)]
    if reached and min(persists) > 0:
        return JudgedHop(hop, HopVerdict.LOSS, min(persists))
    return JudgedHop(hop, HopVerdict.UNDECIDED, 0.0)
