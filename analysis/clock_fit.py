"""Two clocks that nobody synchronised: their skew and steps, told apart from what the path did.

Transit times of a packet there and back are `forward = D_f + offset` and `reverse = D_r - offset`.
A clock step moves both by opposite amounts and leaves the round trip alone; a path change does
not, unless it makes one way longer by exactly what it makes the other shorter. Skew is the slope
of the lower envelopes (`envelope`), per piece between cuts (`level_segments`).
"""

import math
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from scipy import special

from pathbudget.analysis.envelope import shared_skew
from pathbudget.analysis.level_segments import (
    Blocks,
    BlockSegment,
    Segmentation,
    line_of,
    make_blocks,
    rough_skew,
)
from pathbudget.analysis.quantiles import Values

UNKNOWN_SKEW = 200e-6
"""Skew of either sign that is allowed for where too few packets show any: two poor quartzes."""

FEWEST_BLOCKS_FOR_SKEW = 5


@dataclass(frozen=True, slots=True)
class Piece:
    """Packets from `first` to before `end` with one clock state and one path."""

    first: int
    end: int
    skew: float
    """ns per ns, of the other end's clock against ours."""
    skew_error: float
    """The skew is within this of `skew`, with the confidence asked for."""
    forward_base: float
    """Lower envelope at time 0 of the fit, ns; includes the unknown offset of the clocks."""
    reverse_base: float


@dataclass(frozen=True, slots=True)
class Cut:
    """What happened before packet `at`: how far the base of each direction moved, in ns."""

    at: int
    forward_ns: float
    reverse_ns: float
    error_ns: float

    @property
    def is_clock_step(self) -> bool:
        """Whether the directions moved against each other and the round trip stayed."""
        step = (self.forward_ns - self.reverse_ns) / 2
        return abs(step) > self.error_ns and abs(self.forward_ns + self.reverse_ns) <= self.error_ns

    @property
    def is_path_change(self) -> bool:
        """Whether the base of the round trip moved."""
        return abs(self.forward_ns + self.reverse_ns) > self.error_ns

    @property
    def step_ns(self) -> float:
        """By how much the other clock went forward against ours."""
        return (self.forward_ns - self.reverse_ns) / 2


@dataclass(frozen=True, slots=True)
class ClockFit:
    """Pieces in order of time that cover all packets, and the cuts between them."""

    times: Values
    """ns since the first packet."""
    pieces: tuple[Piece, ...]
    cuts: tuple[Cut, ...]

    def drift(self, tilt: float = 0.0) -> Values:
        """What skew added to each forward transit (and took off each reverse one), in ns.

        `tilt` from -1 to 1 leans every skew by that share of its error.
        """
        result = np.empty(len(self.times))
        for piece in self.pieces:
            mine = slice(piece.first, piece.end)
            result[mine] = (piece.skew + tilt * piece.skew_error) * self.times[mine]
        return result


def fit_clocks(
    sent_ns: npt.NDArray[np.int64],
    forward: Values,
    reverse: Values,
    confidence: float = 0.99,
    *,
    one_clock: bool = False,
) -> ClockFit:
    """Pieces of a stream of answered packets in order of time; at least one packet.

    With `one_clock` there is no skew to find (round trips, given as two halves).
    """
    times = (sent_ns - sent_ns[0]).astype(np.float64)
    blocks = make_blocks(times, forward, reverse)
    rough = 0.0 if one_clock else rough_skew(blocks)
    flat_forward, flat_reverse = forward - rough * times, reverse + rough * times
    blocks = make_blocks(times, flat_forward, flat_reverse)
    segmentation = Segmentation(blocks)
    segments = segmentation.segments()
    work = _Work(times, flat_forward, flat_reverse, blocks, confidence, rough, one_clock)
    noise = max(segmentation.clock_noise, segmentation.path_noise)
    return work.fit(segments, noise)


@dataclass(frozen=True, slots=True)
class _Work:
    times: Values
    forward: Values
    """Rough skew taken out already, as in `reverse`: then the minima of blocks mean something."""
    reverse: Values
    blocks: Blocks
    confidence: float
    rough: float
    one_clock: bool

    def fit(self, segments: list[BlockSegment], noise: float) -> ClockFit:
        last = len(segments) - 1
        cores = [
            self._piece(segment, self._core(segment, i > 0, i < last))
            for i, segment in enumerate(segments)
        ]
        bounds = [0]
        for left, right, a, b in zip(segments, segments[1:], cores, cores[1:], strict=False):
            bounds.append(self._cut_place(left, right, a, b, 3 * noise))
        bounds.append(len(self.times))
        pieces = [
            replace(core, first=first, end=end)
            for core, first, end in zip(cores, bounds, bounds[1:], strict=False)
        ]
        cuts = tuple(self._cut(a, b, noise) for a, b in pairwise(pieces))
        whole = tuple(replace(piece, skew=piece.skew + self.rough) for piece in pieces)
        return ClockFit(self.times, whole, cuts)

    def _core(
        self, segment: BlockSegment, cut_before: bool, cut_after: bool
    ) -> npt.NDArray[np.intp]:
        """Packets that are surely of this piece: no block at a cut, none that a queue raised."""
        inner = segment.fit[int(cut_before) : len(segment.fit) - int(cut_after)]
        return self._packets_of(inner)

    def _packets_of(self, fit: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
        edges = self.blocks.edges
        return np.concatenate([np.arange(int(edges[i]), int(edges[i + 1])) for i in fit])

    def _piece(self, segment: BlockSegment, packets: npt.NDArray[np.intp]) -> Piece:
        times, forward, reverse = (x[packets] for x in (self.times, self.forward, self.reverse))
        skew = 0.0 if self.one_clock else shared_skew(times, forward, reverse)
        error = 0.0 if self.one_clock else self._skew_error(segment, skew)
        return Piece(
            first=0,
            end=0,
            skew=skew,
            skew_error=error,
            forward_base=float((forward - skew * times).min()),
            reverse_base=float((reverse + skew * times).min()),
        )

    def _skew_error(self, segment: BlockSegment, skew: float) -> float:
        """Student's interval of the slope of d over block minima; a bound where there are few."""
        fit = segment.fit
        if len(fit) < FEWEST_BLOCKS_FOR_SKEW:
            return UNKNOWN_SKEW
        times, clock = self.blocks.times[fit], self.blocks.clock[fit]
        slope, level = line_of(times, clock)
        rest = clock - level - slope * times
        centre = times - times.mean()
        free = len(fit) - 2
        deviation = math.sqrt(float(rest @ rest) / free / float(centre @ centre))
        wide = float(special.stdtrit(free, 1 - (1 - self.confidence) / 2)) * deviation
        return max(wide, abs(skew - slope))

    def _cut_place(
        self, left: BlockSegment, right: BlockSegment, a: Piece, b: Piece, slack: float
    ) -> int:
        """The packet at which the fewest lie below the envelope of the piece they are given to."""
        edges = self.blocks.edges
        first, end = int(edges[left.fit[-1]]), int(edges[right.fit[0] + 1])
        early = self._impossible(a, first, end, slack)
        late = self._impossible(b, first, end, slack)
        before = np.concatenate(([0], np.cumsum(early)))
        after = late.sum() - np.concatenate(([0], np.cumsum(late)))
        return first + int(np.argmin(before + after))

    def _impossible(
        self, piece: Piece, first: int, end: int, slack: float
    ) -> npt.NDArray[np.bool_]:
        times = self.times[first:end]
        below_forward = self.forward[first:end] - piece.skew * times < piece.forward_base - slack
        below_reverse = self.reverse[first:end] + piece.skew * times < piece.reverse_base - slack
        return below_forward | below_reverse

    def _cut(self, a: Piece, b: Piece, noise: float) -> Cut:
        time = float(self.times[b.first])
        turn = (b.skew - a.skew) * time
        spans = (piece.skew_error * self._span(piece) / 2 for piece in (a, b))
        return Cut(
            at=b.first,
            forward_ns=b.forward_base - a.forward_base + turn,
            reverse_ns=b.reverse_base - a.reverse_base - turn,
            error_ns=4 * noise + sum(spans),
        )

    def _span(self, piece: Piece) -> float:
        return float(self.times[piece.end - 1] - self.times[piece.first])
