"""One sick member of a LAG or ECMP group, found from many flows (docs/link-health.md).

A sweep over source ports puts flows on every member; a member that loses or delays packets does so
to its own flows only. Flows that behave alike are reported as one finding: k flows, so much worse
than the others. False alarms: at most `alpha` per sweep and kind, over however many flows, because
there is one test for all (`flow_groups`); bursts and outages that meet all flows are no finding.

A sweep that could not have found what was asked for says so: undecided is not healthy.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
from scipy import stats

from pathbudget.analysis.quantiles import Values, independent_size, loss_interval, widened_ranks
from pathbudget.analysis.routes.flow_groups import Split, two_groups
from pathbudget.analysis.routes.model import MemberFinding, PathSeries, Window
from pathbudget.analysis.routes.sweeps import Sweep, sweep_of
from pathbudget.probes.record import Sample

Which = npt.NDArray[np.bool_]

ALPHA = 0.001
"""Chance of a false finding of each kind in a sweep: sweeps are repeated for months."""
WANTED_LOSS = 0.03
"""What a healthy verdict has to be able to rule out, on a member of one flow."""
POWER = 0.95
FEWEST_FLOWS = 8
"""With fewer, one flow of a healthy group stands out too easily, and two members may be one."""
FEWEST_BLOCKS = 10
"""Blocks of time: what happened in fewer of them may be one event."""
LEAST_LOSS = 0.001
"""A smaller difference of loss is not reported, however sure."""
SEED = 20_261_202
_TURNS_PER_ALPHA = 20
_ROUNDS_OF_MIXTURE = 30


@dataclass(frozen=True, slots=True)
class MemberOptions:
    """`floor_ns`: noise floor of the host; smaller differences of RTT are not decided."""

    alpha: float = ALPHA
    wanted_loss: float = WANTED_LOSS
    floor_ns: int = 0
    seed: int = SEED
    most_turns: int = 2_000

    @property
    def turns(self) -> int:
        """Turns that resolve a p-value of alpha well; beyond `most_turns` the tail has to do."""
        return min(self.most_turns, max(999, math.ceil(_TURNS_PER_ALPHA / self.alpha)))


@dataclass(frozen=True, slots=True)
class MemberSurvey:
    """What a sweep says. `undecided` holds the reasons why something could not be told."""

    findings: tuple[MemberFinding, ...]
    flows: int
    per_flow: int
    smallest_loss: float | None
    """The loss of one flow alone that would have been found with a chance of 95 %."""
    undecided: tuple[str, ...]
    counts: Mapping[int, tuple[int, int]] = field(default_factory=dict[int, tuple[int, int]])
    """Packets lost and sent of each flow."""

    def rules_out(self, earlier: MemberFinding) -> bool:
        """Whether the flows of an earlier finding about loss are well again: all together they lose
        less than it said at least, at 99 % and however many other flows say nothing.
        """
        known = [self.counts[flow] for flow in earlier.flows if flow in self.counts]
        lost, sent = (sum(pair[place] for pair in known) for place in (0, 1))
        return earlier.what == "loss" and loss_interval(lost, sent, 0.98)[1] < earlier.low

    @property
    def losses(self) -> tuple[MemberFinding, ...]:
        """Findings about loss, which need no earlier sweep to compare with."""
        return tuple(one for one in self.findings if one.what == "loss")

    @property
    def healthy(self) -> bool:
        """Nothing found, and a member that loses what was asked for would have been."""
        return not self.findings and not self.undecided


def sick_members(
    series: PathSeries, samples: Iterable[Sample], options: MemberOptions | None = None
) -> list[MemberFinding]:
    """The findings of `survey_members`."""
    return list(survey_members(series, samples, options).findings)


def survey_members(
    series: PathSeries, samples: Iterable[Sample], options: MemberOptions | None = None
) -> MemberSurvey:
    """Judge one sweep: round trips (`rtt`, `connect`, `echo`) with `Sample.flow`, in any order."""
    return survey_sweep(series, sweep_of(samples), options or MemberOptions())


def survey_sweep(
    series: PathSeries, sweep: Sweep, chosen: MemberOptions, usual: Sweep | None = None
) -> MemberSurvey:
    """`usual`: an earlier sweep of the same flows. Round trips are then judged by what changed
    since, because ways of unequal length are no fault; without it any difference counts.
    """
    reason = _too_little(sweep)
    if reason:
        return MemberSurvey((), len(sweep.flows), sweep.per_flow, None, (reason,))
    smallest = smallest_loss(sweep, chosen.alpha)
    loss = _judge_loss(series, sweep, chosen)
    delay = _Delay(series, sweep, _relative(sweep, usual), chosen)
    undecided = list(delay.undecided)
    if loss is None and smallest > chosen.wanted_loss:
        undecided.append(_insensitive(sweep, chosen))
    findings = tuple(one for one in (loss, delay.finding) if one is not None)
    return MemberSurvey(
        findings, len(sweep.flows), sweep.per_flow, smallest, tuple(undecided), _counts(sweep)
    )


def survey_losses(series: PathSeries, sweep: Sweep, chosen: MemberOptions) -> MemberSurvey:
    """The same of losses alone, which need no earlier sweep to compare with."""
    reason = _too_little(sweep)
    if reason:
        return MemberSurvey((), len(sweep.flows), sweep.per_flow, None, (reason,))
    smallest = smallest_loss(sweep, chosen.alpha)
    found = _judge_loss(series, sweep, chosen) if sweep.lost_alone.any() else None
    undecided = [] if found or smallest <= chosen.wanted_loss else [_insensitive(sweep, chosen)]
    findings = (found,) if found else ()
    return MemberSurvey(
        findings, len(sweep.flows), sweep.per_flow, smallest, tuple(undecided), _counts(sweep)
    )


def survey_delays(
    series: PathSeries, sweep: Sweep, chosen: MemberOptions, usual: Sweep
) -> MemberSurvey:
    """The same of round trips alone, held against an earlier sweep."""
    reason = _too_little(sweep)
    if reason:
        return MemberSurvey((), len(sweep.flows), sweep.per_flow, None, (reason,))
    delay = _Delay(series, sweep, _relative(sweep, usual), chosen)
    findings = () if delay.finding is None else (delay.finding,)
    return MemberSurvey(findings, len(sweep.flows), sweep.per_flow, None, tuple(delay.undecided))


def _insensitive(sweep: Sweep, chosen: MemberOptions) -> str:
    smallest = smallest_loss(sweep, chosen.alpha)
    return (
        f"{sweep.per_flow} packets a flow show a loss of {smallest:.1%} at least; "
        f"asked for {chosen.wanted_loss:.1%}"
    )


def _counts(sweep: Sweep) -> dict[int, tuple[int, int]]:
    pairs = zip(sweep.lost.sum(axis=0).tolist(), sweep.sent.sum(axis=0).tolist(), strict=True)
    return dict(zip(sweep.flows, pairs, strict=True))


def _relative(sweep: Sweep, usual: Sweep | None) -> Sweep:
    """Round trips minus earlier ones of the same flow, block by block: what a flow always had is
    gone from every difference, however well it was known.
    """
    if usual is None:
        return sweep
    blocks = min(len(sweep.rtt_ns), len(usual.rtt_ns))
    columns = {flow: usual.rtt_ns[:blocks, place] for place, flow in enumerate(usual.flows)}
    unknown = np.full(blocks, np.nan)
    earlier = np.array([columns.get(flow, unknown) for flow in sweep.flows]).T
    return replace(sweep, rtt_ns=sweep.rtt_ns[:blocks] - earlier)


def _too_little(sweep: Sweep) -> str:
    if not sweep.in_turn:
        return "flows were asked one after the other, not in turn"
    if len(sweep.flows) < FEWEST_FLOWS:
        return f"{len(sweep.flows)} flows; at least {FEWEST_FLOWS} tell members apart"
    if len(sweep.sent) < FEWEST_BLOCKS:
        return f"{sweep.per_flow} packets a flow; at least {FEWEST_BLOCKS} tell anything"
    return ""


def smallest_loss(sweep: Sweep, alpha: float) -> float:
    """Loss of one single flow that would be found with a chance of `POWER`.

    So many losses have to fall on one flow that chance puts them on any one flow with less than
    alpha, given what all lose (taken as half a packet a flow at least).
    """
    flows, n = len(sweep.flows), sweep.per_flow
    usual = max(0.5, float(sweep.lost_alone.sum(axis=0).mean()))
    needed = int(stats.poisson.isf(alpha / flows, usual)) + 1
    mean = float(stats.chi2.ppf(POWER, 2 * needed)) / 2
    return min(1.0, mean / n)


def _judge_loss(series: PathSeries, sweep: Sweep, options: MemberOptions) -> MemberFinding | None:
    rng = np.random.default_rng(options.seed)
    lost, sent = sweep.lost_alone.astype(np.float64), sweep.sent.astype(np.float64)
    split = two_groups(lost, sent, rng, options.turns, counts=True)
    if split.p_value > options.alpha:
        return None
    sick = _mixture(sweep, split)
    mine, others = _pooled(sweep, sick), _pooled(sweep, ~sick)
    value, group = mine[0] / mine[1], others[0] / max(1, others[1])
    if value - group < LEAST_LOSS:
        return None
    low, high = _loss_interval(sweep, sick)
    flows = tuple(flow for flow, ill in zip(sweep.flows, sick, strict=True) if ill)
    return _finding(series, sweep, options, split, flows, ("loss", value, low, high, group))


def _mixture(sweep: Sweep, split: Split) -> Which:
    """Which flows are more likely of the sick group, with the rates of both fitted (two Poisson
    classes, expectation and maximisation, begun at the best split).
    """
    lost, sent = sweep.lost_alone.sum(axis=0), sweep.sent.sum(axis=0)
    sick = np.zeros(len(sweep.flows))
    sick[list(split.upper)] = 1.0
    for _ in range(_ROUNDS_OF_MIXTURE):
        share = min(max(float(sick.mean()), 1e-6), 1 - 1e-6)
        high = (sick @ lost + 1e-9) / (sick @ sent + 1e-9)
        low = ((1 - sick) @ lost + 0.1) / ((1 - sick) @ sent + 0.1)
        odds = np.log(share / (1 - share)) + lost * np.log(high / low) - sent * (high - low)
        sick = 1 / (1 + np.exp(-np.clip(odds, -50, 50)))
    found = sick >= 0.5
    if not found.any() or found.all():  # no mixture to be seen: the split itself
        found = np.zeros(len(sweep.flows), dtype=np.bool_)
        found[list(split.upper)] = True
    return found


def _pooled(sweep: Sweep, flows: Which) -> tuple[int, int]:
    return int(sweep.lost[:, flows].sum()), int(sweep.sent[:, flows].sum())


def _loss_interval(sweep: Sweep, sick: Which) -> tuple[float, float]:
    """Clopper-Pearson of as many packets as they are worth: losses of one burst are one another's.

    Worth: by how much the losses of blocks vary beyond a binomial (design effect, 1 at least).
    """
    lost, sent = sweep.lost[:, sick].sum(axis=1), sweep.sent[:, sick].sum(axis=1)
    ratio = lost.sum() / sent.sum()
    expected = sent * ratio * (1 - ratio)
    used = expected > 0
    excess = float(np.mean((lost - sent * ratio)[used] ** 2 / expected[used])) if used.any() else 1
    effect = max(1.0, excess)
    worth = max(1, round(float(sent.sum()) / effect))
    return loss_interval(min(worth, round(ratio * worth)), worth)


class _Delay:
    """RTT of each flow against the group at the same time; `judged` is what counts of it."""

    def __init__(
        self, series: PathSeries, sweep: Sweep, judged: Sweep, options: MemberOptions
    ) -> None:
        self.finding: MemberFinding | None = None
        self.undecided: list[str] = []
        known = ~np.isnan(judged.rtt_ns)
        if known.sum() < known.size / 2:
            self.undecided.append("round trips: most blocks of most flows have none")
            return
        offsets = _offsets(judged.rtt_ns)
        rng = np.random.default_rng(options.seed + 1)
        worth = np.ones_like(offsets)
        split = two_groups(_signs(offsets), worth, rng, options.turns, counts=False)
        if split.p_value > options.alpha:
            return
        self._judge(series, sweep, judged, options, split)

    def _judge(
        self,
        series: PathSeries,
        sweep: Sweep,
        judged: Sweep,
        options: MemberOptions,
        split: Split,
    ) -> None:
        slow = np.zeros(len(sweep.flows), dtype=np.bool_)
        slow[list(split.upper)] = True
        differences, _ = _differences(judged.rtt_ns, slow)
        _, group = _differences(sweep.rtt_ns, slow)
        value, low, high = _median_interval(differences)
        if low <= options.floor_ns:
            if value > 0:
                self.undecided.append(
                    f"round trips differ by {micro(value)}, and the noise floor is "
                    f"{micro(options.floor_ns)}"
                )
            return
        flows = tuple(flow for flow, ill in zip(sweep.flows, slow, strict=True) if ill)
        self.finding = _finding(
            series, sweep, options, split, flows, ("rtt", value, low, high, group)
        )


def _offsets(rtt_ns: Values) -> Values:
    """Of each flow in each block from the median of all flows there; 0 where it is not known."""
    silent = np.all(np.isnan(rtt_ns), axis=1, keepdims=True)
    middle = np.nanmedian(np.where(silent, 0.0, rtt_ns), axis=1)
    offsets: Values = np.nan_to_num(rtt_ns - middle[:, None])
    return offsets


def _signs(offsets: Values) -> Values:
    """Ranks within each block, about zero: one wild value is worth no more than the largest."""
    ranks = stats.rankdata(offsets, axis=1)
    centred: Values = ranks / (offsets.shape[1] + 1) - 0.5
    return centred


def _differences(rtt_ns: Values, slow: Which) -> tuple[Values, float]:
    """Median of the slow flows minus that of the others in each block; and that of the others."""
    known = ~np.isnan(rtt_ns)
    used: Which = np.logical_and.reduce(
        [np.sum(known[:, slow], axis=1) > 0, np.sum(known[:, ~slow], axis=1) > 0]
    )
    others = np.nanmedian(rtt_ns[used][:, ~slow], axis=1)
    mine: Values = np.nanmedian(rtt_ns[used][:, slow], axis=1)
    return mine - others, float(np.median(others))


def _median_interval(values: Values) -> tuple[float, float, float]:
    ordered = np.sort(values)
    n = len(ordered)
    lower, upper = widened_ranks(n, independent_size(values), 0.5, 0.95)
    low = float(ordered[lower - 1]) if lower else -math.inf
    high = float(ordered[upper - 1]) if upper is not None else math.inf
    return float(np.median(ordered)), low, high


def _finding(
    series: PathSeries,
    sweep: Sweep,
    options: MemberOptions,
    split: Split,
    flows: tuple[int, ...],
    numbers: tuple[str, float, float, float, float],
) -> MemberFinding:
    what, value, low, high, group = numbers
    return MemberFinding(
        series=series,
        window=Window(sweep.first_unix_ns, sweep.last_unix_ns),
        flows=tuple(sorted(flows)),
        what=what,
        value=value,
        low=low,
        high=high,
        group=group,
        p_value=split.p_value,
        alpha=options.alpha,
        method=f"best split of all flows against {split.turns} turns of each block",
        flows_seen=len(sweep.flows),
    )


def micro(value_ns: float) -> str:
    """A difference in words: microseconds, where milliseconds would hide it."""
    return (
        f"{value_ns / 1_000:.1f} us"
        if abs(value_ns) < 1_000_000
        else (f"{value_ns / 1_000_000:.2f} ms")
    )
