"""How much the responder gives at most: to everybody, to one source, to one connection."""

import ipaddress
from collections import Counter
from dataclasses import dataclass

IPV6_SOURCE_PREFIX = 64
"""One IPv6 host has a whole /64 to choose its addresses from: it is one source."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one responder. Times are seconds, sizes are bytes received on one connection."""

    connections: int = 900
    connections_per_source: int = 256
    handshake_seconds: float = 10.0
    idle_seconds: float = 30.0
    bytes_received: int = 65_536


DEFAULT_LIMITS = Limits()


def source_of(address: str) -> str:
    """What counts as one source: an IPv4 address, or the /64 of an IPv6 address."""
    parsed = ipaddress.ip_address(address.partition("%")[0])
    if parsed.version == 4:
        return address
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    network = ipaddress.ip_network((parsed, IPV6_SOURCE_PREFIX), strict=False)
    return str(network)


class Admission:
    """Who is in. `enter` says whether there is room; every True is paid back with `leave`."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._per_source: Counter[str] = Counter()
        self.open = 0

    def enter(self, source: str) -> bool:
        """Count one connection of `source` in, unless that would exceed a bound."""
        if self.open >= self._limits.connections:
            return False
        if self._per_source[source] >= self._limits.connections_per_source:
            return False
        self._per_source[source] += 1
        self.open += 1
        return True

    def leave(self, source: str) -> None:
        """Count one connection of `source` out; sources without connections are forgotten."""
        self.open -= 1
        self._per_source[source] -= 1
        if self._per_source[source] <= 0:
            del self._per_source[source]
