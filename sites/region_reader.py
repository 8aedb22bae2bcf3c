"""From one table of a file to a `Region`, and what regions and sites have in common."""

from collections.abc import Mapping
from dataclasses import dataclass

from pathbudget.sites.catalogue import Region
from pathbudget.sites.entry import Entry, Interval, did_you_mean, show
from pathbudget.sites.places import Place, look_swapped

LATITUDE = Interval(-90, 90, "degrees north, from -90 to 90")
LONGITUDE = Interval(-180, 180, "degrees east, from -180 to 180")
WEIGHT = Interval(0, 1e15, "a share of traffic in any unit, 0 or more")

PLACE_KEYS = ("name", "title", "place", "country", "latitude", "longitude", "source", "date")
REGION_KEYS = (*PLACE_KEYS, "weight")

NOT_ISO = {"UK": "GB", "EN": "GB", "EL": "GR"}
"""Codes people write that ISO 3166 does not have."""

Places = Mapping[str, Place]


@dataclass(frozen=True, slots=True)
class Spot:
    """Where an entry is: its own words first, those of the place it names behind them."""

    name: str
    title: str
    country: str
    latitude: float
    longitude: float
    source: str
    date: str


def read_region(entry: Entry, places: Places) -> Region | None:
    """The region that `entry` describes; None when there are faults, which are noted."""
    entry.only(REGION_KEYS)
    weight = entry.number("weight", WEIGHT)
    spot = read_spot(entry, places)
    if spot is None or not entry.sound:
        return None
    return Region(
        name=spot.name,
        latitude=spot.latitude,
        longitude=spot.longitude,
        weight=1.0 if weight is None else weight,
        title=spot.title,
        country=spot.country,
        source=spot.source,
        date=spot.date,
    )


def read_spot(entry: Entry, places: Places) -> Spot | None:
    """Name and coordinates. An entry without coordinates takes those of ``place``, or of the
    shipped place of its own name.
    """
    name = entry.text("name", None)
    lender = _lender(entry, name, places)
    country = _country(entry) or (lender.country if lender else "")
    coordinates = _coordinates(entry, lender, country, places)
    title, source, date = entry.text("title"), entry.text("source"), entry.date("date")
    if coordinates is None or not entry.sound:
        return None
    return Spot(
        name=name,
        title=title or (lender.title if lender else ""),
        country=country,
        latitude=coordinates[0],
        longitude=coordinates[1],
        source=source or (lender.source if lender else ""),
        date=date or (lender.date if lender and not source else ""),
    )


def _lender(entry: Entry, name: str, places: Places) -> Place | None:
    """The shipped place whose coordinates the entry takes; None where it has its own."""
    own = "latitude" in entry.values or "longitude" in entry.values
    wanted = entry.text("place")
    if wanted and own:
        problem = "stands beside latitude or longitude"
        entry.fault("place", problem, "either a place or coordinates, not both")
    elif wanted and wanted not in places:
        problem = f"{show(wanted)} is no shipped place"
        entry.fault("place", problem, did_you_mean(wanted, places))
    return None if own else places.get(wanted or name)


def _coordinates(
    entry: Entry, lender: Place | None, country: str, places: Places
) -> tuple[float, float] | None:
    """Latitude and longitude; None when there are none, which is noted."""
    if lender is not None:
        return lender.latitude, lender.longitude
    if "place" in entry.values:
        return None
    longitude = entry.number("longitude", LONGITUDE, required=True)
    if _out_of_range_but_swappable(entry, longitude):
        expected = "degrees north, from -90 to 90 (latitude and longitude look swapped)"
        entry.fault("latitude", f"{show(entry.values['latitude'])} is out of range", expected)
        return None
    latitude = entry.number("latitude", LATITUDE, required=True)
    if latitude is None or longitude is None:
        return None
    if latitude == 0 and longitude == 0:
        entry.fault("latitude", "0, 0 is in the open sea: nobody filled it in", "a real place")
    elif look_swapped(latitude, longitude, country, places):
        problem = f"{latitude:g}, {longitude:g} is far from {country}, but not the other way round"
        entry.fault("latitude", problem, "latitude first (they look swapped)")
    return latitude, longitude


def _out_of_range_but_swappable(entry: Entry, longitude: float | None) -> bool:
    """Whether latitude could only be a longitude, and longitude a latitude."""
    probe = Entry(entry.file, entry.values, entry.where, [], read_number=entry.read_number)
    latitude = probe.number("latitude", LONGITUDE)
    return (
        latitude is not None
        and longitude is not None
        and not LATITUDE.holds(latitude)
        and LATITUDE.holds(longitude)
    )


def _country(entry: Entry) -> str:
    """ISO 3166 alpha-2, or empty."""
    code = entry.text("country")
    if not code:
        return ""
    right = NOT_ISO.get(code.upper(), code.upper())
    if code != right or len(code) != 2 or not (code.isascii() and code.isalpha()):
        hint = f'"{right}"' if len(right) == 2 and right.isalpha() else "like US, DE or JP"
        entry.fault(
            "country", f"{show(code)} is no country code", f"two letters of ISO 3166, {hint}"
        )
    return code
