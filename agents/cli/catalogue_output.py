"""How `pathbudget catalogue` prints: tables of 80 columns, JSON, CSV."""

import csv
import sys

import msgspec
from rich.console import Console
from rich.table import Table

from pathbudget.sites.catalogue import Catalogue, Region, Site, Tier
from pathbudget.sites.listing import Distance, Listed
from pathbudget.sites.region_reader import REGION_KEYS
from pathbudget.sites.tiers import headroom_ms, total_ms

REGION_COLUMNS = tuple(key for key in REGION_KEYS if key not in {"place", "weight"})
SITE_COLUMNS = (*REGION_COLUMNS, "operator", "metro")
TIER_COLUMNS = ("name", "title", "target_ms", "total_ms", "network_ms", "percentile", "mode")


def print_json(answer: object) -> None:
    """The answer as JSON on stdout, indented."""
    text = msgspec.json.format(msgspec.json.encode(answer), indent=2)
    sys.stdout.write(text.decode() + "\n")


def print_csv(kind: str | None, places: list[Listed], tiers: list[Tier]) -> None:
    """One kind as a table that `catalogue check` reads back; several with a column `kind`."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    if kind == "tier":
        writer.writerow(TIER_COLUMNS)
        writer.writerows(_tier_cells(tier) for tier in tiers)
        return
    columns = {"region": REGION_COLUMNS, "site": SITE_COLUMNS}.get(
        kind or "", ("kind", *SITE_COLUMNS)
    )
    writer.writerow(columns)
    writer.writerows([getattr(place, column) for column in columns] for place in places)


def print_catalogue(catalogue: Catalogue) -> None:
    """What a user's files hold, as an evaluation would see it."""
    regions, sites, tiers = catalogue.regions, catalogue.sites, catalogue.tiers
    counts = (
        _count(len(regions), "region"),
        _count(len(sites), "site"),
        _count(len(tiers), "tier"),
    )
    _print(", ".join(counts))
    if regions:
        _print(_regions(list(regions.values())))
    if sites:
        _print(_sites(list(sites.values())))
    if tiers:
        _print(_tiers(list(tiers.values())))


def print_listing(places: list[Listed], tiers: list[Tier]) -> None:
    """Places and tiers of the shipped catalogue."""
    if places:
        _print(_places(places))
    if tiers:
        _print(_tiers(tiers))
    if not places and not tiers:
        sys.stderr.write("Nothing that ships matches.\n")


def print_distance(answer: Distance) -> None:
    """One line per number."""
    _print(f"{answer.a} to {answer.b}: {answer.distance_km:,.1f} km (geodesic, WGS-84)")
    floor = f"{answer.floor_one_way_ms:.2f} ms one way, {answer.floor_rtt_ms:.2f} ms round trip"
    _print(f"Light floor in fibre: {floor}")


def _print(what: str | Table) -> None:
    Console(highlight=False, markup=False, emoji=False).print(what, soft_wrap=isinstance(what, str))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _table(*columns: str, right: tuple[str, ...] = ()) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in columns:
        if column in right:
            table.add_column(column, justify="right", no_wrap=True)
        elif column == columns[0]:
            table.add_column(column, no_wrap=True)
        else:
            table.add_column(column, overflow="fold")
    return table


def _regions(regions: list[Region]) -> Table:
    total = sum(region.weight for region in regions)
    table = _table(
        *("region", "title", "where", "weight", "share"),
        right=("where", "weight", "share"),
    )
    for region in regions:
        share = f"{region.weight / total:.1%}"
        table.add_row(region.name, region.title, _where(region), f"{region.weight:g}", share)
    return table


def _sites(sites: list[Site]) -> Table:
    table = _table(
        *("site", "where", "price", "capacity", "targets"),
        right=("where", "price", "capacity"),
    )
    for site in sites:
        numbers = (_number(site.price_per_month), _number(site.capacity))
        targets = "\n".join(target.name for target in site.targets) or "none"
        table.add_row(site.name, _where(site), *numbers, targets)
    return table


def _tiers(tiers: list[Tier]) -> Table:
    table = _table(
        *("tier", "target", "parts", "left", "network", "line", "upload"),
        right=("target", "parts", "left", "network", "upload"),
    )
    for tier in tiers:
        budget = (tier.target_ms, total_ms(tier), headroom_ms(tier), tier.network_allowance_ms)
        over = "" if tier.transport == "tls" else f"{tier.transport} "
        line = f"p{tier.percentile:g} {over}{tier.mode}"
        milliseconds = [f"{number:g} ms" for number in budget]
        uploads = "\n".join(f"{size} B" for size in tier.prompt_sizes)
        table.add_row(tier.name, *milliseconds, line, uploads)
    return table


def _places(places: list[Listed]) -> Table:
    measured = places[0].distance_km is not None
    extra = ("km", "floor ms") if measured else ()
    table = _table(
        *("name", "title", "in", "where", *extra),
        right=("where", *extra),
    )
    for place in places:
        distances: tuple[str, ...] = ()
        if place.distance_km is not None and place.floor_rtt_ms is not None:
            distances = (f"{place.distance_km:.0f}", f"{place.floor_rtt_ms:.1f}")
        table.add_row(place.name, place.title, place.country, _where(place), *distances)
    return table


def _where(place: Region | Site | Listed) -> str:
    """Coordinates to about a kilometre; JSON and CSV have all of them."""
    return f"{place.latitude:.2f},{place.longitude:.2f}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:g}"


def _tier_cells(tier: Tier) -> tuple[object, ...]:
    totals = (tier.target_ms, total_ms(tier), tier.network_allowance_ms)
    return (tier.name, tier.title, *totals, tier.percentile, tier.mode)
