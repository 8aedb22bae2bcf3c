"""ICMP echo: the round trip of one packet (RFC 2681), by kernel stamps.

One socket per address family serves all targets, and no task waits for a packet. Read
`icmp_session.py` for what counts as an answer.
"""

from pathbudget.probes.channels import PacketOptions
from pathbudget.probes.contract import (
    Cost,
    Options,
    OptionSpec,
    Probe,
    ProbeEnvironment,
    ProbeSpec,
)
from pathbudget.probes.families import FamiliesProbe
from pathbudget.probes.icmp_family import IcmpFamily
from pathbudget.probes.icmp_session import IcmpSession
from pathbudget.probes.option_words import source_faults
from pathbudget.probes.record import AddressFamily

HEADERS_BYTES = 40 + 8
"""IPv6 and ICMP; an upper bound for IPv4."""

OPTIONS = {
    "payload_bytes": OptionSpec(
        int, 56, "bytes after the ICMP header; 16 carry the secret", minimum=16, maximum=8_972
    ),
    "rotate_after": OptionSpec(
        int, 10, "losses in a row after which a new identifier is used", minimum=1
    ),
    "flows": OptionSpec(
        int, 1, "identifiers used in turn, to see parallel paths", minimum=1, maximum=64
    ),
    "dscp": OptionSpec(int, 0, "traffic class of the requests (RFC 2474)", minimum=0, maximum=63),
    "ttl": OptionSpec(int, 0, "TTL or hop limit; 0: the system's", minimum=0, maximum=255),
    "interface": OptionSpec(str, "", "network device or VRF to leave through"),
    "source": OptionSpec(str, "", "local address to leave from; the family follows from it"),
}


class IcmpProbe(FamiliesProbe[IcmpFamily]):
    """See `contract.BatchProbe`."""

    def __init__(self, environment: ProbeEnvironment, options: Options) -> None:
        super().__init__()
        flows = _whole(options, "flows")
        try:
            for family in AddressFamily:
                session = IcmpSession(
                    family,
                    environment.rng,
                    payload_bytes=_whole(options, "payload_bytes"),
                    rotate_after=_whole(options, "rotate_after"),
                    flows=flows,
                )
                one = IcmpFamily(environment, family, session, _packet_options(options, family))
                self._families[family] = one
                one.open(flows)
        except BaseException:
            self.close()
            raise


def _packet_options(options: Options, family: AddressFamily) -> PacketOptions:
    source = str(options.get("source") or "")
    if (":" in source) != (family is AddressFamily.IPV6):
        source = ""
    return PacketOptions(
        source=source,
        interface=str(options.get("interface") or ""),
        dscp=_whole(options, "dscp"),
        ttl=_whole(options, "ttl") or None,
    )


def _whole(options: Options, name: str) -> int:
    value = options.get(name, OPTIONS[name].default)
    assert isinstance(value, int)
    return value


def _open(environment: ProbeEnvironment, options: Options) -> Probe:
    return IcmpProbe(environment, options)


def _cost(options: Options) -> Cost:
    return Cost(packets=2, bytes=2 * (HEADERS_BYTES + _whole(options, "payload_bytes")))


ICMP = ProbeSpec(
    name="icmp",
    summary="round trip of an ICMP echo (RFC 792, RFC 4443), kernel stamps",
    version=1,
    open=_open,
    cost=_cost,
    options=OPTIONS,
    check=source_faults,
)
