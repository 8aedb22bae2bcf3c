"""The backdrop is land that people live on, small, and names its source."""

from importlib.resources import files

from pathbudget.sites.backdrop import ATTRIBUTION, backdrop_points


def test_size_range_and_no_duplicates() -> None:
    points = backdrop_points()
    assert 1500 <= len(points) <= 3000
    assert len(set(points)) == len(points)
    assert all(-60 < latitude < 80 and -180 <= longitude <= 180 for latitude, longitude in points)


def test_every_inhabited_continent_has_dots_and_the_open_sea_has_none() -> None:
    points = backdrop_points()

    def dots_within(degrees: float, latitude: float, longitude: float) -> int:
        return sum(
            abs(north - latitude) < degrees and abs(east - longitude) < degrees
            for north, east in points
        )

    for city in [(32.8, -96.8), (-23.5, -46.6), (50.1, 8.7), (-26.2, 28.0), (35.7, 139.7)]:
        assert dots_within(2, *city) > 0
    assert dots_within(2, -33.9, 151.2) > 0
    for sea in [(0, -150), (-40, -100), (35, -45), (-30, 80)]:
        assert dots_within(6, *sea) == 0


def test_the_source_is_named_in_the_file_and_for_the_report() -> None:
    text = (files("pathbudget.sites.data") / "backdrop.csv").read_text(encoding="utf-8")
    assert "GeoNames" in text
    assert "CC BY 4.0" in text
    assert "GeoNames" in ATTRIBUTION
