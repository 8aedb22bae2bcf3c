"""What the emulator makes of packets of peculiar routers, read back by scapy."""

import struct
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.contrib.mpls import MPLS
from scapy.layers.inet import ICMP, IP, TCP, UDP, ICMPerror, IPerror, TCPerror, UDPerror
from scapy.layers.inet6 import (
    ICMPv6EchoRequest,
    ICMPv6PacketTooBig,
    ICMPv6TimeExceeded,
    IPerror6,
    IPv6,
)
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw

from pathbudget.agents.lab.frames import Spots, adjusted, checksum
from pathbudget.agents.lab.hop import Balancing, Hop, Label, Translation
from pathbudget.agents.lab.hop_work import HopSetup, HopWork, Interface
from pathbudget.agents.lab.translation import Translator

OWN = ("10.32.0.1", "fd70::1")
LINK = Interface(1003, "neighbour", "10.32.0.3", "fd70::3", 1500)
INSIDE, FAR = "10.16.0.1", "10.48.0.1"
INSIDE6, FAR6 = "fd70:1::1", "fd70:3::1"


def worker(hop: Hop, **more: object) -> HopWork:
    addresses = (*OWN, LINK.ipv4, LINK.ipv6)
    return HopWork(HopSetup("r", hop, "1 r", addresses, {3: LINK}, **more))  # type: ignore[arg-type]


def frame(packet: Packet) -> bytes:
    kind = 0x0800 if IP in packet else 0x86DD
    return bytes(Ether(src="02:00:00:03:00:01", dst="02:00:00:03:00:02", type=kind) / packet)


def exceeded(source: str, quoted: int = 28) -> bytes:
    inner = IP(src=INSIDE, dst=FAR, ttl=1) / UDP(sport=1000, dport=2000) / (b"q" * (quoted - 28))
    return frame(IP(src=source, dst=INSIDE) / ICMP(type=11) / bytes(inner)[:quoted])


def exceeded6(source: str) -> bytes:
    inner = IPv6(src=INSIDE6, dst=FAR6, hlim=1) / UDP(sport=1000, dport=2000) / b"quoted"
    return frame(IPv6(src=source, dst=INSIDE6) / ICMPv6TimeExceeded() / inner)


def is_whole(octets: bytes) -> bool:
    """Whether scapy would compute the same checksums and lengths."""
    packet = Ether(octets)
    again = packet.copy()
    layer: Packet | None = again.payload
    while layer is not None and not isinstance(layer, IPerror | IPerror6 | Raw):
        for name in ("chksum", "cksum", "len", "plen"):
            if name in layer.fields:
                del layer.fields[name]
        layer = layer.payload or None
    return bytes(Ether(bytes(again))) == octets


@pytest.mark.parametrize("quoted", [28, 60, 128, 300])
def test_labels_follow_the_quote(quoted: int) -> None:
    hop = Hop(labels=(Label(24015), Label(16008, 3, 254)))
    octets = worker(hop).leaving(exceeded(OWN[0], quoted), None)
    assert octets is not None
    packet = Ether(octets)
    assert packet[ICMP].length == 32  # 128 octets in words of four (RFC 4884)
    whole = exceeded(OWN[0], quoted)[42:]
    assert octets[42 : 42 + 128] == whole[:128].ljust(128, b"\0")
    structure = octets[42 + 128 :]
    assert structure[0] >> 4 == 2
    assert checksum(structure) == 0
    assert struct.unpack("!HBB", structure[4:8]) == (12, 1, 1)
    entries = MPLS(structure[8:])
    assert (entries.label, entries.cos, entries.s, entries.ttl) == (24015, 0, 0, 1)
    last = entries.payload
    assert (last.label, last.cos, last.s, last.ttl) == (16008, 3, 1, 254)
    assert packet[IP].len == len(octets) - 14
    assert checksum(octets[14:34]) == 0
    assert checksum(octets[34:]) == 0


def test_labels_go_into_ipv6_as_well() -> None:
    octets = worker(Hop(labels=(Label(7),))).leaving(exceeded6(OWN[1]), None)
    assert octets is not None
    assert octets[54 + 4] == 16  # 128 octets in words of eight
    pseudo = octets[22:54] + struct.pack("!II", len(octets) - 54, 58)
    assert checksum(pseudo + octets[54:]) == 0
    assert Ether(octets)[IPv6].plen == len(octets) - 54


def test_the_interface_is_that_of_arrival() -> None:
    octets = worker(Hop(interface=True)).leaving(exceeded(LINK.ipv4), None)
    assert octets is not None
    body = octets[42 + 128 + 4 :]
    assert struct.unpack("!HBB", body[:4])[1:] == (2, 0b1111)
    assert struct.unpack("!IHH", body[4:12]) == (1003, 1, 0)
    assert body[12:16] == bytes([10, 32, 0, 3])
    assert body[16] == 12  # its own octet, nine letters, padded
    assert body[17:28].rstrip(b"\0") == b"neighbour"
    assert struct.unpack("!I", body[28:32]) == (1500,)


def test_an_unknown_interface_is_not_made_up() -> None:
    octets = exceeded6(OWN[1])
    assert worker(Hop(interface=True)).leaving(octets, None) == octets
    told = worker(Hop(interface=True)).leaving(octets, 3)
    assert told is not None
    assert bytes([0x0A]) not in told[:1]
    assert len(told) > len(octets)


def test_a_silent_router_sends_no_errors_of_its_own() -> None:
    silent = worker(Hop(silent=True))
    assert silent.leaving(exceeded(OWN[0]), None) is None
    assert silent.leaving(exceeded6(OWN[1]), None) is None
    big = frame(IPv6(src=OWN[1], dst=INSIDE6) / ICMPv6PacketTooBig() / b"quoted")
    assert silent.leaving(big, None) is None
    passing = exceeded("10.32.9.1")
    assert silent.leaving(passing, None) == passing
    echo = frame(IP(src=OWN[0], dst=INSIDE) / ICMP(type=0))
    assert silent.leaving(echo, None) == echo


GROUP: dict[str, tuple[int, ...]] = {bytes([10, 48, 0]).hex(): (1, 3, 5, 7)}


def ways(balancing: Balancing, packets: list[bytes]) -> Counter[int | None]:
    one = worker(Hop(balancing=balancing), groups=GROUP)
    return Counter(one.way(packet) for packet in packets)


def test_first_octets_keep_a_flow_and_spread_flows_of_every_protocol() -> None:
    udp = [frame(IP(src=INSIDE, dst=FAR) / UDP(sport=sport, dport=9)) for sport in range(160)]
    echo = [frame(IP(src=INSIDE, dst=FAR) / ICMP(id=at, seq=1)) for at in range(160)]
    for packets in (udp, echo):
        shares = ways(Balancing.OCTETS, packets)
        assert set(shares) == {1, 3, 5, 7}
        assert min(shares.values()) > 20
    assert len(ways(Balancing.OCTETS, udp[:1] * 20)) == 1
    elsewhere = frame(IP(src=INSIDE, dst="10.48.1.1") / UDP())
    assert ways(Balancing.OCTETS, [elsewhere]) == {None: 1}


def test_by_lot_every_packet_is_for_itself() -> None:
    shares = ways(Balancing.PACKET, [frame(IP(src=INSIDE, dst=FAR) / UDP(sport=5))] * 400)
    assert min(shares[way] for way in (1, 3, 5, 7)) > 20


def test_routers_behind_each_other_do_not_decide_alike() -> None:
    packets = [frame(IP(src=INSIDE, dst=FAR) / UDP(sport=sport)) for sport in range(300)]
    one, other = (
        HopWork(HopSetup(name, Hop(balancing=Balancing.OCTETS), name, OWN, {}, (), GROUP))
        for name in ("a", "b")
    )
    both = Counter((one.way(packet), other.way(packet)) for packet in packets)
    assert len(both) == 16


def translator(translation: Translation = Translation.LEAVE) -> Translator:
    return Translator((INSIDE, "10.16.1.1", INSIDE6), OWN, translation)


OUTWARD = [
    ("udp", IP(src=INSIDE, dst=FAR) / UDP(sport=1000, dport=2000) / b"abc"),
    ("tcp", IP(src=INSIDE, dst=FAR) / TCP(sport=1000, dport=2000, seq=7) / b"abc"),
    ("echo", IP(src=INSIDE, dst=FAR) / ICMP(id=9, seq=2) / b"abcd"),
    ("udp6", IPv6(src=INSIDE6, dst=FAR6) / UDP(sport=1000, dport=2000) / b"abc"),
    ("echo6", IPv6(src=INSIDE6, dst=FAR6) / ICMPv6EchoRequest(id=9, seq=2, data=b"abcd")),
]


@pytest.mark.parametrize(("what", "packet"), OUTWARD, ids=[what for what, _ in OUTWARD])
def test_packets_leave_with_the_address_of_the_box(what: str, packet: Packet) -> None:
    box = translator()
    out = box.outward(frame(packet))
    assert Ether(out).payload.src in OWN
    assert is_whole(out), what
    assert Spots(out).destination_address == Spots(frame(packet)).destination_address


def test_answers_find_their_way_back() -> None:
    box = translator()
    first = box.outward(frame(IP(src=INSIDE, dst=FAR) / UDP(sport=1000, dport=2000) / b"abc"))
    taken = box.outward(frame(IP(src="10.16.1.1", dst=FAR) / UDP(sport=1000, dport=2000) / b"abc"))
    assert Ether(first)[UDP].sport == 1000
    port = Ether(taken)[UDP].sport
    assert port != 1000
    answer = box.inward(frame(IP(src=FAR, dst=OWN[0]) / UDP(sport=2000, dport=port) / b"abcd"))
    assert (Ether(answer)[IP].dst, Ether(answer)[UDP].dport) == ("10.16.1.1", 1000)
    assert is_whole(answer)
    unknown = frame(IP(src=FAR, dst=OWN[0]) / UDP(sport=2000, dport=77))
    assert box.inward(unknown) == unknown


@pytest.mark.parametrize("translation", list(Translation))
def test_errors_come_back_with_what_the_box_does_to_quotes(translation: Translation) -> None:
    box = translator(translation)
    sent = frame(IP(src=INSIDE, dst=FAR, ttl=5) / UDP(sport=1000, dport=2000) / b"abc")
    outside = box.outward(sent)
    error = frame(IP(src="10.32.9.9", dst=OWN[0]) / ICMP(type=11) / outside[14:])
    back = Ether(box.inward(error))
    assert back[IP].dst == INSIDE
    assert checksum(bytes(back)[34:]) == 0
    quoted = back[IPerror]
    restored = translation is Translation.RESTORE
    assert quoted.src == (INSIDE if restored else OWN[0])
    assert checksum(bytes(quoted)[:20]) == 0
    # What a trace that knows of translators looks at: never the checksum that it sent.
    assert back[UDPerror].chksum != Ether(sent)[UDP].chksum
    assert back[UDPerror].sport == 1000


def test_tcp_quotes_of_eight_octets_are_enough() -> None:
    box = translator(Translation.RESTORE)
    outside = box.outward(frame(IP(src=INSIDE, dst=FAR) / TCP(sport=4000, dport=443)))
    error = frame(IP(src="10.32.9.9", dst=OWN[0]) / ICMP(type=11) / outside[14 : 14 + 28])
    back = Ether(box.inward(error))
    assert back[IP].dst == INSIDE
    assert back[TCPerror].sport == 4000
    assert isinstance(back[ICMP], ICMP | ICMPerror)


def test_packets_between_the_insides_stay_as_they_are() -> None:
    own = frame(IP(src=INSIDE, dst="10.16.1.1") / UDP())
    assert translator().outward(own) == own


@given(st.binary(max_size=120))
@settings(max_examples=60, deadline=None)
def test_no_octets_crash_it(octets: bytes) -> None:
    busy = worker(
        Hop(silent=False, labels=(Label(1),), interface=True, translation=Translation.RESTORE),
        inside=(INSIDE,),
    )
    for kind in (b"\x08\x00", b"\x86\xdd"):
        whole = bytes(12) + kind + octets.ljust(40, b"\0")
        left = busy.leaving(whole, 3)
        assert left is not None
        assert len(busy.entering(left)) == len(left)


@given(st.integers(0, 0xFFFF), st.binary(min_size=8, max_size=8), st.binary(min_size=8, max_size=8))
@settings(max_examples=40, deadline=None)
def test_an_adjusted_checksum_is_that_of_the_changed_octets(
    rest: int, old: bytes, new: bytes
) -> None:
    tail = struct.pack("!H", rest)
    before = checksum(old + tail)
    found = adjusted(before, old, new)
    assert found % 0xFFFF == checksum(new + tail) % 0xFFFF
