"""Swapped coordinates are noticed by the country, and honest far-off places are left alone."""

import pytest

from pathbudget.sites.places import as_region, as_site, look_swapped, nearest_km, places_of
from pathbudget.sites.shipped import shipped_catalogue

PLACES = places_of(shipped_catalogue())


@pytest.mark.parametrize(
    ("country", "latitude", "longitude"),
    [
        ("DE", 50.1, 8.7),
        ("GB", 51.5, -0.1),
        ("ZA", -26.2, 28.0),
        ("BR", -23.5, -46.6),
        ("IN", 19.1, 72.9),
        ("AE", 25.2, 55.3),
    ],
)
def test_swapped(country: str, latitude: float, longitude: float) -> None:
    assert not look_swapped(latitude, longitude, country, PLACES)
    assert look_swapped(longitude, latitude, country, PLACES)


@pytest.mark.parametrize(
    ("what", "country", "latitude", "longitude"),
    [
        ("Guam", "US", 13.4, 144.8),
        ("Honolulu", "US", 21.3, -157.9),
        ("San Juan", "US", 18.4, -66.1),
        ("Réunion", "FR", -21.1, 55.5),
        ("Mayotte", "FR", -12.8, 45.2),
        ("Nouméa", "FR", -22.3, 166.4),
        ("Falkland Islands", "GB", -51.7, -57.8),
        ("Curaçao", "NL", 12.1, -68.9),
        ("Canary Islands", "ES", 28.1, -15.4),
        ("Svalbard", "NO", 78.2, 15.6),
        ("no country", "", 8.7, 50.1),
        ("a country without shipped places", "KZ", 43.2, 76.9),
    ],
)
def test_far_from_home_is_not_swapped(
    what: str, country: str, latitude: float, longitude: float
) -> None:
    assert not look_swapped(latitude, longitude, country, PLACES), what


def test_conversions_keep_what_is_known() -> None:
    site = shipped_catalogue().sites["dallas-2323-bryan"]
    region = as_region(site)
    assert (region.latitude, region.country, region.weight) == (site.latitude, "US", 1.0)
    assert as_region(region) is region
    back = as_site(region)
    assert (back.longitude, back.title, back.targets) == (site.longitude, site.title, ())
    assert as_site(site) is site


def test_nearest_of_nothing_is_infinitely_far() -> None:
    assert nearest_km(0, 0, []) == float("inf")
    assert nearest_km(32.8, -96.8, PLACES.values()) < 5
