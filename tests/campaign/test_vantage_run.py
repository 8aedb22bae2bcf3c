"""The runner against a network that can do anything: every send has its sample."""

import asyncio
import dataclasses
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import msgspec
import pytest

from pathbudget.agents.campaign.plan import SeriesPlan, VantagePlan, due_shots
from pathbudget.agents.campaign.sink import MemorySink
from pathbudget.agents.campaign.vantage_run import VantageRun
from pathbudget.probes.contract import Options, Probe, ProbeEnvironment
from pathbudget.probes.errors import (
    ConfigError,
    Fault,
    NotOnThisHostError,
    PrivilegeError,
    SpoolError,
)
from pathbudget.probes.fake_network import FakeClock, FakeNetwork, FakePath
from pathbudget.probes.record import (
    AddressFamily,
    FailureKind,
    Flag,
    Measurement,
    Sample,
    Stage,
    Target,
    Vantage,
)
from pathbudget.probes.table import probe_table

MS = 1_000_000
SECOND = 1_000 * MS


def series(host: str, kind: str = "icmp", **changes: object) -> SeriesPlan:
    plan = SeriesPlan(
        target=Target(name=host, host=host, site="site", port=443 if kind != "icmp" else None),
        probe=kind,
        kind=kind,
        interval_ns=100 * MS,
        timeout_ns=SECOND,
        options={name: spec.default for name, spec in probe_table()[kind].options.items()},
    )
    return msgspec.structs.replace(plan, **changes)


def plan_of(*plans: SeriesPlan, duration_ns: int = 10 * SECOND, **changes: object) -> VantagePlan:
    plan = VantagePlan(
        vantage=Vantage(name="here", region="dallas"),
        series=plans,
        campaign="test",
        run_id="run",
        seed=1,
        duration_ns=duration_ns,
    )
    return msgspec.structs.replace(plan, **changes)


@dataclass
class World:
    """A fake network with one address that answers after 15 ms."""

    clock: FakeClock = field(default_factory=lambda: FakeClock(jumps=True))
    sink: MemorySink = field(default_factory=MemorySink)

    def __post_init__(self) -> None:
        self.network = FakeNetwork(self.clock)
        self.network.paths["192.0.2.1"] = FakePath(round_trip_ns=15 * MS)

    def run(
        self, plan: VantagePlan, meanwhile: Callable[[VantageRun], None] | None = None
    ) -> Sequence[Measurement]:
        asyncio.run(self._run(plan, meanwhile))
        return self.sink.measurements()

    async def _run(self, plan: VantagePlan, meanwhile: Callable[[VantageRun], None] | None) -> None:
        run = VantageRun(
            plan, table=probe_table(), network=self.network, clock=self.clock, sink=self.sink
        )
        try:
            await run.prepare()
            if meanwhile is not None:
                meanwhile(run)
            await run.run(self.clock.monotonic_ns())
        finally:
            run.finish()
        self.last = run

    def planned(self) -> list[int]:
        """Numbers of all sends of the plan as it was carried out."""
        return [seq for _, _, seq in due_shots(self.last.plan)]


def samples_of(measurements: Sequence[Measurement]) -> list[Sample]:
    return [sample for measurement in measurements for sample in measurement.samples]


def test_every_planned_send_has_exactly_one_sample_with_its_number() -> None:
    plan = plan_of(series("192.0.2.1"))
    world = World()
    (measurement,) = world.run(plan)
    assert sorted(sample.seq for sample in measurement.samples) == sorted(world.planned())
    assert {sample.value_ns for sample in measurement.samples} == {15 * MS}
    assert measurement.address == "192.0.2.1"
    assert measurement.family is AddressFamily.IPV4
    assert measurement.schedule == "poisson 100ms seed 1"
    assert measurement.clock is not None
    assert measurement.noise is not None
    assert measurement.counters == {}


def test_a_target_that_is_down_gives_one_failed_sample_per_send() -> None:
    plan = plan_of(series("192.0.2.99"))
    world = World()
    (measurement,) = world.run(plan)
    assert len(measurement.samples) == len(world.planned())
    failures = {sample.failure.kind for sample in measurement.samples if sample.failure}
    assert failures == {FailureKind.TIMEOUT}
    assert all(sample.value_ns is None for sample in measurement.samples)


def test_a_name_that_does_not_resolve_gives_one_failed_sample_per_send() -> None:
    plan = plan_of(series("nowhere.test"))
    world = World()
    (measurement,) = world.run(plan)
    assert measurement.address == ""
    assert len(measurement.samples) == len(world.planned())
    for sample in measurement.samples:
        assert sample.failure is not None
        assert sample.failure.kind is FailureKind.NAME_NOT_FOUND
        assert sample.failure.stage is Stage.RESOLVE


def test_a_name_that_comes_to_life_is_noticed_and_begins_a_measurement() -> None:
    world = World()

    def appear(run: VantageRun) -> None:
        names = {AddressFamily.IPV4: ("192.0.2.1",)}
        world.clock.call_in(4 * SECOND, lambda: world.network.names.update({"late.test": names}))

    plan = plan_of(series("late.test"), duration_ns=20 * SECOND)
    before, after = sorted(world.run(plan, appear), key=lambda one: one.started_unix_ns)
    assert (before.address, after.address) == ("", "192.0.2.1")
    assert {sample.value_ns for sample in after.samples} == {15 * MS}
    assert len(before.samples) + len(after.samples) == len(world.planned())


def test_an_address_that_changes_begins_a_new_measurement_and_loses_nothing() -> None:
    world = World()
    world.network.names["moves.test"] = {AddressFamily.IPV4: ("192.0.2.1",)}
    world.network.paths["192.0.2.2"] = FakePath(round_trip_ns=25 * MS)

    def move(run: VantageRun) -> None:
        names = {AddressFamily.IPV4: ("192.0.2.2",)}
        world.clock.call_in(5 * SECOND, lambda: world.network.names.update({"moves.test": names}))

    plan = plan_of(series("moves.test"), duration_ns=20 * SECOND, resolve_every_ns=SECOND)
    before, after = sorted(world.run(plan, move), key=lambda one: one.started_unix_ns)
    assert (before.address, after.address) == ("192.0.2.1", "192.0.2.2")
    assert {sample.value_ns for sample in before.samples} == {15 * MS}
    assert {sample.value_ns for sample in after.samples} == {25 * MS}
    assert len(before.samples) + len(after.samples) == len(world.planned())


def test_addresses_that_only_change_their_order_do_not_end_a_measurement() -> None:
    world = World()
    world.network.names["pool.test"] = {AddressFamily.IPV4: ("192.0.2.1", "192.0.2.2")}

    def shuffle(run: VantageRun) -> None:
        names = {AddressFamily.IPV4: ("192.0.2.2", "192.0.2.1")}
        world.clock.call_in(2 * SECOND, lambda: world.network.names.update({"pool.test": names}))

    plan = plan_of(series("pool.test"), resolve_every_ns=SECOND)
    assert len(world.run(plan, shuffle)) == 1


def test_both_families_are_measured_as_series_of_their_own() -> None:
    world = World()
    both = {AddressFamily.IPV4: ("192.0.2.1",), AddressFamily.IPV6: ("2001:db8::1",)}
    world.network.names["dual.test"] = both
    world.network.paths["2001:db8::1"] = FakePath(round_trip_ns=18 * MS)
    measurements = world.run(plan_of(series("dual.test")))
    assert {(one.family, one.address) for one in measurements} == {
        (AddressFamily.IPV4, "192.0.2.1"),
        (AddressFamily.IPV6, "2001:db8::1"),
    }
    assert len({tuple(sample.sent_unix_ns for sample in one.samples) for one in measurements}) == 2


def test_a_host_without_ipv6_measures_ipv4_and_nothing_else() -> None:
    world = World()
    both = {AddressFamily.IPV4: ("192.0.2.1",), AddressFamily.IPV6: ("2001:db8::1",)}
    world.network.names["dual.test"] = both
    world.network.families = frozenset({AddressFamily.IPV4})
    (measurement,) = world.run(plan_of(series("dual.test")))
    assert measurement.family is AddressFamily.IPV4


def test_asking_for_ipv6_on_a_host_without_it_is_failed_samples_not_a_crash() -> None:
    world = World()
    world.network.families = frozenset({AddressFamily.IPV4})
    plan = plan_of(series("2001:db8::1", family=AddressFamily.IPV6))
    (measurement,) = world.run(plan)
    assert len(measurement.samples) == len(world.planned())
    assert all(sample.failure is not None for sample in measurement.samples)


def test_without_any_allowed_probe_nothing_is_sent() -> None:
    world = World()
    world.network.privileged = None
    with pytest.raises(PrivilegeError):
        world.run(plan_of(series("192.0.2.1")))
    assert world.network.sent == []


def test_what_cannot_be_opened_is_told_with_the_place_of_its_entry_all_at_once() -> None:
    world = World()

    def refuse(environment: ProbeEnvironment, options: Options) -> Probe:
        raise OPENING[str(options["word"])]

    def entry(number: int, word: str) -> SeriesPlan:
        options = {"word": word, "groups": "foo"}
        place = f"probe[{number}]"
        return series("192.0.2.1", probe=place, place=place, options=options)

    plan = plan_of(*(entry(number, word) for number, word in enumerate(OPENING)))
    table = {"icmp": dataclasses.replace(probe_table()["icmp"], open=refuse)}

    async def prepare(plan: VantagePlan) -> None:
        run = VantageRun(
            plan, table=table, network=world.network, clock=world.clock, sink=world.sink
        )
        try:
            await run.prepare()
        finally:
            run.finish()

    with pytest.raises(ConfigError) as told:
        asyncio.run(prepare(msgspec.structs.replace(plan, file="c.toml")))
    nope = "UDP socket: this host has no interface nope0; expected what this host has"
    assert [str(fault) for fault in told.value.faults] == [
        f"c.toml: probe[0].word: {nope}",
        "c.toml: probe[1].groups: no such group; expected another",
        "c.toml: probe[2].word: /no/file: no such file; expected a file",
        "c.toml: probe[3]: h2 is not installed; expected pip",
    ]
    with pytest.raises(NotOnThisHostError):  # of no file: as it is
        asyncio.run(prepare(plan))


OPENING: dict[str, Exception] = {
    "nope0": NotOnThisHostError("UDP socket", "this host has no interface nope0"),
    "group": ConfigError([Fault("tls", "groups", "no such group", "another")]),
    "/no/file": ConfigError([Fault("/no/file", "", "no such file", "a file")]),
    "library": ConfigError([Fault("http", "version", "h2 is not installed", "pip")]),
}


def test_pitfall_29_a_forbidden_probe_is_named_and_the_others_run() -> None:
    world = World()
    world.network.privileged = None
    measurements = world.run(plan_of(series("192.0.2.1"), series("192.0.2.1", "tcp")))
    kinds = {
        (one.probe, sample.failure.kind if sample.failure else None)
        for one in measurements
        for sample in one.samples
    }
    assert ("icmp", FailureKind.PERMISSION) in kinds
    assert ("icmp", None) not in kinds
    assert len([probe for probe, _ in kinds if probe == "tcp"]) == 1
    assert any("probe icmp does not run" in problem for problem in world.last.progress.problems)
    lines = [line for problem in world.last.progress.problems for line in problem.splitlines()]
    assert max(map(len, lines)) <= 80
    unsent = sum(sample.failure is not None for one in measurements for sample in one.samples)
    assert world.last.progress.failures == {"permission": unsent}


@pytest.mark.parametrize("step_ns", [3600 * SECOND, -3600 * SECOND])
def test_a_clock_step_of_an_hour_spoils_no_number_and_is_recorded(step_ns: int) -> None:
    world = World()

    def step(run: VantageRun) -> None:
        world.clock.call_in(5 * SECOND, lambda: world.clock.step(step_ns))

    plan = plan_of(series("192.0.2.1", interval_ns=2 * MS), packets_per_second=100_000)
    (measurement,) = world.run(plan, step)
    assert len(measurement.samples) == len(world.planned())
    values = Counter(sample.value_ns for sample in measurement.samples)
    assert set(values) == {15 * MS}
    marked = [sample for sample in measurement.samples if Flag.CLOCK_STEP in sample.flags]
    assert marked
    assert len(marked) < len(measurement.samples) / 2
    assert measurement.clock is not None
    assert measurement.clock.steps == 1
    assert measurement.clock.largest_step_ns == pytest.approx(3600 * SECOND, rel=0.01)


def test_stopping_keeps_what_was_measured_and_counts_what_was_out() -> None:
    world = World()
    world.network.paths["192.0.2.1"] = FakePath(round_trip_ns=500 * MS)

    def stop(run: VantageRun) -> None:
        world.clock.call_in(5 * SECOND, run.stop)

    (measurement,) = world.run(plan_of(series("192.0.2.1", interval_ns=10 * MS)), stop)
    cut_off = measurement.counters["cut_off"]
    assert 20 <= cut_off <= 100
    assert world.last.progress.fired == len(measurement.samples) + cut_off
    assert 4 * SECOND < world.last.progress.reached_ns <= 5 * SECOND


def test_a_resumed_run_sends_exactly_what_the_first_one_did_not() -> None:
    world = World()
    plan = plan_of(series("192.0.2.1"))

    def stop(run: VantageRun) -> None:
        world.clock.call_in(5 * SECOND, run.stop)

    measurements = list(world.run(plan, stop))
    reached = world.last.progress.reached_ns
    measurements += World().run(msgspec.structs.replace(plan, resume_at_ns=reached))
    numbers = sorted(sample.seq for sample in samples_of(measurements))
    cut_off = sum(one.counters.get("cut_off", 0) for one in measurements)
    everything = len(list(due_shots(plan_of(series("192.0.2.1", family=AddressFamily.IPV4)))))
    assert len(set(numbers)) == len(numbers)
    assert len(numbers) + cut_off == everything


def test_a_spool_that_fills_up_stops_the_run_and_says_so() -> None:
    world = World()

    class Full(MemorySink):
        def append(self, series: int, sample: Sample) -> None:
            if sample.seq >= 20:
                raise SpoolError("the disk is full")
            super().append(series, sample)

    world.sink = Full()
    (measurement,) = world.run(plan_of(series("192.0.2.1")))
    assert world.last.trouble == "the disk is full"
    assert len(measurement.samples) == 20


def test_a_backlog_is_sent_no_faster_than_the_limit_and_its_lateness_is_recorded() -> None:
    world = World()
    limited = plan_of(
        series("192.0.2.1", interval_ns=10 * MS), packets_per_second=100, duration_ns=3 * SECOND
    )
    (measurement,) = world.run(limited)
    sent = sorted(sample.sent_unix_ns for sample in measurement.samples)
    assert len(sent) == len(world.planned())
    for first, later in zip(sent, sent[150:], strict=False):
        assert later - first >= SECOND  # 150 echoes are 300 packets: one second's worth and 2 more
    assert max(sample.lateness_ns or 0 for sample in measurement.samples) > SECOND
