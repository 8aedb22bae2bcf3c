"""What a choice of sites is made on: the headline lines of one tier, as matrices."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from pathbudget.analysis.results import BudgetLine, Objective, RegionInfo, SiteInfo
from pathbudget.analysis.siting.model import Matrix, Problem


@dataclass(frozen=True, slots=True)
class Ground:
    """What one tier's choice is made on: headline lines as matrices, regions x candidate sites.

    A candidate is a site that was measured from at least one region. `low` of an unmeasured pair
    of a candidate is the light floor (0 without coordinates): it may be as quick as that.
    """

    tier: str
    allowance_ms: float
    regions: tuple[RegionInfo, ...]
    sites: tuple[SiteInfo, ...]
    unmeasured_sites: tuple[str, ...]
    lines: Mapping[tuple[str, str], BudgetLine]
    high: Matrix
    low: Matrix
    weights: Matrix = field(repr=False)
    prices: Matrix = field(repr=False)

    def problem(self, objective: Objective, cost: Matrix) -> Problem:
        """The exact problem on given costs."""
        limit = self.allowance_ms if objective is Objective.COVERING else None
        return Problem(cost=cost, weights=self.weights, prices=self.prices, limit=limit)

    def measured(self, row: int) -> bool:
        """Whether there is a sample from the region to any site."""
        name = self.regions[row].name
        return any(line.n > 0 for (region, _), line in self.lines.items() if region == name)

    @property
    def measured_share(self) -> float:
        """Share of the weight whose regions were measured to any site."""
        return math.fsum(w for row, w in enumerate(self.weights) if self.measured(row))

    def unlimited(self, columns: Sequence[int]) -> list[int]:
        """Rows of the regions without an upper limit from any of the columns."""
        limited = np.isfinite(self.high[:, list(columns)]).any(axis=1)
        return [int(row) for row in np.flatnonzero(~limited)]

    def served_share(self, columns: Sequence[int]) -> float:
        """Share of the weight whose regions have an upper limit from one of the columns."""
        share = 1 - math.fsum(self.weights[row] for row in self.unlimited(columns))
        return max(0.0, min(1.0, share))

    def names(self, columns: Sequence[int]) -> tuple[str, ...]:
        """Names of candidate sites."""
        return tuple(self.sites[column].name for column in columns)


def ground_of(
    tier: str,
    allowance_ms: float,
    regions: Sequence[RegionInfo],
    sites: Sequence[SiteInfo],
    lines: Mapping[tuple[str, str], BudgetLine],
    floors_ms: Mapping[tuple[str, str], float | None],
) -> Ground:
    """Put the headline lines of one tier into matrices; `lines` by (region, site)."""
    measured = {site for (_, site), line in lines.items() if line.n > 0}
    candidates = sorted((s for s in sites if s.name in measured), key=lambda site: site.name)
    shape = (len(regions), len(candidates))
    high, low = np.full(shape, math.inf), np.zeros(shape)
    for row, region in enumerate(regions):
        for column, site in enumerate(candidates):
            pair = region.name, site.name
            line = lines.get(pair)
            if line is None or line.n == 0:
                low[row, column] = floors_ms.get(pair) or 0.0
            else:
                high[row, column] = math.inf if line.high_ms is None else line.high_ms
                low[row, column] = math.inf if line.low_ms is None else line.low_ms
    prices = [site.price_per_month for site in candidates]
    known = all(price is not None for price in prices)
    weights = np.array([region.weight for region in regions], dtype=np.float64)
    return Ground(
        tier=tier,
        allowance_ms=allowance_ms,
        regions=tuple(regions),
        sites=tuple(candidates),
        unmeasured_sites=tuple(s.name for s in sites if s.name not in measured),
        lines=lines,
        high=high,
        low=low,
        weights=weights / weights.sum() if len(weights) else weights,
        prices=np.array([price or 0.0 if known else 0.0 for price in prices], dtype=np.float64),
    )
