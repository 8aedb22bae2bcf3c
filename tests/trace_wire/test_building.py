"""Probes against scapy, and what load balancers look at."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.trace_wire.packets import (
    FAMILIES,
    HERE,
    PLAIN_PROTOCOLS,
    SECRET,
    flow_of,
    flows,
    header_bytes,
    tokens,
)

from pathbudget.probes.icmp_wire import Secret, build_payload
from pathbudget.probes.record import AddressFamily
from pathbudget.probes.trace.contract import Flow, TraceProtocol
from pathbudget.probes.trace.tcp_probe import session_sequence
from pathbudget.probes.trace.wire import SMALLEST_SIZE, build, build_session

FEW = settings(max_examples=40, deadline=None)


def dissected(data: bytes) -> Any:
    from scapy.layers.inet import IP
    from scapy.layers.inet6 import IPv6

    return (IP if data[0] >> 4 == 4 else IPv6)(data)


def rebuilt(packet: Any) -> bytes:
    """The same packet with every length and checksum made by scapy."""
    for layer in (packet, *packet.iterpayloads()):
        for name in ("chksum", "cksum", "len", "plen"):
            if name in layer.fields:
                layer.delfieldval(name)
    return bytes(packet)


@FEW
@given(flows, st.integers(1, 255), tokens, st.sampled_from((0, 128, 577, 1500)), st.integers(0, 63))
def test_scapy_builds_the_same_octets(
    flow: Flow, hop_limit: int, token: int, size: int, dscp: int
) -> None:
    packet = build(flow, hop_limit, token, size=size, dscp=dscp, secret=SECRET)
    assert packet.address == flow.destination
    assert packet.token == token
    assert size in (0, len(packet.data))
    assert rebuilt(dissected(packet.data)) == packet.data


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("protocol", PLAIN_PROTOCOLS)
def test_scapy_reads_what_was_asked_for(protocol: TraceProtocol, family: AddressFamily) -> None:
    flow = flow_of(protocol, family)
    packet = dissected(build(flow, 7, 1234, dscp=46, secret=SECRET).data)
    assert (packet.src, packet.dst) == (HERE[family], flow.destination)
    if family is AddressFamily.IPV4:
        assert (packet.ttl, packet.tos, packet.id) == (7, 46 << 2, 1234)
        assert packet.flags.DF
    else:
        assert (packet.hlim, packet.tc, packet.fl) == (7, 46 << 2, 0x12345)
    inner = packet.payload
    if protocol is TraceProtocol.UDP:
        assert (inner.sport, inner.dport, inner.chksum) == (33_434, 443, 1234)
    elif protocol is TraceProtocol.TCP:
        assert (inner.sport, inner.dport, inner.seq & 0xFFFF) == (33_434, 443, 1234)
        assert str(inner.flags) == "S"
        options = dict(inner.options)
        assert options["MSS"] == (1460 if family is AddressFamily.IPV4 else 1440)
        assert options["Timestamp"] == (inner.seq, 0)
    else:
        assert inner.seq == 1234
        assert (inner.chksum if family is AddressFamily.IPV4 else inner.cksum) == 33_434


@FEW
@given(flows, tokens, tokens, st.integers(1, 255), st.integers(1, 255))
def test_what_routers_hash_is_the_same_in_every_probe_of_a_flow(
    flow: Flow, one: int, other: int, near: int, far: int
) -> None:
    packets = [build(flow, near, one, secret=SECRET), build(flow, far, other, secret=SECRET)]
    start = header_bytes(flow.family)
    assert len({packet.data[start : start + 4] for packet in packets}) == 1
    if flow.family is AddressFamily.IPV6:
        assert len({packet.data[:4] for packet in packets}) == 1
    if flow.protocol is TraceProtocol.ICMP:  # some routers hash the identifier too
        assert len({packet.data[start + 4 : start + 6] for packet in packets}) == 1


def test_flows_differ_where_routers_hash() -> None:
    for protocol in PLAIN_PROTOCOLS:
        heads = {build(flow_of(protocol, key=key), 5, 9).data[20:24] for key in range(1000, 1032)}
        assert len(heads) == 32


def test_pitfall_33_echo_requests_can_look_like_those_of_the_ping_they_explain() -> None:
    """Same type, checksum and identifier as the round-trip probe has."""
    flow = flow_of(TraceProtocol.ICMP, key=0xBEEF)._replace(port=0x4242)
    data = build(flow, 5, 77, secret=SECRET).data
    assert data[20:26] == bytes((8, 0)) + b"\xbe\xef\x42\x42"
    assert build_payload(Secret(1, 2), 16) != data[28:44]


@given(st.integers(0, 2**32 - 1), tokens)
@FEW
def test_octet_inside_a_connection_is_an_old_one(acknowledged: int, token: int) -> None:
    """The other end has it, so it changes nothing; and it is near enough for firewalls."""
    sequence = session_sequence(token, acknowledged)
    assert sequence & 0xFFFF == token
    assert 1 <= (acknowledged - sequence) % 2**32 <= 1 << 16


@pytest.mark.parametrize("family", FAMILIES)
def test_segment_inside_a_connection(family: AddressFamily) -> None:
    flow = flow_of(TraceProtocol.SESSION, family)
    stamps = bytes.fromhex("0101080a0000000100000002")
    packet = build_session(
        flow, 3, 500, acknowledged=70_000, expected=9, window=77, options=stamps, octet=b"G"
    )
    layers = dissected(packet.data)
    inner = layers.payload
    assert rebuilt(layers) == packet.data
    assert (inner.seq, inner.ack, str(inner.flags), inner.window) == (66_036, 9, "A", 77)
    assert bytes(inner.payload) == b"G"
    assert dict(inner.options)["Timestamp"] == (1, 2)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hop_limit": 0}, "hop limit is 0; expected 1 to 255"),
        ({"hop_limit": 256}, "hop limit is 256"),
        ({"token": 0}, "token is 0; expected 1 to 65534"),
        ({"token": 0xFFFF}, "token is 65535"),
        ({"dscp": 64}, "dscp is 64"),
        ({"secret": b"short"}, "secret has 5 octets"),
        ({"size": 65_536}, "size is 65536"),
    ],
)
def test_numbers_that_do_not_fit_are_refused(changes: dict[str, Any], message: str) -> None:
    numbers: dict[str, Any] = {"hop_limit": 1, "token": 1, **changes}
    with pytest.raises(ValueError, match=message):
        build(flow_of(), **numbers)


def test_no_segment_inside_a_connection_without_its_numbers() -> None:
    with pytest.raises(ValueError, match="numbers of a connection"):
        build(flow_of(TraceProtocol.SESSION), 1, 1)


def test_a_name_is_no_address() -> None:
    with pytest.raises(ValueError, match="'example' is no IP address"):
        build(flow_of()._replace(destination="example"), 1, 1)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("protocol", PLAIN_PROTOCOLS)
def test_everything_fits_in_the_smallest_size(
    protocol: TraceProtocol, family: AddressFamily
) -> None:
    longest = max(len(build(flow_of(protocol, family), 1, token).data) for token in range(1, 100))
    assert longest < SMALLEST_SIZE
