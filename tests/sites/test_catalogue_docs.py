"""The examples of docs/catalogue.md load, the files in examples/ are the same, its commands run."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from pathbudget.agents.cli.catalogue import register
from pathbudget.sites.catalogue import Tier
from pathbudget.sites.catalogue_file import load_catalogue
from pathbudget.sites.region_reader import REGION_KEYS
from pathbudget.sites.shipped import shipped_catalogue
from pathbudget.sites.site_reader import SITE_KEYS, TARGET_KEYS
from pathbudget.sites.tier_reader import TIER_KEYS
from pathbudget.sites.tiers import total_ms

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "catalogue.md").read_text(encoding="utf-8")
EXAMPLES = ROOT / "examples" / "catalogue"
FILES = ("catalogue.toml", "regions.csv", "sites.csv")

Faults = Callable[..., list[str]]


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_the_examples_are_those_of_the_page() -> None:
    on_page = [*blocks("toml"), *blocks("csv")]
    assert [(EXAMPLES / name).read_text(encoding="utf-8") for name in FILES] == on_page


def test_the_toml_example() -> None:
    catalogue = load_catalogue([EXAMPLES / "catalogue.toml"])
    assert list(catalogue.regions) == ["texas", "aws:us-west-2", "branch-office", "gcp:us-central1"]
    assert list(catalogue.sites) == ["dallas-cage", "ashburn-quote", "chicago-350-cermak"]
    assert list(catalogue.tiers) == ["code-completion", "voice-ai", "chat"]
    assert [region.weight for region in catalogue.regions.values()] == [60, 25, 15, 1]
    assert catalogue.sites["dallas-cage"].targets[1].server_name == "edge.dal.example.net"


def test_the_tables_say_the_same() -> None:
    one = load_catalogue([EXAMPLES / "catalogue.toml"])
    two = load_catalogue([EXAMPLES / "regions.csv", EXAMPLES / "sites.csv"])
    for name, region in two.regions.items():
        assert region == one.regions[name]
    for name, site in two.sites.items():
        twin = one.sites[name]
        assert (site.latitude, site.longitude) == (twin.latitude, twin.longitude)
        assert [(t.host, t.port) for t in site.targets] == [(t.host, t.port) for t in twin.targets]


def test_every_key_is_explained() -> None:
    table = PAGE.split("## Keys")[1].split("## Faults")[0]
    keys = {*REGION_KEYS, *SITE_KEYS, *TIER_KEYS, *(f"target.{key}" for key in TARGET_KEYS)}
    for key in keys - {"target"}:
        assert f"`{key}`" in table, key


def test_the_reference_table_is_what_ships() -> None:
    table = PAGE.split("## The reference tiers")[1]
    rows: dict[str, list[float]] = {
        "network ingress + egress": [t.network_allowance_ms for t in tiers()],
        "sum, ms": [total_ms(t) for t in tiers()],
        "target, ms": [t.target_ms for t in tiers()],
        "upload, bytes": [t.prompt_bytes for t in tiers()],
    }
    for label, values in rows.items():
        assert f"| {label} | " + " | ".join(f"{value:g}" for value in values) + " |" in table


def tiers() -> list[Tier]:
    return list(shipped_catalogue().tiers.values())


def test_the_faults_on_the_page_are_real(faults: Faults) -> None:
    site = '[[site]]\nname = "frankfurt-a"\nlatitude = 8.68\nlongitude = 50.11\ncountry = "DE"\n'
    messages = faults(sites_toml=site, regions_csv="name,place,weight\na,dallas,x\n")
    assert "\n".join(messages) in PAGE


@pytest.mark.parametrize(
    "line", [line for line in PAGE.splitlines() if line.startswith("pathbudget")]
)
def test_the_commands_on_the_page_run(line: str) -> None:
    application = typer.Typer()
    register(application)
    command = re.split(r" {2,}", line)[0].replace("FILE...", str(EXAMPLES / "catalogue.toml"))
    result = CliRunner().invoke(application, command.split()[1:])
    assert result.exit_code == 0, result.output
    assert result.stdout
