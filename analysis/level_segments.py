"""Where the base of the delays moves: clock steps, path changes, and standing queues between.

Minima of blocks of packets are compared: a queue comes and goes within a block, a step does not.
With f and r the minima of both directions, d = (f - r) / 2 is what the clocks say (plus half of the
asymmetry) and m = (f + r) / 2 what the path says. Inside a segment d is a line (skew) and m is
constant. The segmentation with the smallest sum of squares plus a price per cut is found exactly
(dynamic programme, as in Jackson et al., IEEE Signal Processing Letters 12, 2005).
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pathbudget.analysis.quantiles import Values

Places = npt.NDArray[np.intp]

BLOCK_PACKETS = 25
MOST_BLOCKS = 128

CUT_PRICE = 60.0
"""Squared standard deviations that one more cut must explain. Of 2,100 series of gamma,
exponential, log-normal and Pareto noise 17 had a cut, and none a step or a path change to report.
"""

FEWEST_BLOCKS = 3
"""A shorter segment is no state of its own: it is the rest of a block that a step cut in two."""

FINEST_NS = 1_000.0
"""Noise of minima is never taken to be finer than this: stamps are not."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """Block minima in order of time. `edges` has the first packet of each block and the end."""

    edges: Places
    times: Values
    clock: Values
    """d: (f - r) / 2, ns."""
    path: Values
    """m: (f + r) / 2, ns."""

    @property
    def n(self) -> int:
        """Number of blocks."""
        return len(self.times)


@dataclass(frozen=True, slots=True)
class BlockSegment:
    """Blocks of one clock and path state; `fit` are those that are not raised by a queue."""

    first: int
    end: int
    fit: Places


def block_edges(n: int, fewest: int = BLOCK_PACKETS, most: int = MOST_BLOCKS) -> Places:
    """Bounds of equally filled blocks of `n` packets."""
    count = max(1, min(most, n // fewest))
    return np.linspace(0, n, count + 1).round().astype(np.intp)


def block_minima(values: Values, edges: Places) -> Values:
    """Smallest value of each block."""
    result: Values = np.minimum.reduceat(values, edges[:-1])
    return result


def make_blocks(times: Values, forward: Values, reverse: Values) -> Blocks:
    """Blocks of packets in order of time. At least one packet."""
    edges = block_edges(len(times))
    middles = np.add.reduceat(times, edges[:-1]) / np.diff(edges)
    f, r = block_minima(forward, edges), block_minima(reverse, edges)
    return Blocks(edges, middles, (f - r) / 2, (f + r) / 2)


def rough_skew(blocks: Blocks) -> float:
    """Median slope of d over an eighth of the time: steps and queues hardly move it."""
    lag = max(1, blocks.n // 8)
    if blocks.n < 2:
        return 0.0
    rise = blocks.clock[lag:] - blocks.clock[:-lag]
    return float(np.median(rise / (blocks.times[lag:] - blocks.times[:-lag])))


def noise_of(values: Values) -> float:
    """Standard deviation of minima about their level, from neighbours: steps do not count."""
    if len(values) < 3:
        return FINEST_NS
    steps = np.abs(np.diff(values))
    return max(FINEST_NS, float(np.median(steps)) / 0.6745 / math.sqrt(2))


class Segmentation:
    """All segments of the blocks of one stream."""

    def __init__(self, blocks: Blocks) -> None:
        self.blocks = blocks
        self.clock_noise = noise_of(blocks.clock)
        self.path_noise = noise_of(blocks.path)

    def segments(self) -> list[BlockSegment]:
        """Segments in order of time; blocks at a cut may belong to none of them."""
        bounds = self._cheapest_cuts()
        long = [(a, b) for a, b in bounds if b - a >= FEWEST_BLOCKS]
        if not long:
            return [BlockSegment(0, self.blocks.n, np.arange(self.blocks.n))]
        found = [BlockSegment(a, b, np.arange(a, b)) for a, b in long]
        found = self._join_across_queues(found)
        found[0] = BlockSegment(0, found[0].end, found[0].fit)
        found[-1] = BlockSegment(found[-1].first, self.blocks.n, found[-1].fit)
        return found

    def cost(self, fit: Places) -> float:
        """Squares about a line of d and a constant m, in units of their noise."""
        times = self.blocks.times[fit] - self.blocks.times[fit].mean()
        clock = self.blocks.clock[fit] - self.blocks.clock[fit].mean()
        path = self.blocks.path[fit] - self.blocks.path[fit].mean()
        power = float(times @ times)
        tilt = float(times @ clock) ** 2 / power if power > 0 else 0.0
        squares = float(clock @ clock) - tilt
        return squares / self.clock_noise**2 + float(path @ path) / self.path_noise**2

    def _cheapest_cuts(self) -> list[tuple[int, int]]:
        n = self.blocks.n
        costs = self._all_costs()
        best = np.zeros(n + 1)
        came_from = np.zeros(n + 1, dtype=np.intp)
        best[0] = -CUT_PRICE
        for end in range(1, n + 1):
            options = best[:end] + costs[:end, end] + CUT_PRICE
            came_from[end] = np.argmin(options)
            best[end] = options[came_from[end]]
        bounds: list[tuple[int, int]] = []
        end = n
        while end:
            bounds.append((int(came_from[end]), end))
            end = int(came_from[end])
        return bounds[::-1]

    def _all_costs(self) -> Values:
        """`cost` of the blocks from i to before j at [i, j], by running sums."""
        times = (self.blocks.times - self.blocks.times[0]) / max(
            1.0, float(np.ptp(self.blocks.times))
        )
        d = (self.blocks.clock - np.median(self.blocks.clock)) / self.clock_noise
        m = (self.blocks.path - np.median(self.blocks.path)) / self.path_noise
        sums = [_running(x) for x in (np.ones_like(d), times, d, times * times, times * d, d * d)]
        n, t, s_d, tt, td, dd = (one[None, :] - one[:, None] for one in sums)
        count = np.maximum(n, 1)
        power = tt - t * t / count
        tilt = np.where(power > 1e-12, (td - t * s_d / count) ** 2 / np.maximum(power, 1e-12), 0.0)
        s_m, mm = (one[None, :] - one[:, None] for one in (_running(m), _running(m * m)))
        result: Values = dd - s_d * s_d / count - tilt + mm - s_m * s_m / count
        return np.maximum(result, 0.0)

    def _join_across_queues(self, found: list[BlockSegment]) -> list[BlockSegment]:
        """Segments that come back to where they were are one, with what lay between as a queue.

        Delay that rises for a while and falls to the same base is variation, not another path.
        """
        place = 0
        while place < len(found):
            for other in range(len(found) - 1, place, -1):
                if self._same_state(found[place], found[other], found[place + 1 : other]):
                    fit = np.concatenate((found[place].fit, found[other].fit))
                    joined = BlockSegment(found[place].first, found[other].end, fit)
                    found[place : other + 1] = [joined]
                    break
            else:
                place += 1
        return found

    def _same_state(self, a: BlockSegment, b: BlockSegment, between: list[BlockSegment]) -> bool:
        together = np.concatenate((a.fit, b.fit))
        if self.cost(together) > self.cost(a.fit) + self.cost(b.fit) + CUT_PRICE:
            return False
        return all(self._is_raised(together, queue.fit) for queue in between)

    def _is_raised(self, base: Places, queue: Places) -> bool:
        """Whether both directions of `queue` are at or above the base: no clock does that."""
        times, clock = self.blocks.times, self.blocks.clock
        slope, level = line_of(times[base], clock[base])
        moved = float(np.median(clock[queue] - level - slope * times[queue]))
        raised = float(np.median(self.blocks.path[queue]) - np.median(self.blocks.path[base]))
        slack = 3 * max(self.clock_noise, self.path_noise)
        return raised > 0 and abs(moved) <= raised + slack


def line_of(times: Values, values: Values) -> tuple[float, float]:
    """Slope and value at time 0 of the least-squares line; slope 0 where there is one time."""
    centre = times - times.mean()
    power = float(centre @ centre)
    slope = float(centre @ values) / power if power > 0 else 0.0
    return slope, float(values.mean()) - slope * float(times.mean())


def _running(values: Values) -> Values:
    return np.concatenate(([0.0], np.cumsum(values)))
