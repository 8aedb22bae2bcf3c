"""Regions and sites in data frames as a catalogue, by the rules of the files."""

import numbers
from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

import pandas as pd

from pathbudget.analysis.frame_columns import FrameError, need_frame
from pathbudget.probes.errors import Fault
from pathbudget.sites.catalogue import Catalogue, Region, Site, Tier
from pathbudget.sites.entry import Entry
from pathbudget.sites.region_reader import read_region
from pathbudget.sites.site_reader import read_site

NUMBERS = frozenset({"latitude", "longitude", "weight", "price_per_month", "capacity", "power_kw"})
NOT_IN_FRAMES = frozenset({"targets", "prefixes", "exchanges", "networks"})


def catalogue_of(
    regions: pd.DataFrame, sites: pd.DataFrame, tiers: Mapping[str, Tier]
) -> Catalogue:
    """Frames with a row for each place: `name`, `latitude`, `longitude`, and the other fields of
    `Region` (`weight` ...) and `Site` (`price_per_month`, `capacity`, `operator` ...) as wanted.

    What they hold is read as in a file of a catalogue. Raises FrameError that names frame, column
    and row.
    """
    return Catalogue(
        {one.name: one for one in _places(regions, Region, "regions")},
        {one.name: one for one in _places(sites, Site, "sites")},
        dict(tiers),
    )


def _places(frame: pd.DataFrame, kind: type[Any], what: str) -> list[Any]:
    _check_columns(frame, kind, what)
    found: list[Any] = []
    seen: set[str] = set()
    for row, values in enumerate(frame.to_dict("records")):
        place = _place({str(name): value for name, value in values.items()}, kind, what, row)
        if place.name in seen:
            raise FrameError(f"{what}.name: row {row} repeats {place.name!r}")
        seen.add(place.name)
        found.append(place)
    return found


def _check_columns(frame: pd.DataFrame, kind: type[Any], what: str) -> None:
    need_frame(frame, what)
    known = {one.name: one for one in fields(kind) if one.name not in NOT_IN_FRAMES}
    for name, one in known.items():
        if name not in frame.columns and one.default is MISSING:
            raise FrameError(f"{what}.{name}: missing")
    for name in map(str, frame.columns):
        if name not in known:
            raise FrameError(f"{what}.{name}: unknown column; known: {', '.join(known)}")


def _place(values: dict[str, Any], kind: type[Any], what: str, row: int) -> Any:
    given = {name: _plain(name, value) for name, value in values.items() if not _absent(value)}
    for one in fields(kind):
        if one.default is MISSING and one.name not in given:
            raise FrameError(f"{what}.{one.name}: row {row} has none")
    faults: list[Fault] = []
    entry = Entry(what, given, str, faults)
    place = read_region(entry, {}) if kind is Region else read_site(entry, {})
    if place is None:
        fault = faults[0]
        raise FrameError(
            f"{what}.{fault.where}: row {row}: {fault.problem}; expected {fault.expected}"
        )
    return place


def _absent(value: Any) -> bool:
    return value is None or (pd.api.types.is_scalar(value) and bool(pd.isna(value)))


def _plain(name: str, value: Any) -> Any:
    """What a file would hold: text, or a number; names of whole numbers are text."""
    if isinstance(value, bool):
        return value
    if isinstance(value, numbers.Integral):
        return int(value) if name in NUMBERS else str(value)
    if name in NUMBERS and isinstance(value, numbers.Real | str):
        return _number(value)
    return value.date() if name == "date" and isinstance(value, pd.Timestamp) else value


def _number(value: Any) -> Any:
    try:
        return float(value)
    except (ValueError, OverflowError):
        return value
