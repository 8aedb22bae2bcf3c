"""Looking things up in a catalogue: by kind, by words, by distance."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

import msgspec

from pathbudget.sites.catalogue import Catalogue, Region, Tier
from pathbudget.sites.entry import did_you_mean, show
from pathbudget.sites.geodesy import distance_km, floor_rtt_ms
from pathbudget.sites.places import Place

COORDINATES = re.compile(r"\s*([+-]?[\d.]+)\s*,\s*([+-]?[\d.]+)\s*", re.ASCII)


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """One place of a catalogue, as a listing shows it. Distances are there where asked for."""

    kind: str
    """``region`` or ``site``."""
    name: str
    title: str
    country: str
    latitude: float
    longitude: float
    operator: str = ""
    metro: str = ""
    source: str = ""
    date: str = ""
    distance_km: float | None = None
    floor_rtt_ms: float | None = None
    """Light floor of the round trip over that distance."""


class Distance(msgspec.Struct, frozen=True, kw_only=True):
    """How far two places are apart, and the quickest round trip that fibre allows."""

    a: str
    b: str
    distance_km: float
    floor_one_way_ms: float
    floor_rtt_ms: float


@dataclass(frozen=True, slots=True)
class Point:
    """Somewhere: a place by its name, or bare coordinates."""

    name: str
    latitude: float
    longitude: float


def list_places(
    catalogue: Catalogue, *, search: str = "", near: Point | None = None
) -> list[Listed]:
    """Regions and sites in which every word of `search` occurs; nearest first with `near`."""
    words = search.casefold().split()
    listed = [_listed(region) for region in catalogue.regions.values()]
    listed += [_listed(site) for site in catalogue.sites.values()]
    found = [place for place in listed if all(word in _text(place) for word in words)]
    if near is None:
        return found
    measured = [_measured(place, near) for place in found]
    return sorted(measured, key=lambda place: (place.distance_km or 0.0, place.name))


def list_tiers(catalogue: Catalogue, *, search: str = "") -> list[Tier]:
    """Tiers in whose name or title every word of `search` occurs."""
    words = search.casefold().split()
    tiers = catalogue.tiers.values()
    return [
        tier
        for tier in tiers
        if all(word in f"{tier.name} {tier.title}".casefold() for word in words)
    ]


def point(text: str, places: Mapping[str, Place]) -> Point:
    """The place that `text` names, or the coordinates in it (``LAT,LON``).

    Raises ValueError with a sentence for people when it is neither.
    """
    found = COORDINATES.fullmatch(text)
    if found is None:
        if text not in places:
            raise ValueError(
                f"no place {show(text)}; expected LAT,LON or {did_you_mean(text, places)}"
            )
        return Point(text, places[text].latitude, places[text].longitude)
    try:
        latitude, longitude = float(found[1]), float(found[2])
    except ValueError:
        raise ValueError(
            f"no coordinates: {show(text)}; expected LAT,LON like 32.8,-96.8"
        ) from None
    if abs(latitude) > 90 or abs(longitude) > 180:
        expected = "latitude from -90 to 90, then longitude from -180 to 180"
        raise ValueError(f"no place on Earth: {show(text)}; expected {expected}")
    return Point(text.strip(), latitude, longitude)


def between(a: Point, b: Point) -> Distance:
    """Distance and light floor from `a` to `b`."""
    kilometres = distance_km(a.latitude, a.longitude, b.latitude, b.longitude)
    floor = floor_rtt_ms(kilometres)
    return Distance(
        a=a.name, b=b.name, distance_km=kilometres, floor_one_way_ms=floor / 2, floor_rtt_ms=floor
    )


def only(catalogue: Catalogue, kind: str | None) -> Catalogue:
    """`catalogue` without the other kinds; all of it for None."""
    return replace(
        catalogue,
        regions=catalogue.regions if kind in {None, "region"} else {},
        sites=catalogue.sites if kind in {None, "site"} else {},
        tiers=catalogue.tiers if kind in {None, "tier"} else {},
    )


def _listed(place: Place) -> Listed:
    region = isinstance(place, Region)
    return Listed(
        kind="region" if region else "site",
        name=place.name,
        title=place.title,
        country=place.country,
        latitude=place.latitude,
        longitude=place.longitude,
        operator="" if isinstance(place, Region) else place.operator,
        metro="" if isinstance(place, Region) else place.metro,
        source=place.source,
        date=place.date,
    )


def _measured(place: Listed, near: Point) -> Listed:
    kilometres = distance_km(near.latitude, near.longitude, place.latitude, place.longitude)
    return msgspec.structs.replace(
        place, distance_km=kilometres, floor_rtt_ms=floor_rtt_ms(kilometres)
    )


def _text(place: Listed) -> str:
    """What the words of a search are looked for in."""
    parts = (place.name, place.title, place.operator, place.metro, place.country)
    return " ".join(parts).casefold()
