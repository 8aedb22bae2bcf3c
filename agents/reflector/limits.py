"""Who is answered, and how much: an allow-list, a rate per source prefix, a rate for all together.

Memory is bounded by the total rate: a count per source prefix lives for one second, and a second
admits no more packets than the total rate, from however many addresses a flood comes.
"""

import functools
import ipaddress
import socket
from collections.abc import Sequence
from dataclasses import dataclass

from pathbudget.probes.record import AddressFamily

AllowedNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network

WINDOW_NS = 1_000_000_000
"""Rates are counted over windows of a second: so much of a rate may come as one burst."""
IPV6_PREFIX_OCTETS = 6
"""A /48. With the /24 of IPv4: the smallest networks that are routed by themselves, so that no
network can be sent more than `per_source` by forging any of its addresses."""

SOURCES_REMEMBERED = 4_096
"""Addresses of which the prefix need not be worked out again."""


@dataclass(frozen=True, slots=True)
class Rates:
    """Packets per second that are answered at most: to one source prefix, and in all."""

    per_source: int = 2_000
    total: int = 50_000


DEFAULT_RATES = Rates()


@functools.lru_cache(SOURCES_REMEMBERED)
def source_prefix(address: str) -> str | bytes:
    """What counts as one source: the /24 of an IPv4 address, the /48 of an IPv6 address."""
    if ":" not in address:
        return address[: address.rfind(".")]
    octets = socket.inet_pton(socket.AF_INET6, address.partition("%")[0])
    return octets[:IPV6_PREFIX_OCTETS]


class AllowList:
    """Networks that may be answered; an empty list means everybody."""

    def __init__(self, networks: Sequence[AllowedNetwork]) -> None:
        self._ranges = {
            family: [_range(network) for network in networks if network.version == version]
            for family, version in ((AddressFamily.IPV4, 4), (AddressFamily.IPV6, 6))
        }
        self.everybody = not networks

    def admits(self, address: str) -> bool:
        """Whether an address (numeric, a zone of IPv6 is passed over) is in one of them."""
        if self.everybody:
            return True
        kind, family = (
            (socket.AF_INET6, AddressFamily.IPV6)
            if ":" in address
            else (socket.AF_INET, AddressFamily.IPV4)
        )
        number = int.from_bytes(socket.inet_pton(kind, address.partition("%")[0]), "big")
        return any(first <= number <= last for first, last in self._ranges[family])


def _range(network: AllowedNetwork) -> tuple[int, int]:
    return int(network.network_address), int(network.broadcast_address)


class RateLimiter:
    """Counts packets per window. `refusal` says why one more is too many, or nothing. It is asked
    only of packets that would be answered: no junk uses up the rate of a sender beside it.
    """

    def __init__(self, rates: Rates) -> None:
        self._rates = rates
        self._counts: dict[str | bytes, int] = {}
        self._admitted = 0
        self._ends_ns = 0

    def refusal(self, address: str, now_ns: int) -> str:
        """Count one packet from `address` in: empty where it may be answered, else the reason."""
        if now_ns >= self._ends_ns:
            self._counts.clear()
            self._admitted = 0
            self._ends_ns = now_ns + WINDOW_NS
        if self._admitted >= self._rates.total:
            return "over_total_rate"
        prefix = source_prefix(address)
        count = self._counts.get(prefix, 0)
        if count >= self._rates.per_source:
            return "over_source_rate"
        self._counts[prefix] = count + 1
        self._admitted += 1
        return ""
