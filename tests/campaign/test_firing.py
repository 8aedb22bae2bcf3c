"""The schedule against slow hosts, late hosts and probes that send many at once."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import msgspec
import pytest

from pathbudget.agents.campaign.keeping_up import PROBLEM
from pathbudget.agents.campaign.plan import SeriesPlan, VantagePlan, due_shots
from pathbudget.agents.campaign.sink import MemorySink
from pathbudget.agents.campaign.vantage_run import VantageRun
from pathbudget.probes.contract import Cost, Options, Probe, ProbeEnvironment, ProbeSpec, Shot
from pathbudget.probes.fake_network import FakeClock, FakeNetwork
from pathbudget.probes.record import (
    AddressFamily,
    ClockSource,
    Measurement,
    Sample,
    Stamps,
    Target,
    Vantage,
)

MS = 1_000_000
SECOND = 1_000 * MS
RTT = 5 * MS


class Echo:
    """Answers at once, and takes `busy_ns` of this host's time for each shot."""

    def __init__(self, environment: ProbeEnvironment, world: "World") -> None:
        self._environment = environment
        self._world = world

    def fire(self, shot: Shot) -> None:
        self._world.shots.append(shot)
        self._world.batches.append(1)
        self._answer(shot)

    def _answer(self, shot: Shot) -> None:
        assert shot.due_ns is not None
        clock = self._world.clock
        lateness = clock.monotonic_ns() - shot.due_ns
        if self._world.on_shot is not None:
            self._world.on_shot(shot)
        lag = Stamps(kernel_received_ns=RTT, user_received_ns=RTT + self._world.receive_lag_ns)
        sample = Sample(
            seq=shot.seq,
            metric="rtt",
            sent_unix_ns=clock.unix_ns(),
            value_ns=RTT,
            clock_source=ClockSource.KERNEL,
            lateness_ns=lateness,
            stamps=lag,
        )
        clock.stall(self._world.busy_ns)
        self._environment.emit(shot.series, sample)

    async def drain(self) -> None:
        return

    def close(self) -> None:
        return


class BatchEcho(Echo):
    """The same, many at once."""

    def fire_all(self, shots: Sequence[Shot]) -> None:
        self._world.shots.extend(shots)
        self._world.batches.append(len(shots))
        for shot in shots:
            self._answer(shot)


@dataclass
class World:
    clock: FakeClock = field(default_factory=lambda: FakeClock(jumps=True))
    busy_ns: int = 0
    receive_lag_ns: int = 0
    batching: bool = True
    on_shot: Callable[[Shot], None] | None = None
    shots: list[Shot] = field(default_factory=list[Shot])
    batches: list[int] = field(default_factory=list[int])
    """How many shots each call to the probe had."""

    def run(self, plan: VantagePlan) -> Sequence[Measurement]:
        sink = MemorySink()
        asyncio.run(self._run(plan, sink))
        return sink.measurements()

    async def _run(self, plan: VantagePlan, sink: MemorySink) -> None:
        self.last = VantageRun(
            plan,
            table={"echo": self._spec()},
            network=FakeNetwork(self.clock),
            clock=self.clock,
            sink=sink,
        )
        try:
            await self.last.prepare()
            self.start = self.clock.monotonic_ns()
            await self.last.run(self.start)
        finally:
            self.last.finish()

    def _spec(self) -> ProbeSpec:
        def opened(environment: ProbeEnvironment, options: Options) -> Probe:
            return BatchEcho(environment, self) if self.batching else Echo(environment, self)

        return ProbeSpec("echo", "test", 1, opened, lambda options: Cost(packets=2, bytes=128))


def plan_of(*, hosts: int = 1, **changes: object) -> VantagePlan:
    series = tuple(
        SeriesPlan(
            target=Target(name=f"t{number}", host=f"192.0.2.{number + 1}"),
            probe="echo",
            kind="echo",
            interval_ns=100 * MS,
            timeout_ns=SECOND,
            family=AddressFamily.IPV4,
        )
        for number in range(hosts)
    )
    plan = VantagePlan(
        vantage=Vantage(name="here", region="dallas"),
        series=series,
        campaign="test",
        run_id="run",
        seed=1,
        duration_ns=10 * SECOND,
        packets_per_second=100_000,
    )
    return msgspec.structs.replace(plan, **changes)


def with_train(packets: int, gap_ns: int = 0) -> VantagePlan:
    plan = plan_of(duration_ns=2 * SECOND)
    series = msgspec.structs.replace(plan.series[0], train=packets, train_gap_ns=gap_ns)
    return msgspec.structs.replace(plan, series=(series,))


def lateness_of(measurements: Sequence[Measurement]) -> list[int]:
    return [sample.lateness_ns or 0 for one in measurements for sample in one.samples]


def test_each_shot_says_when_it_was_due() -> None:
    world, plan = World(), plan_of(hosts=3)
    world.run(plan)
    planned = [(offset, series, seq) for offset, series, seq in due_shots(plan)]
    fired = [
        (shot.due_ns - world.start, shot.series, shot.seq)
        for shot in world.shots
        if shot.due_ns is not None
    ]
    assert fired == planned
    assert {shot.lateness_ns for shot in world.shots} == {0}


def test_pitfall_19_late_sends_are_all_made_and_timed_from_when_they_were_due() -> None:
    """No coordinated omission: a stall of 3 s hides nothing of these 3 s."""
    world, plan = World(), plan_of()

    def stall_once(shot: Shot) -> None:
        if shot.seq == 20:
            world.clock.stall(3 * SECOND)

    world.on_shot = stall_once
    (measurement,) = world.run(plan)
    planned = [offset for offset, _, _ in due_shots(plan)]
    assert [sample.seq for sample in measurement.samples] == list(range(len(planned)))
    end = planned[20] + 3 * SECOND
    for sample, offset in zip(measurement.samples, planned, strict=True):
        hidden = planned[20] < offset <= end
        assert sample.lateness_ns == (end - offset if hidden else 0)


def test_pitfall_16_a_host_that_cannot_keep_up_thins_nothing_and_says_so() -> None:
    """One shot takes 15 ms, ten series want one every 10 ms."""
    world, plan = World(busy_ns=15 * MS), plan_of(hosts=10, duration_ns=20 * SECOND)
    measurements = world.run(plan)
    assert len(lateness_of(measurements)) == len(list(due_shots(plan)))
    assert world.last.progress.problems == [PROBLEM]
    counted = sum(one.counters["host_busy"] for one in measurements)
    assert len(world.shots) / 10 < counted < len(world.shots)
    assert max(map(len, PROBLEM.splitlines())) <= 80


def test_a_host_that_stalls_for_a_moment_is_not_called_too_slow() -> None:
    world, plan = World(), plan_of(hosts=10)

    def stall_once(shot: Shot) -> None:
        if (shot.series, shot.seq) == (0, 20):
            world.clock.stall(SECOND)

    world.on_shot = stall_once
    measurements = world.run(plan)
    assert world.last.progress.problems == []
    assert all(one.counters == {} for one in measurements)


def test_pitfall_18_every_measurement_carries_what_this_host_added_meanwhile() -> None:
    world = World(receive_lag_ns=300_000)
    world.on_shot = lambda shot: world.clock.stall(4 * MS)
    (measurement,) = world.run(plan_of())
    noise = measurement.noise
    assert noise is not None
    assert noise.receive_lag_p99_ns == pytest.approx(300_000, rel=0.07)
    assert noise.send_lateness_p99_ns is not None
    worst = sorted(lateness_of([measurement]))[-(-len(measurement.samples) * 99 // 100) - 1]
    assert noise.send_lateness_p99_ns == pytest.approx(worst, rel=0.07)


def test_what_is_due_together_goes_to_a_batching_probe_in_one_call() -> None:
    world = World()
    (measurement,) = world.run(with_train(10))
    assert set(world.batches) == {10}
    assert [shot.seq for shot in world.shots] == list(range(len(world.shots)))
    assert len(measurement.samples) == len(world.shots)


def test_a_probe_that_sends_one_at_a_time_gets_the_same_shots() -> None:
    world = World(batching=False)
    (measurement,) = world.run(with_train(10))
    assert set(world.batches) == {1}
    assert [shot.seq for shot in world.shots] == list(range(len(measurement.samples)))


def test_pitfall_28_a_train_has_a_sample_per_packet_and_nothing_is_repeated() -> None:
    world = World()
    plan = with_train(5, MS)
    (measurement,) = world.run(plan)
    assert [sample.seq for sample in measurement.samples] == [seq for *_, seq in due_shots(plan)]
    assert measurement.schedule == "poisson 100ms train 5 gap 1ms seed 1"
    for first in range(0, len(world.shots) - 4, 5):
        due = [shot.due_ns or 0 for shot in world.shots[first : first + 5]]
        if [shot.seq for shot in world.shots[first : first + 5]] == list(range(first, first + 5)):
            assert due[0] in {world.start + offset for offset, *_ in due_shots(plan)}


def test_a_train_in_a_backlog_stays_together_and_the_limit_holds_on_average() -> None:
    plan = msgspec.structs.replace(with_train(10), packets_per_second=200)  # 10 shots at 2 packets
    world = World()
    (measurement,) = world.run(plan)
    sent = sorted(sample.sent_unix_ns for sample in measurement.samples)
    assert len(sent) == len(list(due_shots(plan)))
    assert set(world.batches) <= {10, 20, 30, 40, 50, 60}  # whole trains
    for first, later in zip(sent, sent[120:], strict=False):
        assert later - first >= 10 * MS
    span = (sent[-1] - sent[0]) / SECOND
    assert 2 * len(sent) <= 200 * (span + 1) + 20


def test_an_hour_behind_is_sent_at_the_limit_not_at_once() -> None:
    """A virtual machine that was stopped: its monotonic clock may have gone on."""
    plan = plan_of(duration_ns=3_700 * SECOND, packets_per_second=100)
    plan = msgspec.structs.replace(
        plan, series=(msgspec.structs.replace(plan.series[0], interval_ns=10 * SECOND),)
    )
    world = World()

    def stop_for_an_hour(shot: Shot) -> None:
        if shot.seq == 3:
            world.clock.stall(3_600 * SECOND)

    world.on_shot = stop_for_an_hour
    (measurement,) = world.run(plan)
    assert len(measurement.samples) == len(list(due_shots(plan)))
    sent = sorted(sample.sent_unix_ns for sample in measurement.samples)
    most = max(
        sum(first <= other < first + SECOND for other in sent[number:])
        for number, first in enumerate(sent)
    )
    assert 50 <= most <= 101  # a second's worth at once, and what a second more gives


def test_a_suspended_host_has_no_backlog_and_says_that_its_wall_clock_moved() -> None:
    world, plan = World(), plan_of()

    def suspend(shot: Shot) -> None:
        if shot.seq == 30:
            world.clock.step(3_600 * SECOND)  # CLOCK_MONOTONIC stood still

    world.on_shot = suspend
    (measurement,) = world.run(plan)
    assert set(lateness_of([measurement])) == {0}
    assert measurement.clock is not None
    assert measurement.clock.steps == 1


def test_a_probe_that_raises_ends_the_run_with_its_error() -> None:
    world = World()

    def broken(shot: Shot) -> None:
        if shot.seq == 5:
            raise ZeroDivisionError("a bug in a probe")

    world.on_shot = broken
    with pytest.raises(ZeroDivisionError, match="a bug in a probe"):
        world.run(plan_of())
    assert [shot.seq for shot in world.shots] == list(range(6))


def test_a_plan_without_end_runs_until_it_is_stopped() -> None:
    world = World()

    def stop(shot: Shot) -> None:
        if shot.seq == 500:
            world.last.stop()

    world.on_shot = stop
    (measurement,) = world.run(plan_of(duration_ns=None))
    assert len(measurement.samples) == 501
    assert measurement.counters == {}


def test_how_the_sender_is_scheduled_is_written_down() -> None:
    async def measured(scheduling: str) -> str:
        clock, sink, world = FakeClock(jumps=True), MemorySink(), World()
        run = VantageRun(
            plan_of(duration_ns=SECOND),
            table={"echo": world._spec()},
            network=FakeNetwork(clock),
            clock=clock,
            sink=sink,
            scheduling=scheduling,
        )
        await run.prepare()
        run.finish()
        return sink.measurements()[0].schedule

    assert asyncio.run(measured("realtime fifo 1")) == "poisson 100ms seed 1 realtime fifo 1"
    assert asyncio.run(measured("")) == "poisson 100ms seed 1"
