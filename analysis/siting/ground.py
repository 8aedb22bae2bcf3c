"""What the choices of a report are made on: the headline lines of one tier, as a scene."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pathbudget.analysis.results import BudgetLine, RegionInfo, SiteInfo
from pathbudget.analysis.siting.scene import Row, Scene, empty_scene, put_line

Lines = Mapping[tuple[str, str], BudgetLine]
"""Headline lines of one tier by region and site."""


@dataclass(frozen=True, slots=True)
class Ground:
    """One tier: its scene, and every region, since those without traffic are in no scene."""

    tier: str
    allowance_ms: float
    regions: tuple[RegionInfo, ...]
    lines: Lines
    scene: Scene

    @property
    def sites(self) -> tuple[SiteInfo, ...]:
        """The candidates: sites that were measured from at least one region, by name."""
        return self.scene.sites


def ground_of(
    tier: str,
    allowance_ms: float,
    regions: Sequence[RegionInfo],
    sites: Sequence[SiteInfo],
    lines: Lines,
    floors_ms: Mapping[tuple[str, str], float | None],
) -> Ground:
    """Put the headline lines of one tier into a scene."""
    measured = {site for (_, site), line in lines.items() if line.n > 0}
    candidates = sorted((s for s in sites if s.name in measured), key=lambda site: site.name)
    rows = tuple(Row(region, tier, 1.0, allowance_ms) for region in regions if region.weight > 0)
    scene = empty_scene(rows, tuple(candidates), 50.0)
    floors = np.full(scene.value.shape, np.nan)
    for i, row in enumerate(rows):
        for j, site in enumerate(candidates):
            pair = row.region.name, site.name
            floor, line = floors_ms.get(pair), lines.get(pair)
            floors[i, j] = np.nan if floor is None else floor
            if line is not None and line.n > 0:
                put_line(scene, (i, j), line)
    left_out = tuple(site.name for site in sites if site.name not in measured)
    scene = replace(scene, floors=floors, left_out=left_out)
    return Ground(tier, allowance_ms, tuple(regions), lines, scene)
