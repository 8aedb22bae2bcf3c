"""Where people live, as dots: the backdrop of the report's map, drawn with no network.

Derived from GeoNames (geonames.org, CC BY 4.0): a report that draws it names GeoNames.
"""

from importlib.resources import files

ATTRIBUTION = "Map dots: GeoNames, CC BY 4.0"
"""What has to stand beside the map."""


def backdrop_points() -> list[tuple[float, float]]:
    """About 2,700 (latitude, longitude) pairs in degrees, spread over all inhabited land."""
    text = (files("pathbudget.sites.data") / "backdrop.csv").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    pairs = (line.split(",") for line in lines[1:])
    return [(float(latitude), float(longitude)) for latitude, longitude in pairs]
