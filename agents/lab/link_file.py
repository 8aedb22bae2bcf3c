"""One ``[[link]]`` table of a world file: two directions out of common and one-sided keys."""

import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import TypeVar

from pathbudget.agents.lab.link import BurstLoss, DirectionModel, Order, Variation, VariationKind
from pathbudget.agents.lab.topology import Link
from pathbudget.agents.units import parse_duration_ns
from pathbudget.sites.entry import Entry, Interval, show

MODEL_KEYS = (
    "delay", "variation", "loss", "bursts", "rate", "queue", "reorder", "order", "silent_mtu",
)  # fmt: skip
DIRECTION_KEYS = (*MODEL_KEYS, "local_preference", "prepend")
LINK_KEYS = (
    "between", *DIRECTION_KEYS, "cost", "forward", "reverse", "name", "mtu", "members",
)  # fmt: skip
SIDES = ("forward", "reverse")

PROBABILITY = Interval(0, 1, "a share from 0 to 1")
ABOVE_ZERO = Interval(0, 1, "a share above 0, at most 1", open_low=True)
SHAPE = Interval(1, 100, "a Pareto shape above 1", open_low=True)
COST = Interval(0, 1e9, "a cost of 0 or more")
MTU = Interval(1280, 1500, "octets of an IP packet, 1280 to 1500")
"""IPv6 ends below 1280 (RFC 8200, 5); the emulator's frames are ordinary Ethernet."""
MEMBERS = Interval(2, 64, "a number of cables, 2 to 64, or a list of tables, one for each")
PREFERENCE = Interval(0, 2**31 - 1, "a BGP LOCAL_PREF, 0 to 2147483647; 100 is usual")
PREPEND = Interval(0, 16, "how often an AS number is repeated, 0 to 16")
BLACK_HOLE = Interval(68, 1500, "octets of an IP packet, 68 to 1500")
LONGEST_NS = 60_000_000_000

Choice = TypeVar("Choice", bound=StrEnum)

_RATE = re.compile(r"(\d+(?:\.\d+)?)\s*([kMG])bit(?:/s)?")
_PREFIXES = {"k": 1e3, "M": 1e6, "G": 1e9}


def read_link(entry: Entry) -> Link | None:
    """The link of one table; None when its ends cannot be read. Faults are noted in `entry`."""
    entry.only(LINK_KEYS)
    ends = _ends(entry)
    forward, reverse = (_direction(_side(entry, side)) for side in SIDES)
    cost = entry.number("cost", COST)
    name = entry.text("name")
    members = _members(entry, forward, reverse)
    mtu = entry.whole_number("mtu", MTU)
    forth, back = (_side(entry, side) for side in SIDES)
    preferences = tuple(one.whole_number("local_preference", PREFERENCE) for one in (forth, back))
    prepends = tuple(one.whole_number("prepend", PREPEND) or 0 for one in (forth, back))
    if ends is None:
        return None
    return Link(
        *ends,
        forward,
        reverse,
        cost,
        name,
        members,
        mtu,
        (preferences[0], preferences[1]),
        (prepends[0], prepends[1]),
    )


def _members(
    entry: Entry, forward: DirectionModel, reverse: DirectionModel
) -> tuple[tuple[DirectionModel, DirectionModel], ...]:
    """Each cable of a bundle: keys of its own table before those of the link."""
    value = entry.values.get("members")
    if not isinstance(value, list):
        count = entry.whole_number("members", MEMBERS)
        return ((forward, reverse),) * (count or 0)
    if not 2 <= len(value) <= MEMBERS.high:
        entry.fault("members", f"a list of {len(value)}", MEMBERS.expected)
    members: list[tuple[DirectionModel, DirectionModel]] = []
    for number, own in enumerate(value, start=1):
        place = f"members[{number}]"
        if not isinstance(own, dict):
            entry.fault(place, f"{show(own)} is no table", "a table with keys of a link, or {}")
            continue
        inside = Entry(entry.file, own, _inside(entry, place), entry.faults)
        inside.only((*MODEL_KEYS, *SIDES))
        common = {
            key: entry.values[key] for key in (*DIRECTION_KEYS, *SIDES) if key in entry.values
        }

        def where(key: str, own: Mapping[str, object] = own, inside: Entry = inside) -> str:
            return (inside if key.partition(".")[0] in own else entry).where(key)

        merged = Entry(entry.file, {**common, **_sides_of(common, own)}, where, entry.faults)
        one, other = (_direction(_side(merged, side)) for side in SIDES)
        members.append((one, other))
    return tuple(members)


def _sides_of(common: Mapping[str, object], own: Mapping[str, object]) -> dict[str, object]:
    """What a cable says of itself holds before what the link says of one direction."""
    merged = dict(own)
    plain = {key: value for key, value in own.items() if key in DIRECTION_KEYS}
    for side in SIDES:
        of_link, of_cable = common.get(side, {}), own.get(side, {})
        if isinstance(of_link, dict) and isinstance(of_cable, dict):
            merged[side] = {**of_link, **plain, **of_cable} if of_link or of_cable else {}
    return merged


def _inside(entry: Entry, place: str) -> Callable[[str], str]:
    return lambda key: entry.where(f"{place}.{key}" if key else place)


def _ends(entry: Entry) -> tuple[str, str] | None:
    value = entry.values.get("between")
    expected = 'the names of two nodes, like ["tokyo", "east-tokyo"]'
    if value is None:
        entry.fault("between", "is missing", expected)
        return None
    if isinstance(value, list) and len(value) == 2:
        first, second = value
        if isinstance(first, str) and isinstance(second, str):
            return first, second
    entry.fault("between", f"{show(value)} is no pair of names", expected)
    return None


def _side(entry: Entry, side: str) -> Entry:
    """The keys that hold for one direction: its own before the common ones."""
    own = table(entry, side, DIRECTION_KEYS)
    common = {key: entry.values[key] for key in DIRECTION_KEYS if key in entry.values}

    def where(key: str) -> str:
        return entry.where(f"{side}.{key}" if key.partition(".")[0] in own else key)

    return Entry(entry.file, {**common, **own}, where, entry.faults)


def _direction(entry: Entry) -> DirectionModel:
    if "delay" not in entry.values:
        entry.fault("delay", "is missing", 'a duration like "12.5ms"')
    reorder = inner(entry, "reorder", ("share", "by"))
    return DirectionModel(
        delay_ns=duration(entry, "delay", 0),
        variation=read_variation(inner(entry, "variation", ("kind", "scale", "shape", "share"))),
        loss=entry.number("loss", PROBABILITY) or 0.0,
        bursts=_bursts(entry),
        rate_bits=_rate(entry),
        queue_ns=duration(entry, "queue", 100_000_000),
        reorder=reorder.number("share", PROBABILITY, required=bool(reorder.values)) or 0.0,
        reorder_by_ns=duration(reorder, "by", 5_000_000),
        order=choice(entry, "order", Order, Order.FLOW),
        largest_octets=entry.whole_number("silent_mtu", BLACK_HOLE),
    )


def read_variation(entry: Entry) -> Variation:
    """The table of a delay variation."""
    if not entry.values:
        return Variation()
    kind = choice(entry, "kind", VariationKind, VariationKind.NORMAL)
    if kind is not VariationKind.NONE and "scale" not in entry.values:
        entry.fault("scale", "is missing", 'a duration like "0.2ms"')
    shape = entry.number("shape", SHAPE)
    share = entry.number("share", PROBABILITY)
    return Variation(
        kind=kind,
        scale_ns=duration(entry, "scale", 0),
        shape=2.5 if shape is None else shape,
        share=1.0 if share is None else share,
    )


def _bursts(entry: Entry) -> BurstLoss | None:
    inside = inner(entry, "bursts", ("to_bad", "to_good", "loss_bad", "loss_good"))
    if not inside.values:
        return None
    to_bad = inside.number("to_bad", ABOVE_ZERO, required=True)
    to_good = inside.number("to_good", ABOVE_ZERO, required=True)
    bad = inside.number("loss_bad", PROBABILITY)
    good = inside.number("loss_good", PROBABILITY)
    if to_bad is None or to_good is None:
        return None
    return BurstLoss(to_bad, to_good, 1.0 if bad is None else bad, good or 0.0)


def _rate(entry: Entry) -> int | None:
    value = entry.values.get("rate")
    if value is None:
        return None
    match = _RATE.fullmatch(value.strip()) if isinstance(value, str) else None
    rate = round(float(match.group(1)) * _PREFIXES[match.group(2)]) if match else 0
    if rate < 1000:
        entry.fault("rate", f"{show(value)} is no rate", 'at least 1 kbit/s, like "100 Mbit/s"')
        return None
    return rate


def duration(entry: Entry, key: str, default: int) -> int:
    """Nanoseconds of a duration in quotation marks, at most a minute."""
    value = entry.values.get(key)
    if value is None:
        return default
    expected = 'a duration of at most one minute, like "12.5ms"'
    try:
        found = parse_duration_ns(value) if isinstance(value, str) else -1
    except ValueError:
        found = -1
    if not 0 <= found <= LONGEST_NS:
        entry.fault(key, f"{show(value)} is no such duration", expected)
        return default
    return found


def yes_or_no(entry: Entry, key: str) -> bool | None:
    """A boolean, None when it is absent or wrong."""
    value = entry.values.get(key)
    if value is None or isinstance(value, bool):
        return value
    entry.fault(key, f"{show(value)} is neither", "true or false")
    return None


def inner(entry: Entry, key: str, known: tuple[str, ...]) -> Entry:
    """The table under `key`, empty where there is none."""
    values = table(entry, key, known)
    return Entry(entry.file, values, lambda name: entry.where(f"{key}.{name}"), entry.faults)


def table(entry: Entry, key: str, known: tuple[str, ...]) -> Mapping[str, object]:
    """The table under `key` with its unknown keys noted; empty where there is none."""
    value = entry.values.get(key, {})
    if not isinstance(value, dict):
        entry.fault(key, f"{show(value)} is no table", "a table with " + ", ".join(known))
        return {}
    values = {str(name): inside for name, inside in value.items()}
    inside = Entry(entry.file, values, lambda name: entry.where(f"{key}.{name}"), entry.faults)
    inside.only(known)
    return values


def choice(entry: Entry, key: str, choices: type[Choice], default: Choice) -> Choice:
    """One of the words of an enumeration."""
    word = entry.word(key, list(choices), default)
    return choices(word) if word in list(choices) else default
