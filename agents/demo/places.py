"""Who is where in the demo: six user groups and four candidate facilities.

Coordinates of the facilities come from the shipped catalogue; the delays between the places are
the lab's own and imitate no particular carrier.
"""

from dataclasses import dataclass

from pathbudget.sites.shipped import shipped_catalogue


@dataclass(frozen=True, slots=True)
class DemoRegion:
    """A user group: name, the shipped metro that gives its coordinates, share of traffic in %."""

    name: str
    place: str
    weight: int


@dataclass(frozen=True, slots=True)
class DemoSite:
    """A candidate facility: the shipped one it is, its price per month, the weight it can carry."""

    name: str
    place: str
    price_per_month: int
    capacity: int


REGIONS = (
    DemoRegion("dallas", "dallas", 25),
    DemoRegion("chicago", "chicago", 10),
    DemoRegion("new-york", "new-york", 25),
    DemoRegion("los-angeles", "los-angeles", 20),
    DemoRegion("miami", "miami", 5),
    DemoRegion("seattle", "seattle", 15),
)
SITES = (
    DemoSite("infomart", "dallas-1950-stemmons", 21_000, 100),
    DemoSite("ashburn", "ashburn-44060-digital-loudoun", 19_000, 100),
    DemoSite("350-cermak", "chicago-350-cermak", 23_000, 100),
    DemoSite("santa-clara", "santa-clara-2972-stender", 26_000, 100),
)


def place_of(name: str) -> tuple[str, float, float]:
    """(name, latitude, longitude) of a shipped place."""
    shipped = shipped_catalogue()
    place = shipped.sites.get(name) or shipped.regions[name]
    return name, place.latitude, place.longitude


def region_places() -> list[tuple[str, float, float]]:
    """(name, latitude, longitude) of every user group."""
    return [(region.name, *place_of(region.place)[1:]) for region in REGIONS]


def site_places() -> list[tuple[str, float, float]]:
    """(name, latitude, longitude) of every facility."""
    return [(site.name, *place_of(site.place)[1:]) for site in SITES]
