"""Carries out the plan of one vantage: opens its probes, follows its names, watches its host.

firing.py         the schedule: what is due leaves through the probes
measurements.py   what comes back: samples into the measurements that are open
addresses.py      names to addresses
keeping_up.py     whether this host is fast enough for the plan
"""

import asyncio
import gc
import random
from collections.abc import Callable, Mapping, Sequence

from pathbudget.agents.campaign.addresses import Names, addresses_of, with_families
from pathbudget.agents.campaign.epochs import Epoch, literal_family
from pathbudget.agents.campaign.firing import Firing
from pathbudget.agents.campaign.keeping_up import PROBLEM, KeepingUp
from pathbudget.agents.campaign.measurements import OpenMeasurements
from pathbudget.agents.campaign.opening_faults import faults_at
from pathbudget.agents.campaign.plan import SeriesPlan, VantagePlan
from pathbudget.agents.campaign.progress_state import Progress
from pathbudget.agents.campaign.sink import SampleSink
from pathbudget.probes.clock import Clock, ClockWatcher
from pathbudget.probes.clock_survey import ClockSurvey
from pathbudget.probes.contract import Probe, ProbeEnvironment, ProbeSpec
from pathbudget.probes.errors import ConfigError, Fault, NotOnThisHostError, PrivilegeError
from pathbudget.probes.host_watch import HostWatch
from pathbudget.probes.network import Network
from pathbudget.probes.record import (
    AddressFamily,
    ClockQuality,
    Failure,
    FailureKind,
    NoiseFloor,
    Stage,
)

__all__ = ["Progress", "VantageRun"]

UNRESOLVED_RETRY_NS = 5_000_000_000
"""A name that does not resolve is tried again this often, not only every `resolve_every_ns`."""
WATCH_EVERY_NS = 1_000_000_000
"""How often the wall clock is looked at for steps, and the sends for lateness."""
LOOK_EVERY = 5
"""The host itself is looked at every so many times."""


class VantageRun:
    """One vantage, one event loop. Call `prepare`, then `run`, then `finish`, whatever happens.

    `scheduling` says how the kernel schedules this process where that is not the usual way; it is
    recorded with each measurement. `refuses` says of an address why nothing may be sent to it;
    empty: it may. It is asked each time a name has been resolved, and of literal addresses.
    """

    def __init__(
        self,
        plan: VantagePlan,
        *,
        table: Mapping[str, ProbeSpec],
        network: Network,
        clock: Clock,
        sink: SampleSink,
        scheduling: str = "",
        refuses: Callable[[str], str] | None = None,
    ) -> None:
        self.progress = Progress(reached_ns=plan.resume_at_ns)
        self.trouble = ""
        """Why the run stopped itself, if it did."""
        self.plan = plan
        """As it is carried out: after `prepare`, series of names are split into their families."""
        self._table = table
        self._network = network
        self._clock = clock
        self._rng = random.Random()  # secrets of probes and identifiers: never from the seed
        self._watcher = ClockWatcher(clock)
        self._survey = ClockSurvey(clock, self._watcher)
        self._host = HostWatch(network, clock)
        self._host_is_known = False
        self._keeping_up = KeepingUp()
        self._measurements = OpenMeasurements(
            sink,
            clock=clock,
            rng=self._rng,
            host=self._host,
            progress=self.progress,
            scheduling=scheduling,
            on_trouble=self._stop_because,
        )
        self._probes: dict[str, Probe] = {}
        self._forbidden: dict[str, str] = {}
        self._refuses = refuses
        self._current: list[Epoch] = []
        self._next_number = 0
        self._firing: Firing | None = None
        self._stopped = False

    async def prepare(self) -> None:
        """Know the noise floor, open the probes, resolve the names. Sends nothing to a target.

        Raises PrivilegeError when not one of the plan's probes may be opened, and
        NotOnThisHostError or ConfigError where what a probe was told is not to be had here.
        """
        self.progress.noise = await self._host.begin()
        self._host_is_known = True
        self._survey.now()
        names = Names(self._network)
        self.plan = await with_families(self.plan, names)
        self._open_probes()
        found = await asyncio.gather(*(addresses_of(one, names) for one in self.plan.series))
        for series, (addresses, family, failure) in zip(self.plan.series, found, strict=True):
            self._current.append(self._begin_epoch(series, addresses, family, failure))

    async def run(self, start_monotonic_ns: int) -> None:
        """Send everything that is due, then wait for what is out."""
        if self._stopped:
            return
        self._firing = Firing(
            self.plan,
            network=self._network,
            clock=self._clock,
            current=self._current,
            probes=self._probes,
            forbidden=self._forbidden,
            measurements=self._measurements,
            progress=self.progress,
            keeping_up=self._keeping_up,
        )
        helpers = [
            asyncio.create_task(self._resolve_again_and_again()),
            asyncio.create_task(self._watch()),
        ]
        # Looking through what lives as long as the run would stop all sends for 20 ms at a time.
        gc.freeze()
        try:
            await self._firing.run(start_monotonic_ns)
            if not self._stopped:
                await asyncio.gather(*(probe.drain() for probe in self._probes.values()))
        finally:
            gc.unfreeze()
            for helper in helpers:
                helper.cancel()
            await asyncio.gather(*helpers, return_exceptions=True)

    def stop(self) -> None:
        """Send nothing more and do not wait for what is out."""
        self._stopped = True
        if self._firing is not None:
            self._firing.stop()

    def wind_down(self) -> None:
        """Send nothing more; `run` returns when what is out has come back or is given up."""
        if self._firing is not None:
            self._firing.stop()

    def host_state(self) -> tuple[ClockQuality, NoiseFloor | None]:
        """What clock and host are like now, as it is written into measurements."""
        return self._survey.quality(), self._noise()

    def finish(self) -> None:
        """Close the probes, then every measurement. Safe to call at any time, more than once."""
        for probe in self._probes.values():
            probe.close()
        self._probes.clear()
        self._watcher.read()
        epochs = self._measurements.open()
        clock, noise = self._survey.quality(), self._noise()
        for epoch in epochs:
            self._measurements.end(epoch, clock, noise)

    def _stop_because(self, trouble: str) -> None:
        self.trouble = trouble
        self.stop()

    def _noise(self) -> NoiseFloor | None:
        return self._host.floor() if self._host_is_known else None

    def _open_probes(self) -> None:
        environment = ProbeEnvironment(
            network=self._network,
            clock=self._clock,
            rng=self._rng,
            emit=self._measurements.emit,
            count=self._measurements.count,
            waited=self._measurements.waited,
        )
        refused: PrivilegeError | None = None
        faults: list[Fault] = []
        tried: set[str] = set()
        for series in self.plan.series:
            if series.probe in tried:
                continue
            tried.add(series.probe)
            try:
                probe = self._table[series.kind].open(environment, series.options)
            except (ConfigError, NotOnThisHostError) as error:
                # Asked for by name: a plan with a wrong word is not carried out in part.
                if not self.plan.file:
                    raise
                faults += faults_at(series, self.plan.file, error)
            except PrivilegeError as error:
                refused = error
                self._forbidden[series.probe] = str(error)
                self.progress.problems.append(
                    f"probe {series.probe} does not run: {error.capability}: not permitted\n"
                    f"{error.remedy}"
                )
            else:
                self._probes[series.probe] = probe
        if faults:
            raise ConfigError(faults)
        if refused is not None and not self._probes:
            raise refused

    def _begin_epoch(
        self,
        series: SeriesPlan,
        addresses: Sequence[str],
        family: AddressFamily | None,
        failure: Failure | None,
    ) -> Epoch:
        address = addresses[0] if addresses else ""
        if address and self._refuses is not None and (why := self._refuses(address)):
            family, failure = None, Failure(FailureKind.PERMISSION, Stage.SEND, why)
        number, self._next_number = self._next_number, self._next_number + 1
        spec = self._table[series.kind]
        cost = spec.cost(series.options)
        epoch = Epoch(
            number=number,
            plan=series,
            spec=spec,
            address=address,
            family=family,
            failure=failure,
            started_monotonic_ns=self._clock.monotonic_ns(),
            packets=cost.packets,
            octets=cost.bytes,
            resolves=spec.needs_port and literal_family(series.target.host) is None,
        )
        self._measurements.begin(epoch, self.plan)
        return epoch

    async def _resolve_again_and_again(self) -> None:
        """A target that moves is noticed: its epoch ends, and a new one begins."""
        named = [
            index
            for index, series in enumerate(self.plan.series)
            if literal_family(series.target.host) is None
        ]
        while named:
            unresolved = any(self._current[index].failure is not None for index in named)
            every_ns = self.plan.resolve_every_ns
            await self._pause(min(every_ns, UNRESOLVED_RETRY_NS) if unresolved else every_ns)
            names = Names(self._network)
            await asyncio.gather(
                *(self._resolve_again(index, self._current[index], names) for index in named)
            )

    async def _resolve_again(self, index: int, epoch: Epoch, names: Names) -> None:
        addresses, family, _ = await addresses_of(epoch.plan, names)
        if not addresses or epoch.address in addresses:
            return  # a resolver that fails or shuffles for a moment does not end an epoch
        self._current[index] = self._begin_epoch(epoch.plan, addresses, family, None)
        await self._pause(epoch.plan.timeout_ns)
        if self._measurements.is_open(epoch):
            self._measurements.end(epoch, self._survey.quality(), self._noise())

    async def _watch(self) -> None:
        """Look at the wall clock and at the host, for as long as the run lasts."""
        looks = 0
        while True:
            self._watcher.read()
            self._survey.now()
            if self._keeping_up.look() and PROBLEM not in self.progress.problems:
                self.progress.problems.append(PROBLEM)
            if looks % LOOK_EVERY == LOOK_EVERY - 1:
                self.progress.noise = self._host.look()
            looks += 1
            await self._pause(WATCH_EVERY_NS)

    async def _pause(self, duration_ns: int) -> None:
        """Sleep by the clock of the network, which tests can move."""
        over = asyncio.Event()
        call = self._network.call_at(self._clock.monotonic_ns() + duration_ns, over.set)
        try:
            await over.wait()
        finally:
            call.cancel()
