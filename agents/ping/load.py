"""Traffic of our own that fills a path, to see what that does to its round trips.

It is STAMP, and it goes only where a reflector has answered, in this run, on this port: each loaded
phase begins after an answer and ends as soon as answers stay away. So it cannot be aimed at anybody
who does not run a reflector and answer us. Rate, packet size and time are bounded, and the rate is
no higher than what is answered (`load_rate.py`).
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from pathbudget.agents.ping.load_rate import LoadRate, OurLoad
from pathbudget.agents.ping.phases import Phase, Phases
from pathbudget.probes.clock import Clock
from pathbudget.probes.contract import Probe, Shot
from pathbudget.probes.network import Network
from pathbudget.probes.record import AddressFamily, Sample, Target

SIZE_BYTES = 1_400
"""UDP payload of a packet of the load; fits every path of 1,500 octets without fragments."""
MOST_BITS_PER_SECOND = 50_000_000
LONGEST_NS = 60_000_000_000
"""All loaded phases of a run together."""
PHASE_NS = 3_000_000_000
"""Loaded and idle take turns of this length."""
SILENCE_NS = 1_500_000_000
"""The load stops when not one of its packets was answered for this long."""
BURST_NS = 2_000_000
"""Packets are sent in bursts this far apart: a load is no measurement and needs no fine pacing."""
_UNITS = {"k": 1_000, "m": 1_000_000}


@dataclass(frozen=True, slots=True)
class Load:
    """How much, in UDP payload one way, and how long in all."""

    bits_per_second: int
    lasts_ns: int


def parse_rate(text: str) -> int:
    """Bits per second of ``10mbit`` or ``500kbit``. Raises ValueError with what would be right."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([km])bit", text.strip().lower())
    if match is None:
        raise ValueError(f"{text!r} is no rate such as 10mbit or 500kbit")
    rate = round(float(match.group(1)) * _UNITS[match.group(2)])
    if not 100_000 <= rate <= MOST_BITS_PER_SECOND:
        raise ValueError(f"{text!r} is not between 100kbit and {MOST_BITS_PER_SECOND // 10**6}mbit")
    return rate


@dataclass(slots=True)
class Aim:
    """The reflector that is loaded; known once it has answered."""

    target: Target
    address: str
    family: AddressFamily


@dataclass(slots=True)
class Totals:
    """What the load did."""

    sent: int = 0
    loaded_ns: int = 0
    stopped: str = ""
    """Why it ended before its time; empty where it did not."""


class LoadRun:
    """Takes turns of idle and loaded towards one reflector, until the time for load is used up.

    `open_probe` opens the STAMP probe with packets of `SIZE_BYTES` whose samples go to `emit` here,
    never into the results. `aim` says whom to load, None while no reflector has answered;
    `usual_loss` which share of packets the path loses without a load.
    """

    def __init__(
        self,
        load: Load,
        *,
        network: Network,
        clock: Clock,
        phases: Phases,
        open_probe: Callable[[Callable[[int, Sample], None]], Probe],
        aim: Callable[[], Aim | None],
        usual_loss: Callable[[], float],
    ) -> None:
        self.totals = Totals()
        self.rate = LoadRate(load.bits_per_second, SIZE_BYTES)
        self._load = load
        self._network = network
        self._clock = clock
        self._phases = phases
        self._open_probe = open_probe
        self._aim = aim
        self._usual_loss = usual_loss
        self._heard_ns = 0

    def report(self) -> OurLoad:
        """What came of it so far."""
        return self.rate.report(self._clock.monotonic_ns())

    async def run(self) -> None:
        """Idle first, then loaded, and so on. Ends by itself; may be cancelled at any time."""
        probe = self._open_probe(self._take)
        try:
            while self.totals.loaded_ns < self._load.lasts_ns and not self.totals.stopped:
                await self._wait(PHASE_NS)
                aim = self._aim()
                if aim is not None:
                    await self._loaded_phase(probe, aim)
            await self._wait(2 * SILENCE_NS)  # the last answers
        finally:
            self._phases.end(self._clock.unix_ns())
            self.rate.close(self._clock.monotonic_ns())
            probe.close()

    async def _loaded_phase(self, probe: Probe, aim: Aim) -> None:
        began = before = self._heard_ns = self._clock.monotonic_ns()
        end = began + min(PHASE_NS, self._load.lasts_ns - self.totals.loaded_ns)
        owed = 0.0
        while (now := self._clock.monotonic_ns()) < end and not self._ended(now):
            self.rate.judge(now, self._usual_loss())
            self._phases.begin(
                self._clock.unix_ns(), Phase.LOADED if self.rate.steady else Phase.RAMPING
            )
            # What a late loop has missed is not caught up with at once.
            owed += min(now - before, 5 * BURST_NS) * self.rate.now / (8 * SIZE_BYTES * 10**9)
            before = now
            for _ in range(int(owed)):
                self._fire(probe, aim)
            owed %= 1
            await self._wait(BURST_NS)
        self.rate.pause(self._clock.monotonic_ns())
        self._phases.end(self._clock.unix_ns())
        self.totals.loaded_ns += self._clock.monotonic_ns() - began

    def _ended(self, now_ns: int) -> bool:
        """Whether there is a reason to load nobody any more."""
        if now_ns - self._heard_ns > SILENCE_NS:
            self.totals.stopped = "the reflector stopped answering; the load was ended"
        elif self.rate.exhausted:
            self.totals.stopped = "the reflector answers hardly any load; it was ended"
        return bool(self.totals.stopped)

    def _fire(self, probe: Probe, aim: Aim) -> None:
        now_ns = self._clock.monotonic_ns()
        shot = Shot(
            series=0,
            seq=self.totals.sent,
            target=aim.target,
            address=aim.address,
            family=aim.family,
            timeout_ns=2 * SILENCE_NS,
            due_ns=now_ns,
        )
        self.rate.sent(self.totals.sent, now_ns)
        self.totals.sent += 1
        probe.fire(shot)

    def _take(self, series: int, sample: Sample) -> None:
        del series
        if sample.metric == "rtt" and sample.value_ns is not None:
            self.rate.answered(sample.seq, sample.value_ns)
            self._heard_ns = self._clock.monotonic_ns()

    async def _wait(self, duration_ns: int) -> None:
        await self._network.wait_until(self._clock.monotonic_ns() + duration_ns)
