"""The tables ``[bgp]`` and ``[[listener]]`` of a world file."""

from pathbudget.agents.lab.bgp import LISTENER_PORT, Bgp, Listener
from pathbudget.agents.lab.link_file import duration, inner, yes_or_no
from pathbudget.sites.entry import Entry, Interval

AS_NUMBER = Interval(1, 4294967295, "an AS number, 1 to 4294967295")
PORT = Interval(1, 65535, "a port, 1 to 65535")
SHORTEST_HOLD_NS = 3_000_000_000
"""RFC 4271, 4.2."""


def read_bgp(top: Entry) -> Bgp | None:
    """None where there is no such table."""
    if "bgp" not in top.values:
        return None
    entry = inner(top, "bgp", ("hold", "mrt"))
    return Bgp(_hold(entry, SHORTEST_HOLD_NS), yes_or_no(entry, "mrt") or False)


def read_listener(entry: Entry) -> Listener:
    """One listener. Faults are noted in `entry`."""
    entry.only(("name", "at", "router", "port", "asn", "hold", "add_paths"))
    port = entry.whole_number("port", PORT)
    return Listener(
        entry.text("name", None),
        entry.text("at", None),
        entry.text("router", None),
        LISTENER_PORT if port is None else port,
        entry.whole_number("asn", AS_NUMBER),
        _hold(entry, 90_000_000_000),
        yes_or_no(entry, "add_paths") or False,
    )


def _hold(entry: Entry, default: int) -> int:
    """BGP counts whole seconds, from three on."""
    found = duration(entry, "hold", default) if "hold" in entry.values else default
    if "hold" in entry.values and (found < SHORTEST_HOLD_NS or found % 1_000_000_000):
        entry.fault("hold", "BGP has no such hold time", 'whole seconds from "3s" to "1m"')
        return default
    return found
