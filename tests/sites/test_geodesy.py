"""Geodesics against published lengths and an independent formula; the light floor."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pathbudget.sites.geodesy import (
    FIBRE_KM_PER_MS,
    distance_km,
    floor_one_way_ms,
    floor_rtt_ms,
)

latitudes = st.floats(-90, 90)
longitudes = st.floats(-180, 180)


def haversine_km(latitude1: float, longitude1: float, latitude2: float, longitude2: float) -> float:
    """On the sphere of the mean radius: independent of the ellipsoid, and within 0.56 % of it."""
    one, two = math.radians(latitude1), math.radians(latitude2)
    across = math.radians(longitude2 - longitude1)
    h = math.sin((two - one) / 2) ** 2
    h += math.cos(one) * math.cos(two) * math.sin(across / 2) ** 2
    return 2 * 6371.0088 * math.asin(min(1.0, math.sqrt(h)))


@pytest.mark.parametrize(
    ("ends", "expected_km"),
    [
        # Vincenty's worked example (Flinders Peak to Buninyong), on GRS80: 54 972.271 m.
        (
            (-37.95103341666667, 144.42486788888888, -37.65282113888889, 143.92649552777777),
            54.972271,
        ),
        # A quadrant of the meridian and of the equator on WGS-84.
        ((0, 0, 90, 0), 10001.965729),
        ((0, 0, 0, 90), 6378.137 * math.pi / 2),
        # Antipodes: over a pole, half a meridian.
        ((0, 0, 0, 180), 20003.931459),
        ((30, 20, -30, -160), 20003.931459),
        # From pole to pole, whatever the longitudes.
        ((90, 17, -90, -99), 20003.931459),
    ],
)
def test_known_lengths(ends: tuple[float, float, float, float], expected_km: float) -> None:
    assert distance_km(*ends) == pytest.approx(expected_km, abs=1e-6)


def test_a_pole_has_no_longitude() -> None:
    assert distance_km(90, 0, 90, 123) == pytest.approx(0, abs=1e-6)


def test_across_the_date_line_is_short() -> None:
    assert distance_km(10, 179.9, 10, -179.9) == pytest.approx(distance_km(10, -0.1, 10, 0.1))
    assert distance_km(10, 180, 10, -180) == 0


@given(latitudes, longitudes, latitudes, longitudes)
def test_agrees_with_the_sphere(
    latitude1: float, longitude1: float, latitude2: float, longitude2: float
) -> None:
    there = distance_km(latitude1, longitude1, latitude2, longitude2)
    back = distance_km(latitude2, longitude2, latitude1, longitude1)
    assert there == pytest.approx(back, abs=1e-6)
    assert there == pytest.approx(
        haversine_km(latitude1, longitude1, latitude2, longitude2), rel=0.006, abs=0.001
    )


@pytest.mark.parametrize("place", [(91, 0), (-90.001, 0), (math.nan, 0), (0, math.inf)])
def test_no_place_on_earth(place: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="no place on Earth"):
        distance_km(*place, 0, 0)


def test_the_light_floor() -> None:
    assert pytest.approx(204.2, abs=0.05) == FIBRE_KM_PER_MS
    assert floor_one_way_ms(204.218295640327) == pytest.approx(1)
    assert floor_rtt_ms(1000) == pytest.approx(9.79, abs=0.01)
    # Dallas to Frankfurt, about 8,200 km: no round trip below 80 ms.
    assert floor_rtt_ms(distance_km(32.7767, -96.797, 50.1109, 8.6821)) == pytest.approx(
        80.7, abs=0.5
    )
