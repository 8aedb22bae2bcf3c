"""How a router treats what traceroutes are made of. Definitions only.

The kernel does what it can (rate limits, hashing by ports); the emulator does the rest when the
router's packets pass it (`hop_work.py`, `translation.py`, `balancing.py`).
"""

from dataclasses import dataclass
from enum import StrEnum


class Balancing(StrEnum):
    """How a router with several equally good ways picks one for a packet."""

    PORTS = "ports"
    """The Linux kernel: addresses, protocol and ports. ICMP echoes have none: all of a pair of
    addresses go the same way."""
    ADDRESSES = "addresses"
    """The Linux kernel: addresses alone (IPv6: and the flow label)."""
    OCTETS = "octets"
    """Addresses, protocol and the first four octets of the transport header, so ports as well as
    type, code and checksum of ICMP (Augustin et al., IMC 2006)."""
    PACKET = "packet"
    """Each packet by lot."""


class Translation(StrEnum):
    """What a router with source address translation does to the packet quoted in an ICMP error."""

    LEAVE = "leave"
    """It stays as it was on the outside: translated."""
    RESTORE = "restore"
    """Addresses and ports are restored (RFC 5508, 4.2); the transport checksum is not, as in
    boxes that see too little of it."""


@dataclass(frozen=True, slots=True)
class Label:
    """One entry of an MPLS label stack (RFC 3032)."""

    label: int
    traffic_class: int = 0
    ttl: int = 1


@dataclass(frozen=True, slots=True)
class Hop:
    """The peculiarities of one router."""

    balancing: Balancing = Balancing.PORTS
    icmp_rate_ns: int | None = None
    """ICMP errors to one address: one per so much, saved up to about six. None: no limit."""
    silent: bool = False
    """It sends no ICMP errors."""
    labels: tuple[Label, ...] = ()
    """Outermost first; its ICMP errors say that packets came with these (RFC 4950)."""
    interface: bool = False
    """Its ICMP errors say by which interface packets came (RFC 5837)."""
    translation: Translation | None = None
    """Of packets of the regions that are linked to it, to its own address. None: no translation."""


ORDINARY = Hop()
