"""The trace probe: which routers packets pass on the way to a target, over all parallel paths.

One channel per address family serves all targets, under one rate. Read `enumeration.py` for what is
sent, `session.py` for what counts as an answer, docs/probes/trace.md for the samples.
"""

from dataclasses import replace

from pathbudget.probes.channels import PacketOptions
from pathbudget.probes.contract import (
    Cost,
    Options,
    OptionSpec,
    Probe,
    ProbeEnvironment,
    ProbeSpec,
)
from pathbudget.probes.errors import Fault, PrivilegeError
from pathbudget.probes.families import FamiliesProbe
from pathbudget.probes.option_words import source_faults
from pathbudget.probes.record import AddressFamily
from pathbudget.probes.trace.contract import TraceProtocol
from pathbudget.probes.trace.family import TraceFamily
from pathbudget.probes.trace.pace import SECOND_NS, Pace
from pathbudget.probes.trace.rules import Algorithm, Rules
from pathbudget.probes.trace.session import TraceSessions, TraceSettings

PROBE = "probe trace"
AUTO = "auto"
MOST_FLOWS = 512
PACKET_BYTES = 40 + 40
"""IPv6, and a SYN with its options; an upper bound for the others without a size."""
ANSWER_BYTES = 576
"""What most routers send at most (RFC 1812 section 4.3.2.3)."""
HANDSHAKE_PACKETS = 6

OPTIONS = {
    "protocol": OptionSpec(
        str, AUTO, "what is sent; auto: icmp, or udp where raw sockets are not allowed",
        choices=(AUTO, *TraceProtocol),
    ),
    "port": OptionSpec(
        int, 0, "of the destination; 0: the target's, else 33434 (udp), 443 (tcp, session)",
        minimum=0, maximum=65_535,
    ),
    "algorithm": OptionSpec(
        str, AUTO, "how flows are chosen; auto: paris where flows are given, else mda-lite",
        choices=(AUTO, *Algorithm),
    ),
    "flows": OptionSpec(
        int, 0, "paris: so many (0: one); mda: at most so many (0: 512)", minimum=0,
        maximum=MOST_FLOWS,
    ),
    "confidence": OptionSpec(
        float, 0.95, "of having found every link, as in 0.95 or 0.99", minimum=0.5, maximum=0.9999
    ),
    "confidence_of": OptionSpec(
        str, "trace", "what the confidence is of: the whole trace, or each vertex by itself",
        choices=("trace", "vertex"),
    ),
    "first_hop": OptionSpec(int, 1, "hop limit to begin with", minimum=1, maximum=255),
    "max_hops": OptionSpec(int, 32, "largest hop limit", minimum=1, maximum=255),
    "gap": OptionSpec(
        int, 5, "silent hops in a row after which the end is not looked for", minimum=1, maximum=255
    ),
    "attempts": OptionSpec(
        int, 2, "packets of one flow to one hop before it counts as silent", minimum=1, maximum=10
    ),
    "rate": OptionSpec(
        int, 1_000, "packets a second, of all traces together", minimum=1, maximum=200_000
    ),
    "max_packets": OptionSpec(int, 2_000, "packets of one trace", minimum=1, maximum=60_000),
    "deadline": OptionSpec(
        float, 60.0, "seconds after which a trace sends nothing more", minimum=0.1, maximum=3_600
    ),
    "mtu": OptionSpec(bool, False, "look for the path MTU on the first flow, too"),
    "size": OptionSpec(
        int, 0, "octets of each packet from its IP header on; 0: as short as can be", minimum=0,
        maximum=9_000,
    ),
    "source_port": OptionSpec(
        int, 0, "of the first flow (icmp: its checksum); 0: that of the open round-trip probe",
        minimum=0, maximum=65_535,
    ),
    "dscp": OptionSpec(int, 0, "traffic class of the packets (RFC 2474)", minimum=0, maximum=63),
    "interface": OptionSpec(str, "", "network device or VRF to leave through"),
    "source": OptionSpec(str, "", "local address to leave from; the family follows from it"),
}  # fmt: skip


class TraceProbe(FamiliesProbe[TraceFamily]):
    """See `contract.BatchProbe`. Raises PrivilegeError where not even UDP traces are allowed."""

    def __init__(self, environment: ProbeEnvironment, options: Options) -> None:
        settings = read_settings(options)
        super().__init__()
        pace = Pace(settings.rate)
        plain = _value(options, "protocol") == AUTO or settings.protocol is TraceProtocol.UDP
        try:
            for family in AddressFamily:
                self._open(environment, family, settings, pace, options, plain=plain)
        except BaseException:
            self.close()
            raise

    def _open(
        self,
        environment: ProbeEnvironment,
        family: AddressFamily,
        settings: TraceSettings,
        pace: Pace,
        options: Options,
        *,
        plain: bool,
    ) -> None:
        """With raw sockets; without, where the probe was told nothing that needs them."""
        packet = _packet_options(options, family)

        def with_privilege(privileged: bool, told: TraceSettings) -> TraceFamily:
            sessions = TraceSessions(family, environment.rng, told, pace)
            one = TraceFamily(environment, family, told, sessions, packet, privileged=privileged)
            one.open()
            return one

        try:
            self._families[family] = with_privilege(True, settings)
        except PrivilegeError:
            if not plain:
                raise
            told = replace(settings, protocol=TraceProtocol.UDP)
            self._families[family] = with_privilege(False, told)


def read_settings(options: Options) -> TraceSettings:
    """Options with their defaults."""
    word = str(_value(options, "protocol"))
    protocol = TraceProtocol.ICMP if word == AUTO else TraceProtocol(word)
    deadline = _value(options, "deadline")
    assert isinstance(deadline, int | float)
    return TraceSettings(
        protocol=protocol,
        rules=_rules(options, protocol),
        port=_whole(options, "port"),
        rate=_whole(options, "rate"),
        deadline_ns=round(deadline * SECOND_NS),
        size=_whole(options, "size"),
        dscp=_whole(options, "dscp"),
        mtu=bool(_value(options, "mtu")),
        source_port=_whole(options, "source_port"),
    )


def _rules(options: Options, protocol: TraceProtocol) -> Rules:
    algorithm, flows = _algorithm(options), _whole(options, "flows")
    if protocol is TraceProtocol.SESSION:  # one connection is one flow
        algorithm, flows = Algorithm.PARIS, 1
    confidence = _value(options, "confidence")
    assert isinstance(confidence, int | float)
    return Rules(
        algorithm=algorithm,
        confidence=confidence,
        per_vertex=_value(options, "confidence_of") == "vertex",
        flows=flows or (1 if algorithm is Algorithm.PARIS else MOST_FLOWS),
        first_hop=_whole(options, "first_hop"),
        max_hops=_whole(options, "max_hops"),
        gap=_whole(options, "gap"),
        attempts=_whole(options, "attempts"),
        most_packets=_whole(options, "max_packets"),
    )


def _algorithm(options: Options) -> Algorithm:
    word = str(_value(options, "algorithm"))
    if word != AUTO:
        return Algorithm(word)
    return Algorithm.PARIS if _whole(options, "flows") else Algorithm.MDA_LITE


def _check(options: Options) -> list[Fault]:
    """What does not go together, and what is no address."""
    faults: list[Fault] = []
    protocol, flows = str(_value(options, "protocol")), _whole(options, "flows")
    first, most = _whole(options, "first_hop"), _whole(options, "max_hops")
    if first > most:
        faults.append(_fault("first_hop", f"{first} is beyond max_hops {most}", f"1 to {most}"))
    if protocol == TraceProtocol.SESSION:
        faults.extend(_session_faults(options, flows))
    if protocol == TraceProtocol.ICMP and _whole(options, "port"):
        port = _whole(options, "port")
        faults.append(_fault("port", f"{port}", "none with protocol icmp: ICMP has no ports"))
    if protocol == AUTO and _whole(options, "source_port"):
        faults.append(
            _fault("source_port", "what it is depends on the protocol", "a protocol, too")
        )
    return [*faults, *source_faults(options)]


def _session_faults(options: Options, flows: int) -> list[Fault]:
    faults: list[Fault] = []
    word = str(_value(options, "algorithm"))
    if flows > 1 or word not in (AUTO, Algorithm.PARIS):
        where, what = ("flows", str(flows)) if flows > 1 else ("algorithm", word)
        faults.append(_fault(where, what, "one flow with protocol session: one connection"))
    for name in ("size", "mtu"):
        if _value(options, name):
            expected = "none with protocol session: its packets have one length"
            faults.append(_fault(name, f"{_value(options, name)}", expected))
    return faults


def _cost(options: Options) -> Cost:
    """As many packets as a trace may send, each answered."""
    settings = read_settings(options)
    rules = settings.rules
    packets = rules.most_packets
    if rules.algorithm is Algorithm.PARIS:
        hops = rules.max_hops - rules.first_hop + 1
        packets = min(packets, hops * rules.flows * rules.attempts)
    if settings.mtu:
        packets += MOST_MTU_PACKETS
    size = max(PACKET_BYTES, settings.size)
    octets = packets * (size + max(ANSWER_BYTES, size))
    if settings.mtu:
        octets += MOST_MTU_PACKETS * 2 * LARGEST_MTU_BYTES
    handshake = HANDSHAKE_PACKETS if settings.protocol is TraceProtocol.SESSION else 0
    return Cost(2 * packets + handshake, octets + handshake * PACKET_BYTES)


def _packet_options(options: Options, family: AddressFamily) -> PacketOptions:
    source = str(_value(options, "source") or "")
    if (":" in source) != (family is AddressFamily.IPV6):
        source = ""
    return PacketOptions(
        source=source,
        interface=str(_value(options, "interface") or ""),
        dscp=_whole(options, "dscp"),
    )


def _fault(where: str, problem: str, expected: str) -> Fault:
    return Fault(PROBE, where, problem, expected)


def _value(options: Options, name: str) -> object:
    return options.get(name, OPTIONS[name].default)


def _whole(options: Options, name: str) -> int:
    value = _value(options, name)
    assert isinstance(value, int)
    return value


def _open(environment: ProbeEnvironment, options: Options) -> Probe:
    return TraceProbe(environment, options)


MOST_MTU_PACKETS = 96
LARGEST_MTU_BYTES = 9_000

TRACE = ProbeSpec(
    name="trace",
    summary="routers on the way over all parallel paths (Paris, MDA), with MPLS, NAT and path MTU",
    version=1,
    open=_open,
    cost=_cost,
    options=OPTIONS,
    check=_check,
)
