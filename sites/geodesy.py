"""Distances on the Earth, and the time below which no fibre can carry a packet over them.

The light floor is what makes a measured round trip believable: one below it means that a location
is wrong, or that something nearer (an anycast address, a CDN edge) answered.
"""

import math
from typing import cast

from geographiclib.geodesic import Geodesic

SPEED_OF_LIGHT_KM_PER_MS = 299.792458
"""In vacuum; exact by the definition of the metre."""

FIBRE_GROUP_INDEX = 1.468
"""Group index of single-mode fibre (ITU-T G.652) at 1550 nm; data sheets say 1.467 to 1.468."""

FIBRE_KM_PER_MS = SPEED_OF_LIGHT_KM_PER_MS / FIBRE_GROUP_INDEX
"""About 204.2 km per ms: what light in fibre covers one way."""


def distance_km(latitude1: float, longitude1: float, latitude2: float, longitude2: float) -> float:
    """Length in km of the shortest way between two points on the WGS-84 ellipsoid.

    Degrees in, any longitude convention. Exact to nanometres, also for antipodes (C. F. F. Karney,
    "Algorithms for geodesics", J. Geodesy 87, 2013). Raises ValueError for a latitude outside
    -90..90 or a number that is not finite.
    """
    for latitude, longitude in ((latitude1, longitude1), (latitude2, longitude2)):
        if not (abs(latitude) <= 90 and math.isfinite(longitude)):
            raise ValueError(f"no place on Earth: latitude {latitude}, longitude {longitude}")
    inverse = Geodesic.WGS84.Inverse(
        latitude1, longitude1, latitude2, longitude2, Geodesic.DISTANCE
    )
    return cast("float", inverse["s12"]) / 1000


def floor_one_way_ms(kilometres: float) -> float:
    """Time in ms that light in fibre needs for `kilometres`, one way, on the straightest route."""
    return kilometres / FIBRE_KM_PER_MS


def floor_rtt_ms(kilometres: float) -> float:
    """Light floor of the round trip in ms: no fibre path between the two ends can be quicker."""
    return 2 * floor_one_way_ms(kilometres)
