"""The options of the tcp probe, and what they mean."""

from dataclasses import dataclass

from pathbudget.probes.channels import PacketOptions
from pathbudget.probes.contract import Options, OptionSpec
from pathbudget.probes.errors import ConfigError, Fault
from pathbudget.probes.option_words import source_faults

MOST_PORTS = 512
"""Each reserved port is an open file of this process."""

OPTIONS = {
    "method": OptionSpec(
        str, "connect", "whole connections, or half-open SYNs", choices=("connect", "syn")
    ),
    "flows": OptionSpec(
        int, 0, "source ports to take turns with; 0: a new one each time", minimum=0,
        maximum=MOST_PORTS,
    ),
    "max_half_open": OptionSpec(
        int, 16, "unanswered SYNs per target at once, at most", minimum=1, maximum=MOST_PORTS
    ),
    "echo_bytes": OptionSpec(
        int, 0, "bytes to have echoed on the connection; 0: none", minimum=0, maximum=65_536
    ),
    "dscp": OptionSpec(int, 0, "DSCP of our packets (RFC 2474)", minimum=0, maximum=63),
    "ttl": OptionSpec(int, 0, "hop limit; 0: the system's", minimum=0, maximum=255),
    "source": OptionSpec(str, "", "local address to leave from"),
    "interface": OptionSpec(str, "", "network interface or VRF to leave through"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class TcpSettings:
    """What one tcp probe was told."""

    half_open: bool
    flows: int
    max_half_open: int
    echo_bytes: int
    packet: PacketOptions


def read_settings(options: Options) -> TcpSettings:
    """Options with their defaults. Raises ConfigError for what does not go together."""
    half_open = _value(options, "method") == "syn"
    echo_bytes, ttl = _whole(options, "echo_bytes"), _whole(options, "ttl")
    source = str(_value(options, "source") or "")
    faults = option_faults(options)
    if faults:
        raise ConfigError(faults)
    return TcpSettings(
        half_open=half_open,
        flows=_whole(options, "flows"),
        max_half_open=_whole(options, "max_half_open"),
        echo_bytes=echo_bytes,
        packet=PacketOptions(
            source=source,
            interface=str(_value(options, "interface") or ""),
            dscp=_whole(options, "dscp"),
            ttl=ttl or None,
        ),
    )


def option_faults(options: Options) -> list[Fault]:
    """What does not go together, and what is no address."""
    echo_bytes = _whole(options, "echo_bytes")
    faults: list[Fault] = []
    if _value(options, "method") == "syn" and echo_bytes:
        faults.append(_fault("echo_bytes", f"{echo_bytes}", "0 with method syn: no connection"))
    faults += [_fault(one.where, one.problem, one.expected) for one in source_faults(options)]
    return faults


def cannot_leave(detail: str) -> ConfigError:
    """No packet can leave as it was asked for, in any address family."""
    return ConfigError([_fault("source, interface", detail, "what this host has")])


def _fault(where: str, problem: str, expected: str) -> Fault:
    return Fault("tcp probe", where, problem, expected)


def _value(options: Options, name: str) -> object:
    return options.get(name, OPTIONS[name].default)


def _whole(options: Options, name: str) -> int:
    value = _value(options, name)
    assert isinstance(value, int)
    return value
