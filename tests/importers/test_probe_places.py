"""Where probes are: forms of the file, what makes a region, faults."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from pathbudget.agents.importers.probe_places import Place, ProbePlaces, RegionBy, read_places
from pathbudget.agents.importers.ripe_atlas import ImportReport, read_results
from pathbudget.probes.errors import ConfigError
from pathbudget.probes.record import AddressFamily
from pathbudget.sites.catalogue import Region

PROBE = {
    "id": 77, "type": "Probe", "asn_v4": 64500, "asn_v6": 64501, "country_code": "nl",
    "geometry": {"type": "Point", "coordinates": [4.9, 52.37]}, "address_v4": "192.0.2.1",
}  # fmt: skip
ARCHIVED = {"id": 77, "asn_v4": 64500, "country_code": "NL", "latitude": 52.37, "longitude": 4.9}
ANCHOR = {
    "id": 5, "type": "Anchor", "probe": 77, "as_v4": 64500, "city": "Amsterdam", "country": "NL",
    "geometry": {"type": "Point", "coordinates": [4.9, 52.37]},
}  # fmt: skip
AMSTERDAM = Region(name="amsterdam", latitude=52.37, longitude=4.9)
TOKYO = Region(name="tokyo", latitude=35.68, longitude=139.69)


@pytest.fixture
def read(tmp_path: Path) -> Any:
    def read_content(content: bytes) -> dict[int, Place]:
        path = tmp_path / "probes.json"
        path.write_bytes(content)
        return read_places(path)

    return read_content


@pytest.mark.parametrize("row", [PROBE, ARCHIVED, ANCHOR], ids=["probe", "archived", "anchor"])
def test_every_form_of_file(read: Any, row: dict[str, Any]) -> None:
    forms = [
        json.dumps({"count": 1, "results": [row]}),
        json.dumps({"meta": {}, "objects": [row]}, indent=1),
        json.dumps([row]),
        json.dumps(row),
        json.dumps(row) + "\n" + json.dumps(row),
        json.dumps({"results": []}) + "\n" + json.dumps({"results": [row]}),
    ]
    for form in forms:
        for content in (form.encode(), gzip.compress(form.encode())):
            (place,) = read(content).values()
            assert (place.asn_v4, place.country) == (64500, "NL")
            assert (place.latitude, place.longitude) == (52.37, 4.9)


@pytest.mark.parametrize(
    ("region_by", "region"),
    [
        (RegionBy.PROBE, "ripe-atlas-probe-77"),
        (RegionBy.COUNTRY, "NL"),
        (RegionBy.ASN, "AS64500"),
        (RegionBy.CITY, "Amsterdam, NL"),
        (RegionBy.NEAREST, "amsterdam"),
    ],
)
def test_what_makes_a_region(read: Any, region_by: RegionBy, region: str) -> None:
    places = ProbePlaces(
        read(json.dumps(ANCHOR).encode()), region_by=region_by, regions=[TOKYO, AMSTERDAM]
    )
    vantage = places.vantage(77, AddressFamily.IPV4)
    assert vantage.region == region
    assert vantage.name == "ripe-atlas-probe-77"
    assert (vantage.asn, vantage.country) == (64500, "NL")
    assert (vantage.latitude, vantage.longitude) == (52.37, 4.9)
    unknown = places.vantage(78, AddressFamily.IPV4)
    assert unknown.region == "ripe-atlas-probe-78"
    assert places.unplaced == (set() if region_by is RegionBy.PROBE else {78})


def test_a_probe_too_far_from_every_region_stands_for_itself(read: Any) -> None:
    places = read(json.dumps(PROBE).encode())
    far = ProbePlaces(places, region_by=RegionBy.NEAREST, regions=[TOKYO], within_km=9000)
    assert far.vantage(77, None).region == "ripe-atlas-probe-77"
    near = ProbePlaces(places, region_by=RegionBy.NEAREST, regions=[TOKYO], within_km=9500)
    assert near.vantage(77, None).region == "tokyo"


def test_the_network_is_that_of_the_address_family(read: Any) -> None:
    places = ProbePlaces(read(json.dumps(PROBE).encode()), region_by=RegionBy.ASN)
    assert places.vantage(77, AddressFamily.IPV6).region == "AS64501"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "no probe in it"),
        (b"hello", "line 1"),
        (b'[{"id": 1}, {"id": "x"}, {"name": 3}]', "result 2"),
        (b'{"results": [{"id": 1}, {}]}', "line 1, entry 2"),
        (b'{"id": 1, "latitude": 91, "longitude": 0}', "no place on Earth"),
        (b'[{"id": 1}, ', "not closed"),
        (gzip.compress(b'[{"id": 1}]', mtime=0)[:-4], "cut off"),
    ],
)
def test_faults_are_named_and_nothing_is_loaded(read: Any, content: bytes, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        read(content)


def test_all_faults_at_once(read: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        read(b'[{"id": 1}, {"id": "x"}, {"name": 3}]')
    assert len(caught.value.faults) == 2


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        read_places(tmp_path / "none.json")


@pytest.mark.needs("data")
def test_real_anchors_place_the_probes_of_real_results(atlas: Path) -> None:
    anchors = read_places(atlas / "fetchmesh_anchors.json")
    assert len(anchors) == 500
    places = ProbePlaces(anchors, region_by=RegionBy.CITY)
    report = ImportReport()
    path = atlas / "fetchmesh_ping_2000.ndjson"
    measurements = list(read_results([path], places=places, report=report))
    vantages = {measurement.vantage.name: measurement.vantage for measurement in measurements}
    placed = [vantage for vantage in vantages.values() if vantage.latitude is not None]
    assert len(vantages) == len(placed) + report.without_place
    assert len(placed) > 200
    assert vantages["ripe-atlas-probe-6489"].region == "Dubai, AE"
