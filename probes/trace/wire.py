"""The bytes of a trace: whole IP packets out, answers in. See `build`, `read`
and `matching`.

    protocol  four octets    token in the first 8     and in a second place
    UDP       ports          checksum                 IP identification, payload
    ICMP      with checksum  sequence                 IP identification, payload
    TCP       ports          sequence, lower half     IP identification, timestamp

The first four octets never change within a flow (Paris traceroute), nor does the flow label of
IPv6. Tokens are 1 to 65,534; begin counting at a random one, so that two traces of one host differ.
"""

from pathbudget.probes.record import AddressFamily
from pathbudget.probes.trace import icmp_probe, tcp_probe, udp_probe
from pathbudget.probes.trace.contract import Answer, Flow, FlowPacket, PathArrival, TraceProtocol
from pathbudget.probes.trace.direct_answers import read_reply, read_segment
from pathbudget.probes.trace.ip_headers import (
    ICMP,
    ICMPV6,
    LARGEST_LABEL,
    TCP,
    UDP,
    build_v4,
    build_v6,
    header_bytes,
    packed,
)
from pathbudget.probes.trace.payload import NO_SECRET, SECRET_BYTES
from pathbudget.probes.trace.quotes import read_error

FIRST_TOKEN, LAST_TOKEN = 1, 0xFFFE
SMALLEST_SIZE = 128
"""A smaller size than this is the same as none: every probe fits in it with all it carries."""
LARGEST_SIZE = 65_535


def build(
    flow: Flow,
    hop_limit: int,
    token: int,
    *,
    size: int = 0,
    dscp: int = 0,
    secret: bytes = NO_SECRET,
) -> FlowPacket:
    """A whole IP packet. `size`: its octets, from the IP header on (128 to 65535; less: as short as
    it can be). `secret`: 8 octets of this run.

    Raises ValueError for numbers that do not fit, and for a segment inside a connection (which
    takes the numbers of the connection: `build_session`).
    """
    if flow.protocol is TraceProtocol.SESSION:
        raise ValueError(f"{flow.protocol} needs the numbers of a connection")
    if len(secret) != SECRET_BYTES:
        raise ValueError(f"secret has {len(secret)} octets; expected {SECRET_BYTES}")
    if size > LARGEST_SIZE:
        raise ValueError(f"size is {size}; expected at most {LARGEST_SIZE}")
    length = size - header_bytes(flow.family) if size >= SMALLEST_SIZE else 0
    if flow.protocol is TraceProtocol.UDP:
        transport = udp_probe.build(flow, token, length, secret)
    elif flow.protocol is TraceProtocol.ICMP:
        transport = icmp_probe.build(flow, token, length, secret)
    else:
        transport = tcp_probe.build_syn(flow, token, length, secret)
    return _packet(flow, hop_limit, token, dscp, transport)


def build_session(
    flow: Flow,
    hop_limit: int,
    token: int,
    *,
    acknowledged: int,
    expected: int,
    window: int = 512,
    options: bytes = b"",
    octet: bytes = b"\0",
    dscp: int = 0,
) -> FlowPacket:
    """One octet inside an established connection; see `tcp_probe.build_session`."""
    transport = tcp_probe.build_session(
        flow,
        token,
        acknowledged=acknowledged,
        expected=expected,
        window=window,
        options=options,
        octet=octet,
    )
    return _packet(flow, hop_limit, token, dscp, transport)


def read(arrival: PathArrival, family: AddressFamily) -> Answer | None:
    """What a packet that came in says of a probe; None: nothing, as far as bytes can tell.

    Never raises. Whether the probe was really ours says `matching.match`.
    """
    if arrival.protocol == TCP:
        return read_segment(arrival)
    if arrival.protocol != (ICMP if family is AddressFamily.IPV4 else ICMPV6):
        return None
    return read_error(arrival, family) or read_reply(arrival, family)


def _packet(flow: Flow, hop_limit: int, token: int, dscp: int, transport: bytes) -> FlowPacket:
    _check(flow, hop_limit, token, dscp)
    v4 = flow.family is AddressFamily.IPV4
    protocol = _protocol_number(flow)
    where = packed(flow.source), packed(flow.destination)
    common = (*where, protocol, len(transport), hop_limit)
    header = build_v4(*common, token, dscp) if v4 else build_v6(*common, flow.label, dscp)
    return FlowPacket(header + transport, flow.destination, token)


def _protocol_number(flow: Flow) -> int:
    if flow.protocol is TraceProtocol.UDP:
        return UDP
    if flow.protocol is TraceProtocol.ICMP:
        return ICMP if flow.family is AddressFamily.IPV4 else ICMPV6
    return TCP


def _check(flow: Flow, hop_limit: int, token: int, dscp: int) -> None:
    if 1 <= hop_limit <= 255 and FIRST_TOKEN <= token <= LAST_TOKEN and not (dscp or flow.label):
        return
    for name, value, low, high in (
        ("hop limit", hop_limit, 1, 255),
        ("token", token, FIRST_TOKEN, LAST_TOKEN),
        ("dscp", dscp, 0, 63),
        ("flow label", flow.label, 0, LARGEST_LABEL),
    ):
        if not low <= value <= high:
            raise ValueError(f"{name} is {value}; expected {low} to {high}")
