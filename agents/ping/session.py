"""One run of `pathbudget ping`: what is opened, started, watched and ended, in this process."""

import asyncio
import random
from collections.abc import Callable, Coroutine, Mapping

from pathbudget.agents.campaign.epochs import literal_family
from pathbudget.agents.campaign.vantage_run import VantageRun
from pathbudget.agents.live_run import LiveRun
from pathbudget.agents.ping import options as asked
from pathbudget.agents.ping.floors import Floors, measure_floors, with_host
from pathbudget.agents.ping.load import SIZE_BYTES, Aim, LoadRun
from pathbudget.agents.ping.phases import Phase, Phases
from pathbudget.agents.ping.screen import Picture
from pathbudget.agents.ping.sink import PingSink
from pathbudget.agents.units import format_duration
from pathbudget.probes.channels import Network
from pathbudget.probes.clock import Clock
from pathbudget.probes.contract import Probe, ProbeEnvironment, ProbeSpec
from pathbudget.probes.errors import ConfigError, Fault, NotOnThisHostError, PrivilegeError
from pathbudget.probes.record import AddressFamily, Sample

SOCKETS = {"tcp": "tcp", "stamp": "udp"}
"""What the mode column says; for ICMP it says which kind of socket the kernel gave."""
ANSWERS_BEFORE_LOAD = 3
ASKED_ENOUGH = 3
"""A reflector that has not answered so many packets is said not to answer."""

Display = Callable[["Session"], Coroutine[None, None, None]]


def icmp_socket(network: Network) -> str:
    """``raw`` or ``dgm``. Raises PrivilegeError where the kernel allows neither."""
    for family in AddressFamily:
        channel = network.open_icmp(family, lambda _: None)
        if channel is not None:
            channel.close()
            return "raw" if channel.privileged else "dgm"
    return "raw"


class Session(LiveRun):
    """Call `run` once. `picture` may be asked for at any time from then on."""

    def __init__(
        self,
        options: asked.PingOptions,
        *,
        table: Mapping[str, ProbeSpec],
        network: Network,
        clock: Clock,
        write: Callable[[bytes], None] | None = None,
        write_sample: Callable[[bytes], None] | None = None,
    ) -> None:
        super().__init__()
        self.notice = ""
        """What a person must know before the first number, such as a fallback."""
        self.remedy = ""
        """What to do about it."""
        self._options = options
        self._table = table
        self._network = network
        self._clock = clock
        self._phases = Phases() if options.load else None
        main, sockets = self._choose()
        self.plan = asked.vantage_plan(options, main, table)
        self.sink = PingSink(
            table=table,
            sockets=sockets,
            column_ns=options.column_ns,
            timeout_ns=options.waits_ns,
            write=write,
            write_sample=write_sample,
            phases=self._phases,
            notice=self.notice,
            flows=options.flows is not None,
        )
        self._method = self._describe(main)
        self._vantage = VantageRun(
            self.plan, table=table, network=network, clock=clock, sink=self.sink
        )
        self._load: LoadRun | None = None
        self._floors: Floors = {}
        self.sink.floors = self._known_floors
        self._started_ns = clock.monotonic_ns()

    @property
    def answered(self) -> bool:
        """Whether there is a single number."""
        return any(state.answers.n for state in self.sink.states())

    def picture(self) -> Picture:
        """All that is to be drawn now."""
        self._tell_load()
        return Picture(
            shown=self.sink.shown(),
            method=self._method,
            column_ns=self._options.column_ns,
            elapsed_ns=self._clock.monotonic_ns() - self._started_ns,
            floors=self._known_floors(),
            notices=self._notices(),
        )

    async def run(self, display: Display) -> None:
        """Measure until the plan ends or `stop`. Raises PrivilegeError or ConfigError; then
        nothing was sent.
        """
        self._floors = await measure_floors(self._network)
        tasks = [asyncio.create_task(self._or_stop(display(self)))]
        try:
            if not await self._prepare():
                return
            self._started_ns = self._clock.monotonic_ns()
            if self._options.load is not None:
                tasks.append(asyncio.create_task(self._or_stop(self._run_load())))
            await self._vantage.run(self._started_ns)
        finally:
            for task in tasks:
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
            self._tell_load()
            self._vantage.finish()
        for result in results:
            if isinstance(result, Exception):
                raise result

    def _known_floors(self) -> Floors:
        return with_host(self._floors, self._vantage.progress.noise)

    def _tell_load(self) -> None:
        """There is one host where there is a load."""
        if self._load is not None:
            report = self._load.report()
            for state in self.sink.states():
                state.own_load = report

    def _choose(self) -> tuple[str, dict[str, str]]:
        """The probe, and the word for its socket; TCP where ICMP is not permitted, and said so."""
        probe = self._options.probe
        if probe not in ("", "icmp"):
            return probe, SOCKETS
        try:
            return "icmp", {**SOCKETS, "icmp": icmp_socket(self._network)}
        except PrivilegeError as error:
            if probe == "icmp" or isinstance(error, NotOnThisHostError):
                raise
            self.notice = "ICMP is not permitted here: TCP connect is measured instead."
            self.remedy = error.remedy
            return "tcp", SOCKETS

    def _describe(self, main: str) -> str:
        options = self._options
        kinds = " and ".join(asked.probes_of(options, main))
        train = f", trains of {options.train}" if options.train > 1 else ""
        return f"{kinds} every {format_duration(options.interval_ns)} {options.schedule}{train}"

    def _notices(self) -> list[str]:
        silent = [
            one.state.host
            for one in self.sink.shown()
            if one.state.probe == "stamp"
            and not one.state.answers.n
            and one.state.sent >= ASKED_ENOUGH
        ]
        notices = [self.notice] if self.notice else []
        if self._preparing is not None:
            notices.append("Looking up names.")
        if silent:
            more = f" and {len(silent) - 1} more" if len(silent) > 1 else ""
            notices.append(
                f"No reflector answers at {silent[0]}{more}: forward and reverse stay unknown."
            )
        notices += self.sink.moved[-1:]
        if self._load is not None:
            notices += filter(None, (self._load.report().limited, self._load.totals.stopped))
        return notices

    async def _run_load(self) -> None:
        assert self._options.load is not None
        assert self._phases is not None
        self._load = LoadRun(
            self._options.load,
            network=self._network,
            clock=self._clock,
            phases=self._phases,
            open_probe=self._open_load,
            aim=self._aim,
            usual_loss=self._usual_loss,
        )
        await self._load.run()

    def _open_load(self, emit: Callable[[int, Sample], None]) -> Probe:
        spec = self._table["stamp"]
        name = next((one for one in asked.NAMES["size"] if one in spec.options), None)
        if name is None:
            fault = Fault("command line", "--load", "the stamp probe has no size", "one that has")
            raise ConfigError([fault])
        defaults = {key: option.default for key, option in spec.options.items()}
        environment = ProbeEnvironment(
            network=self._network,
            clock=self._clock,
            rng=random.Random(),
            emit=emit,
            count=_forget,
        )
        return spec.open(environment, {**defaults, name: SIZE_BYTES})

    def _aim(self) -> Aim | None:
        """The reflector, once it has answered and while it does."""
        for state in self.sink.states():
            answers = state.probe == "stamp" and state.answers.n >= ANSWERS_BEFORE_LOAD
            family = literal_family(state.address)
            if answers and family is not None and state.watch.run == 0:
                plan = next(one for one in self.plan.series if one.kind == "stamp")
                return Aim(plan.target, state.address, family)
        return None

    def _usual_loss(self) -> float:
        """Share of the packets that are lost without a load."""
        idle = [one.phases[Phase.IDLE] for one in self.sink.states() if one.probe == "stamp"]
        lost = sum(one.lost for one in idle)
        return lost / max(1, lost + sum(one.answers.n for one in idle))


def _forget(series: int, word: str) -> None:
    """The load is no measurement: what it counts is nobody's."""
    del series, word
