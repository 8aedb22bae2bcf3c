"""Series that send together, so that the host wakes up once for many: which, and how many."""

from collections.abc import Mapping

from pathbudget.agents.campaign.entry_values import duration_ns
from pathbudget.agents.campaign.plan import VantagePlan
from pathbudget.probes.errors import Fault
from pathbudget.sites.entry import Entry, show

KEY = "coalesce"
SHORTEST_NS, LONGEST_NS = 1_000_000, 1_000_000_000
"""A shorter interval saves no wake-up, with a longer one a host does its work in bursts."""

SPARSE = 20
"""Series with so many intervals between two sends are coalesced; to others it would be a rhythm."""

TOGETHER = 16
"""So many probes may leave together, on average: at 100 Mbit/s the last waits about 130 us."""


def read_coalesce_ns(entry: Entry) -> int:
    """The interval in nanoseconds in which a vantage sends once; 0 is whenever a probe is due."""
    interval = duration_ns(entry, KEY, "0s", shortest_ns=0) or 0
    if interval and not SHORTEST_NS <= interval <= LONGEST_NS:
        text = show(entry.values[KEY])
        entry.fault(KEY, f"{text} is out of range", "1ms to 1s, or no such key")
    return interval


def is_sparse(interval_ns: int, coalesce_ns: int) -> bool:
    """Whether a series with this interval is coalesced."""
    return interval_ns >= SPARSE * coalesce_ns


def crowded(file: str, plans: Mapping[str, VantagePlan]) -> list[Fault]:
    """A fault for each vantage, by its place in the file, of which too much would leave together.

    The packets of one train count as one probe: they leave together because somebody wants it.
    """
    faults: list[Fault] = []
    for place, plan in plans.items():
        together = sum(one.coalesce_ns / one.interval_ns for one in plan.series)
        if together > TOGETHER:
            problem = f"{together:.0f} probes would leave together, and wait for one another"
            expected = f"at most {TOGETHER}: a shorter one, or longer intervals of probes"
            faults.append(Fault(file, f"{place}.{KEY}", problem, expected))
    return faults
