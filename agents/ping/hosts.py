"""Hosts as they stand on the command line: ``host``, ``host:port``, ``[v6]:port``."""

import ipaddress
from dataclasses import dataclass

from pathbudget.probes.errors import ConfigError, Fault
from pathbudget.sites.entry import show

FORM = "HOST, HOST:PORT or [IPV6]:PORT"
ONE_MACHINE = "an address of one machine: no multicast, broadcast or unspecified address"


@dataclass(frozen=True, slots=True)
class PingHost:
    """One host; `text` is what the user wrote, `port` None where none was given."""

    text: str
    host: str
    port: int | None = None


def parse_ping_host(text: str) -> PingHost:
    """Raises ConfigError for what is no host, or not one machine."""
    host, port = _split(text)
    if not host or any(letter.isspace() or letter in "/@[]" for letter in host):
        raise _fault(text, FORM)
    if host.startswith("-"):
        raise _fault(text, FORM)
    if port is not None and not (port.isascii() and port.isdecimal() and 0 < int(port) < 65536):
        raise _fault(text, "a port from 1 to 65535")
    if not is_one_machine(host):
        raise _fault(text, ONE_MACHINE)
    return PingHost(text, host, int(port) if port is not None else None)


def is_one_machine(host: str) -> bool:
    """False for an address literal that many machines would answer, or none. Names are true."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return True
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    address = mapped or address
    return not (
        address.is_multicast
        or address.is_unspecified
        or address == ipaddress.IPv4Address("255.255.255.255")
    )


def check_address(host: str, address: str) -> None:
    """Refuse a name that leads to no single machine. Raises ConfigError."""
    if address and not is_one_machine(address):
        raise _fault(f"{host} ({address})", ONE_MACHINE)


def _split(text: str) -> tuple[str, str | None]:
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            return "", None
        return host, rest[1:] if rest else None
    if text.count(":") == 1:
        host, _, port = text.partition(":")
        return host, port
    return text, None


def _fault(text: str, expected: str) -> ConfigError:
    return ConfigError([Fault("command line", "HOST", f"{show(text)} is not usable", expected)])
