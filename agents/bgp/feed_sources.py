"""The keys that each kind of feed has of its own, and the plan that they make."""

import ipaddress
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from pathbudget.agents.bgp.plans import (
    RIS_LIVE_URL,
    BmpPlan,
    Endpoint,
    MrtPlan,
    Network,
    RisLivePlan,
    SessionPlan,
    Source,
)
from pathbudget.agents.campaign.entry_values import duration_ns, texts, words
from pathbudget.probes.bgp.bmp import View
from pathbudget.probes.bgp.record import FeedKind
from pathbudget.sites.entry import Entry, Interval, show

SECOND_NS = 1_000_000_000
ASN = Interval(1, 0xFFFF_FFFF, "an AS number, 1 to 4294967295")
FAMILIES = ("ipv4", "ipv6")
ENDPOINT = 'an address and a port, like "192.0.2.9:1179" or "[2001:db8::9]:1179"'
SHORTEST_HOLD_S, LONGEST_HOLD_S = 3, 65_535


def _session(entry: Entry, folder: Path) -> SessionPlan | None:
    del folder
    listen = _endpoint(entry, "listen")
    peer = _address(entry, "peer")
    local = entry.whole_number("local_asn", ASN, required=True)
    remote = entry.whole_number("peer_asn", ASN, required=True)
    router = _router_id(entry)
    families = words(entry, "families", FAMILIES) or FAMILIES
    add_path = _flag(entry, "add_path")
    hold = duration_ns(entry, "hold_time", "90s")
    hold_s = (hold or 0) // SECOND_NS
    if hold is not None and (not SHORTEST_HOLD_S <= hold_s <= LONGEST_HOLD_S or hold % SECOND_NS):
        expected = f"whole seconds, {SHORTEST_HOLD_S}s to {LONGEST_HOLD_S}s"
        entry.fault("hold_time", f"{show(entry.values.get('hold_time'))} is no hold time", expected)
    if listen and peer and (":" in listen.address) != (":" in peer):
        entry.fault("peer", "is of another address family than listen", "both IPv4 or both IPv6")
    if not (listen and peer and local and remote and router and hold):
        return None
    return SessionPlan(listen, peer, remote, local, router, families, add_path, hold_s)


def _ris_live(entry: Entry, folder: Path) -> RisLivePlan | None:
    url, file = entry.text("url"), entry.text("file")
    if url and file:
        entry.fault("file", "stands beside url", "one of the two")
    if url and (urlsplit(url).scheme not in {"ws", "wss"} or not urlsplit(url).hostname):
        entry.fault("url", f"{show(url)} is no address of a WebSocket", f'like "{RIS_LIVE_URL}"')
    collectors = texts(entry, "collectors")
    return RisLivePlan(url or RIS_LIVE_URL, collectors, folder / file if file else None)


def _mrt(entry: Entry, folder: Path) -> MrtPlan | None:
    file, table = entry.text("file", None), entry.text("table")
    collector = entry.text("collector")
    return MrtPlan(folder / file, folder / table if table else None, collector) if file else None


def _bmp(entry: Entry, folder: Path) -> BmpPlan | None:
    del folder
    listen = _endpoint(entry, "listen")
    allow: list[Network] = []
    for number, word in enumerate(texts(entry, "allow")):
        try:
            allow.append(ipaddress.ip_network(word))
        except ValueError:
            entry.fault(f"allow[{number}]", f"{show(word)} is no network", 'like "192.0.2.0/24"')
    if "allow" not in entry.values:
        entry.fault("allow", "is missing", 'networks of the routers, like ["192.0.2.0/24"]')
    view = entry.word("view", tuple(View), "")
    if listen is None or not entry.sound:
        return None
    return BmpPlan(listen, tuple(allow), View(view) if view else None)


Reader = Callable[[Entry, Path], Source | None]

SOURCES: dict[FeedKind, tuple[tuple[str, ...], Reader]] = {
    FeedKind.SESSION: (
        (
            "listen",
            "peer",
            "peer_asn",
            "local_asn",
            "router_id",
            "families",
            "add_path",
            "hold_time",
        ),
        _session,
    ),
    FeedKind.RIS_LIVE: (("url", "collectors", "file"), _ris_live),
    FeedKind.MRT: (("file", "table", "collector"), _mrt),
    FeedKind.BMP: (("listen", "allow", "view"), _bmp),
}


def _endpoint(entry: Entry, key: str) -> Endpoint | None:
    text = entry.text(key, None)
    if not text:
        return None
    place, colon, port = text.rpartition(":")
    try:
        if not colon or not (port.isascii() and port.isdecimal()) or not 0 < int(port) < 65536:
            raise ValueError  # noqa: TRY301
        return Endpoint(str(ipaddress.ip_address(place.strip("[]"))), int(port))
    except ValueError:
        entry.fault(key, f"{show(text)} is no address with a port", ENDPOINT)
        return None


def _address(entry: Entry, key: str) -> str:
    text = entry.text(key, None)
    try:
        return str(ipaddress.ip_address(text)) if text else ""
    except ValueError:
        entry.fault(key, f"{show(text)} is no address", 'an address, like "192.0.2.1"')
        return ""


def _router_id(entry: Entry) -> str:
    text = entry.text("router_id", None)
    try:
        return str(ipaddress.IPv4Address(text)) if text else ""
    except ValueError:
        entry.fault("router_id", f"{show(text)} is no router id", 'four numbers, like "192.0.2.9"')
        return ""


def _flag(entry: Entry, key: str) -> bool:
    value = entry.values.get(key, False)
    if not isinstance(value, bool):
        entry.fault(key, f"{show(value)} is neither true nor false", "true or false")
        return False
    return value
