"""Facilities of PeeringDB as candidate sites, with the exchanges and networks that are there.

    fac     facility           ixfac     exchange at a facility
    ix      exchange           netfac    network at a facility
    net     network            netixlan  network at an exchange

Everything that is left out is counted under its reason.
"""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pathbudget.sites.catalogue import Site
from pathbudget.sites.entry import LONGEST_TEXT
from pathbudget.sites.geodesy import distance_km
from pathbudget.sites.listing import Point
from pathbudget.sites.peeringdb_files import Objects

SOURCE = "PeeringDB"
DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which facilities are wanted, and which networks matter."""

    countries: tuple[str, ...] = ()
    near: Point | None = None
    within_km: float | None = None
    asns: tuple[int, ...] = ()
    """Networks to look for; all of them when empty."""
    through_exchanges: bool = False
    """A network at an exchange of the facility counts as present, too."""


@dataclass(frozen=True, slots=True)
class Imported:
    """Sites, nearest first where a place was given; what was left out, by reason."""

    sites: tuple[Site, ...]
    distances_km: tuple[float | None, ...]
    left_out: Mapping[str, int]


@dataclass(slots=True)
class _Presence:
    """Who is where, by the identifiers of facilities and exchanges."""

    exchanges: dict[int, list[int]] = field(default_factory=dict[int, list[int]])
    """Facility to exchanges."""
    networks: dict[int, set[int]] = field(default_factory=dict[int, set[int]])
    """Facility to AS numbers."""
    members: dict[int, set[int]] = field(default_factory=dict[int, set[int]])
    """Exchange to AS numbers."""


def sites_of(objects: Objects, wanted: Wanted) -> Imported:
    """The facilities that are wanted, as sites of a catalogue."""
    left_out = Counter(objects.left_out)
    presence = _presence(objects, left_out)
    names = {key: _text(ix.get("name")) for key, ix in objects.of("ix").items()}
    found: list[tuple[float, Site]] = []
    taken: set[str] = set()
    for key, facility in sorted(objects.of("fac").items()):
        reason, kilometres = _why_not(facility, wanted)
        if reason:
            left_out[reason] += 1
            continue
        site = _site(objects, key, facility, taken)
        exchanges = [names.get(one, "") for one in presence.exchanges.get(key, [])]
        networks = _networks(presence, key, wanted)
        site = replace(site, exchanges=_distinct(exchanges), networks=networks)
        found.append((kilometres, site))
    if wanted.near is not None:
        found.sort(key=lambda one: (one[0], one[1].name))
    return Imported(
        sites=tuple(site for _, site in found),
        distances_km=tuple(None if math.isnan(far) else far for far, _ in found),
        left_out=dict(sorted(left_out.items())),
    )


def _why_not(facility: Mapping[str, object], wanted: Wanted) -> tuple[str, float]:
    """Why a facility is not wanted (empty where it is), and its distance (``nan`` if unasked)."""
    place = coordinates(facility)
    if not _text(facility.get("name")):
        return "facilities without a name", math.nan
    if wanted.countries and _text(facility.get("country")).upper() not in wanted.countries:
        return "facilities in other countries", math.nan
    if place is None:
        return "facilities without coordinates", math.nan
    if wanted.near is None:
        return "", math.nan
    kilometres = distance_km(*place, wanted.near.latitude, wanted.near.longitude)
    if wanted.within_km is not None and kilometres > wanted.within_km:
        return f"facilities farther than {wanted.within_km:g} km", kilometres
    return "", kilometres


def coordinates(facility: Mapping[str, object]) -> tuple[float, float] | None:
    """Latitude and longitude; None where they are missing, impossible, or the 0, 0 of a blank."""
    values: list[float] = []
    for key, most in (("latitude", 90), ("longitude", 180)):
        value = facility.get(key)
        try:
            number = float(value) if isinstance(value, int | float | str) else math.nan
        except (ValueError, OverflowError):
            number = math.nan
        if isinstance(value, bool) or not abs(number) <= most:
            return None
        values.append(number)
    return None if values == [0.0, 0.0] else (values[0], values[1])


def _site(objects: Objects, key: int, facility: Mapping[str, object], taken: set[str]) -> Site:
    latitude, longitude = coordinates(facility) or (math.nan, math.nan)
    title = _text(facility.get("name"))
    owner = objects.of("org").get(_identifier(facility.get("org_id")), {})
    country = _text(facility.get("country")).upper()
    updated = DAY.match(_text(facility.get("updated")))
    return Site(
        name=_name(title, key, taken),
        latitude=latitude,
        longitude=longitude,
        title=title,
        operator=_text(facility.get("org_name")) or _text(owner.get("name")),
        metro=_text(facility.get("city")),
        country=country if re.fullmatch(r"[A-Z]{2}", country) else "",
        source=SOURCE,
        date=updated[0] if updated else "",
    )


def _name(title: str, key: int, taken: set[str]) -> str:
    """A name to type: ``equinix-da1``; with the number of the facility where it is not alone."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    slug = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:80] or "fac"
    name = slug if slug not in taken else f"{slug}-{key}"
    while name in taken:
        name += "x"
    taken.add(name)
    return name


def _presence(objects: Objects, left_out: Counter[str]) -> _Presence:
    presence = _Presence()
    asns = {key: _identifier(net.get("asn")) for key, net in objects.of("net").items()}
    lans = {key: _identifier(one.get("ix_id")) for key, one in objects.of("ixlan").items()}
    for one in objects.of("ixfac").values():
        facility, exchange = _identifier(one.get("fac_id")), _identifier(one.get("ix_id"))
        if exchange not in objects.of("ix"):
            left_out["exchanges at facilities whose exchange is not in the files"] += 1
            continue
        presence.exchanges.setdefault(facility, []).append(exchange)
    for one in objects.of("netfac").values():
        asn = _asn(one, "local_asn", asns)
        if asn:
            presence.networks.setdefault(_identifier(one.get("fac_id")), set()).add(asn)
        else:
            left_out["networks at facilities whose AS number is not in the files"] += 1
    for one in objects.of("netixlan").values():
        lan = _identifier(one.get("ixlan_id"))
        exchange = _identifier(one.get("ix_id")) or lans.get(lan, lan)
        asn = _asn(one, "asn", asns)
        if asn:
            presence.members.setdefault(exchange, set()).add(asn)
        else:
            left_out["networks at exchanges whose AS number is not in the files"] += 1
    return presence


def _asn(one: Mapping[str, object], key: str, asns: Mapping[int, int]) -> int:
    """Told by the object itself, or by its network; 0 where neither does."""
    return _identifier(one.get(key)) or asns.get(_identifier(one.get("net_id")), 0)


def _networks(presence: _Presence, facility: int, wanted: Wanted) -> tuple[int, ...]:
    there = set(presence.networks.get(facility, set()))
    if wanted.through_exchanges:
        for exchange in presence.exchanges.get(facility, []):
            there |= presence.members.get(exchange, set())
    return tuple(sorted(there & set(wanted.asns) if wanted.asns else there))


def _distinct(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({name.replace(";", ",") for name in names if name}))


def _identifier(value: object) -> int:
    """A positive number; 0 for anything else."""
    if isinstance(value, bool) or not isinstance(value, int):
        return 0
    return value if 0 < value < 2**63 else 0


def _text(value: object) -> str:
    """Visible text on one line, cut; empty for anything else."""
    if not isinstance(value, str):
        return ""
    line = " ".join("".join(c if c.isprintable() else " " for c in value).split())
    return line[:LONGEST_TEXT].strip()


def reasons(left_out: Mapping[str, int]) -> Sequence[str]:
    """``12 facilities without coordinates``, one per reason."""
    return [f"{count:,} {what}" for what, count in left_out.items() if count]
