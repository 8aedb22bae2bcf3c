"""When the round trip of a series moved to another level, its variation to another width, or its
loss to another rate (docs/routes-method.md).

`level_shifts` is for a whole series, `LevelWatch` for one that goes on: a window slides over the
series, is cut where the distribution of ranks changes (`rank_cuts`), and a cut counts where its two
sides lie further apart than neighbouring blocks of the series usually do (`shift_tests`). The watch
keeps a shorter window and looks when something seems to have happened.
"""

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from pathbudget.analysis.quantiles import Values
from pathbudget.analysis.routes import level_estimates, shift_tests
from pathbudget.analysis.routes.model import LevelShift, PathSeries, Window
from pathbudget.analysis.routes.rank_cuts import LEAST, rank_cuts
from pathbudget.analysis.routes.shift_tests import SWINGS
from pathbudget.analysis.routes.transitions import Turn, place_of_turn, with_transitions

Times = npt.NDArray[np.int64]

FALSE_ALARMS = 0.05
"""Stated rate: false shifts per 1,000 samples of a calm series are at most this on average."""

SETTLED = 16
"""So many samples after a cut are waited for, that it be no burst and be told from a ramp."""

QUIET = 128
"""After so many samples a watch looks, whatever they are."""

LEAST_OF_LEVEL = 4
"""Fewer values are no level to hold against another one."""

FEWEST_OF_SPREAD = 16
"""Fewer values have no spread to speak of."""

FEWEST_OF_LOSS = 16
"""Fewer packets have no loss ratio to speak of."""


@dataclass(frozen=True, slots=True)
class ShiftOptions:
    """`least_ns` and `least_loss`: smaller shifts are of no interest, however sure.

    `window` is how many samples are held at a time, `least` how many a level has.
    """

    least_ns: float = 100_000.0
    least_loss: float = 0.01
    confidence: float = 0.95
    floor_ns: float = 0.0
    """Noise floor of the measuring host: no difference is known better."""
    window: int = 2048
    least: int = LEAST
    false_alarms: float = FALSE_ALARMS

    def on_host(self, floor_ns: float) -> "ShiftOptions":
        """The same on a host with this noise floor."""
        return replace(self, floor_ns=floor_ns, least_ns=max(self.least_ns, floor_ns))


BATCH = ShiftOptions()
WATCH = ShiftOptions(window=512)


Judge = Callable[[Values, int, int, int, ShiftOptions], tuple[float, str]]
"""Values, first, cut, end: by how many usual swings, and what of the series moved."""


def judge_delays(
    values: Values, first: int, cut: int, end: int, options: ShiftOptions
) -> tuple[float, str]:
    """Level before spread: what moves both is a shift of the level."""
    before, after = values[first:cut], values[cut:end]
    level = spread = 0.0
    if abs(float(np.median(after) - np.median(before))) >= options.least_ns:
        level = shift_tests.swings_between(
            values, first, cut, end, shift_tests.level_of, min(LEAST_OF_LEVEL, options.least)
        )
    if level < SWINGS and abs(_width(after) - _width(before)) >= options.least_ns:
        spread = shift_tests.swings_between(
            values, first, cut, end, shift_tests.spread_of, FEWEST_OF_SPREAD
        )
    return (level, "rtt") if level >= spread else (spread, "pdv")


def judge_losses(
    values: Values, first: int, cut: int, end: int, options: ShiftOptions
) -> tuple[float, str]:
    """Noughts and ones: the swing is at least what chance makes of independent losses."""
    before, after = values[first:cut], values[cut:end]
    moved = abs(float(after.mean() - before.mean()))
    if moved < options.least_loss:
        return 0.0, "loss"
    chance = np.sqrt(
        sum(
            max(p * (1 - p), 0.5 / len(part)) / len(part)
            for p, part in ((float(before.mean()), before), (float(after.mean()), after))
        )
    )
    swings = shift_tests.swings_between(
        values, first, cut, end, shift_tests.share_of, FEWEST_OF_LOSS
    )
    return min(swings, moved / float(chance)), "loss"


def _width(values: Values) -> float:
    low, high = np.quantile(values, (level_estimates.LOWEST, level_estimates.HIGHEST))
    return float(high - low)


def cuts_that_hold(values: Values, options: ShiftOptions, judge: Judge) -> list[tuple[int, str]]:
    """Cuts of a window with what moved there. The weakest goes first, until all of them hold."""
    least = options.least if judge is judge_delays else FEWEST_OF_LOSS
    bounds = [0, *rank_cuts(values, least=least), len(values)]
    scores = [_judged(values, bounds, i, options, judge) for i in range(len(bounds) - 2)]
    while scores:
        weakest = min(range(len(scores)), key=lambda i: scores[i][0])
        if scores[weakest][0] >= SWINGS:
            break
        del scores[weakest], bounds[weakest + 1]
        for i in {weakest - 1, weakest} & set(range(len(scores))):
            scores[i] = _judged(values, bounds, i, options, judge)
    return [(cut, what) for cut, (_, what) in zip(bounds[1:-1], scores, strict=True)]


def _judged(
    values: Values, bounds: list[int], i: int, options: ShiftOptions, judge: Judge
) -> tuple[float, str]:
    first, cut, end = bounds[i : i + 3]
    return judge(values, first, cut, end, options)


@dataclass(slots=True)
class _Channel:
    """Delays or losses of one series: the last samples of it, and what has been told."""

    series: PathSeries
    metric: str
    options: ShiftOptions
    judge: Judge
    times: Times = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    values: Values = field(default_factory=lambda: np.empty(0))
    told_unix_ns: int = -(2**62)

    def take(self, times: Times, values: Values) -> None:
        """Add samples in order of time; the oldest go beyond the window."""
        self.times = np.concatenate((self.times, times))[-self.options.window :]
        self.values = np.concatenate((self.values, values))[-self.options.window :]

    def look(self, settled: int) -> list[LevelShift]:
        """New shifts that have `settled` samples behind them."""
        values = self.values
        if len(values) < 2 * self.options.least or float(np.ptp(values)) == 0:
            return []
        cuts = cuts_that_hold(values, self.options, self.judge)
        turns = with_transitions(values, cuts, self._moved)
        slow = [
            turn.what == "rtt"
            and shift_tests.is_gradual(values, turn.first, (turn.cut + turn.settled) // 2, turn.end)
            for turn in turns
        ]
        shifts: list[LevelShift] = []
        for i, turn in enumerate(turns):
            if len(values) - turn.settled < settled or self.times[turn.cut] <= self.told_unix_ns:
                continue
            shift = self._shift(turn)
            if any(slow[max(0, i - 1) : i + 2]):
                shift = self._of_swell(shift, values[turn.settled : turn.end], slow[i])
            if turn.what != "rtt" and shift.cost.low_ns <= 0 <= shift.cost.high_ns:
                continue  # it may be nothing; of delays `episodes` decides
            shifts.append(shift)
            least = min(len(values), turn.settled + self.options.least) - 1
            self.told_unix_ns = int(self.times[least])
        return shifts

    def _moved(self, values: Values, first: int, cut: int, end: int) -> bool:
        swings, what = self.judge(values, first, cut, end, self.options)
        return what == "rtt" and swings >= SWINGS

    def _shift(self, turn: Turn) -> LevelShift:
        values, what = self.values, turn.what
        earliest, latest = place_of_turn(values, turn)
        of = {"rtt": level_estimates.level, "pdv": level_estimates.spread}.get(
            what, level_estimates.loss
        )
        before, after = values[turn.first : turn.cut], values[turn.settled : turn.end]
        confidence = self.options.confidence
        each = level_estimates.half_error(confidence)
        cost = level_estimates.difference(
            of(before, each), of(after, each), confidence, floor_ns=self._floor_ns(what)
        )
        if what == "rtt":
            cost = level_estimates.with_swing(cost, self._swing_ns(turn))
        return LevelShift(
            series=self.series,
            metric=self.metric,
            what=what,
            window=Window(int(self.times[earliest - 1]), int(self.times[latest])),
            before=of(before, confidence),
            after=of(after, confidence),
            cost=cost,
            false_alarms=self.options.false_alarms,
            floor_ns=level_estimates.floor_moved(before, after) if what == "rtt" else None,
        )

    def _swing_ns(self, turn: Turn) -> float:
        least = min(LEAST_OF_LEVEL, self.options.least)
        return shift_tests.swing_around(
            self.values, turn.first, turn.cut, turn.end, shift_tests.level_of, least
        )

    def _floor_ns(self, what: str) -> float:
        return 0.0 if what == "loss" else self.options.floor_ns

    def _of_swell(self, shift: LevelShift, after: Values, slow: bool) -> LevelShift:
        """A stage of a swell, or beside one: it has no one level."""
        if shift.what != "rtt":
            return shift
        reached = level_estimates.with_extremes(shift.after, after)
        return replace(shift, after=reached, gradual=slow)


class LevelWatch:
    """Samples of one series in order of sending in, shifts out, each once. Memory is bounded.

    A step that leaves the usual range is told within twice `SETTLED` samples; what hides in the
    usual range is looked for every `QUIET` samples.
    """

    def __init__(
        self, series: PathSeries, metric: str = "rtt", options: ShiftOptions = WATCH
    ) -> None:
        self.series, self.metric, self.options = series, metric, options
        self._delays = _Channel(series, metric, options, judge_delays)
        self._losses = _Channel(series, metric, options, judge_losses)
        self._alarm = _Alarm()
        self._times = array("q")
        self._values = array("d")

    def see(self, sent_unix_ns: int, value_ns: float) -> list[LevelShift]:
        """One sample; +inf of a lost one."""
        self._times.append(sent_unix_ns)
        self._values.append(value_ns)
        return self._look(SETTLED) if self._alarm.rings(value_ns) else []

    def see_all(self, sent_unix_ns: Sequence[int], values_ns: Sequence[float]) -> list[LevelShift]:
        """Several samples."""
        found: list[LevelShift] = []
        for sent, value in zip(sent_unix_ns, values_ns, strict=True):
            found += self.see(sent, value)
        return found

    def finish(self) -> list[LevelShift]:
        """What the last samples say, without waiting for more."""
        return self._look(self.options.least)

    def recent(self) -> tuple[Times, Values]:
        """The latest samples that were looked at, losses as +inf."""
        delays, losses = self._delays, self._losses
        gone = losses.times[losses.values > 0]
        times = np.concatenate((delays.times, gone))
        values = np.concatenate((delays.values, np.full(len(gone), np.inf)))
        order = np.argsort(times, kind="stable")
        return times[order], values[order]

    def _look(self, settled: int) -> list[LevelShift]:
        times, values = np.array(self._times, dtype=np.int64), np.array(self._values)
        del self._times[:], self._values[:]
        answered = np.isfinite(values)
        self._delays.take(times[answered], values[answered])
        self._losses.take(times, (~answered).astype(np.float64))
        self._alarm.learn(self._delays.values)
        found = self._delays.look(settled) + self._losses.look(max(settled, FEWEST_OF_LOSS))
        return sorted(found, key=lambda shift: shift.window)


class _Alarm:
    """Says when it is worth to look: cheap, once per sample, and never quiet for long.

    It counts which of the last 32 samples lie outside of where nine in ten were at the last look.
    """

    def __init__(self) -> None:
        self._low, self._high = float("-inf"), float("inf")
        self._unusual = 0
        self._since = 0
        self._at = 4 * LEAST

    def rings(self, value_ns: float) -> bool:
        """Whether to look after this sample."""
        unusual = not self._low <= value_ns <= self._high
        self._unusual = (self._unusual << 1 | unusual) & 0xFFFFFFFF
        self._since += 1
        if self._since >= self._at:
            return True
        return self._since >= 8 and self._unusual.bit_count() >= 12

    def learn(self, delays: Values) -> None:
        """Where values are from now on usual."""
        self._since, self._unusual, self._at = 0, 0, QUIET
        if len(delays) >= 32:
            recent = delays[-QUIET:]
            low, high = np.quantile(recent, (0.05, 0.95))
            self._low, self._high = float(low), float(high)


def level_shifts(
    series: PathSeries,
    metric: str,
    sent_unix_ns: Times,
    values_ns: Values,
    options: ShiftOptions = BATCH,
) -> list[LevelShift]:
    """All shifts of a series in order of time; +inf are losses. Memory is that of the arrays."""
    answered = np.isfinite(values_ns)
    found: list[LevelShift] = []
    delays = _Channel(series, metric, options, judge_delays)
    losses = _Channel(series, metric, options, judge_losses)
    for channel, times, values in (
        (delays, sent_unix_ns[answered], values_ns[answered]),
        (losses, sent_unix_ns, (~answered).astype(np.float64)),
    ):
        found += _slide(channel, times, values, options.window // 2)
    return sorted(found, key=lambda shift: (shift.window, shift.what))


def _slide(channel: _Channel, times: Times, values: Values, stride: int) -> list[LevelShift]:
    found: list[LevelShift] = []
    for first in range(0, len(times), stride):
        end = first + stride
        channel.take(times[first:end], values[first:end])
        last = end >= len(times)
        if first or last:
            found += channel.look(channel.options.least if last else stride // 4)
    return found
