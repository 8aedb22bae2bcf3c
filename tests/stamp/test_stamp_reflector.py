"""What the reflector answers, what it refuses, and what it remembers."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathbudget.probes.stamp import tlvs, wire
from pathbudget.probes.stamp.authentication import Key
from pathbudget.probes.stamp.reflector_session import Answer, ReflectorPolicy, ReflectorSession
from pathbudget.probes.stamp.timestamps import decode_error, encode_error, from_ntp, to_ntp
from pathbudget.probes.stamp.tlvs import Kind
from pathbudget.probes.stamp.wire import Reply, Request

NOW = 1_790_000_000_000_000_000
MONOTONIC = 1_000_000_000_000
SECOND_NS = 1_000_000_000
PORT = 8620
KEY = Key("one", bytes(range(32)))


def ask(
    reflector: ReflectorSession,
    payload: bytes,
    *,
    sender: str = "192.0.2.100",
    port: int = 40_000,
    at_ns: int = 0,
    ttl: int | None = 60,
    traffic_class: int | None = 0,
) -> Answer | None:
    now = NOW + at_ns
    return reflector.receive(
        payload, sender, port, "192.0.2.1", ttl, traffic_class, now - 50, now, MONOTONIC + at_ns
    )


def must_ask(reflector: ReflectorSession, payload: bytes, **more: int) -> Reply:
    answer = ask(reflector, payload, **more)  # type: ignore[arg-type]
    assert answer is not None
    assert len(answer.payload) == len(payload)
    return wire.decode_reply(answer.payload)


def request(sequence: int = 0, ssid: int = 7, at_ns: int = 0) -> bytes:
    return wire.encode_request(Request(sequence, to_ntp(NOW + at_ns), encode_error(1_000), ssid))


def signed(sequence: int, at_ns: int, key: Key = KEY, ssid: int = 7) -> bytes:
    asked = Request(sequence, to_ntp(NOW + at_ns), encode_error(1_000), ssid)
    base = wire.encode_request(asked, authenticated=True)
    return base + key.sign(base)


@pytest.fixture
def reflector() -> ReflectorSession:
    return ReflectorSession(ReflectorPolicy(PORT))


@pytest.fixture
def keyed() -> ReflectorSession:
    return ReflectorSession(ReflectorPolicy(PORT, keys=(Key("old", bytes(16)), KEY)))


def test_a_reply_says_everything_that_rfc_8762_asks_for(reflector: ReflectorSession) -> None:
    reflector.claim_clock(2_000)
    reply = must_ask(reflector, request(9))
    assert reply == Reply(
        sequence=0,
        timestamp=to_ntp(NOW),
        error=encode_error(2_000),
        ssid=7,
        received=to_ntp(NOW - 50),
        sender_sequence=9,
        sender_timestamp=to_ntp(NOW),
        sender_error=encode_error(1_000),
        sender_ttl=60,
    )
    assert must_ask(reflector, request(10), ttl=None).sender_ttl == 255  # type: ignore[arg-type]


def test_each_session_has_its_own_numbers(reflector: ReflectorSession) -> None:
    for expected in range(3):
        assert must_ask(reflector, request(expected + 5)).sequence == expected
        assert must_ask(reflector, request(expected, ssid=8)).sequence == expected
        assert must_ask(reflector, request(expected), port=40_001).sequence == expected
    assert reflector.sessions == 3


def test_without_state_the_number_of_the_sender_comes_back() -> None:
    reflector = ReflectorSession(ReflectorPolicy(PORT, stateful=False))
    assert must_ask(reflector, request(99)).sequence == 99
    assert reflector.sessions == 0


def test_the_number_wraps(reflector: ReflectorSession) -> None:
    must_ask(reflector, request())
    (session,) = reflector._sessions.values()
    session.transmitted = 2**32 - 1
    assert must_ask(reflector, request()).sequence == 2**32 - 1
    assert must_ask(reflector, request()).sequence == 0


def test_timestamps_of_ptp() -> None:
    reflector = ReflectorSession(ReflectorPolicy(PORT, ptp=True))
    reply = must_ask(reflector, request())
    assert decode_error(reply.error).ptp
    assert reply.timestamp == (NOW // SECOND_NS) << 32


@pytest.mark.parametrize("octets", [0, 1, 13, 14, 40])
def test_a_packet_shorter_than_its_reply_is_refused(
    reflector: ReflectorSession, octets: int
) -> None:
    assert ask(reflector, request()[:octets]) is None
    assert reflector.refused == {"too_short": 1}


@pytest.mark.parametrize("octets", [41, 43, 44])
def test_twamp_light_without_extensions_gets_a_reply_of_its_own_size(
    reflector: ReflectorSession, octets: int
) -> None:
    assert must_ask(reflector, request()[:octets]).sender_ttl == 60


def test_the_random_padding_of_twamp_light_is_one_session(reflector: ReflectorSession) -> None:
    dice = random.Random(3)
    for expected in range(5):
        packet = request(expected)[:14] + dice.randbytes(100)
        answer = ask(reflector, packet)
        assert answer is not None
        assert len(answer.payload) == len(packet)
        assert wire.decode_reply(answer.payload).sequence == expected
    assert reflector.sessions == 1


def test_a_reply_is_never_answered_so_two_reflectors_cannot_chase_each_other() -> None:
    one, other = (ReflectorSession(ReflectorPolicy(port)) for port in (862, 8620))
    answer = ask(one, request(), port=8620)
    assert answer is not None
    assert ask(other, answer.payload, port=862) is None
    assert other.refused == {"reply": 1}
    assert ask(one, request(), port=862) is not None  # a sender may have the port that we have


def test_a_twamp_reply_with_random_padding_is_not_answered(reflector: ReflectorSession) -> None:
    """RFC 5357 lets a reflector fill with what it likes: no zeros tell its replies."""
    dice = random.Random(5)
    for number in range(50):
        answer = ask(reflector, request(number))
        assert answer is not None
        base = bytearray(answer.payload)
        base[38:40] = dice.randbytes(2)
        base[41:44] = b"\1" + dice.randbytes(2)
        assert ask(reflector, bytes(base), port=862) is None
    assert reflector.refused == {"reply": 50}


def test_a_signed_reply_is_never_answered(keyed: ReflectorSession) -> None:
    answer = ask(keyed, signed(0, 0))
    assert answer is not None
    assert ask(keyed, answer.payload) is None
    assert keyed.refused == {"reply": 1}


def test_who_is_not_admitted_is_counted_under_the_reason() -> None:
    def admit(address: str, monotonic_ns: int) -> str:
        assert monotonic_ns == MONOTONIC
        return "" if address == "192.0.2.100" else "not_allowed"

    reflector = ReflectorSession(ReflectorPolicy(PORT), admit)
    assert ask(reflector, request()) is not None
    assert ask(reflector, request(), sender="198.51.100.1") is None
    assert reflector.refused == {"not_allowed": 1}


@pytest.mark.parametrize("keys", [(), (KEY,)])
def test_only_what_would_be_answered_is_charged(keys: tuple[Key, ...]) -> None:
    charged: list[str] = []

    def admit(address: str, monotonic_ns: int) -> str:
        charged.append(address)
        return ""

    reflector = ReflectorSession(
        ReflectorPolicy(PORT, keys=keys), admit, lambda address: address != "198.51.100.1"
    )
    good = signed(1, 0) if keys else request()
    answer = ask(reflector, good)
    assert answer is not None
    assert ask(reflector, good, sender="198.51.100.1") is None
    wrong = signed(2, 0, Key("other", bytes(31) + b"x"))
    for junk in (b"", request()[:40], answer.payload, wrong, *([good] if keys else [])):
        assert ask(reflector, junk) is None
    assert charged == ["192.0.2.100"]
    assert reflector.refused["not_allowed"] == 1


def test_a_packet_over_the_rate_begins_no_session() -> None:
    def admit(address: str, monotonic_ns: int) -> str:
        return "over_source_rate"

    reflector = ReflectorSession(ReflectorPolicy(PORT, keys=(KEY,)), admit)
    assert ask(reflector, signed(1, 0)) is None
    assert (reflector.sessions, reflector.refused) == (0, {"over_source_rate": 1})


def test_stamps_that_never_come_take_no_memory(
    reflector: ReflectorSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pathbudget.probes.stamp.reflector_session.UNSTAMPED", 10)
    packet = request() + tlvs.request(Kind.FOLLOW_UP, 16)
    for number in range(50):
        answer = ask(reflector, packet)
        assert answer is not None
        assert reflector.sent(answer, number)
    assert len(reflector._awaited) == 10
    reflector.transmitted(3, NOW)  # given up by now


def test_no_stamp_is_awaited_for_who_does_not_ask(reflector: ReflectorSession) -> None:
    for packet in (request(), request() + tlvs.request(Kind.EXTRA_PADDING, 40)):
        answer = ask(reflector, packet)
        assert answer is not None
        assert not reflector.sent(answer, 1)


def follow_up_of(answer: Answer | None) -> tlvs.FollowUp:
    assert answer is not None
    found = tlvs.usable(answer.payload[44:], verified=False)
    return tlvs.read_follow_up(found[Kind.FOLLOW_UP])


def test_the_next_reply_tells_when_the_last_one_really_left(reflector: ReflectorSession) -> None:
    packet = request() + tlvs.request(Kind.FOLLOW_UP, 16)
    first = ask(reflector, packet)
    assert follow_up_of(first) == (0, 0, 0)
    assert first is not None
    reflector.sent(first, 1)
    reflector.transmitted(1, NOW + 12_345)
    sequence, timestamp, method = follow_up_of(ask(reflector, packet, at_ns=SECOND_NS))
    assert (sequence, method) == (0, 2)
    assert from_ntp(timestamp, NOW) == NOW + 12_345
    # No stamp of the second has come: its own T3 is told, which changes nothing.
    assert follow_up_of(ask(reflector, packet, at_ns=2 * SECOND_NS)) == (
        1,
        to_ntp(NOW + SECOND_NS),
        2,
    )


def test_without_keys_of_ours_nobody_is_answered(keyed: ReflectorSession) -> None:
    assert ask(keyed, signed(0, 0, Key("other", bytes(31) + b"x"))) is None
    packet = bytearray(signed(0, 0))
    packet[20] ^= 1
    assert ask(keyed, bytes(packet)) is None
    assert ask(keyed, request()) is None
    assert keyed.refused == {"unauthenticated": 2, "unsigned": 1}
    assert keyed.sessions == 0


def test_a_signed_reply_carries_the_signature_of_the_same_key(keyed: ReflectorSession) -> None:
    answer = ask(keyed, signed(3, 0))
    assert answer is not None
    assert len(answer.payload) == 112
    assert KEY.signed_base(answer.payload)
    assert wire.decode_reply(answer.payload, authenticated=True).sender_sequence == 3


def test_a_replayed_packet_is_counted_and_not_answered(keyed: ReflectorSession) -> None:
    packets = [signed(number, number * SECOND_NS) for number in range(5)]
    for packet in packets:
        assert ask(keyed, packet) is not None
    for packet in packets:
        assert ask(keyed, packet) is None
        # Nor from elsewhere, where it would be the first of a session.
        assert ask(keyed, packet, sender="198.51.100.66") is None
        assert ask(keyed, packet, port=50_000) is None
    assert keyed.refused == {"replayed": 15}


def test_a_replayed_packet_is_not_answered_after_its_session_was_forgotten() -> None:
    reflector = ReflectorSession(
        ReflectorPolicy(PORT, keys=(KEY,), max_sessions=1, idle_ns=SECOND_NS)
    )
    packet = signed(0, 0)
    assert ask(reflector, packet) is not None
    later = 10 * SECOND_NS
    assert ask(reflector, signed(0, later, ssid=8), port=50_000, at_ns=later) is not None
    assert ask(reflector, packet, at_ns=later) is None
    assert reflector.refused == {"replayed": 1}


def test_a_sender_that_began_again_is_answered_and_its_past_is_not(
    keyed: ReflectorSession,
) -> None:
    old = [signed(number, number * 1_000) for number in range(20)]
    for packet in old:
        assert ask(keyed, packet) is not None
    for number in range(3):
        assert ask(keyed, signed(number, SECOND_NS + number)) is not None
    assert all(ask(keyed, packet) is None for packet in old)


def test_a_signed_packet_to_a_reflector_without_keys_is_told_by_its_name(
    reflector: ReflectorSession,
) -> None:
    packet = signed(1, 0)
    assert ask(reflector, packet) is None
    assert ask(reflector, packet + tlvs.request(Kind.FOLLOW_UP, 16)) is None
    assert reflector.refused == {"signed_but_no_key": 2}


def test_overtaken_packets_are_no_replay(keyed: ReflectorSession) -> None:
    packets = [signed(number, number * 1_000) for number in range(20)]
    for place in (0, 3, 1, 2, 9, 4, 19, 5):
        assert ask(keyed, packets[place]) is not None
    assert ask(keyed, packets[1]) is None


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=400), st.booleans(), st.booleans())
def test_no_reply_is_longer_than_its_request(
    payload: bytes, stateful: bool, authenticated: bool
) -> None:
    keys = (KEY,) if authenticated else ()
    reflector = ReflectorSession(ReflectorPolicy(PORT, stateful=stateful, keys=keys))
    answer = ask(reflector, payload)
    assert answer is None or len(answer.payload) == len(payload)
    assert (answer is None) == (sum(reflector.refused.values()) == 1)


def test_80_ppm_of_skew_are_only_a_matter_of_the_times_that_are_given(
    reflector: ReflectorSession,
) -> None:
    def skewed(at_ns: int) -> int:
        return NOW + at_ns + at_ns * 80 // 1_000_000

    for second in range(0, 100, 10):
        at = second * SECOND_NS
        answer = reflector.receive(
            request(second, at_ns=at), "192.0.2.100", 40_000, "192.0.2.1", 60, 0,
            skewed(at), skewed(at + 1_000), MONOTONIC + at,
        )  # fmt: skip
        assert answer is not None
        reply = wire.decode_reply(answer.payload)
        assert from_ntp(reply.received, NOW + at) - NOW - at == second * 80_000
