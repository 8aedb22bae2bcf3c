"""The file of feeds: the example, and every fault with its place."""

from pathlib import Path

import pytest

from pathbudget.agents.bgp.feed_sources import SOURCES
from pathbudget.agents.bgp.feeds_file import FEED_KEYS, TOP_KEYS, load_feeds
from pathbudget.agents.bgp.plans import BmpPlan, MrtPlan, RisLivePlan, SessionPlan
from pathbudget.probes.bgp.bmp import View
from pathbudget.probes.errors import ConfigError

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples/bgp/feeds.toml"
SESSION = """[[feed]]
name = "edge"
kind = "session"
listen = "192.0.2.9:1179"
peer = "192.0.2.1"
peer_asn = 65011
local_asn = 65011
router_id = "192.0.2.9"
"""


def faults(tmp_path: Path, text: str, prefixes: str = 'prefixes = ["203.0.113.0/24"]\n') -> str:
    path = tmp_path / "feeds.toml"
    path.write_text(prefixes + text)
    with pytest.raises(ConfigError) as caught:
        load_feeds(path)
    return str(caught.value).replace(f"{path}: ", "")


def test_the_example_is_what_it_says() -> None:
    plan = load_feeds(EXAMPLE)
    edge, ris, bird, core = plan.feeds
    assert isinstance(edge.source, SessionPlan)
    assert (str(edge.source.listen), edge.source.hold_time_s) == ("192.0.2.9:1179", 90)
    assert isinstance(ris.source, RisLivePlan)
    assert ris.source.collectors == ("rrc00", "rrc21")
    assert ris.rules.stale_after_ns == 9_000 * 10**9
    assert ris.rules.denies("198.51.100.77", 1)
    assert ris.rules.denies("192.0.2.1", 64511)
    assert isinstance(bird.source, MrtPlan)
    assert bird.source.table == Path("/var/log/bird/table.mrt")
    assert isinstance(core.source, BmpPlan)
    assert core.source.view is View.POST_POLICY
    assert ("dallas-cage", "203.0.113.0/24") in plan.prefixes
    assert ("dallas-cage", "192.0.2.10") not in plan.prefixes
    assert ("", "198.51.100.0/24") in plan.prefixes
    assert plan.heartbeats == {"84.205.64.0/24"}


def test_the_page_explains_every_key() -> None:
    page = (ROOT / "docs/bgp.md").read_text()
    own = {key for keys, _ in SOURCES.values() for key in keys}
    for key in {*TOP_KEYS, *FEED_KEYS, *own} - {"feed"}:
        assert f"`{key}`" in page, key
    assert EXAMPLE.read_text() in page


def test_sites_without_prefixes_are_followed_by_their_addresses(tmp_path: Path) -> None:
    (tmp_path / "sites.toml").write_text(
        '[[site]]\nname = "a"\nlatitude = 1\nlongitude = 1\n'
        '[[site.target]]\nhost = "192.0.2.10"\n[[site.target]]\nhost = "a.example.net"\n'
    )
    path = tmp_path / "feeds.toml"
    path.write_text(f'catalogue = ["sites.toml"]\n{SESSION}')
    assert load_feeds(path).prefixes == (("a", "192.0.2.10"),)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "feed: is missing; expected at least one [[feed]]"),
        (SESSION + 'extra = 1\n', 'feed[0].extra: unknown key "extra"'),
        ('[[feed]]\nname = "x"\n', "feed[0].kind: is missing; expected one of session, ris_live"),
        ('[[feed]]\nname = "x"\nkind = "snmp"\n', 'feed[0].kind: "snmp" is unknown'),
        (SESSION.replace(":1179", ""), 'feed[0].listen: "192.0.2.9" is no address with a port'),
        (SESSION.replace("192.0.2.1\"", "host\""), 'feed[0].peer: "host" is no address'),
        (SESSION.replace("192.0.2.1\"", "2001:db8::1\""), "feed[0].peer: is of another"),
        (SESSION.replace("peer_asn = 65011\n", ""), "feed[0].peer_asn: is missing"),
        (SESSION + 'hold_time = "1s"\n', 'feed[0].hold_time: "1s" is no hold time'),
        (SESSION + "add_path = 1\n", "feed[0].add_path: 1 is neither true nor false"),
        (SESSION + 'deny = ["someone"]\n', 'feed[0].deny[0]: "someone" is none'),
        (SESSION + 'heartbeats = ["84.205.64.0/24"]\n', "feed[0].heartbeats: has no stale_after"),
        (SESSION + 'stale_after = "2"\n', 'feed[0].stale_after: "2" is no duration'),
        (SESSION + SESSION, 'feed[1].name: "edge" is the name of another feed'),
        ('[[feed]]\nname = "x"\nkind = "bmp"\nlisten = "192.0.2.9:1790"\n',
         "feed[0].allow: is missing"),
        ('[[feed]]\nname = "x"\nkind = "ris_live"\nurl = "http://a"\n', "feed[0].url: "),
        ('[[feed]]\nname = "x"\nkind = "mrt"\n', "feed[0].file: is missing"),
    ],
    ids=["none", "key", "no kind", "kind", "port", "peer", "family", "asn", "hold", "flag", "deny",
         "heartbeats", "stale", "twice", "allow", "url", "file"],
)  # fmt: skip
def test_a_fault_has_its_place(tmp_path: Path, text: str, fault: str) -> None:
    assert fault in faults(tmp_path, text)


def test_all_faults_come_at_once(tmp_path: Path) -> None:
    told = faults(tmp_path, SESSION.replace(":1179", "") + "extra = 1\n", 'prefixes = ["x"]\n')
    assert len(told.splitlines()) == 3
    assert 'prefixes[0]: "x" is none' in told


def test_no_prefix_at_all_is_a_fault(tmp_path: Path) -> None:
    assert "prefixes: names no prefix" in faults(tmp_path, SESSION, "")


def test_prefixes_of_sites_are_checked_where_they_stand(tmp_path: Path) -> None:
    site = '[[site]]\nname = "a"\nlatitude = 1\nlongitude = 1\nprefixes = '
    (tmp_path / "sites.toml").write_text(f'{site}["10.0.0.1/8", "192.0.2.10", "2001:DB8::/32"]\n')
    told = faults(tmp_path, SESSION, 'catalogue = ["sites.toml"]\n')
    assert [line.partition("sites.toml: ")[2].partition(";")[0] for line in told.splitlines()] == [
        'site[0].prefixes[0] (of "a"): "10.0.0.1/8" is no prefix',
        'site[0].prefixes[1] (of "a"): "192.0.2.10" is no prefix',
    ]
    table = tmp_path / "sites.csv"
    table.write_text(
        "name,latitude,longitude,prefixes\na,1,1,203.0.113.0/24 2001:DB8::/32\nb,1,1,\n"
    )
    path = tmp_path / "feeds.toml"
    path.write_text(f'catalogue = "sites.csv"\n{SESSION}')
    assert load_feeds(path).prefixes == (("a", "203.0.113.0/24"), ("a", "2001:db8::/32"))
