"""What a world says about BGP beside AS numbers, preferences and prepends."""

from dataclasses import dataclass

LISTENER_PORT = 1790
PREFERENCE = 100
"""LOCAL_PREF of what no key says otherwise."""
OWN_CARRIER = 200
"""LOCAL_PREF that a region or site gives the routers of its `carrier`."""


@dataclass(frozen=True, slots=True)
class Bgp:
    """Routing is by BIRD 2: one speaker in every router, and in regions and sites with `asn`."""

    hold_ns: int = 3_000_000_000
    """After so much silence a session is down."""
    mrt: bool = False
    """Every speaker writes all messages and states to an MRT file (RFC 6396)."""


@dataclass(frozen=True, slots=True)
class Listener:
    """Who hears all best routes of a router: a program at node `at` that waits for its call."""

    name: str
    at: str
    router: str
    port: int = LISTENER_PORT
    asn: int | None = None
    """Of the program; None: that of the router, so that paths come as the router has them."""
    hold_ns: int = 90_000_000_000
    add_paths: bool = False
    """All its routes instead of the best alone (RFC 7911)."""
