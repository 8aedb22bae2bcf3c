"""Packets of a path over many flows as they come: is one of parallel links sick?

The latest `MOST` packets are kept, and judged by one test over all flows whenever `EVERY` more have
come (`members`). What one flow in four loses at 3 % shows after some 2,600 packets
(`member_power`), so the memory is longer than that, and no sick member has to wait for the end of a
sweep that it shares with better times. The permitted rate of false findings is divided among the
looks at the same packet.
"""

import math
from array import array
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
from scipy.special import xlogy
from scipy.stats import binom

from pathbudget.analysis.quantiles import Values
from pathbudget.analysis.routes.illnesses import Illnesses
from pathbudget.analysis.routes.members import (
    ALPHA,
    FEWEST_FLOWS,
    MemberOptions,
    MemberSurvey,
    survey_losses,
)
from pathbudget.analysis.routes.model import MemberFinding, PathSeries, Window
from pathbudget.analysis.routes.sweeps import counts_as_lost, in_runs, sweep_from_arrays
from pathbudget.probes.record import Sample

MOST = 4000
"""So many packets are known."""

EVERY = 500
"""After so many more they are looked at."""

OPTIONS = MemberOptions(alpha=ALPHA * EVERY / MOST)

SUPPORT = math.log(100)
"""Beginnings whose log-likelihood is less than this below the best may be the true one: of members
that lose at random one in a hundred began before."""

OVER = 0.0001
"""Chance to call a member well that is as sick as before. Its flows were chosen because they had
lost most, and it is asked at every look: so the chance is a tenth of what one look could bear.
"""

ENDS = 64
"""So many times at which it may have been over are tried."""

Ints = npt.NDArray[np.int64]
Lost = npt.NDArray[np.bool_]


@dataclass(slots=True)
class SweepWatch:
    """Packets over many flows. Memory is bounded: 17 octets of each of `MOST`."""

    series: PathSeries
    illnesses: Illnesses = field(default_factory=Illnesses)
    _sick: "_Sick | None" = None
    _fresh: int = 0
    _times: "array[int]" = field(default_factory=lambda: array("q"))
    _flows: "array[int]" = field(default_factory=lambda: array("q"))
    _fates: bytearray = field(default_factory=bytearray)

    def see(self, sample: Sample) -> list[MemberFinding]:
        """Take a sample; what a look found that is due with it."""
        lost = counts_as_lost(sample)
        if lost is None or sample.flow is None:
            return []
        self._times.append(sample.sent_unix_ns)
        self._flows.append(sample.flow)
        self._fates.append(lost)
        self._fresh += 1
        return self._look() if self._fresh >= EVERY else []

    def finish(self) -> list[MemberFinding]:
        """Judge what there is."""
        return self._look() if self._fresh else []

    @property
    def findings(self) -> list[MemberFinding]:
        """All that are remembered."""
        return self.illnesses.findings

    @property
    def clean(self) -> list[Window]:
        """When the flows of a finding were well again."""
        return self.illnesses.clean

    def _look(self) -> list[MemberFinding]:
        self._fresh = 0
        self._keep(-MOST)
        sent, flows, lost = self._in_order()
        if len(np.unique(flows)) < FEWEST_FLOWS:
            self._keep(-EVERY)
            return []
        sweep = sweep_from_arrays(flows, lost, sent, np.full(len(sent), np.nan))
        survey = survey_losses(self.series, sweep, OPTIONS)
        if not survey.findings:
            self._note_health(survey, sent, flows, lost)
            return []
        finding, self._sick = _sharpened(survey.findings[0], sent, flows, lost)
        self.illnesses.add(finding)
        self._keep(len(sent))  # what comes next speaks for itself
        return [finding]

    def _note_health(self, survey: MemberSurvey, sent: Ints, flows: Ints, lost: Lost) -> None:
        """Whether the flows of the last finding are well again, and since when."""
        if self._sick is None:
            return
        for at in _halves(len(sent)):
            if survey.healthy or self._sick.is_over(flows[at:], lost[at:]):
                self._sick = None
                self.illnesses.end(Window(int(sent[at]), int(sent[-1])))
                self._forget_before(int(sent[at]))
                return

    def _forget_before(self, unix_ns: int) -> None:
        """What was lost before all were well again is no part of what they fall ill with next."""
        kept = [place for place, sent in enumerate(self._times) if sent >= unix_ns]
        self._times = array("q", (self._times[place] for place in kept))
        self._flows = array("q", (self._flows[place] for place in kept))
        self._fates = bytearray(self._fates[place] for place in kept)

    def _keep(self, first: int) -> None:
        """Forget all before a place; counted from the end where it is negative."""
        start = max(0, len(self._times) + first) if first < 0 else first
        for row in (self._times, self._flows, self._fates):
            del row[:start]

    def _in_order(self) -> tuple[Ints, Ints, Lost]:
        sent, flows = (np.array(row, dtype=np.int64) for row in (self._times, self._flows))
        lost = np.frombuffer(bytes(self._fates), dtype=np.bool_)
        order = np.argsort(sent, kind="stable")
        return sent[order], flows[order], lost[order]


def _halves(n: int) -> tuple[int, int, int]:
    """Where the latest packets begin: all, half, a quarter of them."""
    return 0, n // 2, n - n // 4


@dataclass(frozen=True, slots=True)
class _Sick:
    """What the flows of a finding lost since it began, and what all flows did."""

    flows: tuple[int, ...]
    lost: int
    sent: int
    all_lost: int = 0
    all_sent: int = 0

    def is_over(self, flows: Ints, lost: Lost) -> bool:
        """Whether they lose less in these packets: all losses at one rate would hardly fall so.

        Where none of them is asked any more, others are on the member now: then all count.
        """
        alone, named = ~in_runs(lost), np.isin(flows, self.flows)
        of_all = not named.any()
        mine = lost[alone] if of_all else lost[named & alone]
        before, sent = (self.all_lost, self.all_sent) if of_all else (self.lost, self.sent)
        gone, share = int(mine.sum()), len(mine) / max(1, len(mine) + sent)
        return float(binom.cdf(gone, gone + before, share)) < OVER


def _sharpened(
    finding: MemberFinding, sent: Ints, flows: Ints, lost: Lost
) -> tuple[MemberFinding, _Sick]:
    """The same finding, with the time in which the member began to be sick, as losses tell it.

    What all lost together says nothing of any flow.
    """
    alone = ~in_runs(lost)
    mine = np.isin(flows, finding.flows) & alone
    times, fates = sent[mine], lost[mine]
    earliest, latest = onset(fates)
    window = Window(int(times[max(0, earliest - 1)]), int(times[latest]))
    since = fates[earliest:]
    everybody = lost[alone & (sent >= times[earliest])]
    sick = _Sick(
        *(finding.flows, int(since.sum()), len(since)), int(everybody.sum()), len(everybody)
    )
    return replace(finding, window=window), sick


def onset(lost: Lost) -> tuple[int, int]:
    """Smallest and largest index at which a time of more loss may have begun.

    By the likelihood of one rate within and another one outside, whenever it was over.
    """
    n = len(lost)
    count = np.concatenate(([0], np.cumsum(lost)))
    begins = np.arange(n)[:, None]
    ends = np.unique(np.linspace(1, n, min(n, ENDS)).astype(np.int64))[None, :]
    size, inside = ends - begins, count[ends] - count[:-1, None]
    rest, outside = n - size, count[-1] - inside
    more = (size > 0) & (inside * rest >= outside * size)
    likely = np.where(more, _binomial(inside, size) + _binomial(outside, rest), -np.inf)
    best = likely.max(axis=1)
    found = np.flatnonzero(best >= best.max() - SUPPORT)
    return int(found[0]), int(found[-1])


def _binomial(events: Ints, trials: Ints) -> Values:
    """Log-likelihood at its own rate."""
    k, n = events.astype(np.float64), trials.astype(np.float64)
    return np.asarray(xlogy(k, k) + xlogy(n - k, n - k) - xlogy(n, n), dtype=np.float64)
