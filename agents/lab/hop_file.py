"""Keys of a router in a world file that say how it treats what traceroutes are made of."""

from pathbudget.agents.lab.hop import Balancing, Hop, Label, Translation
from pathbudget.agents.lab.link_file import choice, duration, yes_or_no
from pathbudget.sites.entry import Entry, Interval, did_you_mean, plain_number, show

HOP_KEYS = ("balancing", "icmp_rate", "silent", "mpls", "interface", "nat")
LABEL = Interval(0, 2**20 - 1, "an MPLS label, 0 to 1048575")
CLASS = Interval(0, 7, "a traffic class, 0 to 7")
TTL = Interval(0, 255, "a TTL, 0 to 255")
LABELS = "a list of labels, like [24015, 16008] or [{label = 24015, class = 0, ttl = 1}]"
MOST_LABELS = 8


def read_hop(entry: Entry, balancing: Balancing = Balancing.PORTS) -> Hop:
    """The peculiarities of one router; `balancing` where it does not say. Faults are noted in
    `entry`.
    """
    return Hop(
        balancing=choice(entry, "balancing", Balancing, balancing),
        icmp_rate_ns=_rate(entry),
        silent=yes_or_no(entry, "silent") or False,
        labels=_labels(entry),
        interface=yes_or_no(entry, "interface") or False,
        translation=_translation(entry),
    )


def _rate(entry: Entry) -> int | None:
    """Time between two messages; the kernel counts whole milliseconds."""
    if "icmp_rate" not in entry.values:
        return None
    found = duration(entry, "icmp_rate", 1_000_000)
    if found < 1_000_000:
        entry.fault("icmp_rate", "is too short", 'at least "1ms"; without the key: no limit')
    return found


def _labels(entry: Entry) -> tuple[Label, ...]:
    value = entry.values.get("mpls")
    if value is None:
        return ()
    if not isinstance(value, list) or not 1 <= len(value) <= MOST_LABELS:
        entry.fault("mpls", f"{show(value)} is no such list", f"{LABELS}, at most {MOST_LABELS}")
        return ()
    return tuple(_label(entry, f"mpls[{number}]", one) for number, one in enumerate(value, start=1))


def _label(entry: Entry, place: str, value: object) -> Label:
    values = value if isinstance(value, dict) else {"label": value}
    if plain_number(value) is None and not isinstance(value, dict):
        entry.fault(place, f"{show(value)} is no label", LABEL.expected)
        return Label(0)
    named = isinstance(value, dict)
    inside = Entry(
        entry.file,
        {str(key): one for key, one in values.items()},
        lambda key: entry.where(f"{place}.{key}" if named and key else place),
        entry.faults,
    )
    inside.only(("label", "class", "ttl"))
    ttl = inside.whole_number("ttl", TTL)
    return Label(
        inside.whole_number("label", LABEL, required=True) or 0,
        inside.whole_number("class", CLASS) or 0,
        1 if ttl is None else ttl,
    )


def _translation(entry: Entry) -> Translation | None:
    value = entry.values.get("nat")
    if value is None or value is False:
        return None
    if value is True:
        return Translation.LEAVE
    words = [word.value for word in Translation]
    if isinstance(value, str) and value in words:
        return Translation(value)
    known = did_you_mean(value, words) if isinstance(value, str) else 'true, "leave" or "restore"'
    entry.fault("nat", f"{show(value)} is unknown", known)
    return None
