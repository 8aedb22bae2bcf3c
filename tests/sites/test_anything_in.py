"""Whatever stands in a file: a catalogue or a list of faults comes out, never anything else."""

import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pathbudget.probes.errors import ConfigError
from pathbudget.sites.catalogue import Catalogue
from pathbudget.sites.catalogue_file import load_catalogue
from pathbudget.sites.places import places_of
from pathbudget.sites.tiers import fits

KEYS = [
    *("name", "title", "place", "country", "latitude", "longitude", "weight", "source", "date"),
    *("operator", "metro", "price_per_month", "capacity", "target", "targets", "host", "port"),
    *("target_ms", "components", "percentile", "mode", "prompt_bytes", "mixture", "network"),
    *("transport", "further_prompt_bytes", "quic-cold", "tls-warm"),
    *("region", "site", "tier", "use_regions", "use_sites", "use_tiers", "warm", "cold"),
]

one_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)

words = st.sampled_from(["dallas", "warm", "mixture", "US", "2026-07-31", "a.example.net", ""])
numbers = st.one_of(
    st.integers(-(10**20), 10**20), st.floats(), st.sampled_from([0, 1, 95, 400, 10**400])
)
scalars = st.one_of(words, st.text(max_size=8), numbers, st.booleans(), st.dates(), st.datetimes())
tables = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(KEYS), inner, max_size=6)
    ),
    max_leaves=25,
)


def toml_of(value: Any) -> str:
    """`value` as an inline TOML value."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return '"' + "".join(f"\\U{ord(letter):08x}" for letter in value) + '"'
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {toml_of(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(toml_of(item) for item in value) + "]"
    return str(value)


def outcome(path: Path) -> Catalogue | ConfigError:
    """What loading `path` gives: nothing but the two right outcomes gets through."""
    try:
        return load_catalogue([path])
    except ConfigError as error:
        return error


def check(path: Path) -> Catalogue | None:
    """Load `path` and look at what came out; None when it has faults."""
    catalogue = outcome(path)
    if isinstance(catalogue, ConfigError):
        assert catalogue.faults
        for fault in catalogue.faults:
            assert fault.file == str(path)
            assert fault.problem
            assert fault.expected
            assert str(fault).isprintable()
        return None
    for place in places_of(catalogue).values():
        assert abs(place.latitude) <= 90
        assert abs(place.longitude) <= 180
    for tier in catalogue.tiers.values():
        assert fits(tier)
        assert math.isclose(sum(tier.mixture.values()), 1, abs_tol=1e-5)
        assert tier.network_allowance_ms > 0
    return catalogue


@pytest.mark.parametrize("name", ["a.toml", "regions.csv", "sites.csv"])
@one_folder
@given(content=st.binary(max_size=200))
@example(content=b"")
@example(content=b"\xff\xfe")
@example(content=b"name,weight\n\x00,\x00")
@example(content=b'name;latitude\r"')
def test_any_bytes(name: str, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    check(path)


@one_folder
@given(content=st.dictionaries(st.sampled_from(KEYS), tables, max_size=5))
def test_any_toml(content: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text("\n".join(f"{key} = {toml_of(value)}" for key, value in content.items()))
    check(path)


@one_folder
@given(
    table=st.sampled_from(["region", "site", "tier"]),
    entry=st.dictionaries(st.sampled_from(KEYS), tables, max_size=8),
)
def test_any_entry(table: str, entry: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    lines = [f"[[{table}]]", *(f"{key} = {toml_of(value)}" for key, value in entry.items())]
    path.write_text("\n".join(lines))
    check(path)


cells = st.one_of(st.sampled_from(KEYS), words, numbers.map(str), st.text(max_size=6))


@one_folder
@given(
    rows=st.lists(st.lists(cells, min_size=1, max_size=6), max_size=5),
    separator=st.sampled_from([",", ";", "\t"]),
    name=st.sampled_from(["regions.csv", "sites.csv", "x.csv"]),
)
def test_any_table(rows: list[list[str]], separator: str, name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    text = "\n".join(separator.join(row) for row in rows)
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    check(path)


@one_folder
@given(
    latitude=st.floats(-90, 90),
    longitude=st.floats(-180, 180),
    weight=st.floats(1e-6, 1e9),
)
def test_right_numbers_come_back_exactly(
    latitude: float, longitude: float, weight: float, tmp_path: Path
) -> None:
    text = f"name,latitude,longitude,weight\nr,{latitude},{longitude},{weight}\n"
    path = tmp_path / "regions.csv"
    path.write_text(text)
    catalogue = check(path)
    if (latitude, longitude) != (0, 0):
        assert catalogue is not None
        region = catalogue.regions["r"]
        assert (region.latitude, region.longitude, region.weight) == (latitude, longitude, weight)
