"""SYNs are built and their answers read as RFC 9293 has it; scapy is the second opinion."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scapy.layers.inet import IP, TCP
from scapy.layers.inet6 import IPv6

from pathbudget.probes.fake_segments import build_answer
from pathbudget.probes.tcp_wire import (
    ACK,
    RST,
    SYN,
    Answer,
    build_syn,
    checksum_holds,
    parse_answer,
    parse_quoted_syn,
    strip_ip,
)

PAIRS = {"ipv4": ("192.0.2.1", "198.51.100.7"), "ipv6": ("2001:db8::1", "2001:db8:9::7")}
ports = st.integers(1, 65_535)
sequences = st.integers(0, 2**32 - 1)


@pytest.mark.parametrize("family", PAIRS)
@given(here=ports, there=ports, sequence=sequences)
def test_a_syn_is_what_scapy_reads(family: str, here: int, there: int, sequence: int) -> None:
    source, address = PAIRS[family]
    segment = build_syn(source, address, here, there, sequence)
    layer = IP(src=source, dst=address) if family == "ipv4" else IPv6(src=source, dst=address)
    read = TCP(segment)
    assert (read.sport, read.dport, read.seq, str(read.flags)) == (here, there, sequence, "S")
    assert dict(option for option in read.options if option[0] != "NOP") == {
        "MSS": 1460,
        "SAckOK": b"",
        "WScale": 7,
    }
    sum_of_ours = read.chksum
    del read.chksum
    whole = bytes(layer / read)
    assert int.from_bytes(whole[-len(segment) :][16:18], "big") == sum_of_ours
    assert checksum_holds(source, address, segment)
    quoted = parse_quoted_syn(segment[:8])
    assert quoted == (here, there, sequence)


@given(data=st.data(), acknowledged=sequences)
def test_any_flipped_bit_breaks_the_checksum(data: st.DataObject, acknowledged: int) -> None:
    segment = build_answer(("192.0.2.1", 443), ("198.51.100.7", 40_000), acknowledged, SYN | ACK)
    assert checksum_holds("192.0.2.1", "198.51.100.7", segment)
    bit = data.draw(st.integers(0, len(segment) * 8 - 1))
    flipped = bytearray(segment)
    flipped[bit // 8] ^= 1 << bit % 8
    assert not checksum_holds("192.0.2.1", "198.51.100.7", bytes(flipped))


def test_a_sum_that_was_left_to_the_device_is_whole() -> None:
    """On veth and loopback only the pseudo header is summed, and nobody completes it."""
    segment = bytearray(build_answer(("10.0.0.1", 1), ("10.0.0.2", 2), 9, SYN | ACK))
    partial = 0x0A00 + 0x0001 + 0x0A00 + 0x0002 + 6 + len(segment)
    segment[16:18] = partial.to_bytes(2, "big")
    assert checksum_holds("10.0.0.1", "10.0.0.2", bytes(segment))
    segment[16] ^= 1
    assert not checksum_holds("10.0.0.1", "10.0.0.2", bytes(segment))


@pytest.mark.parametrize(
    ("kind", "answer"),
    [
        (SYN | ACK, Answer(443, 40_000, 77, refused=False)),
        (RST | ACK, Answer(443, 40_000, 77, refused=True)),
        (SYN | ACK | 0x40, Answer(443, 40_000, 77, refused=False)),
        (SYN, None),
        (ACK, None),
        (RST, None),
        (SYN | RST | ACK, None),
        (SYN | ACK | 1, None),
        (0, None),
    ],
)
def test_what_answers_a_syn(kind: int, answer: Answer | None) -> None:
    segment = build_answer(("192.0.2.1", 443), ("192.0.2.2", 40_000), 77, kind)
    assert parse_answer(segment) == answer


@given(st.binary(max_size=80))
def test_garbage_never_raises(data: bytes) -> None:
    parse_answer(data)
    parse_quoted_syn(data)
    strip_ip(data)


def test_a_header_longer_than_the_segment_is_no_answer() -> None:
    segment = bytearray(build_answer(("192.0.2.1", 443), ("192.0.2.2", 40_000), 77, SYN | ACK))
    for words in (0, 4, 6, 15):
        segment[12] = words << 4
        assert parse_answer(bytes(segment)) is None
