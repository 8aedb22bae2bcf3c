"""The policy file of a host: TOML, every fault found in one go (docs/plans.md)."""

import ipaddress
from collections.abc import Callable
from datetime import time
from pathlib import Path
from zoneinfo import ZoneInfo

from pathbudget.agents.campaign.entry_values import texts, words
from pathbudget.agents.plans.policy import IpNetwork, Policy, QuietHours
from pathbudget.probes.errors import ConfigError, Fault
from pathbudget.probes.table import probe_table
from pathbudget.sites.entry import Entry, Interval, show
from pathbudget.sites.toml_reader import read_toml

KEYS = (
    "allowed_networks",
    "do_not_probe",
    "probes",
    "packets_per_second",
    "bytes_per_day",
    "files",
    "quiet_hours",
)
QUIET_KEYS = ("zone", "from", "to", "days")
DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
LARGEST = 10**15


def read_policy(path: Path) -> Policy:
    """Raises ConfigError with every fault. A host whose policy has one runs no plan at all."""
    faults: list[Fault] = []
    top = Entry(str(path), read_toml(path), lambda key: key, faults)
    top.only(KEYS)
    defaults = Policy()
    rule = Interval(1, LARGEST, f"a whole number, 1 to {LARGEST}")
    denied, names = _denied(top)
    files = top.text("files", "")
    policy = Policy(
        allowed_networks=_networks(top, "allowed_networks"),
        do_not_probe=denied,
        do_not_probe_names=names,
        probes=frozenset(words(top, "probes", probe_table())),
        packets_per_second=top.whole_number("packets_per_second", rule)
        or defaults.packets_per_second,
        bytes_per_day=top.whole_number("bytes_per_day", rule) or defaults.bytes_per_day,
        quiet_hours=_quiet_hours(top),
        files=(path.parent / files).absolute() if files else None,
    )
    if faults:
        raise ConfigError(faults)
    return policy


def _networks(top: Entry, key: str) -> tuple[IpNetwork, ...]:
    found: list[IpNetwork] = []
    for number, text in enumerate(texts(top, key)):
        try:
            found.append(ipaddress.ip_network(text))
        except ValueError as error:
            expected = "an address or a network such as 192.0.2.0/24 or 2001:db8::/32"
            top.fault(f"{key}[{number}]", f"{show(text)}: {error}", expected)
    return tuple(found)


def _denied(top: Entry) -> tuple[tuple[IpNetwork, ...], frozenset[str]]:
    """Networks and names; what looks like neither is a fault, or it would protect nobody."""
    networks: list[IpNetwork] = []
    names: set[str] = set()
    for number, text in enumerate(texts(top, "do_not_probe")):
        name = text.rstrip(".").lower()
        try:
            networks.append(ipaddress.ip_network(text))
        except ValueError:
            if "/" in text or not all(_is_label(label) for label in name.split(".")):
                expected = "an address, a network, or a host name"
                top.fault(f"do_not_probe[{number}]", f"{show(text)} is none of those", expected)
            names.add(name)
    return tuple(networks), frozenset(names)


def _is_label(label: str) -> bool:
    """A label of a host name; one of digits alone would be a misspelt address."""
    plain = label.replace("-", "").replace("_", "")
    return bool(plain) and plain.isalnum() and not label.isdigit() and len(label) <= 63


def _quiet_hours(top: Entry) -> tuple[QuietHours, ...]:
    value = top.values.get("quiet_hours", [])
    if not isinstance(value, list):
        top.fault("quiet_hours", f"{show(value)} is no list of tables", "[[quiet_hours]] tables")
        return ()
    found: list[QuietHours] = []
    for number, table in enumerate(value):
        place = f"quiet_hours[{number}]"
        if not isinstance(table, dict):
            top.fault(place, f"{show(table)} is no table", "a table [[quiet_hours]]")
            continue
        entry = Entry(top.file, table, _under(place), top.faults)
        entry.only(QUIET_KEYS)
        zone, begin, end = _zone(entry), _clock(entry, "from"), _clock(entry, "to")
        days = words(entry, "days", DAYS) or DAYS
        if begin is not None and begin == end:
            entry.fault("to", "is the same as from", "another time, or no such table")
        elif zone is not None and begin is not None and end is not None:
            found.append(QuietHours(zone, begin, end, frozenset(map(DAYS.index, days))))
    return tuple(found)


def _under(place: str) -> Callable[[str], str]:
    return lambda key: f"{place}.{key}" if key else place


def _zone(entry: Entry) -> ZoneInfo | None:
    name = entry.text("zone", None)
    if not name:
        return None
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        entry.fault("zone", f"{show(name)} is unknown", "an IANA zone such as Europe/Berlin")
        return None


def _clock(entry: Entry, key: str) -> time | None:
    value = entry.values.get(key)
    if isinstance(value, time):  # TOML has a type for it
        return value
    text = entry.text(key, None)
    try:
        return time.fromisoformat(text) if text else None
    except ValueError:
        entry.fault(key, f"{show(text)} is no time of day", 'one such as "22:30"')
        return None
