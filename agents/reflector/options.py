"""What one reflector is told, and how words of a command line become that."""

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass

from pathbudget.agents.reflector.limits import DEFAULT_RATES, AllowedNetwork, Rates
from pathbudget.agents.reflector.serving.options import HttpsOptions
from pathbudget.probes.errors import ConfigError, Fault
from pathbudget.probes.record import AddressFamily
from pathbudget.probes.stamp.authentication import Key
from pathbudget.sites.entry import show

SECOND_NS = 1_000_000_000
DEFAULT_PORT = 8620
"""Not the 862 of RFC 8762, which only root may use."""
SOCKETS = 64
"""At most so many addresses: keys of sends are made unique over all sockets with it."""
WILDCARDS = ("0.0.0.0", "::")  # noqa: S104 (a reflector is there to be reached)
COMMAND_LINE = "command line"


@dataclass(frozen=True, slots=True)
class Options:
    """One reflector. No `addresses` means every address of this host, in both families where it
    has both. With `keys` only packets that are signed by one of them are answered.
    """

    addresses: tuple[str, ...] = ()
    port: int = DEFAULT_PORT
    stateless: bool = False
    keys: tuple[Key, ...] = ()
    allowed: tuple[AllowedNetwork, ...] = ()
    rates: Rates = DEFAULT_RATES
    max_sessions: int = 10_000
    idle_ns: int = 900 * SECOND_NS
    https: HttpsOptions | None = None
    """None: STAMP alone."""


def read_addresses(words: Sequence[str]) -> tuple[str, ...]:
    """Numeric addresses of this host, each once, `SOCKETS` at most. Raises ConfigError with every
    fault.
    """
    faults: list[Fault] = []
    found: list[str] = []
    for word in words:
        try:
            address = ipaddress.ip_address(word)
        except ValueError:
            address = None
        if address is None or is_of_many(address):
            expected = "an IPv4 or IPv6 address of this machine, such as 192.0.2.7 or ::"
            faults.append(Fault(COMMAND_LINE, "--listen", show(word), expected))
        else:
            found.append(str(address))
    addresses = tuple(dict.fromkeys(found))
    if len(addresses) > SOCKETS:
        expected = f"at most {SOCKETS}; without --listen it listens on every address"
        faults.append(Fault(COMMAND_LINE, "--listen", f"{len(addresses)} addresses", expected))
    if faults:
        raise ConfigError(faults)
    return addresses


def is_of_many(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Whether it is that of many machines: a reflector answers for itself alone."""
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    address = mapped or address
    return address.is_multicast or address == ipaddress.IPv4Address("255.255.255.255")


def read_networks(words: Sequence[str]) -> tuple[AllowedNetwork, ...]:
    """Networks to answer. Raises ConfigError with every fault."""
    faults: list[Fault] = []
    found: list[AllowedNetwork] = []
    for word in words:
        try:
            found.append(ipaddress.ip_network(word))
        except ValueError as error:
            expected = "a network such as 192.0.2.0/24 or 2001:db8::/32"
            told = f"{show(word)} ({error})" if "host bits" in str(error) else show(word)
            faults.append(Fault(COMMAND_LINE, "--allow", told, expected))
    if faults:
        raise ConfigError(faults)
    return tuple(found)


def family_of(address: str) -> AddressFamily:
    """Family of a numeric address."""
    return AddressFamily.IPV6 if ":" in address else AddressFamily.IPV4
