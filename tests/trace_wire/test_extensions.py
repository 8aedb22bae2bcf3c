"""ICMP extensions: by their RFCs, by scapy, and as real routers sent them."""

import json
import socket
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import SHARED_DATA
from tests.trace_wire.packets import EXCEEDED, FAMILIES, SECRET, flow_of, icmp_error

from pathbudget.probes.record import AddressFamily
from pathbudget.probes.trace.contract import InterfaceNote, LabelEntry, PathArrival
from pathbudget.probes.trace.extensions import read_extensions, read_interface
from pathbudget.probes.trace.ip_headers import closing, read_datagram, words_sum
from pathbudget.probes.trace.matching import Match, match
from pathbudget.probes.trace.wire import build, read

V4, V6 = AddressFamily.IPV4, AddressFamily.IPV6
CAPTURES = SHARED_DATA / "pcap"
FEW = settings(max_examples=30, deadline=None)
STACK = (LabelEntry(24_015, 0, False, 1), LabelEntry(16_008, 5, True, 254))


def structure(*objects: tuple[int, int, bytes], checked: bool = True) -> bytes:
    body = b"".join(struct.pack("!HBB", 4 + len(one), a, b) + one for a, b, one in objects)
    plain = b"\x20\0\0\0" + body
    return plain[:2] + closing(words_sum(plain)).to_bytes(2, "big") + body if checked else plain


def entries(stack: tuple[LabelEntry, ...]) -> bytes:
    words = [one.label << 12 | one.traffic_class << 9 | one.bottom << 8 | one.ttl for one in stack]
    return struct.pack(f"!{len(words)}I", *words)


def quote(family: AddressFamily) -> bytes:
    return build(flow_of(family=family), 1, 77, secret=SECRET).data.ljust(128, b"\0")


def said(family: AddressFamily) -> bytes:
    """The length attribute of 128 octets: RFC 4884, 4.1 to 4.4."""
    return bytes((0, 32, 0, 0)) if family is V4 else bytes((16, 0, 0, 0))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("old", [False, True])
def test_labels_with_and_without_the_length_attribute(family: AddressFamily, old: bool) -> None:
    added = structure((1, 1, entries(STACK)), (247, 9, b"what"))
    middle = bytes(4) if old else said(family)
    arrival = icmp_error(family, EXCEEDED[family], 0, quote(family) + added, middle=middle)
    answer = read(arrival, family)
    assert answer is not None
    assert answer.stack == STACK
    assert answer.token == 77
    packet = build(flow_of(family=family), 1, 77, secret=SECRET)
    assert match(packet, answer) is Match.PLAIN


@pytest.mark.parametrize("old", [False, True])
def test_a_checksum_that_does_not_hold_is_no_extension(old: bool) -> None:
    added = structure((1, 1, entries(STACK)))
    broken = added[:2] + bytes((added[2] ^ 1,)) + added[3:]
    assert read_extensions(quote(V4) + broken, 0 if old else 128).stack == ()


def test_no_checksum_is_believed_only_behind_a_length_attribute() -> None:
    """RFC 4884, section 7: zero means that none was made. At 128 octets it may be payload."""
    added = structure((1, 1, entries(STACK)), checked=False)
    assert read_extensions(quote(V4) + added, 128).stack == STACK
    assert read_extensions(quote(V4) + added, 0).stack == ()


def test_a_wrong_length_attribute_does_not_hide_what_stands_at_128() -> None:
    added = structure((1, 1, entries(STACK)))
    assert read_extensions(quote(V4) + added, 28).stack == STACK
    assert read_extensions(quote(V4) + added, 1020).stack == STACK


def test_objects_that_do_not_fit_end_the_structure() -> None:
    whole = (1, 1, entries(STACK[:1]))
    for length in (0, 3, 200):
        plain = structure(whole, checked=False) + struct.pack("!HBB", length, 1, 1) + bytes(4)
        assert read_extensions(quote(V4) + plain, 128).stack == STACK[:1]


@pytest.mark.parametrize(
    ("kind", "content", "note"),
    [
        (0x00, b"", InterfaceNote("incoming")),
        (0x48, b"\0\0\0\7", InterfaceNote("sub", 7)),
        (
            0x8D,
            b"\0\0\0\7\0\1\0\0\xc0\0\2\1\0\0\x23\x28",
            InterfaceNote("outgoing", 7, "192.0.2.1", "", 9000),
        ),
        (
            0xC6,
            b"\0\2\0\0" + socket.inet_pton(socket.AF_INET6, "2001:db8::1") + b"\x08eth0\0\0\0",
            InterfaceNote("next", None, "2001:db8::1", "eth0"),
        ),
        (0x02, b"\x0cxe\x1b[31m 1\0\0", InterfaceNote("incoming", name="xe[31m1")),
        (0x08, b"\0\0\7", None),
        (0x04, b"\0\3\0\0\1\2\3\4", None),
        (0x01, b"", None),
        (0x02, b"\x40eth0", InterfaceNote("incoming")),
    ],
)
def test_interface_information(kind: int, content: bytes, note: InterfaceNote | None) -> None:
    """RFC 5837, section 4. Names go to terminals: no control characters."""
    assert read_interface(kind, content) == note


@FEW
@given(
    st.lists(
        st.builds(
            LabelEntry,
            st.integers(0, 2**20 - 1),
            st.integers(0, 7),
            st.booleans(),
            st.integers(0, 255),
        ),
        min_size=1,
        max_size=8,
    )
)
def test_scapy_builds_the_stacks_that_we_read(stack: list[LabelEntry]) -> None:
    from scapy.contrib.mpls import MPLS, ICMPExtension_MPLS
    from scapy.layers.inet import ICMP, IP, ICMPExtension_Header

    labels = [MPLS(label=a, cos=b, s=int(c), ttl=d) for a, b, c, d in stack]
    added = ICMPExtension_Header() / ICMPExtension_MPLS(stack=labels)
    inner = IP(src="192.0.2.1", dst="198.51.100.7", id=9, ttl=1) / ("\0" * 108)
    message = bytes(ICMP(type=11, code=0, length=32) / bytes(inner) / bytes(added))
    assert read_extensions(message[8:], 128).stack == tuple(stack)


def errors_in(name: str) -> list[PathArrival]:
    """ICMP of either family in a capture of Ethernet or PPP, from the ICMP header on."""
    from scapy.utils import RawPcapReader

    found: list[PathArrival] = []
    with RawPcapReader(str(CAPTURES / name)) as reader:
        frames = [frame for frame, _ in reader]
    for frame in frames:
        packet = frame[4:] if frame[:4] == b"\xff\x03\0\x21" else frame[14:]
        if packet[:1] and packet[0] >> 4 == 4 and packet[9] == 1:
            sender = socket.inet_ntop(socket.AF_INET, packet[12:16])
            whole = packet[: int.from_bytes(packet[2:4], "big") or None]
            found.append(PathArrival(1, whole[(whole[0] & 15) * 4 :], sender, packet[8], None))
        elif packet[:1] and packet[0] >> 4 == 6 and packet[6] == 58:
            sender = socket.inet_ntop(socket.AF_INET6, packet[8:24])
            found.append(PathArrival(58, packet[40:], sender, packet[7], None))
    return found


@pytest.mark.needs("data")
def test_labels_of_real_routers_as_tshark_reads_them() -> None:
    name = "tcpdump_tests/mpls-traceroute.pcap"
    expected = json.loads((CAPTURES / "expected_tshark.json").read_text())[name]["icmp_mpls"]
    answers = [read(one, V4) for one in errors_in(name)]
    assert len(answers) == 9
    assert None not in answers
    seen = [
        (one.responder, str(entry.label), str(entry.traffic_class), str(entry.ttl))
        for one in answers
        if one is not None
        for entry in one.stack
    ]
    assert seen == [(one["src"], one["label"], one["exp"], one["ttl"]) for one in expected]
    words = [one.word for one in answers if one is not None]
    assert words == ["11/0"] * 6 + ["3/3"] * 3
    ways = [int.from_bytes(one.quoted[2:4], "big") for one in answers if one is not None]
    assert ways == list(range(33_435, 33_444))


@pytest.mark.needs("data")
def test_interface_information_of_a_capture() -> None:
    (answer,) = [read(one, V4) for one in errors_in("tcpdump_tests/icmp-rfc5837.pcap")]
    assert answer is not None
    name = "This-is-the-name-of-the-Interface-that-we-are-looking-for-[:-)]"
    assert answer.interfaces == (InterfaceNote("incoming", 15, "10.10.10.10", name),)


@pytest.mark.needs("data")
@pytest.mark.parametrize(
    ("name", "word", "ports"),
    [
        ("zeek/icmp__icmp-destunreach-udp.pcap", "3/3", (53, 59_207)),
        ("zeek/icmp__icmp-timeexceeded.pcap", "11/0", (30_000, 13_000)),
    ],
)
def test_real_errors_without_extensions(name: str, word: str, ports: tuple[int, int]) -> None:
    (answer,) = [read(one, V4) for one in errors_in(name)]
    assert answer is not None
    assert answer.word == word
    assert struct.unpack_from("!HH", answer.quoted) == ports


@pytest.mark.needs("data")
@pytest.mark.parametrize("name", ["icmp6-timeexceeded", "icmp6-destunreach-ip6ext-udp"])
def test_real_errors_of_ipv6_are_read_behind_their_extension_headers(name: str) -> None:
    """Their datagram is shorter than any of ours, so no probe of ours is what they quote."""
    (arrival,) = errors_in(f"zeek/icmp__{name}.pcap")
    quoted = read_datagram(V6, arrival.data[8:])
    assert quoted is not None
    assert (quoted.source, quoted.protocol, quoted.length) == ("fe80::beef", 17, 12)
    assert struct.unpack_from("!HH", quoted.transport) == (30_000, 13_000)
    assert read(arrival, V6) is None


@pytest.mark.needs("data")
@pytest.mark.parametrize(
    "name",
    [
        "tcpdump_tests/icmp_ext_oob_poc.pcap",
        "tcpdump_tests/icmp-cksum-oobr-3.pcapng",
        "tcpdump_tests/icmp-rfc8335.pcap",
        "tcpdump_tests/icmp-length-zero.pcapng",
        "tcpdump_tests/icmpv6-length-zero.pcapng",
        "zeek/icmp__icmp-destunreach-no-context.pcap",
        "zeek/icmp__icmp6-destunreach-no-context.pcap",
        "zeek/icmp__icmp6-destunreach-ip6ext-trunc.pcap",
        "zeek/icmp__icmp6-paramprob.pcap",
    ],
)
def test_malicious_and_useless_captures_say_nothing(name: str) -> None:
    arrivals = errors_in(name)
    assert arrivals
    for arrival in arrivals:
        for family in FAMILIES:
            answer = read(arrival, family)
            assert answer is None or answer.stack == ()
