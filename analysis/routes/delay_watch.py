"""Packets of a path over many flows as they come: does one of parallel links take longer now?

Ways of unequal length are no fault, so each sweep is held against the first one, flow by flow. A
finding is told when two sweeps in a row have the same flows in it: what all flows do together, and
what one sweep shows by chance, is none. It began within the first of the two. The first sweep is
another one where most flows are, and where the whole path moved by more than its flows differ:
which of them then takes longer says nothing of a link.
"""

from array import array
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from pathbudget.analysis.routes.illnesses import Illnesses
from pathbudget.analysis.routes.members import (
    ALPHA,
    FEWEST_FLOWS,
    MemberOptions,
    survey_delays,
)
from pathbudget.analysis.routes.model import MemberFinding, PathSeries, Window
from pathbudget.analysis.routes.sweeps import Sweep, counts_as_lost, sweep_from_arrays
from pathbudget.probes.record import Sample

PER_FLOW = 60
"""Packets of each flow in a sweep: a difference as long as the variation shows in one."""
MOST = 8_000
"""Packets of a sweep at most: with more flows than that allows there are fewer of each."""
ALIKE = 0.5
"""Share of flows that two findings have in common when they are of one member."""
COMMON = 0.5
"""Share of the flows of a sweep that the first one has to have, to be held against it."""
ANSWERED = 0.75
"""Share of blocks and flows with a round trip in a sweep that others are held against."""
MOVED = 2.0
"""From one sweep to the next all moved by so many times what the flows differ by: another way."""
_REMEMBERED = 3


@dataclass(slots=True)
class DelayWatch:
    """Round trips over many flows. Memory is bounded: 24 octets of each packet of one sweep, and
    the first sweep. `floor_ns`: noise floor of the host, below which nothing is told.
    """

    series: PathSeries
    floor_ns: int = 0
    illnesses: Illnesses = field(default_factory=Illnesses)
    """Over with the first sweep in which the flows of a finding were as they used to be again."""
    _usual: Sweep | None = None
    _doubt: MemberFinding | None = None
    """What the last sweep showed."""
    _levels: list[float] = field(default_factory=list[float])
    """Median round trips of the latest sweeps."""
    _names: set[int] = field(default_factory=set[int])
    _times: "array[int]" = field(default_factory=lambda: array("q"))
    _flows: "array[int]" = field(default_factory=lambda: array("q"))
    _trips: "array[float]" = field(default_factory=lambda: array("d"))

    def see(self, sample: Sample) -> list[MemberFinding]:
        """Take a sample; what the sweep found that is complete with it."""
        lost = counts_as_lost(sample)
        if lost is None or sample.flow is None:
            return []
        self._times.append(sample.sent_unix_ns)
        self._flows.append(sample.flow)
        self._trips.append(np.nan if lost or sample.value_ns is None else float(sample.value_ns))
        self._names.add(sample.flow)
        return self._look() if len(self._times) >= self._enough() else []

    def _enough(self) -> int:
        return min(MOST, PER_FLOW * max(FEWEST_FLOWS, len(self._names)))

    @property
    def findings(self) -> list[MemberFinding]:
        """All that are remembered."""
        return self.illnesses.findings

    @property
    def clean(self) -> list[Window]:
        """When the flows of a finding were well again."""
        return self.illnesses.clean

    def begin_anew(self) -> None:
        """The next sweep is the one that others are held against, and what was found is past."""
        self._usual, self._doubt, self.illnesses = None, None, Illnesses()

    def _look(self) -> list[MemberFinding]:
        sweep = self._sweep()
        if len(sweep.flows) < FEWEST_FLOWS or not sweep.in_turn:
            return []
        answered = ~np.isnan(sweep.rtt_ns)
        if answered.any():
            middle = float(np.nanmedian(sweep.rtt_ns))
            self._levels = [*self._levels[1 - _REMEMBERED :], middle]
        if self._usual is None or not _comparable(sweep, self._usual):
            self._begin_with(sweep if answered.mean() >= ANSWERED else None, sweep)
            return []
        options = MemberOptions(alpha=ALPHA, floor_ns=self.floor_ns)
        survey = survey_delays(self.series, sweep, options, self._usual)
        found = next(iter(survey.findings), None)
        before, self._doubt = self._doubt, found
        if found is None:
            if not survey.undecided and self.illnesses.open is not None:
                self.illnesses.end(_window(sweep))
            return []
        if before is None or not _alike(before, found):
            return []
        if self.illnesses.open is None:
            if self._has_moved(found.value):
                self._begin_with(sweep, sweep)
                return []
            found = replace(found, window=before.window)
        self.illnesses.add(found)
        return [found]

    def _begin_with(self, usual: Sweep | None, now: Sweep) -> None:
        """From here on others are held against `usual`. Nobody knows what became of members of
        which no flow is asked any more: they are not sick for ever.
        """
        self._usual, self._doubt = usual, None
        if self.illnesses.open is not None:
            self.illnesses.end(_window(now))

    def _has_moved(self, value_ns: float) -> bool:
        steps = [abs(b - a) for a, b in pairwise(self._levels)]
        return max(steps, default=0.0) > MOVED * value_ns

    def _sweep(self) -> Sweep:
        sent, flows = (np.array(row, dtype=np.int64) for row in (self._times, self._flows))
        trips = np.array(self._trips, dtype=np.float64)
        order = np.argsort(sent, kind="stable")
        for row in (self._times, self._flows, self._trips):
            del row[:]
        self._names.clear()
        lost = np.isnan(trips)
        return sweep_from_arrays(flows[order], lost[order], sent[order], trips[order])


def _alike(one: MemberFinding, other: MemberFinding) -> bool:
    common = len(set(one.flows) & set(other.flows))
    return common >= ALIKE * min(len(one.flows), len(other.flows))


def _comparable(sweep: Sweep, usual: Sweep) -> bool:
    return len(set(sweep.flows) & set(usual.flows)) >= COMMON * len(sweep.flows)


def _window(sweep: Sweep) -> Window:
    return Window(sweep.first_unix_ns, sweep.last_unix_ns)
