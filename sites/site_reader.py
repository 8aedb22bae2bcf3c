"""From one table of a file to a `Site` with its targets."""

import ipaddress
import re
from collections.abc import Mapping

from pathbudget.probes.record import Target
from pathbudget.sites.catalogue import Site
from pathbudget.sites.entry import Entry, Interval, show
from pathbudget.sites.presence_reader import read_exchanges, read_networks
from pathbudget.sites.region_reader import PLACE_KEYS, Places, read_spot

PRICE = Interval(0, 1e15, "a price per month, 0 or more")
CAPACITY = Interval(0, 1e15, "a capacity above 0, in the unit of the weights", open_low=True)
POWER = Interval(0, 1e9, "a power in kW, 0 or more")
PORT = Interval(1, 65535, "a port from 1 to 65535")

SITE_KEYS = (
    *PLACE_KEYS,
    "operator",
    "metro",
    "price_per_month",
    "capacity",
    "power_kw",
    "exchanges",
    "networks",
    "prefixes",
    "target",
)
CSV_SITE_KEYS = (*SITE_KEYS[:-1], "targets")
TARGET_KEYS = ("name", "host", "port", "server_name")

PREFIX = 'a prefix that BGP announces, like "203.0.113.0/24"'
HOST = "a host name or an address, without scheme, port or path"
LABEL = re.compile(r"(?!-)[\w-]{1,63}(?<!-)")
HOST_AND_PORT = re.compile(r"(?:\[(?P<literal>[^\]]*)\]|(?P<host>[^:]*))(?::(?P<port>\d{1,5}))?")


def read_site(entry: Entry, places: Places) -> Site | None:
    """The site that `entry` describes; None when there are faults, which are noted.

    Targets come from ``[[site.target]]`` tables, or from the cell ``targets`` of a CSV.
    """
    entry.only(CSV_SITE_KEYS if entry.of_cells else SITE_KEYS)
    targets = _targets_of_cell(entry) if entry.of_cells else _targets_of_tables(entry)
    price = entry.number("price_per_month", PRICE)
    capacity = entry.number("capacity", CAPACITY)
    power = entry.number("power_kw", POWER)
    exchanges, networks = read_exchanges(entry), read_networks(entry)
    prefixes = _prefixes(entry)
    operator, metro = entry.text("operator"), entry.text("metro")
    spot = read_spot(entry, places)
    if spot is None or not entry.sound:
        return None
    lender = None if "latitude" in entry.values else places.get(entry.text("place") or spot.name)
    lent = lender if isinstance(lender, Site) else None
    return Site(
        name=spot.name,
        latitude=spot.latitude,
        longitude=spot.longitude,
        title=spot.title,
        operator=operator or (lent.operator if lent else ""),
        metro=metro or (lent.metro if lent else ""),
        country=spot.country,
        price_per_month=price,
        capacity=capacity,
        targets=tuple(_of_site(target, spot.name) for target in targets),
        source=spot.source,
        date=spot.date,
        prefixes=prefixes,
        power_kw=power,
        exchanges=exchanges,
        networks=networks,
    )


def is_host(text: str) -> bool:
    """Whether `text` is an address literal or formed like a host name (RFC 1123, and ``_``)."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        labels = text.removesuffix(".").split(".")
        numeric = labels[-1].isdigit()
        return len(text) <= 253 and not numeric and all(LABEL.fullmatch(part) for part in labels)
    return True


def _prefixes(entry: Entry) -> tuple[str, ...]:
    """A list in TOML, words in a cell; each in its usual form."""
    value = entry.values.get("prefixes", "" if entry.of_cells else [])
    words = re.findall(r"[^\s,;]+", str(value)) if entry.of_cells else value
    if not isinstance(words, list):
        entry.fault("prefixes", f"{show(value)} is no list", f"a list, each {PREFIX}")
        return ()
    found: list[str] = []
    for index, word in enumerate(words):
        key = "prefixes" if entry.of_cells else f"prefixes[{index}]"
        try:
            if not isinstance(word, str) or "/" not in word:
                raise ValueError  # noqa: TRY301
            network = ipaddress.ip_network(word)
        except ValueError:
            entry.fault(key, f"{show(word)} is no prefix", PREFIX)
            continue
        if str(network) in found:
            entry.fault(key, f"{show(word)} stands there twice", "each prefix once")
        found.append(str(network))
    return tuple(found)


def _of_site(target: Target, site: str) -> Target:
    return Target(
        name=target.name,
        host=target.host,
        site=site,
        port=target.port,
        server_name=target.server_name,
    )


def _targets_of_tables(entry: Entry) -> list[Target]:
    tables = entry.values.get("target", [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        entry.fault("target", f"{show(tables)} is no list of tables", "[[site.target]] tables")
        return []
    targets = [_read_target(entry, index, table) for index, table in enumerate(tables)]
    return _distinct(entry, "target", [target for target in targets if target is not None])


def _read_target(entry: Entry, index: int, table: Mapping[str, object]) -> Target | None:
    target = Entry(
        entry.file, table, lambda key: entry.where(f"target[{index}].{key}"), entry.faults
    )
    target.only(TARGET_KEYS)
    host = _host(target, "host", target.text("host", None))
    port = target.whole_number("port", PORT)
    server_name = _host(target, "server_name", target.text("server_name"))
    name = target.text("name") or _default_name(host, port)
    if not target.sound:
        return None
    return Target(name=name, host=host, port=port, server_name=server_name)


def _targets_of_cell(entry: Entry) -> list[Target]:
    """``host:port host:port``; IPv6 literals as ``[2001:db8::1]:443`` or bare without a port."""
    words = re.findall(r"[^\s,;]+", str(entry.values.get("targets", "")))
    targets = [_target_of_word(entry, word) for word in words]
    return _distinct(entry, "targets", [target for target in targets if target is not None])


def _target_of_word(entry: Entry, word: str) -> Target | None:
    expected = "host:port host:port, like probe.example.net:443"
    found = HOST_AND_PORT.fullmatch(word)
    host, port = word, None
    if found:
        host = found["literal"] or found["host"] or ""
        port = int(found["port"]) if found["port"] else None
    if not is_host(host):
        entry.fault("targets", f"{show(word)} is no target", expected)
        return None
    if port is not None and not PORT.holds(port):
        entry.fault("targets", f"port {port} of {show(word)} is out of range", PORT.expected)
        return None
    return Target(name=_default_name(host, port), host=host, port=port)


def _host(entry: Entry, key: str, text: str) -> str:
    if text and not is_host(text):
        entry.fault(key, f"{show(text)} is no host", HOST)
    return text


def _default_name(host: str, port: int | None) -> str:
    """How a target is called that has no name of its own."""
    shown = f"[{host}]" if ":" in host else host
    return host if port is None else f"{shown}:{port}"


def _distinct(entry: Entry, key: str, targets: list[Target]) -> list[Target]:
    seen: set[str] = set()
    for target in targets:
        if target.name in seen:
            problem = f"two targets are called {show(target.name)}"
            entry.fault(key, problem, "a different name for each target of a site")
        seen.add(target.name)
    return targets
