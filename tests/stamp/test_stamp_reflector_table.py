"""Who makes room when a reflector has none: nobody who lasts, whatever floods it."""

import random

import pytest

from pathbudget.probes.stamp import wire
from pathbudget.probes.stamp.authentication import Key
from pathbudget.probes.stamp.reflector_session import ReflectorPolicy, ReflectorSession
from pathbudget.probes.stamp.reflector_table import Place, SessionTable
from pathbudget.probes.stamp.timestamps import encode_error, to_ntp
from pathbudget.probes.stamp.wire import Request

NOW = 1_790_000_000_000_000_000
SECOND_NS = 1_000_000_000
PORT = 8620
KEY = Key("one", bytes(range(32)))


def number_of(
    reflector: ReflectorSession, port: int, at_ns: int, address: str = "192.0.2.100"
) -> int:
    """The number of the reply to one packet."""
    packet = wire.encode_request(Request(5, to_ntp(NOW), encode_error(1_000), 7))
    answer = reflector.receive(
        packet, address, port, "192.0.2.1", 60, 0, NOW + at_ns, NOW + at_ns, at_ns
    )
    assert answer is not None
    return answer.sequence


@pytest.fixture
def small() -> ReflectorSession:
    return ReflectorSession(ReflectorPolicy(PORT, max_sessions=100, idle_ns=900 * SECOND_NS))


@pytest.mark.parametrize("packets", [1, 2, 7])
def test_a_flood_pushes_out_nobody_who_has_sent_more(small: ReflectorSession, packets: int) -> None:
    """Forged sources of `packets` packets each, and one who sends rarely."""
    for number in range(packets + 8):
        assert number_of(small, 40_000, number) == number
    dice = random.Random(1)
    for source in range(5_000):
        address = f"198.{dice.randrange(256)}.{dice.randrange(256)}.{dice.randrange(256)}"
        for _ in range(packets):
            number_of(small, 1_000 + source, 100 + source, address)
    assert small.sessions == 100
    assert number_of(small, 40_000, SECOND_NS) == packets + 8


def test_a_newcomer_gets_a_state_while_the_flood_goes_on(small: ReflectorSession) -> None:
    port = iter(range(1_000, 60_000))
    for _ in range(500):
        number_of(small, next(port), 1)
    numbers: list[int] = []
    for at in range(50):
        numbers.append(number_of(small, 999, 2 + at))
        for _ in range(40):
            number_of(small, next(port), 2 + at)
    assert numbers == list(range(50))


def test_who_was_silent_for_longest_goes_first() -> None:
    table = SessionTable(3, 900 * SECOND_NS)
    places: list[Place] = [("192.0.2.9", port, "", 0) for port in range(5)]
    first, second, third = (table.begin(place, None, at) for at, place in enumerate(places[:3]))
    first.last_ns = 10
    table.begin(places[3], None, 11)
    assert second.place not in table.by_place
    first.last_ns = 12
    table.begin(places[4], None, 13)
    assert third.place not in table.by_place
    assert first.place in table.by_place


def test_room_is_found_though_everybody_lasts_and_is_heard() -> None:
    table = SessionTable(50, 900 * SECOND_NS)
    for number in range(300):
        place = ("192.0.2.9", number, "", 0)
        assert table.begin(place, None, number).place in table.by_place
        for session in table.by_place.values():
            session.last_ns = 1_000 + number
            session.transmitted += 1_000_000
        assert len(table.by_place) == min(50, number + 1)
        assert sum(map(len, table._queues)) == len(table.by_place)


def test_silent_sessions_are_forgotten_first() -> None:
    reflector = ReflectorSession(ReflectorPolicy(PORT, max_sessions=10, idle_ns=SECOND_NS))
    for port in range(10):
        for number in range(20):
            assert number_of(reflector, port, number) == number
    assert number_of(reflector, 50_000, 2 * SECOND_NS) == 0
    assert reflector.sessions == 1


def test_of_signed_sessions_too_the_newcomer_finds_room_and_the_past_is_not_replayed() -> None:
    reflector = ReflectorSession(ReflectorPolicy(PORT, keys=(KEY,), max_sessions=1))

    def ask(at_ns: int, ssid: int, port: int) -> bool:
        asked = Request(0, to_ntp(NOW + at_ns), encode_error(1_000), ssid)
        base = wire.encode_request(asked, authenticated=True)
        now = NOW + at_ns
        payload = base + KEY.sign(base)
        answer = reflector.receive(payload, "192.0.2.9", port, "192.0.2.1", 60, 0, now, now, at_ns)
        return answer is not None

    assert ask(0, 7, 1)
    assert ask(1, 8, 2)
    assert reflector.sessions == 1
    assert not ask(0, 7, 1)
    assert reflector.refused == {"replayed": 1}
    assert ask(2_000, 7, 1)
