"""Carries out the plan of one vantage: the schedule on one side, the probes on the other."""

import asyncio
import contextlib
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from pathbudget.agents.campaign.epochs import Epoch, envelope, literal_family
from pathbudget.agents.campaign.limits import PacketAllowance
from pathbudget.agents.campaign.plan import DueShot, SeriesPlan, VantagePlan, due_shots
from pathbudget.agents.campaign.sink import SampleSink
from pathbudget.agents.version import software_name
from pathbudget.probes.clock import Clock, ClockWatcher
from pathbudget.probes.clock_quality import read_clock_quality
from pathbudget.probes.contract import Probe, ProbeEnvironment, ProbeSpec, Shot
from pathbudget.probes.errors import PrivilegeError, SpoolError
from pathbudget.probes.identifiers import new_id
from pathbudget.probes.network import Network
from pathbudget.probes.noise import measure_noise_floor
from pathbudget.probes.record import (
    AddressFamily,
    Failure,
    FailureKind,
    NoiseFloor,
    Sample,
    Stage,
)

UNRESOLVED_RETRY_NS = 5_000_000_000
"""A name that does not resolve is tried again this often, not only every `resolve_every_ns`."""
WATCH_EVERY_NS = 1_000_000_000
"""How often the wall clock is looked at for steps."""


@dataclass(slots=True)
class Progress:
    """How far a run is. `reached_ns` is the offset up to which every send has been made."""

    fired: int = 0
    samples: int = 0
    failures: dict[str, int] = field(default_factory=dict[str, int])
    """Probes that failed, by kind of failure."""
    reached_ns: int = 0
    problems: list[str] = field(default_factory=list[str])


class VantageRun:
    """One vantage, one event loop. Call `prepare`, then `run`, then `finish`, whatever happens."""

    def __init__(
        self,
        plan: VantagePlan,
        *,
        table: Mapping[str, ProbeSpec],
        network: Network,
        clock: Clock,
        sink: SampleSink,
    ) -> None:
        self.progress = Progress(reached_ns=plan.resume_at_ns)
        self.trouble = ""
        """Why the run stopped itself, if it did."""
        self.plan = plan
        """As it is carried out: after `prepare`, series of names are split into their families."""
        self._table = table
        self._network = network
        self._clock = clock
        self._sink = sink
        self._rng = random.Random()  # secrets of probes and identifiers: never from the seed
        self._watcher = ClockWatcher(clock)
        self._noise: NoiseFloor | None = None
        self._probes: dict[str, Probe] = {}
        self._forbidden: dict[str, str] = {}
        self._epochs: dict[int, Epoch] = {}
        self._current: list[Epoch] = []
        self._next_number = 0
        self._firing: asyncio.Task[None] | None = None
        self._stopped = False

    async def prepare(self) -> None:
        """Know the noise floor, open the probes, resolve the names. Sends nothing to a target.

        Raises PrivilegeError when not one of the plan's probes may be opened.
        """
        self._noise = await measure_noise_floor(self._network, self._clock)
        self.plan = await self._with_families(self.plan)
        self._open_probes()
        for series in self.plan.series:
            self._current.append(await self._new_epoch(series))

    async def run(self, start_monotonic_ns: int) -> None:
        """Send everything that is due, then wait for what is out."""
        self._firing = asyncio.create_task(self._fire_all(start_monotonic_ns))
        resolving = asyncio.create_task(self._resolve_again_and_again())
        watching = asyncio.create_task(self._watch_the_clock())
        try:
            if self._stopped:
                self._firing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._firing
            if not self._stopped:
                await asyncio.gather(*(probe.drain() for probe in self._probes.values()))
        finally:
            for task in (resolving, watching):
                task.cancel()
            await asyncio.gather(resolving, watching, return_exceptions=True)

    def stop(self) -> None:
        """Send nothing more and do not wait for what is out."""
        self._stopped = True
        if self._firing is not None:
            self._firing.cancel()

    def finish(self) -> None:
        """Close the probes, then every measurement. Safe to call at any time, more than once."""
        for probe in self._probes.values():
            probe.close()
        self._probes.clear()
        self._watcher.read()
        for epoch in list(self._epochs.values()):
            self._end_epoch(epoch)

    async def _fire_all(self, start_ns: int) -> None:
        start_ns -= self.plan.resume_at_ns
        allowance = PacketAllowance(self.plan.packets_per_second, self._clock.monotonic_ns())
        for due in due_shots(self.plan):
            await self._network.wait_until(start_ns + due.offset_ns)
            epoch = self._current[due.series]
            packets = epoch.spec.cost(epoch.plan.options).packets
            wait_ns = allowance.wait_ns(packets, self._clock.monotonic_ns())
            if wait_ns:
                await self._network.wait_until(self._clock.monotonic_ns() + wait_ns)
            self._fire(self._current[due.series], due, start_ns)
            self.progress.reached_ns = due.offset_ns + 1
        self.progress.reached_ns = self.plan.duration_ns

    def _fire(self, epoch: Epoch, due: DueShot, start_ns: int) -> None:
        lateness_ns = max(0, self._clock.monotonic_ns() - start_ns - due.offset_ns)
        self.progress.fired += 1
        epoch.fired += 1
        probe = self._probes.get(epoch.plan.probe)
        if probe is None or epoch.family is None:
            self._emit_unsent(epoch, due.seq, lateness_ns)
            return
        shot = Shot(
            series=epoch.number,
            seq=due.seq,
            target=epoch.plan.target,
            address=epoch.address,
            family=epoch.family,
            timeout_ns=epoch.plan.timeout_ns,
            lateness_ns=lateness_ns,
            resolve=epoch.spec.needs_port and literal_family(epoch.plan.target.host) is None,
        )
        probe.fire(shot)

    def _emit_unsent(self, epoch: Epoch, seq: int, lateness_ns: int) -> None:
        forbidden = self._forbidden.get(epoch.plan.probe)
        failure = Failure(FailureKind.PERMISSION, Stage.SEND, forbidden) if forbidden else None
        sample = Sample(
            seq=seq,
            metric=epoch.spec.primary_metric,
            sent_unix_ns=self._clock.unix_ns(),
            failure=failure or epoch.failure,
            lateness_ns=lateness_ns,
        )
        self._emit(epoch.number, sample)

    def _emit(self, number: int, sample: Sample) -> None:
        epoch = self._epochs.get(number)
        if epoch is None:  # the epoch has ended while the answer was under way
            return
        try:
            self._sink.append(number, sample)
        except SpoolError as error:  # called from inside the event loop: nobody above would see it
            self.trouble = str(error)
            self.stop()
            return
        self.progress.samples += 1
        if sample.metric == epoch.spec.primary_metric:
            epoch.answered += 1
            if sample.failure is not None:
                kind = str(sample.failure.kind)
                self.progress.failures[kind] = self.progress.failures.get(kind, 0) + 1

    def _count(self, number: int, word: str) -> None:
        """Counts that belong to no series go to the first measurement that is open."""
        if number not in self._epochs:
            number = next(iter(self._epochs), -1)
        if number >= 0:
            self._sink.count(number, word)

    def _open_probes(self) -> None:
        environment = ProbeEnvironment(
            network=self._network,
            clock=self._clock,
            rng=self._rng,
            emit=self._emit,
            count=self._count,
        )
        refused: PrivilegeError | None = None
        for series in self.plan.series:
            if series.probe in self._probes or series.probe in self._forbidden:
                continue
            try:
                probe = self._table[series.kind].open(environment, series.options)
            except PrivilegeError as error:
                refused = error
                self._forbidden[series.probe] = str(error)
                self.progress.problems.append(
                    f"probe {series.probe} does not run: {error.capability}: not permitted\n"
                    f"{error.remedy}"
                )
            else:
                self._probes[series.probe] = probe
        if refused is not None and not self._probes:
            raise refused

    async def _with_families(self, plan: VantagePlan) -> VantagePlan:
        """The plan with every series that is open to any family split into those that exist."""
        series: list[SeriesPlan] = []
        for one in plan.series:
            families = (one.family,) if one.family else await self._families(one)
            series.extend(msgspec.structs.replace(one, family=family) for family in families)
        return msgspec.structs.replace(plan, series=tuple(series))

    async def _families(self, series: SeriesPlan) -> tuple[AddressFamily | None, ...]:
        literal = literal_family(series.target.host)
        if literal is not None:
            return (literal,)
        found: list[AddressFamily | None] = []
        for family in AddressFamily:
            answer = await self._network.resolve(series.target.host, family)
            if isinstance(answer, Failure):
                continue
            if self._network.has_route(answer.addresses[0], family):
                found.append(family)
        return tuple(found) or (None,)

    async def _new_epoch(self, series: SeriesPlan) -> Epoch:
        addresses, family, failure = await self._addresses(series)
        return self._begin_epoch(series, addresses[0] if addresses else "", family, failure)

    async def _addresses(
        self, series: SeriesPlan
    ) -> tuple[Sequence[str], AddressFamily | None, Failure | None]:
        """Addresses of the first family that has some; without any, why there are none."""
        if literal_family(series.target.host) is not None:
            return (series.target.host,), series.family, None
        failure = None
        for family in (series.family,) if series.family else tuple(AddressFamily):
            answer = await self._network.resolve(series.target.host, family)
            if not isinstance(answer, Failure):
                return answer.addresses, family, None
            failure = failure or answer
        return (), None, failure

    def _begin_epoch(
        self,
        series: SeriesPlan,
        address: str,
        family: AddressFamily | None,
        failure: Failure | None,
    ) -> Epoch:
        number, self._next_number = self._next_number, self._next_number + 1
        epoch = Epoch(
            number=number,
            plan=series,
            spec=self._table[series.kind],
            address=address,
            family=family,
            failure=failure,
            started_monotonic_ns=self._clock.monotonic_ns(),
        )
        now = self._clock.unix_ns()
        measurement = envelope(
            epoch,
            self.plan,
            identifier=new_id(now, self._rng),
            started_unix_ns=now,
            software=software_name(),
        )
        self._epochs[number] = epoch
        self._sink.begin(number, measurement)
        return epoch

    def _end_epoch(self, epoch: Epoch) -> None:
        """Shots that are still out are counted: nobody knows their fate, so they have no sample."""
        for _ in range(epoch.fired - epoch.answered):
            self._sink.count(epoch.number, "cut_off")
        del self._epochs[epoch.number]
        self._sink.end(
            epoch.number,
            clock=read_clock_quality(self._watcher),
            noise=self._noise,
            duration_ns=self._clock.monotonic_ns() - epoch.started_monotonic_ns,
        )

    async def _resolve_again_and_again(self) -> None:
        """A target that moves is noticed: its epoch ends, and a new one begins."""
        while True:
            unresolved = any(epoch.failure is not None for epoch in self._current)
            every_ns = self.plan.resolve_every_ns
            pause_ns = min(every_ns, UNRESOLVED_RETRY_NS) if unresolved else every_ns
            await self._pause(pause_ns)
            for index, epoch in enumerate(self._current):
                if literal_family(epoch.plan.target.host) is None:
                    await self._resolve_again(index, epoch)

    async def _resolve_again(self, index: int, epoch: Epoch) -> None:
        addresses, family, _ = await self._addresses(epoch.plan)
        if not addresses or epoch.address in addresses:
            return  # a resolver that fails or shuffles for a moment does not end an epoch
        self._current[index] = self._begin_epoch(epoch.plan, addresses[0], family, None)
        await self._pause(epoch.plan.timeout_ns)
        if epoch.number in self._epochs:
            self._end_epoch(epoch)

    async def _watch_the_clock(self) -> None:
        while True:
            self._watcher.read()
            await self._pause(WATCH_EVERY_NS)

    async def _pause(self, duration_ns: int) -> None:
        """Sleep by the clock of the network, which tests can move."""
        over = asyncio.Event()
        call = self._network.call_at(self._clock.monotonic_ns() + duration_ns, over.set)
        try:
            await over.wait()
        finally:
            call.cancel()
