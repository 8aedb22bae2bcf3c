"""Packets of a path over many flows as they come: does one of parallel links take longer now?

Ways of unequal length are no fault, so each sweep is held against the first one, flow by flow. A
finding is told when two sweeps in a row have the same flows in it: what all flows do together, and
what one sweep shows by chance, is none. It began within the first of the two.
"""

from array import array
from dataclasses import dataclass, field, replace

import numpy as np

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
_MOST_FINDINGS = 64


@dataclass(slots=True)
class DelayWatch:
    """Round trips over many flows. Memory is bounded: 24 octets of each packet of one sweep, and
    the first sweep. `floor_ns`: noise floor of the host, below which nothing is told.
    """

    series: PathSeries
    floor_ns: int = 0
    findings: list[MemberFinding] = field(default_factory=list[MemberFinding])
    clean: list[Window] = field(default_factory=list[Window])
    """Sweeps in which the flows of a finding were as they used to be again."""
    _usual: Sweep | None = None
    _doubt: MemberFinding | None = None
    """What the last sweep showed."""
    _sick: MemberFinding | None = None
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

    def _look(self) -> list[MemberFinding]:
        sweep = self._sweep()
        if len(sweep.flows) < FEWEST_FLOWS or not sweep.in_turn:
            return []
        if self._usual is None or not set(sweep.flows) & set(self._usual.flows):
            self._usual, self._doubt, self._sick = sweep, None, None  # other flows: another sweep
            return []
        options = MemberOptions(alpha=ALPHA, floor_ns=self.floor_ns)
        survey = survey_delays(self.series, sweep, options, self._usual)
        found = next(iter(survey.findings), None)
        before, self._doubt = self._doubt, found
        if found is None:
            self._note_health(sweep)
            return []
        if before is None or not _alike(before, found):
            return []
        told = found if self._sick is not None else replace(found, window=before.window)
        self._sick = told
        self.findings = [*self.findings[1 - _MOST_FINDINGS :], told]
        return [told]

    def _note_health(self, sweep: Sweep) -> None:
        if self._sick is not None:
            window = Window(sweep.first_unix_ns, sweep.last_unix_ns)
            self._sick, self.clean = None, [*self.clean[1 - _MOST_FINDINGS :], window]

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
