"""Answers of every kind, with quotes of every length, rewritten and cut by who is on the way."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.trace_wire.packets import (
    EXCEEDED,
    FAMILIES,
    HERE,
    PLAIN_PROTOCOLS,
    ROUTER,
    SECRET,
    THERE,
    UNREACHABLE,
    exceeded,
    flow_of,
    flows,
    header_bytes,
    icmp_error,
    patched,
    tokens,
    with_hop_limit,
)

from pathbudget.probes.record import AddressFamily
from pathbudget.probes.trace.contract import (
    Answer,
    AnswerKind,
    Flow,
    FlowPacket,
    PathArrival,
    TraceProtocol,
)
from pathbudget.probes.trace.ip_headers import TCP, closing, words_sum
from pathbudget.probes.trace.matching import Match, match, return_hops
from pathbudget.probes.trace.wire import build, build_session, read

V4, V6 = AddressFamily.IPV4, AddressFamily.IPV6
FEW = settings(max_examples=40, deadline=None)


def answer_to(arrival: PathArrival, family: AddressFamily = V4) -> Answer:
    answer = read(arrival, family)
    assert answer is not None
    return answer


@FEW
@given(flows, tokens, st.integers(8, 80), st.integers(0, 3))
def test_quotes_of_any_length_lead_to_the_probe(
    flow: Flow, token: int, octets: int, ttl: int
) -> None:
    packet = build(flow, 9, token, secret=SECRET)
    answer = answer_to(exceeded(packet.data, octets, ttl=ttl), flow.family)
    assert answer.kind is AnswerKind.EXCEEDED
    assert (answer.token, answer.flow_key, answer.other) == (token, flow.key, None)
    assert (answer.responder, answer.ttl, answer.quoted_ttl) == (ROUTER[flow.family], 250, ttl)
    assert (answer.source, answer.destination) == (flow.source, flow.destination)
    assert match(packet, answer) is Match.PLAIN


@FEW
@given(flows, tokens, tokens, st.integers(8, 80))
def test_no_probe_is_taken_for_another(flow: Flow, one: int, other: int, octets: int) -> None:
    packet = build(flow, 9, one, secret=SECRET)
    answer = answer_to(exceeded(packet.data, octets), flow.family)
    other_token = build(flow, 9, other, secret=SECRET)
    assert (match(other_token, answer) is Match.FOREIGN) == (one != other)
    elsewhere = build(flow._replace(port=80), 9, one, secret=SECRET)
    if flow.protocol is TraceProtocol.TCP:
        assert match(elsewhere, answer) is Match.FOREIGN


@pytest.mark.parametrize("protocol", [TraceProtocol.UDP, TraceProtocol.ICMP])
def test_pitfall_24_probes_of_another_process_are_foreign(protocol: TraceProtocol) -> None:
    """Same port or identifier, same token, other secret."""
    flow = flow_of(protocol)._replace(port=443)
    mine = build(flow, 4, 5, secret=SECRET)
    theirs = build(flow, 4, 5, secret=b"another1")
    answer = answer_to(exceeded(theirs.data))
    assert match(mine, answer) is Match.FOREIGN
    assert match(theirs, answer) is Match.PLAIN


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("protocol", PLAIN_PROTOCOLS)
def test_short_quotes_padded_with_zeros(protocol: TraceProtocol, family: AddressFamily) -> None:
    """RFC 4884, 5.1: padding is no secret, no token, no flags and no checksum."""
    flow = flow_of(protocol, family)
    packet = build(flow, 4, 0x1234, size=0, secret=SECRET)
    for octets in (8, 10, 14, 17):
        quote = packet.data[: header_bytes(family) + octets].ljust(128, b"\0")
        answer = answer_to(icmp_error(family, EXCEEDED[family], 0, quote), family)
        assert answer.token == 0x1234
        assert match(packet, answer) is Match.PLAIN


def rewritten(packet: FlowPacket, octets: int, *changes: tuple[int, bytes]) -> Answer:
    data = packet.data
    for at, new in changes:
        data = patched(data, at, new)
    family = V4 if data[0] >> 4 == 4 else V6
    return answer_to(exceeded(data, octets), family)


@pytest.mark.parametrize("octets", [8, 20, 64])
def test_pitfall_31_a_checksum_rewritten_by_a_translator_hides_no_udp_probe(octets: int) -> None:
    """Paris alone breaks here, Dublin tells the translator."""
    packet = build(flow_of(), 6, 0x0777, secret=SECRET)
    answer = rewritten(packet, octets, (26, b"\x5a\x5a"))
    assert answer.token == 0x0777
    assert answer.checksum == 0x5A5A
    assert match(packet, answer) is Match.TRANSLATED


@pytest.mark.parametrize("protocol", PLAIN_PROTOCOLS)
def test_rewritten_addresses_and_ports_are_told(protocol: TraceProtocol) -> None:
    packet = build(flow_of(protocol), 6, 0x0777, secret=SECRET)
    assert match(packet, rewritten(packet, 40, (12, b"\x0a\0\0\1"))) is Match.TRANSLATED
    if protocol is not TraceProtocol.ICMP:
        assert match(packet, rewritten(packet, 40, (20, b"\x12\x34"))) is Match.TRANSLATED


def test_an_identification_that_somebody_changed_hides_nothing() -> None:
    """Zeroed, swapped or rewritten, as long as the payload was quoted."""
    for protocol in PLAIN_PROTOCOLS:
        packet = build(flow_of(protocol), 6, 0x0777, secret=SECRET)
        for wrong in (b"\0\0", b"\x77\x07", b"\x12\x12"):
            assert match(packet, rewritten(packet, 40, (4, wrong))) is Match.PLAIN
        for wrong in (b"\0\0", b"\x77\x07"):
            assert match(packet, rewritten(packet, 8, (4, wrong))) is Match.PLAIN


def test_short_ipv6_quote_whose_checksum_was_rewritten_is_nobodys() -> None:
    """The length tells that the checksum is not the token; the other probe gets no false hop."""
    packet = build(flow_of(family=V6), 6, 100, secret=SECRET)
    for wrong in range(101, 132):
        data = patched(packet.data, 46, wrong.to_bytes(2, "big"))
        assert read(exceeded(data, 8), V6) is None
    zeroed = build(flow_of(family=V6), 6, 100, size=1_280, secret=SECRET)
    assert read(exceeded(patched(zeroed.data, 46, b"\0\0"), 8), V6) is None
    whole = answer_to(exceeded(patched(packet.data, 46, b"\0\x65"), 40), V6)
    assert whole.token == 100
    assert match(packet, whole) is Match.TRANSLATED


def test_a_firewall_that_chooses_sequence_numbers_hides_no_syn() -> None:
    for family, octets in ((V4, 8), (V4, 40), (V6, 40)):
        packet = build(flow_of(TraceProtocol.TCP, family), 6, 0x0777, secret=SECRET)
        start = header_bytes(family)
        answer = rewritten(packet, octets, (start + 4, b"\x99\x99\x99\x99"))
        assert match(packet, answer) is Match.TRANSLATED


def test_who_clamps_the_mss_translates_nothing() -> None:
    packet = build(flow_of(TraceProtocol.TCP), 6, 9, secret=SECRET)
    segment = patched(packet.data[20:], 22, (1_412).to_bytes(2, "big"))
    checksum = closing(words_sum(patched(segment, 16, b"\0\0")) - words_sum(packet.data[20:]))
    clamped = packet.data[:20] + patched(segment, 16, checksum.to_bytes(2, "big"))
    assert match(packet, answer_to(exceeded(clamped))) is Match.PLAIN
    assert match(packet, answer_to(exceeded(patched(clamped, 36, b"\1\2")))) is Match.TRANSLATED


@pytest.mark.parametrize("family", FAMILIES)
def test_echo_replies(family: AddressFamily) -> None:
    flow = flow_of(TraceProtocol.ICMP, family, key=0xABCD)
    packet = build(flow, 30, 0x0456, secret=SECRET)
    reply = answer_to(echo_reply(packet, family), family)
    assert reply.kind is AnswerKind.ARRIVED
    assert (reply.token, reply.flow_key, reply.responder) == (0x0456, 0xABCD, THERE[family])
    assert reply.quoted_ttl is None
    assert match(packet, reply) is Match.PLAIN
    other = build(flow, 30, 0x0456, secret=b"another1")
    assert match(other, reply) is Match.FOREIGN


def echo_reply(packet: FlowPacket, family: AddressFamily) -> PathArrival:
    request = packet.data[header_bytes(family) :]
    kind = 0 if family is V4 else 129
    return icmp_error(family, kind, 0, request[8:], middle=request[4:8], sender=THERE[family])


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("size", [0, 1200])
@pytest.mark.parametrize("flags", ["SA", "RA"])
def test_answers_to_a_syn(family: AddressFamily, size: int, flags: str) -> None:
    """Who refuses acknowledges the data of a SYN, who accepts echoes its timestamp."""
    from scapy.layers import inet

    packet = build(flow_of(TraceProtocol.TCP, family), 30, 0x0456, size=size, secret=SECRET)
    segment = packet.data[header_bytes(family) :]
    sequence = int.from_bytes(segment[4:8], "big")
    stamp = int.from_bytes(segment[28:32], "big")
    counted = len(segment) - 40 if flags == "RA" else 0
    options = [("Timestamp", (7, stamp))] if flags == "SA" else []
    heard = inet.TCP(
        sport=443, dport=33_434, ack=sequence + 1 + counted, flags=flags, options=options
    )
    arrival = PathArrival(TCP, bytes(heard), THERE[family], 60, 5)
    answer = answer_to(arrival, family)
    assert answer.kind is AnswerKind.ARRIVED
    assert (answer.token, answer.flow_key) == (0x0456, 33_434)
    assert answer.word == {"SA": "syn-ack", "RA": "rst"}[flags]
    assert match(packet, answer) is Match.PLAIN
    assert match(packet, answer._replace(responder=ROUTER[family])) is Match.FOREIGN


def test_a_rst_that_acknowledges_nothing_proves_nothing() -> None:
    from scapy.layers import inet

    heard = bytes(inet.TCP(sport=443, dport=33_434, seq=0x456, flags="R"))
    assert read(PathArrival(TCP, heard, THERE[V4], 60, 5), V4) is None


def acknowledgement(options: list[tuple[str, object]], data: bytes = b"") -> PathArrival:
    from scapy.layers import inet

    heard = inet.TCP(sport=443, dport=33_434, ack=70_000, flags="A", options=options) / data
    return PathArrival(TCP, bytes(heard), THERE[V4], 60, 5)


def test_the_answer_inside_a_connection_names_the_octet_that_came_twice() -> None:
    """RFC 2883. Without SACK it names none, and one that carries data is no answer."""
    flow = flow_of(TraceProtocol.SESSION)
    packet = build_session(flow, 30, 500, acknowledged=70_000, expected=1)
    twice = answer_to(acknowledgement([("SAck", (66_036, 66_037))]))
    assert (twice.token, twice.word) == (500, "ack")
    assert match(packet, twice) is Match.PLAIN
    assert match(build_session(flow, 30, 501, acknowledged=70_000, expected=1), twice) is (
        Match.FOREIGN
    )
    silent = answer_to(acknowledgement([]))
    assert silent.token == 0
    assert match(packet, silent) is Match.PLAIN
    assert read(acknowledgement([("SAck", (80_000, 80_001))]), V4) is None
    assert read(acknowledgement([("SAck", (66_036, 66_037))], b"data"), V4) is None


@pytest.mark.parametrize("octets", [8, 21])
def test_routers_quote_segments_inside_a_connection(octets: int) -> None:
    packet = build_session(flow_of(TraceProtocol.SESSION), 4, 500, acknowledged=70_000, expected=1)
    answer = answer_to(exceeded(packet.data, octets))
    assert answer.token == 500
    assert match(packet, answer) is Match.PLAIN


@pytest.mark.parametrize("size", [128, 1280, 1500])
@pytest.mark.parametrize("octets", [8, 64])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_syn_filled_up_to_a_size_is_known_by_any_quote(
    family: AddressFamily, octets: int, size: int
) -> None:
    packet = build(flow_of(TraceProtocol.TCP, family), 4, 500, size=size, secret=SECRET)
    assert match(packet, answer_to(exceeded(packet.data, octets), family)) is Match.PLAIN


@pytest.mark.parametrize(
    ("family", "icmp_type", "code", "from_there", "kind"),
    [
        (V4, 11, 0, False, AnswerKind.EXCEEDED),
        (V4, 11, 0, True, AnswerKind.EXCEEDED),
        (V4, 11, 1, False, AnswerKind.UNREACHABLE),
        (V4, 3, 3, True, AnswerKind.ARRIVED),
        (V4, 3, 3, False, AnswerKind.UNREACHABLE),
        (V4, 3, 13, True, AnswerKind.ARRIVED),
        (V4, 3, 1, False, AnswerKind.UNREACHABLE),
        (V4, 3, 4, False, AnswerKind.TOO_BIG),
        (V4, 3, 4, True, AnswerKind.TOO_BIG),
        (V4, 12, 0, False, AnswerKind.UNREACHABLE),
        (V6, 3, 0, False, AnswerKind.EXCEEDED),
        (V6, 3, 1, False, AnswerKind.UNREACHABLE),
        (V6, 1, 4, True, AnswerKind.ARRIVED),
        (V6, 1, 4, False, AnswerKind.UNREACHABLE),
        (V6, 2, 0, False, AnswerKind.TOO_BIG),
        (V6, 4, 1, True, AnswerKind.ARRIVED),
    ],
)
def test_pitfall_27_an_unreachable_is_no_arrival_but_of_the_destination(
    family: AddressFamily, icmp_type: int, code: int, from_there: bool, kind: AnswerKind
) -> None:
    """Whatever the destination itself refuses has reached it."""
    packet = build(flow_of(family=family), 9, 9, secret=SECRET)
    sender = THERE[family] if from_there else ROUTER[family]
    arrival = icmp_error(family, icmp_type, code, packet.data, sender=sender)
    answer = answer_to(arrival, family)
    assert (answer.kind, answer.icmp_type, answer.icmp_code) == (kind, icmp_type, code)
    assert answer.word == f"{icmp_type}/{code}"


@pytest.mark.parametrize(("said", "mtu"), [(1400, 1400), (0, None)])
def test_mtu_of_the_next_hop(said: int, mtu: int | None) -> None:
    """0 of routers older than RFC 1191 is not known."""
    v4 = build(flow_of(), 9, 9, size=1500, secret=SECRET)
    arrival = icmp_error(V4, 3, 4, v4.data[:28], middle=bytes(2) + said.to_bytes(2, "big"))
    assert answer_to(arrival).mtu == mtu
    v6 = build(flow_of(family=V6), 9, 9, size=1500, secret=SECRET)
    arrival = icmp_error(V6, 2, 0, v6.data[:1232], middle=said.to_bytes(4, "big"))
    assert answer_to(arrival, V6).mtu == mtu


def test_extension_headers_of_ipv6_are_passed_over() -> None:
    """Hop-by-hop, routing, destination options and an atomic fragment; a later one is nothing."""
    packet = build(flow_of(family=V6), 9, 77, secret=SECRET).data
    headers = bytes((43, 0)) + bytes(6) + bytes((60, 1)) + bytes(14) + bytes((44, 0)) + bytes(6)
    for offset, seen in ((0, True), (8, False)):
        fragment = bytes((17, 0)) + offset.to_bytes(2, "big") + bytes(4)
        inside = headers + fragment + packet[40:]
        data = packet[:4] + len(inside).to_bytes(2, "big") + bytes((0,)) + packet[7:40] + inside
        answer = read(exceeded(data), V6)
        assert (answer is not None) == seen
        if answer is not None:
            assert answer.token == 77


def test_options_of_the_quoted_ipv4_header_are_passed_over() -> None:
    packet = build(flow_of(), 9, 77, secret=SECRET).data
    quoted = b"\x47" + packet[1:20] + bytes((7, 7, 4, 0, 0, 0, 0, 0)) + packet[20:28]
    assert answer_to(icmp_error(V4, 11, 0, quoted)).token == 77


def test_damaged_and_useless_messages_are_no_answers() -> None:
    packet = build(flow_of(TraceProtocol.ICMP), 9, 77, secret=SECRET)
    good = exceeded(packet.data)
    assert read(good, V4) is not None
    assert read(good._replace(data=patched(good.data, 40, b"\0")), V4) is None
    assert read(good._replace(protocol=17), V4) is None
    assert read(icmp_error(V4, 5, 0, packet.data), V4) is None
    assert read(exceeded(packet.data, 7), V4) is None
    reply = echo_reply(packet, V4)
    assert read(reply._replace(data=patched(reply.data, 9, b"\0")), V4) is None
    later_fragment = patched(packet.data, 6, b"\0\x10")
    assert read(exceeded(later_fragment), V4) is None


@FEW
@given(st.binary(max_size=96), st.sampled_from((1, 6, 58)), st.sampled_from(FAMILIES))
def test_garbage_raises_nothing(data: bytes, protocol: int, family: AddressFamily) -> None:
    read(PathArrival(protocol, data, ROUTER[family], None, None), family)


@pytest.mark.parametrize(
    ("hop_limit", "hops"),
    [(255, 1), (250, 6), (128, 1), (64, 1), (61, 4), (33, 32), (30, 3), (1, 32), (0, None)],
)
def test_length_of_the_way_back_is_guessed(hop_limit: int, hops: int | None) -> None:
    assert return_hops(hop_limit) == hops


def test_the_quoted_hop_limit_is_as_it_was_dropped() -> None:
    """More than 1 behind MPLS that does not pass the hop limit on."""
    packet = build(flow_of(), 9, 77, secret=SECRET)
    assert answer_to(exceeded(packet.data, ttl=7)).quoted_ttl == 7
    assert with_hop_limit(packet.data, 9) == packet.data
    assert HERE[V4] == answer_to(exceeded(packet.data)).source
    assert UNREACHABLE[V6] == 1
