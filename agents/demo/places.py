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
    """A candidate facility: the shipped one, its price per month, the weight it can carry."""

    name: str
    price_per_month: int
    capacity: int


REGIONS = (
    DemoRegion("dallas", "dallas", 25),
    DemoRegion("chicago", "chicago", 15),
    DemoRegion("new-york", "new-york", 20),
    DemoRegion("los-angeles", "los-angeles", 20),
    DemoRegion("miami", "miami", 10),
    DemoRegion("seattle", "seattle", 10),
)
SITES = (
    DemoSite("dallas-1950-stemmons", 21_000, 100),
    DemoSite("ashburn-44060-digital-loudoun", 19_000, 100),
    DemoSite("chicago-350-cermak", 23_000, 100),
    DemoSite("santa-clara-2972-stender", 26_000, 100),
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
    return [place_of(site.name) for site in SITES]
