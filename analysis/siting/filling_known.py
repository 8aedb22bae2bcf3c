"""What a filling learns from: known costs, and where the places are."""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from pathbudget.sites.geodesy import floor_rtt_ms

Matrix = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

EARTH_RADIUS_KM = 6371.0088
"""Mean radius of the WGS-84 ellipsoid (IUGG)."""


@dataclass(frozen=True, slots=True)
class Known:
    """Costs in ms, regions x sites; ``nan`` where a pair was not measured.

    `floors` is the round trip of light in fibre, `region_floors` and `site_floors` the same between
    the regions and between the sites; all three or none.
    """

    costs: Matrix
    floors: Matrix | None = None
    region_floors: Matrix | None = None
    site_floors: Matrix | None = None

    @property
    def pairs(self) -> tuple[Indices, Indices]:
        """Rows and columns of the known pairs."""
        rows, columns = np.nonzero(~np.isnan(self.costs))
        return rows, columns

    @property
    def count(self) -> int:
        """How many pairs are known."""
        return int(np.count_nonzero(~np.isnan(self.costs)))

    @property
    def has_places(self) -> bool:
        """Whether every place has coordinates."""
        return self.floors is not None

    def without(self, hidden: tuple[Indices, Indices]) -> "Known":
        """The same with some pairs unknown."""
        costs = self.costs.copy()
        costs[hidden] = np.nan
        return replace(self, costs=costs)


def known_of(costs: Matrix, regions: Matrix | None = None, sites: Matrix | None = None) -> Known:
    """Known costs with the light floors between places (rows of latitude, longitude in degrees).

    A place without coordinates (``nan``) makes all of them count as unknown.
    """
    if regions is None or sites is None or np.isnan(regions).any() or np.isnan(sites).any():
        return Known(costs)
    return Known(
        costs,
        floors=floors_between(regions, sites),
        region_floors=floors_between(regions, regions),
        site_floors=floors_between(sites, sites),
    )


def floors_between(a: Matrix, b: Matrix) -> Matrix:
    """Round trips in ms of light in fibre along great circles of the mean sphere (haversine).

    Within 0.6 % of the geodesic; a model that learns its factor does not notice.
    """
    one, other = np.radians(a)[:, None, :], np.radians(b)[None, :, :]
    half = np.sin((other - one) / 2) ** 2
    chord = half[..., 0] + np.cos(one[..., 0]) * np.cos(other[..., 0]) * half[..., 1]
    kilometres = 2 * EARTH_RADIUS_KM * np.arcsin(np.sqrt(np.clip(chord, 0, 1)))
    floors: Matrix = kilometres * floor_rtt_ms(1.0)
    return floors
