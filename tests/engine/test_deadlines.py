"""Deadlines of probes under way: bounded by what is under way, whoever asks for them or not."""

from pathbudget.probes.deadlines import Deadlines
from pathbudget.probes.fake_collector import shot_at
from pathbudget.probes.icmp_flight import Flight

SHOT = shot_at("192.0.2.1")


def test_probes_answered_before_anybody_asks_leave_nothing_behind() -> None:
    deadlines = Deadlines()
    alive: dict[int, Flight] = {}
    for number in range(10_000):
        deadlines.add_all([SHOT], number, alive)
    assert len(deadlines) <= 2
    assert deadlines.next_ns(alive) is None
    assert len(deadlines) == 0


def test_a_backlog_of_ended_probes_melts_while_others_begin() -> None:
    deadlines = Deadlines()
    alive: dict[int, Flight] = {}
    everybody_waits = dict.fromkeys(range(1_000))
    for number in range(1_000):
        deadlines.add_all([SHOT], number, everybody_waits)  # type: ignore[arg-type]
    for number in range(1_000, 2_000):
        deadlines.add_all([SHOT], number, alive)
    assert len(deadlines) <= 2
