"""The echo codec against scapy, RFC 1071 and arbitrary bytes."""

import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pathbudget.probes import icmp_wire
from pathbudget.probes.icmp_wire import Echo, Secret
from pathbudget.probes.record import AddressFamily

V4, V6 = AddressFamily.IPV4, AddressFamily.IPV6
SIZES = [16, 17, 56, 255, 1400, 8_972]


def plain_checksum(data: bytes) -> int:
    """RFC 1071, section 1, word by word."""
    total = 0
    for start in range(0, len(data), 2):
        word = data[start : start + 2].ljust(2, b"\0")
        total += int.from_bytes(word, "big")
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


@given(st.binary(max_size=200))
@example(b"\xff\xff")
@example(b"\xff\xff\xff\xff")
@example(bytes(64))
def test_the_checksum_is_that_of_rfc_1071(data: bytes) -> None:
    assert icmp_wire.checksum(data) == plain_checksum(data)


def test_the_checksum_of_the_example_in_rfc_1071() -> None:
    assert ~icmp_wire.checksum(bytes.fromhex("0001f203f4f5f6f7")) & 0xFFFF == 0xDDF2


@pytest.mark.parametrize("size", SIZES)
def test_a_request_reads_back(size: int) -> None:
    rng = random.Random(size)
    for family in AddressFamily:
        secret = Secret(rng.getrandbits(64), rng.getrandbits(40))
        echo = Echo(rng.getrandbits(16), rng.getrandbits(16), icmp_wire.build_payload(secret, size))
        message = icmp_wire.build_request(family, echo)
        assert len(message) == 8 + size
        assert icmp_wire.parse_request(family, message) == echo
        assert icmp_wire.read_secret(echo.payload) == secret
        assert icmp_wire.parse_reply(family, message) is None


@pytest.mark.parametrize("size", SIZES)
def test_scapy_reads_our_ipv4_requests_alike(size: int) -> None:
    from scapy.layers.inet import ICMP

    payload = icmp_wire.build_payload(Secret(1 << 63, 77), size)
    ours = icmp_wire.build_request(V4, Echo(0xBEEF, 0x0102, payload))
    theirs = bytes(ICMP(type=8, id=0xBEEF, seq=0x0102) / payload)
    assert ours == theirs
    assert icmp_wire.checksum_holds(theirs)


@pytest.mark.parametrize("size", SIZES)
def test_scapy_reads_our_ipv6_requests_alike(size: int) -> None:
    from scapy.layers.inet6 import ICMPv6EchoRequest

    payload = icmp_wire.build_payload(Secret(1 << 63, 77), size)
    ours = icmp_wire.build_request(V6, Echo(0xBEEF, 0x0102, payload))
    theirs = bytes(ICMPv6EchoRequest(id=0xBEEF, seq=0x0102, data=payload, cksum=0))
    assert ours == theirs


def test_replies_made_by_scapy() -> None:
    from scapy.layers.inet import ICMP, IP
    from scapy.layers.inet6 import ICMPv6EchoReply

    packet = bytes(IP(src="192.0.2.1", ttl=57, options=b"\x94\x04\0\0") / ICMP(type=0, id=5, seq=6))
    stripped = icmp_wire.strip_ipv4(packet)
    assert stripped is not None
    message, ttl = stripped
    assert ttl == 57
    assert icmp_wire.parse_reply(V4, message) == Echo(5, 6, b"")
    reply = bytes(ICMPv6EchoReply(id=5, seq=6, data=b"abc"))
    assert icmp_wire.parse_reply(V6, reply) == Echo(5, 6, b"abc")


@pytest.mark.parametrize("quoted", [8, 28, 64])
@pytest.mark.parametrize(("icmp_type", "code"), [(3, 13), (11, 0), (12, 0)])
def test_ipv4_errors_made_by_scapy(icmp_type: int, code: int, quoted: int) -> None:
    from scapy.layers.inet import ICMP, IP

    payload = icmp_wire.build_payload(Secret(3, 4), 56)
    request = icmp_wire.build_request(V4, Echo(7, 8, payload))
    inner = bytes(IP(src="198.51.100.1", dst="192.0.2.9", proto=1) / request)[: 20 + quoted]
    found = icmp_wire.parse_error(V4, bytes(ICMP(type=icmp_type, code=code)) + inner)
    assert found is not None
    assert (found.icmp_type, found.icmp_code, found.destination) == (icmp_type, code, "192.0.2.9")
    assert found.echo == Echo(7, 8, payload[: quoted - 8])


def test_an_ipv4_error_with_mpls_extension_behind_the_quote() -> None:
    """RFC 4884: the quote is padded with zeros to 128 bytes, and an extension follows."""
    from scapy.layers.inet import ICMP, IP

    secret = Secret(3, 4)
    request = icmp_wire.build_request(V4, Echo(7, 8, icmp_wire.build_payload(secret, 56)))
    inner = bytes(IP(dst="192.0.2.9", proto=1) / request).ljust(128, b"\0")
    extension = bytes.fromhex("2000000000080101186a0140")
    message = bytes(ICMP(type=11, code=0, length=32)) + inner + extension
    found = icmp_wire.parse_error(V4, message)
    assert found is not None
    assert icmp_wire.read_secret(found.echo.payload) == secret


@pytest.mark.parametrize(("icmp_type", "code"), [(1, 4), (2, 0), (3, 0), (4, 1)])
def test_ipv6_errors_made_by_scapy(icmp_type: int, code: int) -> None:
    from scapy.layers.inet6 import ICMPv6DestUnreach, IPv6

    payload = icmp_wire.build_payload(Secret(3, 4), 56)
    request = icmp_wire.build_request(V6, Echo(7, 8, payload))
    inner = bytes(IPv6(src="2001:db8::1", dst="2001:db8::9", nh=58) / request)
    header = bytes(ICMPv6DestUnreach(type=icmp_type, code=code, cksum=0))
    found = icmp_wire.parse_error(V6, header + inner)
    assert found is not None
    assert (found.icmp_type, found.icmp_code) == (icmp_type, code)
    assert found.destination == "2001:db8::9"
    assert found.echo == Echo(7, 8, payload)


def test_an_error_about_somebody_elses_udp_packet_is_none() -> None:
    from scapy.layers.inet import ICMP, IP, UDP

    inner = bytes(IP(dst="192.0.2.9") / UDP(sport=1, dport=2) / (b"x" * 30))
    assert icmp_wire.parse_error(V4, bytes(ICMP(type=3, code=3)) + inner) is None


@given(st.binary(max_size=300), st.sampled_from(AddressFamily))
def test_no_parser_raises(data: bytes, family: AddressFamily) -> None:
    icmp_wire.parse_reply(family, data)
    icmp_wire.parse_request(family, data)
    icmp_wire.parse_error(family, data)
    icmp_wire.strip_ipv4(data)
    icmp_wire.read_secret(data)
    icmp_wire.checksum_holds(data)


@given(
    st.sampled_from(AddressFamily),
    st.integers(0, 100),
    st.integers(0, 255),
    st.integers(0, 255),
    st.integers(0, 99),
)
def test_no_parser_raises_on_a_damaged_error(
    family: AddressFamily, cut: int, place: int, value: int, size: int
) -> None:
    header = b"\x45" + bytes(19) if family is V4 else b"\x60" + bytes(39)
    request = icmp_wire.build_request(family, Echo(1, 2, bytes(size)))
    message = bytearray(b"\x03\x00" + bytes(6) + header + request)
    message[place % len(message)] = value
    found = icmp_wire.parse_error(family, bytes(message[: len(message) - cut]))
    assert found is None or len(found.echo.payload) <= size + 40
