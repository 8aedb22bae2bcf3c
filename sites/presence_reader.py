"""Who is at a facility: internet exchanges by name, networks by AS number."""

import re

from pathbudget.sites.entry import LONGEST_TEXT, Entry, show

LARGEST_ASN = 2**32 - 1
ASN = re.compile(r"(?:AS)?(\d{1,10})", re.ASCII | re.IGNORECASE)
EXCHANGES = 'a list of names, like ["DE-CIX Frankfurt"]; in a cell: names with ; between them'
NETWORKS = "a list of AS numbers from 1 to 4294967295; in a cell: AS64500 AS64501"


def read_exchanges(entry: Entry) -> tuple[str, ...]:
    """A list of names in TOML, names with ``;`` between them in a cell; each once."""
    names: list[str] = []
    for name in _items(entry, "exchanges", r";", EXCHANGES):
        if not isinstance(name, str) or not name.strip() or not name.isprintable():
            entry.fault("exchanges", f"{show(name)} is no name", EXCHANGES)
        elif len(name) > LONGEST_TEXT:
            problem = f"a name of {len(name)} characters"
            entry.fault("exchanges", problem, f"at most {LONGEST_TEXT} characters")
        else:
            names.append(name.strip())
    return tuple(dict.fromkeys(names))


def read_networks(entry: Entry) -> tuple[int, ...]:
    """A list of numbers or words like ``AS64500``; each once, in order."""
    found: list[int] = []
    for item in _items(entry, "networks", r"[\s,;]+", NETWORKS):
        number = as_number(item)
        if number is None:
            entry.fault("networks", f"{show(item)} is no AS number", NETWORKS)
        else:
            found.append(number)
    return tuple(dict.fromkeys(found))


def as_number(item: object) -> int | None:
    """``64500`` or ``AS64500`` as a number; None for anything else."""
    if isinstance(item, bool) or not isinstance(item, int | str):
        return None
    match = ASN.fullmatch(str(item).strip())
    number = int(match[1]) if match else 0
    return number if 1 <= number <= LARGEST_ASN else None


def _items(entry: Entry, key: str, separator: str, expected: str) -> list[object]:
    value = entry.values.get(key)
    if value is None:
        return []
    if entry.of_cells:
        return [part for part in re.split(separator, str(value)) if part.strip()]
    if not isinstance(value, list):
        entry.fault(key, f"{show(value)} is no list", expected)
        return []
    return list(value)
