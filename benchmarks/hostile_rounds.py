"""Shots at servers that mean no good: none outlives its deadline, crashes a probe, or stays.

    python benchmarks/hostile_rounds.py [--rounds 100000] [--seconds 600] [probe ...]

Every round is one shot of a probe against another end that sends good bytes made bad: flipped, cut,
spliced, repeated, random, in pieces, an octet at a time, late, without end, with a reset or an end
anywhere; tickets of any size, heads and floods of frames without end. Time is virtual
(probes/fake_time.py), the probe is the real one down to the packet. After each round there must be
exactly one sample of its primary metric, not later than the deadline; `drain` must return, and no
connection and no alarm be left. One probe is open for all rounds of its case: what it would gather
from round to round shows as growth of this process, from the 2,000th round (or a third of the time)
to the last.
"""

import argparse
import asyncio
import collections
import gc
import logging
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from hostile.cases import CASES, Case
from hostile.malice import MS
from hostile.network import HostileNetwork
from hostile.tls_server import HOST, make_certificate

from pathbudget.probes.contract import Option, Probe, ProbeEnvironment, ProbeSpec, Shot
from pathbudget.probes.fake_time import FakeClock
from pathbudget.probes.record import AddressFamily, Sample, Target
from pathbudget.probes.table import BUILTIN

ADDRESS = "192.0.2.1"
TIMEOUT_NS = 1_000 * MS
SLACK_NS = 25 * MS
"""A dialer speaks first at the deadline, who uses it 20 ms later (`http.attempt`)."""
AFTERWARDS_NS = 2_500 * MS
"""Until tickets that were waited for are given up, and connections that were closed are gone."""
WARM_UP = 2_000
HANG_SECONDS = 30
KEPT = 32
"""Connections that modes warm and idle may keep."""
SHOWN = 5


class Hung(BaseException):
    """A round that computes for ever; no `except Exception` may swallow it."""


@dataclass
class Told:
    """What the probe says in one round."""

    spec: ProbeSpec
    clock: FakeClock
    began_ns: int = 0
    primaries: int = 0
    others: int = 0
    late_ns: int = 0
    seq: int = 0
    wrong_seq: int = 0
    kinds: collections.Counter[str] = field(default_factory=collections.Counter[str])

    def begin(self, seq: int) -> None:
        """A round."""
        self.began_ns, self.seq = self.clock.monotonic_ns(), seq
        self.primaries = self.others = self.late_ns = self.wrong_seq = 0

    def emit(self, series: int, sample: Sample) -> None:
        """See `contract.ProbeEnvironment.emit`."""
        del series
        self.late_ns = self.clock.monotonic_ns() - self.began_ns
        self.wrong_seq += sample.seq != self.seq
        if sample.metric == self.spec.primary_metric:
            self.primaries += 1
            self.kinds[sample.failure.kind.value if sample.failure else "measured"] += 1
        else:
            self.others += 1


class Rounds:
    """All rounds of one case."""

    def __init__(self, case: Case, seed: int) -> None:
        self._case = case
        self._seed = seed
        self._network = HostileNetwork(FakeClock(), peers=case.peers, connects=False)
        self._spec = BUILTIN[case.probe]
        self._told = Told(self._spec, self._network.clock)
        if case.service is not None:
            self._network.services[ADDRESS, case.port] = case.service
        self._probe = self._open()
        self._always_open = len(self._network.open)
        self.faults: collections.Counter[str] = collections.Counter()
        self.slowest_seconds = 0.0
        self.slowest_round = 0
        self._warm_up = 0

    def _open(self) -> Probe:
        environment = ProbeEnvironment(
            network=self._network,
            clock=self._network.clock,
            rng=Random(3),
            emit=self._told.emit,
            count=lambda *_: None,
        )
        given: Mapping[str, Option] = self._case.options
        defaults = {name: option.default for name, option in self._spec.options.items()}
        return self._spec.open(environment, {**defaults, **given})

    def run(self, rounds: int, seconds: float) -> str:
        """So many, or as many as fit into the time; a line to be read."""
        began = time.monotonic()
        before, done = (0, 0), 0
        while done < rounds and time.monotonic() - began < seconds:
            warm = done >= min(WARM_UP, rounds // 2) or time.monotonic() - began > seconds / 3
            if warm and not self._warm_up:
                before, self._warm_up = self._footprint(), done
            self._round(done)
            done += 1
        after = self._footprint()
        self._end()
        took = time.monotonic() - began
        kinds = ", ".join(f"{kind} {count}" for kind, count in self._told.kinds.most_common(6))
        return (
            f"{self._case.name:24} {done:7} rounds {took:6.0f} s"
            f"  from {self._warm_up}: RSS {before[0] / 1024:.1f}"
            f" {(after[0] - before[0]) / 1024:+.1f} MB"
            f"  objects {before[1]} {after[1] - before[1]:+d}"
            f"  slowest {self.slowest_seconds * 1e3:.0f} ms"
            f" (round {self.slowest_round}), one call {self._network.longest_ns / MS:.0f} ms"
            f"  faults {self.faults.total()}\n"
            f"{'':24} {kinds}"
        )

    def _footprint(self) -> tuple[int, int]:
        """Of the probe: what the other end keeps, and what is still to come, goes first."""
        if self._case.service is not None:
            self._case.service.forget()
        self._network.clock.advance(100 * TIMEOUT_NS)
        return footprint()

    def _round(self, number: int) -> None:
        dice = Random(f"{self._seed} {self._case.name} {number}")
        self._network.dice = dice
        if self._case.service is not None:
            self._case.service.rng = dice
        self._told.begin(number)
        began = time.perf_counter()
        signal.alarm(HANG_SECONDS)
        try:
            self._shoot(number)
            problem = self._problem()
        except (Exception, Hung):  # noqa: BLE001  # that is what is looked for
            problem = traceback.format_exc(limit=-6)
        signal.alarm(0)
        took = time.perf_counter() - began
        if took > self.slowest_seconds:
            self.slowest_seconds, self.slowest_round = took, number
        self._network.sent.clear()
        if problem:
            self._complain(number, problem)

    def _shoot(self, number: int) -> None:
        target = Target("target", HOST, port=self._case.port)
        shot = Shot(0, number, target, ADDRESS, AddressFamily.IPV4, TIMEOUT_NS)
        self._probe.fire(shot)
        self._network.clock.advance(TIMEOUT_NS + SLACK_NS + AFTERWARDS_NS)

    def _problem(self) -> str:
        told, network = self._told, self._network
        kept = KEPT if self._case.keeps else 0
        if told.primaries != 1:
            return f"{told.primaries} primary samples"
        if told.wrong_seq:
            return "a sample of another shot"
        if told.late_ns > TIMEOUT_NS + self._case.extra_ns + SLACK_NS:
            return f"the last sample {told.late_ns / MS:.0f} ms after the shot"
        if len(network.open) > self._always_open + kept:
            return f"{len(network.open) - self._always_open} connections left open"
        if network.live_alarms() > 2 * kept:
            return f"{network.live_alarms()} alarms left"
        if not drained(self._probe):
            return "drain waits for ever"
        return ""

    def _complain(self, number: int, problem: str) -> None:
        self.faults[problem.splitlines()[-1][:100]] += 1
        if self.faults.total() <= SHOWN:
            print(f"{self._case.name} round {number}: {problem}", file=sys.stderr)
        self._probe.close()
        self._network.open.clear()
        self._network.alarms.clear()
        self._probe = self._open()

    def _end(self) -> None:
        """What was kept is given back."""
        self._probe.close()
        self._network.clock.advance(AFTERWARDS_NS)
        if self._network.open or self._network.live_alarms():
            left = f"{len(self._network.open)} connections, {self._network.live_alarms()} alarms"
            self._complain(-1, f"left after close: {left}")


def drained(probe: Probe) -> bool:
    """Whether `drain` returns at once."""
    waiting: Any = probe.drain()
    try:
        waiting.send(None)
    except StopIteration:
        return True
    finally:
        waiting.close()
    return False


def footprint() -> tuple[int, int]:
    """Resident memory in kB, and objects that the collector knows."""
    gc.collect()
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]), len(gc.get_objects())


def _hang(*_: object) -> None:
    raise Hung


async def run(names: list[str], rounds: int, seed: int, only: str, seconds: float) -> int:
    """Every case of these; how many faults there were."""
    faults = 0
    with tempfile.TemporaryDirectory() as place:
        make_certificate(Path(place))
        for case in [one for name in names for one in CASES[name](Path(place))]:
            if only and only not in case.name:
                continue
            made = Rounds(case, seed)
            print(made.run(max(1, round(rounds * case.share)), seconds * case.share), flush=True)
            faults += made.faults.total()
    return faults


def main() -> int:
    """1 where anything was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("probes", nargs="*", choices=[*CASES, []], help="all of them by default")
    parser.add_argument("--rounds", type=int, default=100_000, help="of each probe")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1e9, help="of each probe, at most")
    parser.add_argument("--case", default="", help="only cases whose names hold this")
    given = parser.parse_args()
    logging.disable(logging.CRITICAL)
    signal.signal(signal.SIGALRM, _hang)
    names = given.probes or list(CASES)
    return 1 if asyncio.run(run(names, given.rounds, given.seed, given.case, given.seconds)) else 0


if __name__ == "__main__":
    sys.exit(main())
