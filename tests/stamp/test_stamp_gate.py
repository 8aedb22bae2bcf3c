"""Which signed packets a reflector answers: trains, senders that are alike, junk and memory."""

import random

import pytest

from pathbudget.probes.stamp import gate, wire
from pathbudget.probes.stamp.authentication import Key
from pathbudget.probes.stamp.reflector_session import Answer, ReflectorPolicy, ReflectorSession
from pathbudget.probes.stamp.timestamps import encode_error, to_ntp
from pathbudget.probes.stamp.wire import Request

NOW = 1_790_000_000_000_000_000
SECOND_NS = 1_000_000_000
PORT = 8620
KEY = Key("one", bytes(range(32)))


def signed(sequence: int, at_ns: int, key: Key = KEY, ssid: int = 7) -> bytes:
    asked = Request(sequence, to_ntp(NOW + at_ns), encode_error(1_000), ssid)
    base = wire.encode_request(asked, authenticated=True)
    return base + key.sign(base)


def ask(
    reflector: ReflectorSession,
    payload: bytes,
    *,
    sender: str = "192.0.2.100",
    port: int = 40_000,
    at_ns: int = 0,
) -> Answer | None:
    now = NOW + at_ns
    return reflector.receive(payload, sender, port, "192.0.2.1", 60, 0, now, now, at_ns)


@pytest.fixture
def keyed() -> ReflectorSession:
    return ReflectorSession(ReflectorPolicy(PORT, keys=(Key("old", bytes(16)), KEY)))


def test_packets_that_leave_at_once_bear_times_in_any_order_and_are_no_replay(
    keyed: ReflectorSession,
) -> None:
    """A train of a sender: times apart by chance alone, some equal, the first the latest."""
    dice = random.Random(3)
    for train in range(20):
        times = [train * SECOND_NS + dice.randrange(15_000) for _ in range(10)]
        times[3] = times[4]
        if train == 0:
            times[0] = 15_001
        packets = [signed(10 * train + at, sent) for at, sent in enumerate(times)]
        for packet in packets:
            assert ask(keyed, packet, at_ns=train * SECOND_NS) is not None
        for packet in packets:
            assert ask(keyed, packet, at_ns=train * SECOND_NS) is None
            assert ask(keyed, packet, port=50_000, at_ns=train * SECOND_NS) is None
    assert keyed.refused == {"replayed": 400}


def test_the_first_packet_may_be_overtaken_by_a_whole_train(keyed: ReflectorSession) -> None:
    packets = [signed(number, number * 1_000_000) for number in range(100)]
    for packet in [*packets[1:], packets[0]]:
        assert ask(keyed, packet) is not None


@pytest.mark.parametrize("behind_ns", [0, 20_000_000, 7 * 24 * 3_600 * SECOND_NS])
def test_two_senders_with_one_key_and_by_chance_one_ssid(
    keyed: ReflectorSession, behind_ns: int
) -> None:
    """Whatever the clock of the second shows: also after both were forgotten."""
    for number in range(50):
        at = number * SECOND_NS // 100
        assert ask(keyed, signed(number, at), at_ns=at) is not None
        packet = signed(number, at + 5_000_000 - behind_ns)
        assert ask(keyed, packet, sender="203.0.113.9", at_ns=at + 5_000_000) is not None
        assert ask(keyed, packet, at_ns=at + 5_000_000) is None  # in the name of the first
        assert ask(keyed, packet, port=9, at_ns=at + 5_000_000) is None
    assert keyed.refused == {"replayed": 100}


def test_what_is_remembered_of_signed_packets_is_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gate, "SIGNATURES", 100)
    monkeypatch.setattr(gate, "PLACES", 50)
    keyed = ReflectorSession(ReflectorPolicy(PORT, keys=(KEY,), max_sessions=10))
    packets = [signed(number, number * SECOND_NS) for number in range(500)]
    for number, packet in enumerate(packets):
        assert ask(keyed, packet, port=1_000 + number) is not None
        assert all(ask(keyed, one, port=9) is None for one in packets[max(0, number - 90) : number])
    assert len(keyed._gate._heard) + len(keyed._gate._heard_before) <= 200
    assert len(keyed._gate._latest) == 50
    # Elsewhere an old packet may be answered once more, where it was sent from never.
    assert [ask(keyed, packets[0], port=9) is not None for _ in range(2)] == [True, False]
    assert ask(keyed, packets[460], port=1_460) is None


def test_wrong_signatures_are_looked_at_up_to_a_bound_and_known_senders_always(
    keyed: ReflectorSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "JUNK_PER_SECOND", 20)
    assert ask(keyed, signed(0, 0)) is not None
    for _ in range(50):
        assert ask(keyed, signed(1, 0, Key("other", bytes(31) + b"x")), port=9) is None
    assert keyed.refused == {"unauthenticated": 20, "over_junk_rate": 30}
    assert ask(keyed, signed(1, 1_000)) is not None
    assert ask(keyed, signed(1, 1_000, ssid=8), port=10) is None
    assert ask(keyed, signed(1, 1_000, ssid=8), port=10, at_ns=SECOND_NS) is not None
