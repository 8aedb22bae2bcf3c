"""What a right file means, and which entries count."""

from collections.abc import Callable

import pytest

from pathbudget.probes.errors import ConfigError
from pathbudget.probes.record import Target
from pathbudget.sites.catalogue import Catalogue, Region, Site
from pathbudget.sites.shipped import shipped_catalogue
from pathbudget.sites.tiers import shares

Load = Callable[..., Catalogue]

WHOLE = """
use_regions = ["aws:us-east-1"]
use_sites = ["dallas-2323-bryan", "gcp:us-central1"]

[[region]]
name = "texas"
title = "Texas users"
place = "dallas"
weight = 60

[[region]]
name = "aws:us-west-2"
weight = 15.5

[[region]]
name = "lab"
latitude = -33.5
longitude = 0
country = "ZA"
source = "our own survey"
date = 2026-07-31

[[site]]
name = "dallas-a"
title = "Cage at the Infomart"
place = "dallas-1950-stemmons"
price_per_month = 12000
capacity = 70

[[site.target]]
name = "edge"
host = "192.0.2.10"
port = 443
server_name = "edge.example.net"

[[site.target]]
host = "2001:db8::10"
port = 443

[[site.target]]
host = "reflector.example.net"

[[site]]
name = "own"
operator = "us"
metro = "Ashburn"
latitude = 39.04
longitude = -77.49
"""


def test_a_whole_file(load: Load) -> None:
    catalogue = load(_toml=WHOLE)
    assert list(catalogue.regions) == ["texas", "aws:us-west-2", "lab", "aws:us-east-1"]
    assert list(catalogue.sites) == ["dallas-a", "own", "dallas-2323-bryan", "gcp:us-central1"]
    dallas = shipped_catalogue().regions["dallas"]
    texas = catalogue.regions["texas"]
    assert (texas.latitude, texas.longitude) == (dallas.latitude, dallas.longitude)
    assert (texas.title, texas.weight, texas.country) == ("Texas users", 60, "US")
    assert texas.source == dallas.source
    lab = Region("lab", -33.5, 0, 1.0, "", "ZA", "our own survey", "2026-07-31")
    assert catalogue.regions["lab"] == lab


def test_a_shipped_name_alone_keeps_the_shipped_place_with_the_users_weight(load: Load) -> None:
    oregon = load(_toml=WHOLE).regions["aws:us-west-2"]
    shipped = shipped_catalogue().regions["aws:us-west-2"]
    assert oregon.weight == 15.5
    assert (oregon.latitude, oregon.title) == (shipped.latitude, shipped.title)
    assert shipped.weight == 1.0


def test_targets(load: Load) -> None:
    site = load(_toml=WHOLE).sites["dallas-a"]
    assert site.operator == "Equinix"
    assert (site.price_per_month, site.capacity) == (12000, 70)
    assert site.targets == (
        Target("edge", "192.0.2.10", "dallas-a", 443, "edge.example.net"),
        Target("[2001:db8::10]:443", "2001:db8::10", "dallas-a", 443),
        Target("reflector.example.net", "reflector.example.net", "dallas-a"),
    )
    assert load(_toml=WHOLE).sites["own"].targets == ()


def test_a_used_place_becomes_what_it_is_used_as(load: Load) -> None:
    catalogue = load(_toml='use_sites = ["dallas"]\nuse_regions = ["dallas-1950-stemmons"]')
    assert isinstance(catalogue.sites["dallas"], Site)
    assert isinstance(catalogue.regions["dallas-1950-stemmons"], Region)
    assert catalogue.regions["dallas-1950-stemmons"].weight == 1.0


def test_only_what_the_files_name_counts(load: Load) -> None:
    catalogue = load(_toml='use_regions = ["dallas"]')
    assert list(catalogue.regions) == ["dallas"]
    assert catalogue.sites == {}
    assert list(catalogue.tiers) == ["voice-ai", "chat", "rag"]


def test_an_own_entry_beats_the_shipped_one_of_its_name(load: Load) -> None:
    text = 'use_sites = ["dallas"]\n[[site]]\nname = "dallas"\nlatitude = 33\nlongitude = -97\n'
    assert load(_toml=text).sites["dallas"].latitude == 33
    shipped_tier = shipped_catalogue().tiers["chat"]
    own = """
    use_tiers = ["rag"]
    [[tier]]
    name = "chat"
    target_ms = 500
    components = { network = 30, ttft = 200 }
    prompt_bytes = 100
    """
    tiers = load(_toml=own).tiers
    assert list(tiers) == ["chat", "rag"]
    chat = tiers["chat"]
    assert chat.components == {"network": 30, "ttft": 200}
    assert (chat.title, chat.percentile, chat.mode) == ("chat", 95, "warm")
    assert chat.mixture == {"warm": 1.0}
    assert shipped_catalogue().tiers["chat"] is shipped_tier


def test_files_together_make_one_catalogue(load: Load) -> None:
    catalogue = load(
        _toml='use_tiers = ["chat"]',
        regions_csv="name,place,weight\nt,dallas,3\n",
        sites_csv="name,place,targets\ns,ashburn,a.example.net:443\n",
    )
    assert list(catalogue.regions) == ["t"]
    assert list(catalogue.sites) == ["s"]
    assert list(catalogue.tiers) == ["chat"]


def test_nothing_shipped_is_known_without_it(load: Load) -> None:
    plain = '[[region]]\nname = "x"\nlatitude = 1\nlongitude = 2\n'
    catalogue = load(with_shipped=False, _toml=plain)
    assert list(catalogue.regions) == ["x"]
    assert catalogue.tiers == {}
    with pytest.raises(ConfigError, match="is not shipped"):
        load(with_shipped=False, _toml='use_regions = ["dallas"]')


def test_a_byte_order_mark_and_windows_lines_are_fine(load: Load) -> None:
    text = b'\xef\xbb\xbf[[region]]\r\nname = "x"\r\nlatitude = 1\r\nlongitude = 2\r\n'
    assert list(load(_toml=text).regions) == ["x"]


def test_modes_over_transports(load: Load) -> None:
    own = """
    [[tier]]
    name = "quick"
    target_ms = 500
    components = { network = 30 }
    mode = "early_data"
    transport = "quic"
    prompt_bytes = 800
    further_prompt_bytes = [4000]
    mixture = { early_data = 0.5, quic-warm = 0.3, tls-idle = 0.2, tls-cold = 0 }
    """
    tier = load(_toml=own).tiers["quick"]
    assert (tier.mode, tier.transport) == ("early_data", "quic")
    assert tier.prompt_sizes == (800, 4000)
    assert shares(tier) == {
        ("quic", "early_data"): 0.5,
        ("quic", "warm"): 0.3,
        ("tls", "idle"): 0.2,
    }
