"""The campaign of examples/lab fits the world it is for, and the page that shows it names it."""

from pathlib import Path

import pytest

from pathbudget.agents.campaign.campaign_file import load_campaign
from pathbudget.agents.lab.session import LabSession, Node, made_current
from pathbudget.agents.lab.world import World
from pathbudget.agents.lab.world_file import load_world
from pathbudget.probes.errors import ConfigError
from pathbudget.probes.record import AddressFamily
from pathbudget.probes.reflector_http import HTTPS_PORT
from pathbudget.probes.table import probe_table

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "lab" / "campaign.toml"
REQUESTS = ROOT / "examples" / "lab" / "requests.toml"


def session_of(world: World) -> LabSession:
    """What a running lab of this world would say."""
    nodes = {
        name: Node(
            namespace=f"/proc/self/ns/{name}",
            ipv4=world.address_of(name),
            ipv6=world.address_of(name, AddressFamily.IPV6),
            kind=str(node.kind),
        )
        for name, node in world.nodes.items()
    }
    return LabSession(nodes=nodes, ca_file="/dev/null")


def test_the_example_measures_every_pair_of_the_example_world(tmp_path: Path) -> None:
    world = load_world(ROOT / "examples" / "world.toml")
    file = tmp_path / "session.json"
    file.write_bytes(session_of(world).encode())
    with made_current(str(file)):
        plan = load_campaign(EXAMPLE, probe_table()).plan
    seen = {
        (one.vantage.name, series.target.host) for one in plan.vantages for series in one.series
    }
    addresses = {world.address_of(site) for site in world.sites}
    assert seen == {(region, address) for region in world.regions for address in addresses}


def test_the_example_of_requests_reaches_the_site_that_answers(tmp_path: Path) -> None:
    world = load_world(ROOT / "examples" / "world.toml")
    file = tmp_path / "session.json"
    file.write_bytes(session_of(world).encode())
    with made_current(str(file)):
        plan = load_campaign(REQUESTS, probe_table()).plan
    ports = {
        (series.kind, series.target.port)
        for one in plan.vantages
        for series in one.series
        if series.kind != "icmp"
    }
    kinds = ("tls", "quic", "http", "upload", "token_stream")
    assert ports == {(kind, HTTPS_PORT) for kind in kinds}


def test_outside_of_a_lab_the_fault_says_what_is_missing() -> None:
    with pytest.raises(ConfigError, match="pathbudget lab run"):
        load_campaign(EXAMPLE, probe_table())


def test_the_page_of_the_lab_shows_how_to_run_it() -> None:
    page = (ROOT / "docs" / "lab.md").read_text()
    assert "-- pathbudget run examples/lab/campaign.toml" in page
    assert 'host = "singapore.lab"' in page
