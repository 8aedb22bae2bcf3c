"""What stands on the command line of `pathbudget check`: hosts, and the places of both ends."""

from dataclasses import dataclass

from pathbudget.probes.errors import ConfigError, Fault
from pathbudget.sites.entry import did_you_mean, show
from pathbudget.sites.shipped import shipped_catalogue

HOST_FORM = "HOST, HOST:PORT, [IPV6]:PORT, each with @PLACE at its end if wanted"
PLACE_FORM = "LATITUDE,LONGITUDE or the name of a shipped place (pathbudget catalogue list)"


@dataclass(frozen=True, slots=True)
class Place:
    """A point on Earth and what it was called."""

    name: str
    latitude: float
    longitude: float


@dataclass(frozen=True, slots=True)
class CheckedHost:
    """One host to look at; `text` is what the user wrote."""

    text: str
    host: str
    port: int
    place: Place | None


def parse_place(text: str, where: str) -> Place:
    """A place from ``32.8,-96.8`` or ``dallas``. Raises ConfigError."""
    latitude, comma, longitude = text.partition(",")
    if comma:
        try:
            place = Place(text, float(latitude), float(longitude))
        except ValueError:
            raise _fault(where, text, PLACE_FORM) from None
        if not (-90 <= place.latitude <= 90 and -180 <= place.longitude <= 180):
            raise _fault(where, text, "a latitude within 90 and a longitude within 180 degrees")
        return place
    shipped = shipped_catalogue()
    known = shipped.sites.get(text) or shipped.regions.get(text)
    if known is None:
        raise _fault(where, text, did_you_mean(text, [*shipped.sites, *shipped.regions]))
    return Place(text, known.latitude, known.longitude)


def parse_host(text: str, port: int) -> CheckedHost:
    """A host from the command line. Raises ConfigError."""
    address, at, place = text.partition("@")
    host, given_port = _split_port(address)
    if not host or any(_is_odd(letter) for letter in host):
        raise _fault("HOST", text, HOST_FORM)
    if given_port is not None:
        if not given_port.isdecimal() or not 0 < int(given_port) < 65536:
            raise _fault("HOST", text, "a port from 1 to 65535")
        port = int(given_port)
    return CheckedHost(text, host, port, parse_place(place, "HOST@PLACE") if at else None)


def _is_odd(letter: str) -> bool:
    return letter.isspace() or letter == "/" or not letter.isprintable()


def _split_port(address: str) -> tuple[str, str | None]:
    if address.startswith("["):
        host, bracket, rest = address[1:].partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            return "", None
        return host, rest[1:] if rest else None
    if address.count(":") == 1:
        host, _, port = address.partition(":")
        return host, port
    return address, None


def _fault(where: str, text: str, expected: str) -> ConfigError:
    return ConfigError([Fault("command line", where, f"{show(text)} is not usable", expected)])
