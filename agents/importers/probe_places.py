"""Where RIPE Atlas probes stand, and which region each of them stands for."""

import math
from collections.abc import Iterable, Mapping
from enum import StrEnum
from pathlib import Path

import msgspec

from pathbudget.agents.importers.byte_stream import DamagedError, read_chunks
from pathbudget.agents.importers.json_blocks import split
from pathbudget.probes.errors import ConfigError, Fault
from pathbudget.probes.record import AddressFamily, Vantage
from pathbudget.sites.catalogue import Region
from pathbudget.sites.geodesy import distance_km

WITHIN_KM = 500.0
"""How far a probe may be from the region that it stands for, unless the user says otherwise."""


class RegionBy(StrEnum):
    """What makes probes stand for the same region."""

    PROBE = "probe"
    COUNTRY = "country"
    ASN = "asn"
    CITY = "city"
    NEAREST = "nearest"
    """The nearest region of the catalogue."""


class Place(msgspec.Struct, frozen=True):
    """What a probes file says of one probe."""

    asn_v4: int | None = None
    asn_v6: int | None = None
    country: str = ""
    city: str = ""
    latitude: float | None = None
    longitude: float | None = None

    def asn(self, family: AddressFamily | None) -> int | None:
        """Network of the probe's address of this family; IPv4 where the family is unknown."""
        return self.asn_v6 if family is AddressFamily.IPV6 else self.asn_v4


class ProbePlaces:
    """Places by probe id, and the rule that makes regions of them.

    A probe that the rule cannot place is a region of its own; `unplaced` holds their ids.
    """

    def __init__(
        self,
        places: Mapping[int, Place] | None = None,
        *,
        region_by: RegionBy = RegionBy.PROBE,
        regions: Iterable[Region] = (),
        within_km: float = WITHIN_KM,
    ) -> None:
        self.places = dict(places or {})
        self.region_by = region_by
        self.unplaced: set[int] = set()
        self._regions = tuple(regions)
        self._within_km = within_km

    def vantage(self, probe: int, family: AddressFamily | None) -> Vantage:
        """The vantage that stands for `probe`."""
        place = self.places.get(probe, Place())
        name = f"ripe-atlas-probe-{probe}"
        region = name if self.region_by is RegionBy.PROBE else self._region(place, family)
        if not region:
            self.unplaced.add(probe)
        return Vantage(
            name=name,
            region=region or name,
            asn=place.asn(family),
            country=place.country,
            latitude=place.latitude,
            longitude=place.longitude,
        )

    def _region(self, place: Place, family: AddressFamily | None) -> str:
        if self.region_by is RegionBy.COUNTRY:
            return place.country
        if self.region_by is RegionBy.ASN:
            asn = place.asn(family)
            return f"AS{asn}" if asn is not None else ""
        if self.region_by is RegionBy.CITY:
            return f"{place.city}, {place.country}" if place.city else ""
        return self._nearest(place)

    def _nearest(self, place: Place) -> str:
        if place.latitude is None or place.longitude is None:
            return ""
        here = (place.latitude, place.longitude)
        ways = (
            (distance_km(*here, region.latitude, region.longitude), region.name)
            for region in self._regions
        )
        distance, name = min(ways, default=(math.inf, ""))
        return name if distance <= self._within_km else ""


class _Geometry(msgspec.Struct):
    coordinates: tuple[float, float]
    """GeoJSON order: longitude, latitude."""


class _Row(msgspec.Struct, rename={"kind": "type"}):
    """A probe of the API or of the daily archive, or an anchor, which names its probe."""

    id: int
    kind: str | None = None
    probe: int | None = None
    asn_v4: int | None = None
    asn_v6: int | None = None
    as_v4: int | None = None
    as_v6: int | None = None
    country_code: str | None = None
    country: str | None = None
    city: str | None = None
    geometry: _Geometry | None = None
    latitude: float | None = None
    longitude: float | None = None

    @property
    def probe_id(self) -> int:
        return self.id if self.probe is None else self.probe


class _Page(msgspec.Struct):
    results: list[msgspec.Raw] | None = None
    objects: list[msgspec.Raw] | None = None


_decode_page = msgspec.json.Decoder(_Page).decode
_decode_row = msgspec.json.Decoder(_Row).decode


def read_places(path: Path) -> dict[int, Place]:
    """Places of the probes or anchors in a file of the RIPE Atlas API or of its probe archive.

    Pages (``results`` or ``objects``), arrays, JSON lines, compressed or not. Raises ConfigError
    with every fault found, and when there is no probe in the file.
    """
    places: dict[int, Place] = {}
    faults: list[Fault] = []
    try:
        for where, raw in _rows(path):
            try:
                row = _decode_row(raw)
                places[row.probe_id] = _place(row)
            except (msgspec.DecodeError, ValueError, RecursionError) as error:
                expected = "a probe or anchor of the RIPE Atlas API"
                faults.append(Fault(str(path), where, str(error), expected))
    except OSError as error:
        raise ConfigError([Fault(str(path), "", str(error.strerror), "a readable file")]) from error
    except (DamagedError, msgspec.DecodeError) as error:
        faults.append(Fault(str(path), "", str(error), "a whole file"))
    if not places and not faults:
        faults.append(Fault(str(path), "", "no probe in it", "probes of the RIPE Atlas API"))
    if faults:
        raise ConfigError(faults)
    return places


def _rows(path: Path) -> Iterable[tuple[str, bytes]]:
    """Where each row stands, and its bytes; rows of a page are counted in the page."""
    damages: list[str] = []
    for block in split(read_chunks(path, lambda _: None), damages.append):
        for piece in block.pieces():
            rows = _page_rows(piece.raw)
            if rows is None:
                yield piece.where, piece.raw
            else:
                for number, raw in enumerate(rows, 1):
                    yield f"{piece.where}, entry {number}", raw
    if damages:
        raise DamagedError(damages[0])


def _page_rows(raw: bytes) -> list[bytes] | None:
    try:
        page = _decode_page(raw)
    except (msgspec.DecodeError, RecursionError):
        return None
    rows = page.results if page.objects is None else page.objects
    return None if rows is None else [bytes(row) for row in rows]


def _place(row: _Row) -> Place:
    latitude, longitude = row.latitude, row.longitude
    if row.geometry is not None:
        longitude, latitude = row.geometry.coordinates
    if latitude is None or longitude is None:
        latitude = longitude = None
    elif not (abs(latitude) <= 90 and abs(longitude) <= 180):
        raise ValueError(f"latitude {latitude}, longitude {longitude} is no place on Earth")
    return Place(
        asn_v4=row.as_v4 if row.asn_v4 is None else row.asn_v4,
        asn_v6=row.as_v6 if row.asn_v6 is None else row.asn_v6,
        country=(row.country_code or row.country or "").upper(),
        city=row.city or "",
        latitude=latitude,
        longitude=longitude,
    )
