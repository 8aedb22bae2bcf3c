"""The two files of the tutorial are right as they stand, and fit each other."""

import re
from pathlib import Path

from pathbudget.agents.campaign.campaign_file import load_campaign
from pathbudget.probes.table import probe_table

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tutorial.md"


def test_the_files_of_the_tutorial_load(tmp_path: Path) -> None:
    catalogue, campaign, more = re.findall(r"```toml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (tmp_path / "catalogue.toml").write_text(catalogue)
    (tmp_path / "campaign.toml").write_text(campaign)
    loaded = load_campaign(tmp_path / "campaign.toml", probe_table())
    (vantage,) = loaded.plan.vantages
    assert [series.probe for series in vantage.series] == ["icmp", "tls-cold", "tls-resumed"]
    assert vantage.vantage.region in loaded.catalogue.regions
    limit = loaded.plan.duration_ns // 72
    assert all(series.interval_ns <= limit for series in vantage.series), "no p95 of so few"
    (tmp_path / "campaign.toml").write_text(campaign + more)
    (vantage,) = load_campaign(tmp_path / "campaign.toml", probe_table()).plan.vantages
    assert [series.probe for series in vantage.series][3:] == ["trace"]
