"""Which packet belongs to which flight."""

import pytest

from pathbudget.probes.upload.flights import (
    Acknowledged,
    Departed,
    count_flights,
    flights_by_time,
    flights_of,
)

MS = 1_000_000
RTT = 40 * MS


def bursts(*sizes: int, gap_ns: int = RTT, between_ns: int = 10_000) -> list[Departed]:
    """Bursts of so many packets of 100 bytes each, `gap_ns` from first to first."""
    packets: list[Departed] = []
    for number, size in enumerate(sizes):
        for place in range(size):
            last = 100 * (len(packets) + 1) - 1
            packets.append(Departed(100, last, number * gap_ns + place * between_ns))
    return packets


def echoed(packets: list[Departed], delay_ns: int = RTT) -> list[Acknowledged]:
    """Each acknowledged a round trip after it left."""
    return [Acknowledged(packet.last_byte, packet.unix_ns + delay_ns) for packet in packets]


def test_bursts_are_flights_by_either_rule() -> None:
    packets = bursts(10, 20, 15)
    for acknowledged, by in ((echoed(packets), True), ([], False)):
        found = count_flights(packets, acknowledged, RTT)
        assert found is not None
        assert (found.count, found.first_packets, found.first_bytes) == (3, 10, 1_000)
        assert found.by_acknowledgements is by


def test_acknowledgements_tell_flights_apart_that_run_into_each_other() -> None:
    """Paced: 10 packets in 14 ms, 20 in 28, 40 in 40 ms: no gap is left."""
    packets = bursts(10, 20, 40, 10, between_ns=1_400_000)
    packets = sorted(packets, key=lambda one: one.unix_ns)
    packets = [Departed(100, 100 * place + 99, one.unix_ns) for place, one in enumerate(packets)]
    numbers = flights_of(packets, echoed(packets))
    assert max(numbers) == 4
    assert numbers.count(1) == 10
    assert numbers.count(2) == 20
    assert numbers == sorted(numbers)


def test_nothing_acknowledged_before_the_end_is_one_flight() -> None:
    packets = bursts(7)
    assert flights_of(packets, echoed(packets)) == [1] * 7
    assert flights_of(packets, []) == [1] * 7


def test_acknowledgements_of_what_went_before_let_packets_go_without_a_new_flight() -> None:
    packets = bursts(10, 2, gap_ns=30 * MS)
    assert flights_of(packets, echoed(packets))[-1] == 1


def test_time_alone_tells_nothing_on_a_short_path() -> None:
    packets = bursts(3, 3, gap_ns=100_000)
    assert count_flights(packets, [], 100_000) is None
    assert count_flights(packets, [], None) is None
    assert count_flights([], [], RTT) is None
    assert count_flights(packets, echoed(packets, 100_000), None) is not None


@pytest.mark.parametrize(("gap_ms", "expected"), [(31, 1), (33, 2)])
def test_a_flight_by_time_begins_after_four_fifths_of_a_round_trip(
    gap_ms: int, expected: int
) -> None:
    assert max(flights_by_time(bursts(1, 1, gap_ns=gap_ms * MS), RTT)) == expected
