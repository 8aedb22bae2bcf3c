"""A place is anything with a name and coordinates: regions and sites lend each other theirs."""

from collections.abc import Iterable, Mapping

from pathbudget.sites.catalogue import Catalogue, Region, Site
from pathbudget.sites.geodesy import distance_km

Place = Region | Site

FAR_KM = 2500
"""Farther than this from every known place of its country, coordinates are suspect ..."""
NEAR_KM = 1000
"""... if the same two numbers the other way round are this near to one."""


def places_of(catalogue: Catalogue) -> dict[str, Place]:
    """Everything in `catalogue` that has coordinates, by name."""
    return {**catalogue.regions, **catalogue.sites}


def as_region(place: Place) -> Region:
    """`place` as somewhere users are, with weight 1."""
    if isinstance(place, Region):
        return place
    return Region(
        name=place.name,
        latitude=place.latitude,
        longitude=place.longitude,
        title=place.title,
        country=place.country,
        source=place.source,
        date=place.date,
    )


def as_site(place: Place) -> Site:
    """`place` as somewhere a machine could stand, without price, capacity or targets."""
    if isinstance(place, Site):
        return place
    return Site(
        name=place.name,
        latitude=place.latitude,
        longitude=place.longitude,
        title=place.title,
        country=place.country,
        source=place.source,
        date=place.date,
    )


def look_swapped(
    latitude: float, longitude: float, country: str, places: Mapping[str, Place]
) -> bool:
    """Whether latitude and longitude fit `country` only the other way round."""
    known = [place for place in places.values() if country and place.country == country]
    if not known or abs(longitude) > 90:
        return False
    as_given = nearest_km(latitude, longitude, known)
    return as_given > FAR_KM and nearest_km(longitude, latitude, known) < NEAR_KM


def nearest_km(latitude: float, longitude: float, places: Iterable[Place]) -> float:
    """Distance in km to the nearest of `places`; infinity when there is none."""
    distances = (
        distance_km(latitude, longitude, place.latitude, place.longitude) for place in places
    )
    return min(distances, default=float("inf"))
