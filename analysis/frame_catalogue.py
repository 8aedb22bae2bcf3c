"""Regions and sites in data frames as a catalogue."""

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any, TypeVar

import pandas as pd

from pathbudget.analysis.frame_intake import FrameError
from pathbudget.sites.catalogue import Catalogue, Region, Site, Tier

Place = TypeVar("Place", Region, Site)

NUMBERS = frozenset({"latitude", "longitude", "weight", "price_per_month", "capacity", "power_kw"})
RANGES = {"latitude": (-90.0, 90.0), "longitude": (-180.0, 180.0)}
NOT_IN_FRAMES = frozenset({"targets", "prefixes", "exchanges", "networks"})


def catalogue_of(
    regions: pd.DataFrame, sites: pd.DataFrame, tiers: Mapping[str, Tier]
) -> Catalogue:
    """Frames with a row for each place: `name`, `latitude`, `longitude`, and the other fields of
    `Region` (`weight` ...) and `Site` (`price_per_month`, `capacity`, `operator` ...) as wanted.

    Raises FrameError that names frame, column and row.
    """
    return Catalogue(
        {one.name: one for one in _places(regions, Region, "regions")},
        {one.name: one for one in _places(sites, Site, "sites")},
        dict(tiers),
    )


def _places(frame: pd.DataFrame, kind: type[Place], what: str) -> list[Place]:
    known = {one.name: one for one in fields(kind) if one.name not in NOT_IN_FRAMES}
    for name, one in known.items():
        if name not in frame.columns and one.default is MISSING:
            raise FrameError(f"{what}.{name}: missing")
    for name in map(str, frame.columns):
        if name not in known:
            raise FrameError(f"{what}.{name}: unknown column; known: {', '.join(known)}")
    found: list[Place] = []
    seen: set[str] = set()
    for row, values in enumerate(frame.to_dict("records")):
        place = {str(name): _value(what, str(name), row, value) for name, value in values.items()}
        given = {name: value for name, value in place.items() if value is not None}
        for name, one in known.items():
            if one.default is MISSING and name not in given:
                raise FrameError(f"{what}.{name}: row {row} has none")
        if given["name"] in seen:
            raise FrameError(f"{what}.name: row {row} repeats {given['name']!r}")
        seen.add(given["name"])
        found.append(kind(**given))
    return found


def _value(what: str, name: str, row: int, value: Any) -> Any:
    if value is None or value is pd.NA or (isinstance(value, float) and value != value):
        return None
    if name not in NUMBERS:
        return str(value)
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise FrameError(f"{what}.{name}: row {row} is {value!r}, no number") from None
    low, high = RANGES.get(name, (0.0, float("inf")))
    if not low <= number <= high:
        raise FrameError(f"{what}.{name}: row {row} is {number:g}; expected {low:g} to {high:g}")
    return number
