"""The file of BGP feeds: where news comes from, which prefixes matter. Every fault in one go.

docs/bgp.md describes it for users; the tuples of keys below are its words.
"""

import ipaddress
from collections.abc import Callable, Iterable
from pathlib import Path

from pathbudget.agents.bgp.feed_sources import SOURCES
from pathbudget.agents.bgp.plans import BgpPlan, FeedPlan
from pathbudget.agents.campaign.entry_values import duration_ns, texts
from pathbudget.analysis.routes.bgp_peers import FeedRules
from pathbudget.analysis.routes.bgp_state import SETTLE_NS
from pathbudget.probes.bgp.record import FeedKind
from pathbudget.probes.errors import ConfigError, Fault
from pathbudget.sites.catalogue import Catalogue, Site
from pathbudget.sites.catalogue_file import load_catalogue
from pathbudget.sites.entry import Entry, show
from pathbudget.sites.toml_reader import read_toml

TOP_KEYS = ("catalogue", "prefixes", "settle", "rpki", "feed")
FEED_KEYS = ("name", "kind", "deny", "heartbeats", "stale_after")
KINDS = tuple(kind.value for kind in FeedKind)
PREFIX = 'a prefix or an address, like "203.0.113.0/24"'


def load_feeds(path: Path) -> BgpPlan:
    """Read a file of feeds, and the catalogue it names.

    Raises ConfigError with every fault of both.
    """
    faults: list[Fault] = []
    top = Entry(str(path), read_toml(path), lambda key: key, faults)
    top.only(TOP_KEYS)
    feeds = _feeds(top, path.parent)
    prefixes = _prefixes(top, path.parent)
    settle = duration_ns(top, "settle", f"{SETTLE_NS // 1_000_000_000}s")
    vrps = top.text("rpki")
    if faults or settle is None:
        raise ConfigError(faults)
    return BgpPlan(tuple(feeds), prefixes, settle, path.parent / vrps if vrps else None)


def site_prefixes(sites: Iterable[Site]) -> list[tuple[str, str]]:
    """What BGP says about each site: its stated prefixes, or else its targets' addresses."""
    found: list[tuple[str, str]] = []
    for site in sites:
        addresses = [target.host for target in site.targets if _is_address(target.host)]
        found += [(site.name, prefix) for prefix in site.prefixes or dict.fromkeys(addresses)]
    return found


def _feeds(top: Entry, folder: Path) -> list[FeedPlan]:
    values = top.values.get("feed")
    if not isinstance(values, list) or not values:
        problem = "is missing" if values is None else f"{show(values)} is no list of tables"
        top.fault("feed", problem, "at least one [[feed]]")
        return []
    feeds: list[FeedPlan] = []
    names: set[str] = set()
    for number, value in enumerate(values):
        place = f"feed[{number}]"
        if not isinstance(value, dict):
            top.fault(place, f"{show(value)} is no table", "a table [[feed]]")
            continue
        entry = Entry(top.file, value, _under(place), top.faults)
        feed = _feed(entry, folder)
        name = value.get("name")
        if isinstance(name, str) and name in names:
            entry.fault("name", f"{show(name)} is the name of another feed", "each name once")
        elif isinstance(name, str):
            names.add(name)
        if feed is not None:
            feeds.append(feed)
    return feeds


def _feed(entry: Entry, folder: Path) -> FeedPlan | None:
    name = entry.text("name", None)
    kind = entry.word("kind", KINDS, "")
    if not kind:
        entry.fault("kind", "is missing", "one of " + ", ".join(KINDS))
    rules = _rules(entry)
    if kind not in KINDS:
        return None
    keys, read = SOURCES[FeedKind(kind)]
    entry.only((*FEED_KEYS, *keys))
    source = read(entry, folder)
    if source is None or not entry.sound:
        return None
    return FeedPlan(name, FeedKind(kind), source, rules)


def _rules(entry: Entry) -> FeedRules:
    stale = duration_ns(entry, "stale_after", "")
    heartbeats = _checked(entry, "heartbeats", _is_prefix, 'a prefix, like "84.205.64.0/24"')
    if heartbeats and "stale_after" not in entry.values:
        expected = 'stale_after, like "150m": how long a heartbeat may be away'
        entry.fault("heartbeats", "has no stale_after beside it", expected)
    deny = _checked(entry, "deny", _is_peer, 'an address or "AS64500"')
    denied = frozenset(
        word.upper() if word[:2].upper() == "AS" else _address(word) for word in deny
    )
    networks = frozenset(str(ipaddress.ip_network(one)) for one in heartbeats)
    return FeedRules(stale, networks, denied)


def _checked(entry: Entry, key: str, good: Callable[[str], bool], expected: str) -> tuple[str, ...]:
    found: list[str] = []
    for number, word in enumerate(texts(entry, key)):
        if good(word):
            found.append(word)
        else:
            entry.fault(f"{key}[{number}]", f"{show(word)} is none", expected)
    return tuple(found)


def _prefixes(top: Entry, folder: Path) -> tuple[tuple[str, str], ...]:
    catalogue = _catalogue(top, folder)
    own = _checked(top, "prefixes", lambda word: _is_prefix(word) or _is_address(word), PREFIX)
    of_sites = site_prefixes(catalogue.sites.values())
    prefixes = (*of_sites, *(("", word) for word in own))
    if not prefixes and not top.faults:
        problem = "names no prefix"
        expected = 'prefixes = ["203.0.113.0/24"], or a catalogue whose sites have prefixes or '
        top.fault("prefixes", problem, expected + "targets with addresses")
    return prefixes


def _catalogue(top: Entry, folder: Path) -> Catalogue:
    names = texts(top, "catalogue")
    try:
        return load_catalogue([folder / name for name in names]) if names else Catalogue()
    except ConfigError as error:
        top.faults.extend(error.faults)
        return Catalogue()


def _under(place: str) -> Callable[[str], str]:
    return lambda key: f"{place}.{key}" if key else place


def _is_prefix(word: str) -> bool:
    try:
        ipaddress.ip_network(word)
    except ValueError:
        return False
    return "/" in word


def _is_address(word: str) -> bool:
    try:
        ipaddress.ip_address(word)
    except ValueError:
        return False
    return True


def _address(word: str) -> str:
    return str(ipaddress.ip_address(word))


def _is_peer(word: str) -> bool:
    number = word[2:] if word[:2].upper() == "AS" else ""
    return _is_address(word) or (number.isascii() and number.isdecimal() and len(number) <= 10)
