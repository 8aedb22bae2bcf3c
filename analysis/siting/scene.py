"""What decisions about sites are made on: rows of demand, candidate sites, and what pairs cost.

A row is a region with one tier; several tiers with their shares of the traffic are rows of one
scene, since they share the sites. All matrices are rows x sites, in ms.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from pathbudget.analysis.results import BudgetLine, Evaluation, RegionInfo, SiteInfo
from pathbudget.analysis.siting.filling import Filling
from pathbudget.analysis.siting.sampling import (
    LEVEL_WEIGHTS,
    PROBABILITIES,
    of_interval,
    without_limit,
)

Matrix = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Row:
    """Users of one region in one tier."""

    region: RegionInfo
    tier: str
    share: float
    """Of the traffic of the region."""
    allowance_ms: float | None

    @property
    def demand(self) -> float:
        """In the unit of the regions' weights."""
        return self.region.weight * self.share

    @property
    def name(self) -> str:
        """Region, and tier where there is one."""
        return self.region.name


@dataclass(frozen=True, slots=True)
class Scene:
    """One set of rows and candidates. Unknown costs are ``nan``; ``inf`` is without a limit."""

    rows: tuple[Row, ...]
    sites: tuple[SiteInfo, ...]
    value: Matrix
    low: Matrix
    high: Matrix
    counts: Matrix
    """Samples of each pair; 0 where there is none."""
    sizes: Matrix
    """What they are worth after their autocorrelation."""
    tables: Matrix = field(repr=False)
    """rows x sites x levels: sampling distributions; ``inf`` where nothing is known."""
    percentile: float = 50.0
    floors: Matrix | None = None
    filling: Filling | None = None
    left_out: tuple[str, ...] = ()
    """Sites that are no candidates, because nobody measured them."""

    @property
    def weights(self) -> Matrix:
        """Shares of the whole traffic."""
        demand = np.array([row.demand for row in self.rows], dtype=np.float64)
        total = float(demand.sum())
        return demand / total if total > 0 else demand

    @property
    def filled(self) -> Mask:
        """Pairs whose cost is a guess of the model."""
        none = np.zeros(self.value.shape, dtype=bool)
        return none if self.filling is None else self.filling.filled

    @property
    def cost(self) -> Matrix:
        """What choices are made on: the upper interval end; ``inf`` where a site cannot serve.

        With filled pairs it is the expected value throughout, of measured and of filled ones: the
        upper end of a guess would shut out every site that was not measured (docs/siting.md).
        """
        if self.filling is None:
            return self.ceiling
        return np.where(np.isfinite(self.tables).any(axis=2), self.expected(), np.inf)

    def expected(self) -> Matrix:
        """Mean of the sampling distributions; a top without a limit counts as its last number."""
        tables = np.where(np.isfinite(self.tables), self.tables, -np.inf)
        lifted = np.maximum.accumulate(tables, axis=2)
        return np.where(np.isfinite(lifted[..., 0]), lifted @ LEVEL_WEIGHTS, np.inf)

    @property
    def allowances(self) -> Matrix:
        """Of every row, ``inf`` where the tier has none."""
        return np.array(
            [math.inf if row.allowance_ms is None else row.allowance_ms for row in self.rows]
        )

    @property
    def ceiling(self) -> Matrix:
        """Upper interval ends; ``inf`` where there is none."""
        return np.where(np.isnan(self.high), np.inf, self.high)

    @property
    def optimistic(self) -> Matrix:
        """Lower interval ends; of a pair that nobody knows the light floor, or 0."""
        floors = np.zeros(self.low.shape) if self.floors is None else np.nan_to_num(self.floors)
        return np.where(np.isnan(self.low), floors, self.low)

    def is_known(self, row: int, column: int) -> bool:
        """Whether the pair was measured or filled."""
        return not bool(np.isnan(self.high[row, column]))

    def measured(self, row: int) -> bool:
        """Whether there is a sample from the region to any site."""
        return bool((self.counts[row] > 0).any())

    def unlimited(self, columns: Sequence[int]) -> list[int]:
        """Rows that none of the columns is known to serve."""
        limited = np.isfinite(self.cost[:, list(columns)]).any(axis=1)
        return [int(row) for row in np.flatnonzero(~limited)]

    def limited_share(self, columns: Sequence[int]) -> float:
        """Share of the traffic of the other rows."""
        share = 1 - math.fsum(self.weights[row] for row in self.unlimited(columns))
        return max(0.0, min(1.0, share))

    @property
    def tiers(self) -> tuple[str, ...]:
        """Names of the tiers, in order."""
        return tuple(dict.fromkeys(row.tier for row in self.rows))

    def names(self, columns: Sequence[int]) -> tuple[str, ...]:
        """Names of candidates."""
        return tuple(self.sites[column].name for column in columns)

    def row_name(self, row: int) -> str:
        """``frankfurt``, or ``frankfurt (voice-ai)`` among several tiers."""
        one = self.rows[row]
        return f"{one.name} ({one.tier})" if len(self.tiers) > 1 else one.name


def scene_of(evaluation: Evaluation, mix: Mapping[str, float]) -> Scene:
    """The scene of an evaluation for tiers with their shares of the traffic.

    Candidates are the sites measured from at least one region, in the order of their names; regions
    without weight are left out. Raises ValueError for a tier that the evaluation does not have.
    """
    known = {tier.name: tier for tier in evaluation.tiers}
    if missing := [name for name in mix if name not in known]:
        raise ValueError(f"no tier {', '.join(missing)}; known: {', '.join(known) or 'none'}")
    lines = {
        (line.tier, line.region, line.site): line
        for line in evaluation.lines
        if line.headline and line.tier in mix
    }
    measured = {site for (_, _, site), line in lines.items() if line.n > 0}
    sites = sorted((s for s in evaluation.sites if s.name in measured), key=lambda site: site.name)
    total = math.fsum(mix.values())
    rows = tuple(
        Row(region, name, share / total, known[name].network_allowance_ms)
        for name, share in mix.items()
        for region in evaluation.regions
        if region.weight > 0 and share > 0
    )
    sampling = {(one.tier, one.region, one.site): one.values_ms for one in evaluation.sampling}
    floors = {(pair.region, pair.site): pair.floor_rtt_ms for pair in evaluation.pairs}
    scene = empty_scene(rows, tuple(sites), known[next(iter(mix))].percentile)
    for i, row in enumerate(rows):
        for j, site in enumerate(sites):
            key = (row.tier, row.region.name, site.name)
            line = lines.get(key)
            if line is not None and line.n > 0:
                put_line(scene, (i, j), line, sampling.get(key))
    left_out = tuple(s.name for s in evaluation.sites if s.name not in measured)
    limits = [[floors.get((row.region.name, site.name)) for site in sites] for row in rows]
    known_floors = np.array(limits, dtype=np.float64) if rows and sites else None
    return replace(scene, left_out=left_out, floors=known_floors)


def empty_scene(rows: tuple[Row, ...], sites: tuple[SiteInfo, ...], percentile: float) -> Scene:
    """A scene in which nothing was measured; its arrays may be written to."""
    shape = len(rows), len(sites)
    return Scene(
        rows=rows,
        sites=sites,
        value=np.full(shape, np.nan),
        low=np.full(shape, np.nan),
        high=np.full(shape, np.nan),
        counts=np.zeros(shape),
        sizes=np.zeros(shape),
        tables=np.full((*shape, len(PROBABILITIES)), np.inf),
        percentile=percentile,
    )


def put(scene: Scene, at: tuple[int, int], ends: tuple[float, float, float], n: float) -> None:
    """Write one measured pair: value, low and high in ms (``inf`` without a limit)."""
    scene.value[at], scene.low[at], scene.high[at] = ends
    scene.counts[at] = scene.sizes[at] = n
    scene.tables[at] = of_interval(*ends)


def put_line(
    scene: Scene,
    at: tuple[int, int],
    line: BudgetLine,
    sampled: tuple[float | None, ...] | None = None,
) -> None:
    """Write the headline line of a measured pair, with its sampling distribution if it is known."""
    ends = [math.inf if end is None else end for end in (line.value_ms, line.low_ms, line.high_ms)]
    put(scene, at, (ends[0], ends[1], ends[2]), line.n)
    scene.sizes[at] = line.n_effective
    if sampled is not None:
        table = np.array([math.inf if x is None else x for x in sampled])
        scene.tables[at] = without_limit(table, unlimited=line.high_ms is None)


def is_open(scene: Scene) -> Mask:
    """Pairs that a choice cannot rest on: not measured, or without an upper limit."""
    return np.isnan(scene.high) | np.isinf(scene.high)


__all__ = ["Row", "Scene", "empty_scene", "is_open", "put", "put_line", "scene_of"]
