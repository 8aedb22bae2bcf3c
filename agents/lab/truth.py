"""What the link definitions imply for every (region, site): the answer that a probe must find.

The round trip of an ICMP echo is a constant (delays, and the time its bits need on rate-limited
links) plus independent random terms (variation, reordering), one per link direction there and back.
The terms are put on one grid, each cell's probability taken from the exact distribution function,
and convolved by Fourier transform.

The numeric error of a quantile is at most half a cell per term (`Truth.numeric_error_ms`); the
probability beyond the grid counts as infinitely late. Not in it, because it depends on other
traffic: waiting in the queue of a rate limit, and links that keep the order of all packets.

Where there are several ways or members of a bundle, it is the truth of an echo whose flow is drawn
by lot: each branch as probable as the others.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from pathbudget.agents.lab.link import NORMAL_CUT, DirectionModel, VariationKind
from pathbudget.agents.lab.mixture import Legs, Models, legs, mixture
from pathbudget.agents.lab.world import World

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

CELLS = 1 << 16
FINEST_NS = 500.0
TAIL = 1e-7
"""Probability that one term may have beyond its part of the grid."""
ECHO_OCTETS = 84
"""An ICMP echo with 56 octets of data, as IPv4 packet."""
ETHERNET_OCTETS = 18

Key = tuple[str, str]


@dataclass(frozen=True)
class Truth:
    """Round trip between one region and one site. Times in ms; `loss` of request or reply."""

    minimum_ms: float
    """Smallest possible RTT. With normal variation it is hardly met; see `smallest_of_ms`."""
    loss: float
    cell_ms: float
    terms: int
    start_ms: float
    """RTT of the first cell."""
    cells: "NDArray[numpy.float64]"
    """Probability of each cell; what is missing to 1 lies beyond the last."""

    @property
    def numeric_error_ms(self) -> float:
        """Largest error of a quantile by the grid."""
        return self.cell_ms * self.terms / 2

    @cached_property
    def _cumulative(self) -> "NDArray[numpy.float64]":
        return self.cells.cumsum()

    def quantile_ms(self, share: float) -> float:
        """RTT that a share of the *answered* echoes does not exceed."""
        index = int(self._cumulative.searchsorted(share * (1 - 1e-12), side="left"))
        if index >= len(self.cells):
            return math.inf
        return self.start_ms + index * self.cell_ms

    def smallest_of_ms(self, n: int) -> float:
        """Median of the smallest of `n` answered echoes."""
        return self.quantile_ms(1 - 0.5 ** (1 / n))

    def band_ms(self, share: float, n: int, deviations: float = 3.0) -> tuple[float, float]:
        """Where the quantile of a sample of `n` lies, all but always (normal bound on the rank)."""
        half = deviations * math.sqrt(share * (1 - share) / n) + 0.5 / n
        low = self.quantile_ms(max(share - half, 1e-9))
        return low, self.quantile_ms(min(share + half, 1 - 1e-9))


def truth(
    world: World, *, octets: int = ECHO_OCTETS, pairs: Iterable[Key] | None = None
) -> dict[Key, Truth]:
    """The truth for every (region, site), or those of `pairs`. `octets` is the size of the echo as
    an IP packet.
    """
    every = [(region, site) for region in world.regions for site in world.sites]
    loops = {
        (region, site): (*legs(world, region, site), *legs(world, site, region))
        for region, site in (every if pairs is None else pairs)
    }
    return _truth_of_all(world, loops, octets)


def one_way_truth(world: World, *, octets: int = ECHO_OCTETS) -> dict[Key, Truth]:
    """The truth of each direction: keys (region, site) there, (site, region) back. What `Truth`
    says of the round trip holds of one way here.
    """
    ways = {
        pair: legs(world, *pair)
        for region in world.regions
        for site in world.sites
        for pair in ((region, site), (site, region))
    }
    return _truth_of_all(world, ways, octets)


def _truth_of_all(world: World, loops: Mapping[Key, Legs], octets: int) -> dict[Key, Truth]:
    mixtures = {key: mixture(world.next_hops, loop) for key, loop in loops.items()}
    grid = Grid.for_loops(models for loop in mixtures.values() for models in loop)
    random = {
        model for loop in mixtures.values() for models in loop for model in models
        if is_random(model)
    }  # fmt: skip
    spectra = {model: grid.spectrum(model) for model in random}
    return {
        key: _mixed(
            [(share, _truth_of(models, octets, grid, spectra)) for models, share in loop.items()]
        )
        for key, loop in mixtures.items()
    }


def _truth_of(
    loop: Models,
    octets: int,
    grid: "Grid",
    spectra: "Mapping[DirectionModel, NDArray[numpy.complex128]]",
) -> Truth:
    import numpy

    constant = sum(model.delay_ns + serialisation_ns(model, octets) for model in loop)
    taken = [model for model in loop if is_random(model)]
    spectrum = numpy.ones(CELLS + 1, dtype=numpy.complex128)
    for model in taken:
        spectrum *= spectra[model]
    # Twice as many points as cells: what would wrap around is beyond the grid, and cut off.
    cells = numpy.fft.irfft(spectrum, 2 * CELLS).clip(0)
    # Every term starts `grid.before` cells below zero; a path of fewer terms starts later.
    start = constant - len(taken) * grid.before * grid.cell_ns
    return Truth(
        minimum_ms=(constant - sum(_below(model) for model in taken)) / 1e6,
        loss=1 - math.prod(1 - model.loss_probability for model in loop),
        cell_ms=grid.cell_ns / 1e6,
        terms=len(taken),
        start_ms=start / 1e6,
        cells=cells[:CELLS],
    )


def _mixed(parts: list[tuple[float, Truth]]) -> Truth:
    """Of an echo whose flow is drawn by lot: what is answered is the mixture of its ways."""
    import numpy

    if len(parts) == 1:
        return parts[0][1]
    answered = sum(share * (1 - one.loss) for share, one in parts)
    cell = parts[0][1].cell_ms
    start = min(one.start_ms for _, one in parts)
    shifts = [round((one.start_ms - start) / cell) for _, one in parts]
    cells = numpy.zeros(CELLS + max(shifts))
    for (share, one), shift in zip(parts, shifts, strict=True):
        weight = share * (1 - one.loss) / answered if answered else share
        cells[shift : shift + CELLS] += weight * one.cells
    return Truth(
        minimum_ms=min(one.minimum_ms for _, one in parts),
        loss=1 - answered,
        cell_ms=cell,
        terms=max(one.terms for _, one in parts) + 1,
        start_ms=start,
        cells=cells,
    )


def serialisation_ns(model: DirectionModel, octets: int) -> int:
    """Time that the bits of one IP packet need on a rate-limited link."""
    if not model.rate_bits:
        return 0
    return (octets + ETHERNET_OCTETS) * 8_000_000_000 // model.rate_bits


def is_random(model: DirectionModel) -> bool:
    """Whether packets take different times."""
    variation = model.variation
    varies = variation.kind is not VariationKind.NONE and variation.scale_ns * variation.share > 0
    return varies or (model.reorder > 0 and model.reorder_by_ns > 0)


def _below(model: DirectionModel) -> int:
    """How far below the configured delay a packet can get."""
    if model.variation.kind is not VariationKind.NORMAL or not model.variation.share:
        return 0
    return min(NORMAL_CUT * model.variation.scale_ns, model.delay_ns)


@dataclass(frozen=True, slots=True)
class Grid:
    """Common cells of all terms: cell `before` is zero, each `cell_ns` wide."""

    cell_ns: float
    before: int

    @classmethod
    def for_loops(cls, loops: Iterable[Models]) -> "Grid":
        """As fine as the widest round trip allows."""
        widths: list[float] = []
        lowest = 0
        for loop in loops:
            random = [model for model in loop if is_random(model)]
            deepest = max((_below(model) for model in random), default=0)
            lowest = max(lowest, deepest)
            above = _reach_above(random)
            widths.append(above + len(random) * deepest)
        cell = max(FINEST_NS, 1.05 * max(widths, default=0.0) / (CELLS - 64))
        return cls(cell, math.ceil(lowest / cell))

    def spectrum(self, model: DirectionModel) -> "NDArray[numpy.complex128]":
        """Fourier transform of one term."""
        import numpy

        edges = numpy.arange(CELLS + 1, dtype=numpy.float64)
        edges = (edges - self.before - 0.5) * self.cell_ns
        below = _distribution(model, edges)
        below[0] = 0.0
        return numpy.fft.rfft(numpy.diff(below), 2 * CELLS)


def _reach_above(models: list[DirectionModel]) -> float:
    """Width that holds the sum of the terms but for about `TAIL` each."""
    counts = Counter(models)
    return math.fsum(count * _one_above(model) for model, count in counts.items())


def _one_above(model: DirectionModel) -> float:
    variation = model.variation
    reach = float(model.reorder_by_ns) if model.reorder else 0.0
    if variation.kind is VariationKind.NORMAL:
        return reach + NORMAL_CUT * variation.scale_ns
    if variation.kind is VariationKind.PARETO:
        return reach + variation.scale_ns * math.pow(TAIL, -1 / variation.shape)
    return reach


def _distribution(
    model: DirectionModel, values: "NDArray[numpy.float64]"
) -> "NDArray[numpy.float64]":
    """Probability that a packet is at most `values` ns later than the configured delay."""
    plain = _variation_distribution(model, values)
    if not model.reorder:
        return plain
    held = _variation_distribution(model, values - model.reorder_by_ns)
    mixed: NDArray[numpy.float64] = (1 - model.reorder) * plain + model.reorder * held
    return mixed


def _variation_distribution(
    model: DirectionModel, values: "NDArray[numpy.float64]"
) -> "NDArray[numpy.float64]":
    import numpy

    variation = model.variation
    at_zero = (values >= 0).astype(numpy.float64)
    if variation.kind is VariationKind.NONE or not variation.scale_ns:
        return at_zero
    if variation.kind is VariationKind.NORMAL:
        varied = _normal_distribution(values / variation.scale_ns)
        varied[values < -_below(model)] = 0.0
        varied[values >= NORMAL_CUT * variation.scale_ns] = 1.0
    else:
        ratio = numpy.maximum(values, 0) / variation.scale_ns + 1
        varied = numpy.where(values >= 0, 1 - ratio**-variation.shape, 0.0)
    mixed: NDArray[numpy.float64] = variation.share * varied + (1 - variation.share) * at_zero
    return mixed


def _normal_distribution(deviates: "NDArray[numpy.float64]") -> "NDArray[numpy.float64]":
    import numpy

    return 0.5 * (1 + numpy.array([math.erf(value / math.sqrt(2)) for value in deviates]))
