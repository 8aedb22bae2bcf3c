"""Regions, sites, and who is served from where, on a plain equirectangular map.

Drawn without map tiles or outlines from anywhere: the land is the dotted backdrop that ships with
the catalogue, so the page needs no network.
"""

from dataclasses import dataclass

from pathbudget.analysis.report.chart import (
    ACCENT,
    INK,
    QUIET,
    Chart,
    Layout,
    Trace,
    View,
    axis,
    base_layout,
    label,
)
from pathbudget.analysis.report.label_placement import Labelled, placed
from pathbudget.analysis.report.lookup import Lookup
from pathbudget.analysis.report.words import counted, share
from pathbudget.analysis.results import RegionInfo, SiteInfo
from pathbudget.sites.backdrop import ATTRIBUTION, backdrop_points

LAND = "#d3d8d2"
REGION = "#c2571a"
LABELS = 40
CREDIT = f"A name that would cover another one is left out. {ATTRIBUTION}: where people live."


@dataclass(frozen=True, slots=True)
class Frame:
    """Part of the world that is shown, in degrees."""

    south: float
    north: float
    west: float
    east: float


def world_map(lookup: Lookup) -> Chart:
    """One view per tier; places that nobody knows are counted in the note."""
    regions = [r for r in lookup.regions if r.latitude is not None and r.longitude is not None]
    sites = [s for s in lookup.sites if s.latitude is not None and s.longitude is not None]
    unknown = len(lookup.regions) + len(lookup.sites) - len(regions) - len(sites)
    note = f"{counted(unknown, 'place')} not known and not drawn. " if unknown else ""
    if not regions and not sites:
        return Chart(note=note)
    frame = _frame([_where(region) for region in regions] + [_where(site) for site in sites])
    groups: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for tier in lookup.tiers:
        chosen = lookup.chosen(tier.name)
        pairs = tuple((a.region, a.site) for a in chosen.assignments) if chosen else ()
        groups.setdefault(pairs, []).append(label(tier.title or tier.name))
    views = [
        _view(lookup, regions, sites, frame, pairs, ", ".join(names))
        for pairs, names in (groups or {(): ["all"]}).items()
    ]
    return Chart(views, width=600, note=note + CREDIT)


def _where(place: RegionInfo | SiteInfo) -> tuple[float, float]:
    return place.latitude or 0.0, place.longitude or 0.0


def _frame(points: list[tuple[float, float]]) -> Frame:
    """The points with a margin, twice as wide as high, never smaller than 24 degrees across."""
    latitudes = [latitude for latitude, _ in points]
    longitudes = [longitude for _, longitude in points]
    height = max(12.0, 1.35 * (max(latitudes) - min(latitudes)) + 6)
    width = max(24.0, 1.25 * (max(longitudes) - min(longitudes)) + 10)
    height, width = max(height, width / 2.4), max(width, 1.9 * height)
    height, width = min(height, 150.0), min(width, 360.0)
    middle = (max(latitudes) + min(latitudes)) / 2
    centre = (max(longitudes) + min(longitudes)) / 2
    middle = min(max(middle, -65 + height / 2), 85 - height / 2)
    centre = min(max(centre, -180 + width / 2), 180 - width / 2)
    return Frame(middle - height / 2, middle + height / 2, centre - width / 2, centre + width / 2)


def _view(
    lookup: Lookup,
    regions: list[RegionInfo],
    sites: list[SiteInfo],
    frame: Frame,
    pairs: tuple[tuple[str, str], ...],
    name: str,
) -> View:
    used = {site for _, site in pairs}
    traces = [_land(frame), _lines(regions, sites, pairs)]
    traces += [_regions(lookup, regions), _sites(lookup, sites, used)]
    aspect = (frame.north - frame.south) / (frame.east - frame.west)
    layout = base_layout(
        xaxis=_degrees(frame.west, frame.east, "EW"),
        yaxis=_degrees(frame.south, frame.north, "NS") | {"scaleanchor": "x"},
        margin={"l": 8, "r": 8, "t": 8, "b": 30},
        annotations=_labels(lookup, regions, sites, used, frame),
        showlegend=True,
        legend={"orientation": "h", "x": 0, "y": -0.08, "yanchor": "top"},
    )
    return View(name, traces, layout, height=60, aspect=round(0.95 * aspect, 4))


def _degrees(low: float, high: float, words: str) -> Layout:
    """A graticule: every 30 degrees on a world map, every 5 or 10 closer by."""
    step = next(s for s in (5, 10, 15, 30, 60) if (high - low) / s <= 13 or s == 60)
    ticks = [t for t in range(-180, 181, step) if low <= t <= high]
    texts = [f"{abs(t)}°{words[0] if t > 0 else words[1] if t else ''}" for t in ticks]
    return axis(
        range=[low, high],
        tickmode="array",
        tickvals=ticks,
        ticktext=texts,
        tickfont={"size": 10.5, "color": QUIET},
        constrain="domain",
        gridcolor="#eceeeb",
    )


def _land(frame: Frame) -> Trace:
    inside = [
        (latitude, longitude)
        for latitude, longitude in backdrop_points()
        if frame.south <= latitude <= frame.north and frame.west <= longitude <= frame.east
    ]
    size = 3.2 if frame.east - frame.west > 200 else 4.5
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "land",
        "x": [round(longitude, 2) for _, longitude in inside],
        "y": [round(latitude, 2) for latitude, _ in inside],
        "marker": {"size": size, "color": LAND},
        "hoverinfo": "skip",
        "showlegend": False,
    }


def _lines(
    regions: list[RegionInfo], sites: list[SiteInfo], pairs: tuple[tuple[str, str], ...]
) -> Trace:
    origins = {region.name: _where(region) for region in regions}
    ends = {site.name: _where(site) for site in sites}
    xs: list[float | None] = []
    ys: list[float | None] = []
    for region, site in pairs:
        if region in origins and site in ends:
            for (latitude, longitude), (latitude2, longitude2) in segments(
                origins[region], ends[site]
            ):
                xs += [longitude, longitude2, None]
                ys += [latitude, latitude2, None]
    return {
        "type": "scatter",
        "mode": "lines",
        "name": "served from",
        "x": xs,
        "y": ys,
        "line": {"color": ACCENT, "width": 1.4},
        "opacity": 0.65,
        "hoverinfo": "skip",
    }


def segments(
    start: tuple[float, float], end: tuple[float, float]
) -> list[tuple[tuple[float, float], tuple[float, float]]]:
    """The line the shorter way round: two pieces where it crosses the 180th meridian."""
    (latitude, longitude), (latitude2, longitude2) = start, end
    if abs(longitude2 - longitude) <= 180:
        return [(start, end)]
    edge = 180.0 if longitude > 0 else -180.0
    beyond = longitude2 + 2 * edge
    ratio = (edge - longitude) / (beyond - longitude)
    crossing = latitude + ratio * (latitude2 - latitude)
    return [(start, (crossing, edge)), ((crossing, -edge), end)]


def _regions(lookup: Lookup, regions: list[RegionInfo]) -> Trace:
    whole = lookup.total_weight or 1.0
    heaviest = max((region.weight for region in regions), default=1.0) or 1.0
    hover = [
        f"{label(lookup.region(r.name), 40)}<br>{share(r.weight / whole)} of traffic"
        for r in regions
    ]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "region (size: traffic)",
        "x": [region.longitude for region in regions],
        "y": [region.latitude for region in regions],
        "marker": {
            "size": [7 + 15 * (max(r.weight, 0.0) / heaviest) ** 0.5 for r in regions],
            "color": REGION,
            "opacity": 0.7,
            "line": {"color": "#ffffff", "width": 1},
        },
        "customdata": hover,
        "hovertemplate": "%{customdata}<extra></extra>",
    }


def _sites(lookup: Lookup, sites: list[SiteInfo], used: set[str]) -> Trace:
    hover = [f"{label(lookup.site(site.name), 40)}<br>{label(site.operator, 40)}" for site in sites]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "site (filled: chosen)",
        "x": [site.longitude for site in sites],
        "y": [site.latitude for site in sites],
        "marker": {
            "size": 12,
            "symbol": ["diamond" if site.name in used else "diamond-open" for site in sites],
            "color": INK,
            "line": {"width": 1.5, "color": INK},
        },
        "customdata": hover,
        "hovertemplate": "%{customdata}<extra></extra>",
    }


def _labels(
    lookup: Lookup,
    regions: list[RegionInfo],
    sites: list[SiteInfo],
    used: set[str],
    frame: Frame,
) -> list[Trace]:
    """Names of sites and of the heaviest regions; one that would cover another is left to hover."""
    ordered = [s for s in sites if s.name in used] + [s for s in sites if s.name not in used]
    wanted = [
        Labelled(label(lookup.site(s.name), 20), *_where(s), bold=s.name in used) for s in ordered
    ]
    wanted += [Labelled(label(lookup.region(r.name), 18), *_where(r), bold=False) for r in regions]
    spread = (frame.east - frame.west, frame.north - frame.south)
    return [
        {
            "x": item.longitude,
            "y": item.latitude,
            "text": f"<b>{item.text}</b>" if item.bold else item.text,
            "showarrow": False,
            "xanchor": spot.anchor,
            "xshift": spot.shift_x,
            "yshift": spot.shift_y,
            "font": {"size": 11.5, "color": INK if item.bold else "#4a3527"},
            "bgcolor": "rgba(255,255,255,0.72)",
            "borderpad": 1,
        }
        for item, spot in placed(wanted[:LABELS], spread)
    ]
