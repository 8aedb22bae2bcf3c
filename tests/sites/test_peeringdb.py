"""Sites from files of PeeringDB: nothing is lost without a word, broken files say what is wrong."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from pathbudget.agents.cli.catalogue import register
from pathbudget.probes.errors import ConfigError
from pathbudget.sites.catalogue_file import load_catalogue
from pathbudget.sites.listing import Point
from pathbudget.sites.peeringdb import Imported, Wanted, coordinates, sites_of
from pathbudget.sites.peeringdb_files import read_peeringdb

FACILITIES = [
    {"id": 1, "name": "Équinix DA1 / Infomart", "clli": "", "city": "Dallas", "country": "US"}
    | {
        "latitude": 32.8,
        "longitude": -96.82,
        "org_name": "Owner",
        "updated": "2026-03-01T01:02:03Z",
    },
    {"id": 2, "name": "Equinix DA1, Infomart", "clli": "", "city": "Dallas", "country": "US"}
    | {"latitude": 32.81, "longitude": -96.83},
    {"id": 3, "name": "Nowhere", "clli": "", "country": "US", "latitude": None, "longitude": None},
    {"id": 4, "name": "Gone", "clli": "", "country": "US", "status": "deleted"},
    {"id": 5, "name": "Far", "clli": "", "country": "JP", "latitude": 35.6, "longitude": 139.7},
]
DUMP: dict[str, Any] = {
    "fac": {"data": FACILITIES},
    "ix": {"data": [{"id": 7, "name": "DALLAS-IX; north"}]},
    "ixfac": {"data": [{"id": 1, "ix_id": 7, "fac_id": 1}, {"id": 2, "ix_id": 8, "fac_id": 1}]},
    "net": {"data": [{"id": 9, "asn": 64500, "name": "n"}]},
    "netfac": {"data": [{"id": 1, "net_id": 9, "fac_id": 1}, {"id": 2, "net_id": 99, "fac_id": 1}]},
    "netixlan": {"data": [{"id": 1, "net_id": 5, "ix_id": 7, "ixlan_id": 7, "asn": 64501}]},
    "poc": {"data": [{"id": 1}]},
}


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    path = tmp_path / "peeringdb.json"
    path.write_text(json.dumps(DUMP))
    return path


def imported(path: Path, **wanted: Any) -> Imported:
    return sites_of(read_peeringdb([path]), Wanted(**wanted))


def test_a_dump_becomes_sites_with_who_is_there(dump: Path) -> None:
    found = imported(dump, near=Point("here", 32.8, -96.8), countries=("US",))
    first, second = found.sites
    assert (first.name, second.name) == ("equinix-da1-infomart", "equinix-da1-infomart-2")
    assert first.operator == "Owner"
    assert first.date == "2026-03-01"
    assert first.exchanges == ("DALLAS-IX, north",)
    assert first.networks == (64500,)
    assert found.distances_km[0] == pytest.approx(1.9, abs=0.2)
    assert found.left_out == {
        "exchanges at facilities whose exchange is not in the files": 1,
        "fac objects that are not in use (status)": 1,
        "facilities in other countries": 1,
        "facilities without coordinates": 1,
        "networks at facilities whose AS number is not in the files": 1,
        "poc objects, which say nothing of sites": 1,
    }


def test_networks_of_mine_also_through_exchanges(dump: Path) -> None:
    assert imported(dump, asns=(64501,)).sites[0].networks == ()
    found = imported(dump, asns=(64501,), through_exchanges=True)
    assert found.sites[0].networks == (64501,)


def test_facilities_too_far_away_are_counted(dump: Path) -> None:
    found = imported(dump, near=Point("here", 32.8, -96.8), within_km=100.0)
    assert len(found.sites) == 2
    assert found.left_out["facilities farther than 100 km"] == 1


def test_gzip_and_several_answers_are_read(tmp_path: Path) -> None:
    packed = tmp_path / "a.json.gz"
    packed.write_bytes(gzip.compress(json.dumps({"data": FACILITIES[:1], "meta": {}}).encode()))
    links = tmp_path / "netfac-0.json"
    links.write_text(
        json.dumps({"data": [{"id": 1, "net_id": 1, "fac_id": 1, "local_asn": 64512}]})
    )
    again = tmp_path / "again.json"
    again.write_text(json.dumps({"data": FACILITIES[:1]}))
    objects = read_peeringdb([packed, links, again])
    (site,) = sites_of(objects, Wanted()).sites
    assert site.networks == (64512,)
    assert objects.left_out == {"fac objects that came again; the last one counts": 1}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"42", "holds no objects of PeeringDB"),
        (b'{"meta": {"error": "Too many requests"}}', "answered with an error: Too many"),
        (b'{"fac": 3}', "fac holds no list of objects"),
        (b'{"data": []}', "no facility in it"),
        (b"\x1f\x8bgarbage", "cannot be read"),
    ],
)
def test_broken_files_say_what_is_wrong(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=said):
        read_peeringdb([path])


def test_odd_objects_are_counted_not_guessed(tmp_path: Path) -> None:
    rows = [*FACILITIES[:1], 5, {"id": "x", "name": "a", "clli": ""}, {"id": 8}]
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"data": rows}))
    assert read_peeringdb([path]).left_out == {
        "entries that are no objects": 1,
        "fac objects without an identifier": 1,
        "objects of an unknown kind": 1,
    }


@pytest.mark.parametrize("place", [(0, 0), (91, 0), (True, 1), ("x", 1), (None, 1), (10**400, 1)])
def test_places_that_are_none(place: tuple[object, object]) -> None:
    assert coordinates({"latitude": place[0], "longitude": place[1]}) is None


@pytest.mark.needs("data")
@pytest.mark.parametrize("files", ["cache__*.json", "full__*.json", "full_nonunique__*.json"])
def test_files_that_peeringdb_itself_made(shared_data: Path, files: str) -> None:
    paths = sorted((shared_data / "sites" / "peeringdb_fixtures").glob(files))
    objects = read_peeringdb(paths)
    found = sites_of(objects, Wanted(asns=(63312,)))
    assert [site.title for site in found.sites] == ["fac 6474d82a", "fac 6474d82b"]
    assert found.sites[0].exchanges == ("ix b7b05aa8",)
    assert found.sites[0].networks == (63312,)
    assert found.sites[0].operator == "org c1ab780b"
    assert found.left_out["facilities without coordinates"] == 2
    kept = sum(len(objects.of(kind)) for kind in objects.kinds)
    assert kept + sum(objects.left_out.values()) == objects.read


def run(*arguments: str) -> Result:
    application = typer.Typer()
    register(application)
    return CliRunner().invoke(application, ["catalogue", "import", "peeringdb", *arguments])


@pytest.mark.parametrize("kind", ["csv", "toml"])
def test_what_is_written_is_a_catalogue(dump: Path, tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"sites.{kind}"
    result = run(str(dump), "--country", "us", "--asn", "AS64500", "-o", str(path))
    assert result.exit_code == 0, result.output
    assert "2 sites, 1 exchange, 1 network" in result.stderr
    sites = load_catalogue([path]).sites
    assert list(sites) == ["equinix-da1-infomart", "equinix-da1-infomart-2"]
    assert sites["equinix-da1-infomart"].exchanges == ("DALLAS-IX, north",)
    assert sites["equinix-da1-infomart"].networks == (64500,)


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--within", "5"], 2, "--within needs --near"),
        (["--asn", "x"], 2, "--asn x: expected an AS number"),
        (["-o", "x.json"], 2, "a catalogue ends in .csv or .toml"),
        (["--country", "FR"], 4, "no facility is left"),
        (["--near", "nowhere-at-all"], 2, "no place"),
    ],
)
def test_what_cannot_be_asked(dump: Path, options: list[str], code: int, said: str) -> None:
    result = run(str(dump), *options)
    assert result.exit_code == code, result.output
    assert said in result.output
