"""`pathbudget catalogue`: what is printed, in 80 columns, and how it fails."""

import csv
import io
import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from pathbudget.agents.cli.catalogue import register
from pathbudget.sites.catalogue_file import load_catalogue
from pathbudget.sites.shipped import shipped_catalogue

CATALOGUE = """
[[region]]
name = "texas"
place = "dallas"
weight = 3
[[region]]
name = "elsewhere"
place = "ashburn"
weight = 1
[[site]]
name = "dallas-a"
place = "dallas-1950-stemmons"
price_per_month = 12000
[[site.target]]
host = "a-rather-long-name-of-a-host.in-a-long-domain.example.net"
port = 443
"""


def run(*arguments: str) -> Result:
    application = typer.Typer()
    register(application)
    return CliRunner().invoke(application, ["catalogue", *arguments], env={"COLUMNS": "80"})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "catalogue.toml"
    path.write_text(CATALOGUE)
    return path


def test_check_counts_and_shows_weights_targets_and_tiers(file: Path) -> None:
    result = run("check", str(file))
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == "2 regions, 1 site, 3 tiers"
    assert [line.split()[-1] for line in lines if line.startswith(("texas", "else"))] == [
        "75.0%",
        "25.0%",
    ]
    assert "12000" in result.stdout
    assert "318 ms" in result.stdout
    assert max(map(len, lines)) <= 80
    assert "".join(line.strip() for line in lines).count("example.net") == 1


def test_check_as_json_is_the_catalogue(file: Path) -> None:
    answer = json.loads(run("check", str(file), "--format", "json").stdout)
    assert list(answer["regions"]) == ["texas", "elsewhere"]
    assert answer["sites"]["dallas-a"]["targets"][0]["port"] == 443
    assert answer["tiers"]["rag"]["components"]["network"] == 70


def test_faults_go_to_stderr_with_exit_2(tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    path.write_text("[[region]]\nname = 'a'\nlatitude = 99\nlongitude = 999\n")
    result = run("check", str(path))
    assert result.exit_code == 2
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert result.stderr.count(f"{path}:") == len(["latitude", "longitude"])
    assert all(len(line) <= 80 or line == f"{path}:" for line in lines)
    assert "region[0].latitude" in result.stderr
    assert "region[0].longitude" in result.stderr
    assert lines[-1] == "2 faults; nothing was loaded."


def test_list_shows_all_that_ships_in_80_columns() -> None:
    result = run("list")
    for name in (*shipped_catalogue().regions, *shipped_catalogue().sites, "voice-ai"):
        assert any(line.split()[0] == name for line in result.stdout.splitlines() if line.strip())
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_near_sorts_by_distance() -> None:
    result = run("list", "--near", "-33.9,151.2", "--kind", "site", "--format", "json")
    places = json.loads(result.stdout)["places"]
    assert places[0]["name"] == "sydney-equinix-sy3"
    distances = [place["distance_km"] for place in places]
    assert distances == sorted(distances)
    assert {place["kind"] for place in places} == {"site"}
    assert places[-1]["floor_rtt_ms"] == pytest.approx(distances[-1] * 2 / 204.218, rel=1e-4)
    by_name = json.loads(run("list", "--near", "dallas", "--format", "json").stdout)["places"]
    assert (
        (by_name[0]["metro"] or by_name[0]["title"]).lower().endswith(("dallas", "dallas, texas"))
    )


def test_search_needs_every_word() -> None:
    result = run("list", "--search", "INFOMART equinix", "--format", "json")
    assert [place["name"] for place in json.loads(result.stdout)["places"]] == [
        "dallas-1950-stemmons"
    ]
    nothing = run("list", "--search", "no such thing")
    assert (nothing.exit_code, nothing.stdout) == (0, "")
    assert nothing.stderr == "Nothing that ships matches.\n"


@pytest.mark.parametrize("kind", ["region", "site"])
def test_csv_of_one_kind_is_a_catalogue_file(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"{kind}s.csv"
    path.write_text(run("list", "--kind", kind, "--format", "csv").stdout, encoding="utf-8")
    loaded = load_catalogue([path])
    assert getattr(loaded, f"{kind}s") == getattr(shipped_catalogue(), f"{kind}s")


def test_csv_of_everything_and_of_tiers() -> None:
    rows = list(csv.DictReader(io.StringIO(run("list", "--format", "csv").stdout)))
    assert {row["kind"] for row in rows} == {"region", "site"}
    text = run("list", "--kind", "tier", "--format", "csv").stdout
    assert [row["total_ms"] for row in csv.DictReader(io.StringIO(text))] == [
        "318.0",
        "513.0",
        "1110.0",
    ]


def test_distance_between_names_and_coordinates(file: Path) -> None:
    result = run("distance", "dallas", "-33.9,151.2")
    assert "13,816.3 km" in result.stdout
    assert "135.31 ms round trip" in result.stdout
    own = run("distance", "texas", "dallas", "--catalogue", str(file), "--format", "json")
    assert json.loads(own.stdout)["distance_km"] == 0


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("dalas", 'no place "dalas"; expected LAT,LON or "dallas" (did you mean that?)'),
        ("91,0", "expected latitude from -90 to 90"),
        ("1,181", "then longitude from -180 to 180"),
        ("1..2,3", "no coordinates"),
    ],
)
def test_no_such_place(place: str, said: str) -> None:
    result = run("distance", place, "dallas")
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.split())
    assert result.stdout == ""
