"""Everything that can be wrong in a TOML catalogue: one fault each, its place, the remedy."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from pathbudget.probes.errors import ConfigError
from pathbudget.sites.catalogue_file import load_catalogue

Faults = Callable[..., list[str]]

REGION = '[[region]]\nname = "r"\n'
SITE = '[[site]]\nname = "s"\nlatitude = 1\nlongitude = 2\n'
TARGET = SITE + '[[site.target]]\nhost = "a.example.net"\n'
TIER = """[[tier]]
name = "t"
target_ms = 100
prompt_bytes = 10
components = { network = 20, rest = 80 }
"""

CASES = [
    # (what stands in the file, key path, what is said of it, what would be right)
    (REGION + "latitude = 91\nlongitude = 0", "region[0].latitude", "91 is out of", "-90 to 90"),
    (REGION + "latitude = 1\nlongitude = 181", "region[0].longitude", "181 is out", "-180 to 180"),
    (REGION + "latitude = -96.8\nlongitude = 32.8", "region[0].latitude", "-96.8", "look swapped"),
    (REGION + "latitude = 0\nlongitude = 0.0", "region[0].latitude", "0, 0 is in", "a real place"),
    (
        REGION + 'latitude = 8.7\nlongitude = 50.1\ncountry = "DE"',
        "region[0].latitude",
        "far from DE",
        "latitude first",
    ),
    (REGION + "latitude = nan\nlongitude = 1", "region[0].latitude", "nan is out of", "-90 to 90"),
    (REGION + "latitude = 1\nlongitude = inf", "region[0].longitude", "inf is out", "-180 to 180"),
    (REGION + 'latitude = "32,8"\nlongitude = 1', "region[0].latitude", "no number", "-90 to 90"),
    (REGION + "latitude = true\nlongitude = 1", "region[0].latitude", "no number", "-90 to 90"),
    (REGION + "longitude = 1", "region[0].latitude", "is missing", "-90 to 90"),
    (REGION, "region[0].longitude", "is missing", "-180 to 180"),
    (REGION + "place = 'dalas'", "region[0].place", '"dalas" is no shipped place', '"dallas"'),
    (REGION + "place = 'xyzzy'", "region[0].place", "no shipped place", "catalogue list shows"),
    (REGION + "place = 'dallas'\nlatitude = 1", "region[0].place", "beside", "not both"),
    (REGION + "place = 5", "region[0].place", "5 is no text", "text in quotation marks"),
    (REGION + "place = 'dallas'\nweight = -1", "region[0].weight", "-1 is out", "0 or more"),
    (REGION + "place = 'dallas'\nweight = 0", "region.weight", "all weights are 0", "above 0"),
    (REGION + "place = 'dallas'\nweigh = 1", "region[0].weigh", "unknown key", '"weight" (did'),
    (REGION + "lat = 1\nplace = 'dallas'", "region[0].lat", 'unknown key "lat"', '"latitude"'),
    (REGION + "place='dallas'\ncountry = 'UK'", "region[0].country", '"UK"', '"GB"'),
    (REGION + "place='dallas'\ncountry = 'Texas'", "region[0].country", "no country", "US, DE"),
    (REGION + "place='dallas'\ndate = '1.8.2026'", "region[0].date", "is no day", "2026-07-31"),
    (REGION + "place='dallas'\ntitle = ' x'", "region[0].title", "not usable", "without blanks"),
    ('[[region]]\nplace = "dallas"', "region[0].name", "is missing", "text"),
    ('[[region]]\nname = ""\nplace = "dallas"', "region[0].name", "not usable", "without blanks"),
    ('[[region]]\nname = "a\\u00a0b"\nplace = "dallas"', "region[0].name", "U+00A0", "visible"),
    ('[region]\nname = "r"', "region", "is one table", "[[region]] with two brackets"),
    ("region = 5", "region", "5 is no list of tables", "[[region]] tables"),
    ("site = [1]", "site", "a list is no list of tables", "[[site]] tables"),
    (REGION + "place='dallas'\n" + REGION + "place='ashburn'", "region[1].name", "already", "once"),
    (SITE + "price_per_month = -0.01", "site[0].price_per_month", "-0.01 is out", "0 or more"),
    (SITE + "capacity = 0", "site[0].capacity", "0 is out of range", "above 0"),
    (SITE + "target = 5", "site[0].target", "5 is no list", "[[site.target]] tables"),
    (SITE + "targets = 'a:1'", "site[0].targets", "unknown", '"target"'),
    (SITE + "[[site.target]]\nport = 1", "site[0].target[0].host", "is missing", "text"),
    (TARGET + "port = 0", "site[0].target[0].port", "0 is out of range", "1 to 65535"),
    (TARGET + "port = 443.5", "site[0].target[0].port", "has a fraction", "1 to 65535"),
    (TARGET + "port = '443'", "site[0].target[0].port", '"443" is no number', "1 to 65535"),
    (TARGET + "prot = 1", "site[0].target[0].prot", "unknown key", '"port"'),
    (TARGET + TARGET.split("2\n")[1], "site[0].target", "two targets", "a different name"),
    (
        SITE + "[[site.target]]\nhost = 'https://a.example.net/'",
        "site[0].target[0].host",
        "is no host",
        "without scheme, port or path",
    ),
    (SITE + "[[site.target]]\nhost = 'a:443'", "site[0].target[0].host", "no host", "without"),
    (SITE + "[[site.target]]\nhost = '300.1.1.1'", "site[0].target[0].host", "no host", "address"),
    ("sites = 1", "sites", 'unknown key "sites"', '"site"'),
    ("use_regions = 'dallas'", "use_regions", "no list", '["dallas"]'),
    ("use_regions = ['dallas', 'dalas']", "use_regions[1]", "is not shipped", '"dallas"'),
    ("use_sites = [5]", "use_sites[0]", "5 is not shipped", "a name"),
    ("use_sites = ['dallas', 'dallas']", "use_sites[1]", "stands there twice", "once"),
    ("use_tiers = ['voice']", "use_tiers[0]", '"voice" is not shipped', '"voice-ai"'),
    (TIER + "mode = 'hot'", "tier[0].mode", '"hot" is unknown', "cold"),
    (TIER + "mode = 'mixture'", "tier[0].mixture", "is missing", "sum to 1"),
    (TIER + "percentile = 0.95", "tier[0].percentile", "0.95 is out of range", "like 95"),
    (TIER + "percentile = 100", "tier[0].percentile", "100 is out of range", "below 100"),
    (TIER + "mixture = { warm = 0.9 }", "tier[0].mixture", "sum to 0.9", "sum to 1"),
    (TIER + "mixture = { warm = 1.2 }", "tier[0].mixture.warm", "out of range", "0 to 1"),
    (TIER + "mixture = { early = 1 }", "tier[0].mixture.early", "unknown", "early_data"),
    (TIER + "mixture = { tcp-cold = 1 }", "tier[0].mixture.tcp-cold", "unknown", "quic-cold"),
    (
        TIER + "mixture = { cold = 0.5, tls-cold = 0.5 }",
        "tier[0].mixture.tls-cold",
        "the same over tls",
        "one share",
    ),
    (TIER + "transport = 'udp'", "tier[0].transport", "udp", "tls, quic"),
    (TIER + "further_prompt_bytes = 9", "tier[0].further_prompt_bytes", "no list", "1 or more"),
    (TIER + "further_prompt_bytes = [0]", "tier[0].further_prompt_bytes[0]", "range", "1 or more"),
    (
        TIER + "further_prompt_bytes = [0, 10]",
        "tier[0].further_prompt_bytes[1]",
        "already",
        "once",
    ),
    (TIER + "further_prompt_bytes = [10]", "tier[0].further_prompt_bytes[0]", "already", "once"),
    (TIER + "mixture = 1", "tier[0].mixture", "1 is no table", "a share"),
    (TIER + "mixture = {}", "tier[0].mixture", "sum to 0", "sum to 1"),
    (TIER.replace("network", "net"), "tier[0].components", "has no network", "an allowance"),
    (TIER.replace("20", "0"), "tier[0].components.network", "0 allows nothing", "above 0"),
    (TIER.replace("80", "81"), "tier[0].components", "sum to 101 ms", "larger target_ms"),
    (TIER.replace("80", "'x'"), "tier[0].components.rest", '"x" is no number', "0 or more"),
    (TIER.replace("100", "0"), "tier[0].target_ms", "0 is out of range", "above 0"),
    (TIER.replace("= 10\n", "= 1.5\n"), "tier[0].prompt_bytes", "fraction", "1 or more"),
    (TIER.replace("prompt_bytes = 10", ""), "tier[0].prompt_bytes", "is missing", "1 or more"),
    (TIER.replace("target_ms", "target"), "tier[0].target", "unknown key", '"target_ms"'),
    (TIER.replace("components", "parts"), "tier[0].components", "is missing", "a table"),
    (f"x = {'9' * 5000}", "", "not TOML", "TOML 1.0"),
    ("x = " + "[" * 5000, "", "nested too deeply", "a few levels"),
    ("[[region]]\nname = \n", "line 2, column 8", "not TOML: Invalid value", "docs/"),
]


@pytest.mark.parametrize(("text", "where", "problem", "expected"), CASES)
def test_each_fault(text: str, where: str, problem: str, expected: str, faults: Faults) -> None:
    messages = faults(_toml=text)
    place = re.compile(r"catalogue\.toml(: )?" + re.escape(where) + r"( \(of .*?\))?: ")
    fitting = [message for message in messages if place.match(message)]
    assert fitting, messages
    said, _, remedy = fitting[0].partition("; expected ")
    assert problem in said
    assert expected in remedy
    assert all("\n" not in message and len(message) < 400 for message in messages)


TWO_FAULTS = {  # a key that is missing, and one that is unknown or missing as well
    REGION,
    TIER.replace("target_ms", "target"),
    TIER + "further_prompt_bytes = [0, 10]",
    TIER.replace("components", "parts"),
}


@pytest.mark.parametrize("text", [case[0] for case in CASES])
def test_a_consequence_of_a_fault_is_no_second_fault(text: str, faults: Faults) -> None:
    assert len(faults(_toml=text)) == 1 + (text in TWO_FAULTS)


def test_every_fault_of_every_file_comes_at_once(faults: Faults, tmp_path: Path) -> None:
    messages = faults(
        one_toml=REGION + "latitude = 100\nlongitude = 200\nweight = -1\n" + SITE + "capacity = 0",
        two_toml="use_tiers = ['x']\n[[region",
        regions_csv="name,place\nr2,nowhere\n",
    )
    assert len(messages) == 6
    assert {message.split(":")[0] for message in messages} == {
        "one.toml",
        "two.toml",
        "regions.csv",
    }


def test_the_name_stands_in_the_key_path(faults: Faults) -> None:
    (message,) = faults(_toml=SITE + "capacity = -1")
    assert message.startswith('catalogue.toml: site[0].capacity (of "s"): -1 is out of range')


def test_the_same_name_in_two_files(faults: Faults) -> None:
    (message,) = faults(a_toml=SITE, b_toml=SITE)
    assert message.startswith('b.toml: site[0].name: "s" is already the name of')
    assert "a.toml, site[0].name" in message


def test_the_same_file_twice(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text(SITE)
    with pytest.raises(ConfigError, match="already the name of"):
        load_catalogue([path, path])


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "folder.toml").mkdir()
    (tmp_path / "notes.txt").write_text("x")
    (tmp_path / "bare").write_text("x")
    names = ("missing.toml", "folder.toml", "notes.txt", "bare", "nul\0.csv")
    with pytest.raises(ConfigError) as caught:
        load_catalogue([tmp_path / name for name in names])
    problems = [fault.problem for fault in caught.value.faults]
    assert problems[0] == "cannot be read: No such file or directory"
    assert problems[1] == "cannot be read: Is a directory"
    assert problems[2] == 'cannot tell what ".txt" holds'
    assert problems[3] == "has no ending"
    assert problems[4].startswith("cannot be read: ")
    assert len(problems) == 5


def test_other_encodings(faults: Faults) -> None:
    latin = b'[[region]]\nname = "Z\xfcrich"\n'
    (message,) = faults(_toml=latin)
    assert (
        message == "catalogue.toml: line 2: byte 0xfc is not UTF-8; expected a file saved as UTF-8"
    )
    (message,) = faults(regions_csv="name;place\n".encode("utf-16"))
    assert message.startswith("regions.csv: line 1: is UTF-16;")


def test_a_huge_file_is_refused_without_reading_it_all(tmp_path: Path) -> None:
    path = tmp_path / "big.toml"
    with path.open("wb") as file:
        file.truncate(20 * 1024 * 1024)
    with pytest.raises(ConfigError, match="over 16 MiB"):
        load_catalogue([path])
