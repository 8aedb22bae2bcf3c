"""Options of the `dns` probe, and what they come to. Needs nothing but the base install."""

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass

from pathbudget.probes.contract import Option, Options, OptionSpec
from pathbudget.probes.errors import ConfigError, Fault
from pathbudget.probes.option_words import source_faults
from pathbudget.probes.record import Transport
from pathbudget.probes.tls.settings import TLS_OPTIONS

PORTS: Mapping[str, int] = {"udp": 53, "tcp": 53, "dot": 853, "doh": 443, "doq": 853}
"""RFC 1035, RFC 7858, RFC 8484, RFC 9250."""
CARRIERS: Mapping[str, Transport | None] = {
    "udp": None,
    "tcp": Transport.TCP,
    "dot": Transport.TLS,
    "doh": Transport.TLS,
    "doq": Transport.QUIC,
}
MODES = ("cold", "resumed", "early_data", "warm")
ROOT = "."
MOST_REPEATS = 10

OPTIONS = {
    "transport": OptionSpec(str, "udp", "how questions travel", choices=tuple(PORTS)),
    "name": OptionSpec(str, ROOT, "name that the server has at hand; default: the root"),
    "type": OptionSpec(str, "", "record type of `name`; default: A, of the root NS"),
    "zone": OptionSpec(str, "", "zone of a wildcard: also ask for a new name in it (a miss)"),
    "mode": OptionSpec(str, "cold", "connection of a question, but for UDP", choices=MODES),
    "dnssec": OptionSpec(bool, False, "ask for signatures (the DO bit)"),
    "nsid": OptionSpec(bool, True, "ask which server answers (RFC 5001)"),
    "client_subnet": OptionSpec(str, "", "ask on behalf of this network (RFC 7871)"),
    "mixed_case": OptionSpec(bool, True, "believe answers with our mix of letters only"),
    "payload": OptionSpec(
        int, 1232, "longest answer taken over UDP, octets", minimum=512, maximum=65_535
    ),
    "retries": OptionSpec(
        int, 0, "how often to ask again over UDP", minimum=0, maximum=MOST_REPEATS
    ),
    "retry_ms": OptionSpec(int, 5_000, "after how long each time", minimum=1, maximum=60_000),
    "path": OptionSpec(str, "/dns-query", "path of the resource of DNS over HTTPS"),
    **TLS_OPTIONS,
    "dscp": OptionSpec(int, 0, "traffic class over UDP (RFC 2474)", minimum=0, maximum=63),
    "interface": OptionSpec(str, "", "network device or VRF to leave through, over UDP"),
    "source": OptionSpec(str, "", "local address to leave from, over UDP"),
}


@dataclass(frozen=True, slots=True)
class DnsSettings:
    """What the options say."""

    transport: str
    name: str
    kind: str
    zone: str
    mode: str
    dnssec: bool
    nsid: bool
    client_subnet: str
    mixed_case: bool
    payload: int
    retries: int
    retry_ns: int
    path: str

    @property
    def port(self) -> int:
        """Where a server listens that names no port."""
        return PORTS[self.transport]


def read_settings(options: Options) -> DnsSettings:
    """The options with their defaults. Raises ConfigError with every fault in them."""
    given = {name: options.get(name, option.default) for name, option in OPTIONS.items()}
    transport, mode = str(given["transport"]), str(given["mode"])
    name = str(given["name"]) or ROOT
    faults = option_faults(options)
    if faults:
        raise ConfigError(faults)
    return DnsSettings(
        transport=transport,
        name=name,
        kind=str(given["type"]).upper() or ("NS" if name == ROOT else "A"),
        zone=str(given["zone"]),
        mode=mode,
        dnssec=bool(given["dnssec"]),
        nsid=bool(given["nsid"]),
        client_subnet=str(given["client_subnet"]),
        mixed_case=bool(given["mixed_case"]),
        payload=_whole(given["payload"]),
        retries=_whole(given["retries"]),
        retry_ns=_whole(given["retry_ms"]) * 1_000_000,
        path=str(given["path"]),
    )


def option_faults(options: Options) -> list[Fault]:
    """What in the options can be seen to be wrong without anything but the base install."""
    given = {name: options.get(name, option.default) for name, option in OPTIONS.items()}
    transport, mode = str(given["transport"]), str(given["mode"])
    return [*_misfits(given, transport, mode), *_bad_words(given)]


def fault(name: str, problem: str, expected: str) -> Fault:
    """One thing wrong with the options."""
    return Fault("probe dns", name, problem, expected)


def _misfits(given: Mapping[str, Option], transport: str, mode: str) -> list[Fault]:
    """Options that mean nothing beside each other are told, not passed over."""
    found: list[Fault] = []
    if mode in ("resumed", "early_data") and transport in ("udp", "tcp"):
        found.append(fault("mode", f"{mode}, and {transport} has no tickets", "cold or warm"))
    if mode == "early_data" and transport == "doh":
        problem = "early_data, and a POST may not travel early (RFC 8470)"
        found.append(fault("mode", problem, "another transport, or resumed"))
    over_tcp = [one for one in ("groups", "library") if given[one] != OPTIONS[one].default]
    if transport == "doq":
        found.extend(fault(one, f"{one} with doq", "dot or doh") for one in over_tcp)
    if given["retries"] and transport != "udp":
        found.append(fault("retries", f"{transport} repeats by itself", "transport = udp"))
    return found


def _bad_words(given: Mapping[str, Option]) -> list[Fault]:
    found: list[Fault] = []
    subnet, path = str(given["client_subnet"]), str(given["path"])
    if subnet:
        try:
            ipaddress.ip_network(subnet)
        except ValueError as error:
            found.append(fault("client_subnet", str(error), "a network as in 192.0.2.0/24"))
    found.extend(fault("source", one.problem, one.expected) for one in source_faults(given))
    if not path.startswith("/") or not path.isascii() or not path.isprintable() or " " in path:
        found.append(fault("path", f"{path!r} is no path", "one as in /dns-query"))
    return found


def _whole(value: Option) -> int:
    assert isinstance(value, int)
    return value
