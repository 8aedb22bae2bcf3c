"""Extensions as RFC 8972 has them, asked and answered."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.contrib.stamp import STAMPTestTLV as ScapyTlv

from pathbudget.probes.stamp import tlv_answers, tlvs, trailer
from pathbudget.probes.stamp.authentication import Key
from pathbudget.probes.stamp.reflector_session import _only_follow_up
from pathbudget.probes.stamp.tlv_answers import Answered, Seen
from pathbudget.probes.stamp.tlvs import Kind, Located, SyncSource, Tlv

ASKED, REPLIED = b"\0\0\0\x05", b"\0\0\0\x09"
KEY = Key("one", bytes(range(32)))
TLVS = st.lists(
    st.builds(Tlv, st.integers(0, 255), st.integers(0, 255), st.binary(max_size=40)), max_size=8
)


def seen(**changes: object) -> Seen:
    usual = Seen(
        sender="192.0.2.100",
        sender_port=40_000,
        local="192.0.2.1",
        local_port=8620,
        traffic_class=46 << 2 | 1,
        received=11,
        transmitted=12,
        follow_up=(3, 0x1122334455667788, 2),
        sync_source=SyncSource.NTP,
        permitted_dscps=None,
        reported_location=True,
    )
    return usual._replace(**changes)  # type: ignore[arg-type]


def answer(
    region: bytes, *, keys: tuple[Key, ...] = (), must_sign: bool = False, **changes: object
) -> Answered:
    answered = tlv_answers.answer(
        region, seen(**changes), keys=keys, must_sign=must_sign, asked=ASKED, replied=REPLIED
    )
    assert len(answered.region) == len(region)
    return answered


def answers(region: bytes, **more: object) -> list[Tlv]:
    found, rest = tlvs.decode(answer(region, **more).region)  # type: ignore[arg-type]
    assert rest == b""
    return found


def asking(kind: int, value: bytes) -> bytes:
    return tlvs.encode([Tlv(tlvs.UNRECOGNISED, kind, value)])


@settings(max_examples=40, deadline=None)
@given(TLVS)
def test_extensions_are_scapys_byte_for_byte(listed: list[Tlv]) -> None:
    theirs = b"".join(
        bytes(ScapyTlv(flags=one.flags, type=one.kind, len=len(one.value), value=one.value))
        for one in listed
    )
    assert tlvs.encode(listed) == theirs


@settings(max_examples=40, deadline=None)
@given(TLVS)
def test_round_trip(listed: list[Tlv]) -> None:
    assert tlvs.decode(tlvs.encode(listed)) == (listed, b"")


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=200))
def test_nothing_is_lost_of_what_does_not_fit(region: bytes) -> None:
    found, rest = tlvs.decode(region)
    assert tlvs.encode(found) + rest == region


def test_extra_padding_comes_back_as_it_was() -> None:
    assert answers(tlvs.extra_padding(b"abc")) == [Tlv(0, Kind.EXTRA_PADDING, b"abc")]


def test_an_unknown_one_comes_back_with_u() -> None:
    region = asking(200, b"what") + tlvs.extra_padding(b"x")
    assert answers(region) == [Tlv(tlvs.UNRECOGNISED, 200, b"what"), Tlv(0, 1, b"x")]


def test_one_with_a_wrong_length_gets_m_and_the_rest_comes_back_as_it_was() -> None:
    after = asking(Kind.DIRECT_MEASUREMENT, bytes(12))
    region = asking(Kind.CLASS_OF_SERVICE, b"12345") + after
    answered = answer(region).region
    assert answered == tlvs.encode([Tlv(tlvs.MALFORMED, Kind.CLASS_OF_SERVICE, b"12345")]) + after


def test_one_that_does_not_fit_gets_m() -> None:
    region = tlvs.extra_padding(b"x") + tlvs.HEADER.pack(0x80, 1, 50) + b"short"
    answered = answer(region).region
    assert answered[5] == tlvs.MALFORMED
    assert answered[6:] == region[6:]
    assert answer(region[:7]).region[5] == tlvs.MALFORMED


def test_the_zeros_of_a_peer_without_extensions_stay_zeros() -> None:
    assert answer(bytes(1_000)).region == bytes(1_000)


def test_many_extensions_are_not_read_to_their_end() -> None:
    region = asking(200, b"") * 500
    answered = answer(region).region
    read = [answered[place] for place in range(0, len(answered), 4)]
    assert read[: tlvs.MAX_TLVS + 1] == [0x80] * tlvs.MAX_TLVS + [tlvs.MALFORMED]


def test_class_of_service_tells_what_came_and_asks_for_a_dscp() -> None:
    answered = answer(tlvs.class_of_service(10))
    assert answered.dscp == 10
    assert tlvs.read_class_of_service(answered.region[4:]) == (10, 46, 1, False)


def test_a_dscp_that_is_not_permitted_is_refused() -> None:
    answered = answer(tlvs.class_of_service(10), permitted_dscps=frozenset({0, 46}))
    assert answered.dscp is None
    assert tlvs.read_class_of_service(answered.region[4:]) == (10, 46, 1, True)


def test_direct_measurement() -> None:
    region = asking(Kind.DIRECT_MEASUREMENT, tlvs.DIRECT_MEASUREMENT.pack(77, 0, 0))
    (found,) = answers(region)
    assert found == Tlv(0, Kind.DIRECT_MEASUREMENT, tlvs.DIRECT_MEASUREMENT.pack(77, 11, 12))


def test_timestamp_information() -> None:
    (found,) = answers(asking(Kind.TIMESTAMP_INFORMATION, bytes(4)))
    assert found.value == bytes([SyncSource.NTP, 2, SyncSource.NTP, 2])


@pytest.mark.parametrize(("network", "flags"), [(1, 0), (2, 0), (3, 0x80), (0, 0x80)])
def test_an_access_report_comes_back_as_it_was(network: int, flags: int) -> None:
    value = bytes([network << 4, 1, 0, 0])
    assert answers(asking(Kind.ACCESS_REPORT, value)) == [Tlv(flags, Kind.ACCESS_REPORT, value)]


def test_follow_up() -> None:
    (found,) = answers(asking(Kind.FOLLOW_UP, bytes(16)))
    assert tlvs.read_follow_up(found.value) == (3, 0x1122334455667788, 2)


def test_a_follow_up_of_the_wrong_length_is_zeroed() -> None:
    (found,) = answers(asking(Kind.FOLLOW_UP, b"\x11" * 17))
    assert found == Tlv(tlvs.MALFORMED, Kind.FOLLOW_UP, bytes(12) + b"\x11" * 5)


def location(*asked: tuple[int, int]) -> bytes:
    subs = b"".join(asking(kind, bytes(octets)) for kind, octets in asked)
    return asking(Kind.LOCATION, bytes(4) + subs)


def test_location_tells_ports_and_addresses_as_this_end_sees_them() -> None:
    asked = ((Located.SOURCE_MAC, 8), (Located.DESTINATION_IP, 16), (Located.SOURCE_IP, 16))
    (found,) = answers(location(*asked))
    assert tlvs.LOCATION_PORTS.unpack(found.value[:4]) == (8620, 40_000)
    assert tlvs.decode(found.value[4:])[0] == [
        Tlv(0, Located.SOURCE_EUI64, bytes(8)),
        Tlv(0, Located.DESTINATION_IPV4, bytes([192, 0, 2, 1]) + bytes(12)),
        Tlv(0, Located.SOURCE_IPV4, bytes([192, 0, 2, 100]) + bytes(12)),
    ]


def test_location_of_ipv6() -> None:
    region = location((Located.DESTINATION_IP, 16), (Located.SOURCE_IP, 16))
    (found,) = answers(region, sender="2001:db8::64%eth0", local="")
    assert tlvs.decode(found.value[4:])[0] == [
        Tlv(0, Located.DESTINATION_IPV6, bytes(16)),
        Tlv(0, Located.SOURCE_IPV6, bytes.fromhex("20010db8000000000000000000000064")),
    ]


def test_a_location_that_is_kept_private_is_zero() -> None:
    (found,) = answers(location((Located.SOURCE_IP, 16)), reported_location=False)
    assert found.value[:4] == bytes(4)
    assert found.value[8:] == bytes(16)


def test_questions_of_location_that_nobody_knows_or_that_are_malformed() -> None:
    region = location((77, 3), (Located.SOURCE_IP, 4), (Located.DESTINATION_IP, 16))
    (found,) = answers(region)
    unknown, malformed, untouched = tlvs.decode(found.value[4:])[0]
    assert unknown.flags == tlvs.UNRECOGNISED
    assert malformed.flags == tlvs.MALFORMED
    assert untouched == Tlv(0x80, Located.DESTINATION_IP, bytes(16))


def signed(*parts: bytes, behind: bytes = b"") -> bytes:
    covered = b"".join(parts)
    return covered + asking(Kind.HMAC, KEY.sign(ASKED + covered)) + behind


def test_signed_extensions_are_answered_and_signed_again() -> None:
    region = signed(asking(Kind.FOLLOW_UP, bytes(16)), behind=tlvs.extra_padding(b"xyz"))
    answered = answer(region, keys=(KEY,), must_sign=True).region
    follow_up, signature, padding = tlvs.decode(answered)[0]
    assert (follow_up.flags, signature.flags, padding) == (0, 0, Tlv(0, 1, b"xyz"))
    assert signature.value == KEY.sign(REPLIED + answered[:20])


@pytest.mark.parametrize(
    "region",
    [
        asking(Kind.FOLLOW_UP, bytes(16)),
        signed(asking(Kind.FOLLOW_UP, bytes(16)))[:-1] + b"\xff",
        signed(asking(Kind.FOLLOW_UP, bytes(16)), behind=asking(Kind.ACCESS_REPORT, b"\x10\0\0\0")),
        signed() + signed(),
    ],
    ids=["unsigned", "wrong", "not at its place", "two"],
)
def test_where_integrity_fails_all_get_i_and_none_is_answered(region: bytes) -> None:
    before, after = tlvs.decode(region)[0], answers(region, keys=(KEY,), must_sign=True)
    assert all(one.flags == tlvs.INTEGRITY for one in after)
    assert [one.value for one in after] == [one.value for one in before]


def test_padding_alone_need_not_be_signed() -> None:
    region = tlvs.extra_padding(b"x")
    assert answers(region, keys=(KEY,), must_sign=True) == [Tlv(0, 1, b"x")]


def test_a_sender_reads_nothing_whose_integrity_is_in_doubt() -> None:
    region = tlvs.encode([Tlv(0, Kind.FOLLOW_UP, bytes(16)), Tlv(0, Kind.HMAC, bytes(16))])
    assert tlvs.usable(region, verified=False) == {}
    assert set(tlvs.usable(region, verified=True)) == {Kind.FOLLOW_UP, Kind.HMAC}
    flagged = tlvs.encode([Tlv(0, 1, b""), Tlv(tlvs.INTEGRITY, Kind.FOLLOW_UP, bytes(16))])
    assert tlvs.usable(flagged, verified=True) == {}


def test_a_sender_reads_nothing_from_a_malformed_one_on() -> None:
    region = tlvs.encode(
        [Tlv(0x80, 200, b""), Tlv(0, 1, b"x"), Tlv(0x40, 4, b"1234"), Tlv(0, 7, bytes(16))]
    )
    assert tlvs.usable(region, verified=False) == {1: b"x"}


@settings(max_examples=40, deadline=None)
@given(st.binary(max_size=60), st.sampled_from([None, 0, 3, 40]))
def test_the_short_way_for_our_own_sender_says_the_same(content: bytes, padded: int | None) -> None:
    region = tlvs.request(Kind.FOLLOW_UP, 16)
    if padded is not None:
        region += tlvs.extra_padding(content[:padded])
    assert _only_follow_up(region, seen().follow_up) == answer(region).region
    spoiled = bytes([*region[:1], *content, *region[1:]])
    short = _only_follow_up(spoiled, seen().follow_up)
    assert short is None or short == answer(spoiled).region


@pytest.mark.parametrize("key", [None, KEY])
def test_a_packet_has_the_size_that_was_asked_for(key: Key | None) -> None:
    base = 44 if key is None else 112
    for octets in (0, 300, 301, 302, 303, 1_400):
        chosen = trailer.choose_extensions(octets, bytes(9_000), follow_up=True, dscp=46, key=key)
        built = chosen.build(ASKED)
        assert len(built) == chosen.octets
        assert octets in (0, base + len(built))


def test_a_size_that_cannot_be_says_which_can() -> None:
    with pytest.raises(ValueError, match="64, or 68 and more"):
        trailer.choose_extensions(66, bytes(9_000), follow_up=True, dscp=0, key=None)
