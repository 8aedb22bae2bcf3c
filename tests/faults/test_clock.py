"""A wall clock that is set forward and back while an agent measures.

Nobody can set the wall clock of one process alone (time namespaces have the monotonic one), so the
clock is set where the agent reads it. The stamps of the kernel stay as they were: to the agent its
clock has jumped away from them, which is what it sees of a step between two readings.
"""

from pathlib import Path

from msgspec import structs
from tests.daemon.conftest import until
from tests.faults.one_agent import DAY_NS, SECOND_NS, OneAgent, SteppedClock, numbers_of, plan_of

from pathbudget.probes.agent_health import AGENT
from pathbudget.probes.record import Measurement

HOUR_NS = 3600 * SECOND_NS


def made_since(one: OneAgent, number: int) -> None:
    start = one.made
    until(lambda: one.made >= start + number, f"{number} samples more")


def test_no_sample_is_lost_doubled_or_absurd_when_the_clock_is_set(tmp_path: Path) -> None:
    clock = SteppedClock()
    one = OneAgent(tmp_path, clock)

    def work() -> None:
        for step_ns in (HOUR_NS, -2 * HOUR_NS, 400 * HOUR_NS // 100, -30 * SECOND_NS):
            made_since(one, 60)
            clock.offset_ns += step_ns
        made_since(one, 60)

    one.run(plan_of(20_000_000), work)
    found = one.uplink.measurements
    sent = numbers_of(found)
    assert sent == list(range(len(sent)))
    assert len(sent) >= 300
    ids = [each.id for each in found]
    assert len(ids) == len(set(ids))
    state = one.spool.state()
    assert state.dropped_samples == {}
    assert state.made_samples == state.acknowledged_samples == _samples(found)
    assert state.waiting_samples == 0
    for each in found:
        assert each.duration_ns >= 0
        if each.probe != AGENT:
            values = [sample.value_ns for sample in each.samples]
            assert all(value is not None and 0 < value < HOUR_NS for value in values)
    last = found[-1].clock
    assert last is not None
    assert last.steps >= 4
    assert last.largest_step_ns >= 2 * HOUR_NS - SECOND_NS


def test_a_clock_set_past_the_end_of_a_plan_stops_it_until_it_is_set_back(tmp_path: Path) -> None:
    clock = SteppedClock()
    one = OneAgent(tmp_path, clock)

    def work() -> None:
        made_since(one, 10)
        clock.offset_ns = 2 * DAY_NS
        until(lambda: one.agent.state.expired, "the end of the plan")
        until(lambda: one.agent.measuring is None, "silence")
        clock.offset_ns = 0
        until(lambda: one.agent.measuring is not None, "measuring again")
        made_since(one, 10)

    one.run(plan_of(20_000_000), work)
    assert any("has expired" in text for text in one.said)
    state = one.spool.state()
    assert state.dropped_samples == {}
    assert state.made_samples == state.acknowledged_samples == _samples(one.uplink.measurements)


def test_results_do_not_age_by_a_clock_that_is_set(tmp_path: Path) -> None:
    """They wait for a collector that is away; the clock of the host turns out to be a year off."""
    clock = SteppedClock()
    one = OneAgent(tmp_path, clock)
    one.uplink.away = True

    def work() -> None:
        made_since(one, 100)
        clock.offset_ns = 365 * DAY_NS
        made_since(one, 100)
        clock.offset_ns = -365 * DAY_NS
        made_since(one, 100)
        one.uplink.away = False

    plan = plan_of(20_000_000)
    one.run(structs.replace(plan, expires_unix_ns=plan.expires_unix_ns + 1000 * DAY_NS), work)
    state = one.spool.state()
    assert state.dropped_samples == {}
    assert state.made_samples == state.acknowledged_samples == _samples(one.uplink.measurements)


def _samples(measurements: list[Measurement]) -> int:
    return sum(len(one.samples) for one in measurements)
