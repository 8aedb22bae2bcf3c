"""The key ``clock`` of a site in a world file: how wrong the clock of its reflector is."""

from pathbudget.agents.lab.link_file import duration, inner
from pathbudget.agents.reflector.clocks import Skew
from pathbudget.sites.entry import Entry, Interval

CLOCK_KEYS = ("offset", "ppm", "step", "step_after", "stated_error")
PPM = Interval(-1000, 1000, "parts per million, -1000 to 1000")


def read_clock(entry: Entry) -> Skew:
    """The clock of one site; a right one where the key is absent. Faults are noted in `entry`."""
    clock = inner(entry, "clock", CLOCK_KEYS)
    return Skew(
        offset_ns=_signed(clock, "offset"),
        ppm=clock.number("ppm", PPM) or 0.0,
        step_ns=_signed(clock, "step"),
        step_after_ns=duration(clock, "step_after", 0),
        stated_error_ns=duration(clock, "stated_error", 0)
        if clock.values.get("stated_error")
        else None,
    )


def _signed(entry: Entry, key: str) -> int:
    """A duration that a minus sign may precede: the clock is behind."""
    value = entry.values.get(key)
    if not isinstance(value, str) or not value.startswith("-"):
        return duration(entry, key, 0)
    bare = Entry(entry.file, {key: value[1:]}, entry.where, entry.faults)
    return -duration(bare, key, 0)
