"""A catalogue and a campaign file that are right, and ways to spoil them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from pathbudget.agents.campaign.campaign_file import Campaign, load_campaign
from pathbudget.probes.table import probe_table

CATALOGUE = """
[[region]]
name = "dallas"
latitude = 32.78
longitude = -96.8

[[region]]
name = "chicago"
latitude = 41.88
longitude = -87.63

[[site]]
name = "stemmons"
latitude = 32.80
longitude = -96.82
[[site.target]]
name = "tls"
host = "127.0.0.1"
port = 8443
[[site.target]]
name = "router"
host = "127.0.0.2"

[[site]]
name = "cermak"
latitude = 41.85
longitude = -87.62
[[site.target]]
name = "edge"
host = "edge.cermak.test"
"""
CAMPAIGN = """
name = "first look"
catalogue = "catalogue.toml"
duration = "10s"
seed = 7

[[vantage]]
name = "office"
region = "dallas"

[[probe]]
kind = "icmp"
interval = "250ms"

[[probe]]
kind = "tls"
interval = "1s"
timeout = "3s"
mode = "cold"
"""

Load = Callable[..., Campaign]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Load the campaign after replacing `old` by `new` in it (and in the catalogue)."""

    def load_changed(
        *changes: tuple[str, str], append: str = "", seed: int | None = None
    ) -> Campaign:
        campaign, catalogue = CAMPAIGN, CATALOGUE
        for old, new in changes:
            assert old in campaign or old in catalogue, old
            campaign, catalogue = campaign.replace(old, new), catalogue.replace(old, new)
        (tmp_path / "catalogue.toml").write_text(catalogue)
        (tmp_path / "campaign.toml").write_text(campaign + append)
        return load_campaign(tmp_path / "campaign.toml", probe_table(), seed=seed)

    return load_changed
