"""What an agent measures of itself, once a piece: a measurement like any other, in the same spool.

So it takes the same way into the same store, and months of an agent's health can be asked for
beside what it measured meanwhile (docs/agent.md). Words: `probes/agent_health.py`.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from pathbudget.agents.plans.plan import AgentPlan
from pathbudget.agents.spool.entry import SpoolState
from pathbudget.agents.version import software_name
from pathbudget.probes.agent_health import AGENT, HealthMetric
from pathbudget.probes.clock import Clock
from pathbudget.probes.host_cpu import CpuTicks, read_ticks
from pathbudget.probes.record import (
    ClockQuality,
    Failure,
    FailureKind,
    Measurement,
    NoiseFloor,
    Note,
    Sample,
    Stage,
    Target,
)

TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
MADE, ACKNOWLEDGED, DROPPED = "made", "acknowledged", "dropped_"
NOBODY = Failure(FailureKind.UNAVAILABLE, Stage.PARSE, "nobody states a bound")
_Rows = Iterator[tuple[HealthMetric, int | Failure, dict[str, Note] | None]]


class Health:
    """Call `look` every second or so, and `measured` once a piece."""

    def __init__(self, clock: Clock, new_id: Callable[[int], str], state: SpoolState) -> None:
        self._clock = clock
        self._new_id = new_id
        self._state = state
        self._began_unix_ns, self._began_ns = clock.unix_ns(), clock.monotonic_ns()
        self._ticks, self._processor_ns = read_ticks(), processor_ns()
        self._late_ns: int | None = None
        self._lag_ns: int | None = None
        self._floor_ns: int | None = None
        self._number = 0

    def look(self, noise: NoiseFloor | None) -> None:
        """Keep the worst of what this host was like in the last seconds."""
        if noise is not None:
            self._late_ns = _worse(self._late_ns, noise.send_lateness_p99_ns)
            self._lag_ns = _worse(self._lag_ns, noise.receive_lag_p99_ns)
            self._floor_ns = _worse(self._floor_ns, noise.floor_ns)

    def measured(
        self,
        plan: AgentPlan,
        state: SpoolState,
        clock: ClockQuality | None,
        noise: NoiseFloor | None,
    ) -> Measurement:
        """What was so since the last one. `clock` and `noise` are None where nothing is measured.

        Its counters are samples made, acknowledged and dropped since then; they add up over
        restarts to what the spool counts, but for what the last piece of a killed process held.
        """
        unix_ns, now_ns = self._clock.unix_ns(), self._clock.monotonic_ns()
        samples = tuple(
            Sample(
                seq=self._number,
                metric=metric,
                sent_unix_ns=unix_ns,
                value_ns=None if isinstance(value, Failure) else value,
                failure=value if isinstance(value, Failure) else None,
                notes=notes,
            )
            for metric, value, notes in self._rows(state, unix_ns, clock, noise)
        )
        whole = Measurement(
            id=self._new_id(unix_ns),
            vantage=plan.vantage,
            target=Target(plan.agent, "localhost"),
            probe=AGENT,
            started_unix_ns=self._began_unix_ns,
            samples=samples,
            campaign=plan.campaign,
            duration_ns=now_ns - self._began_ns,
            options={"run": f"{plan.agent}-{plan.serial}"},
            software=software_name(),
            clock=clock,
            noise=noise,
            counters=_counted(self._state, state),
        )
        self._began_unix_ns, self._began_ns, self._state = unix_ns, now_ns, state
        self._late_ns = self._lag_ns = self._floor_ns = None
        self._number += 1
        return whole

    def _rows(
        self,
        state: SpoolState,
        unix_ns: int,
        clock: ClockQuality | None,
        noise: NoiseFloor | None,
    ) -> _Rows:
        for metric, worst in (
            (HealthMetric.SEND_LATENESS, self._late_ns),
            (HealthMetric.RECEIVE_LAG, self._lag_ns),
            (HealthMetric.NOISE_FLOOR, self._floor_ns),
            (HealthMetric.TIMER_LATENESS, None if noise is None else noise.timer_lateness_p99_ns),
        ):
            if worst is not None:
                yield metric, worst, None
        if clock is not None:
            bound = clock.offset_bound_ns
            yield HealthMetric.CLOCK_BOUND, NOBODY if bound is None else bound, None
        before, self._ticks = self._ticks, read_ticks()
        if (stolen := _stolen_ns(before, self._ticks)) is not None:
            yield HealthMetric.STOLEN, stolen, None
        used, self._processor_ns = self._processor_ns, processor_ns()
        resident: dict[str, Note] = {"resident_bytes": resident_bytes()}
        yield HealthMetric.PROCESSOR, self._processor_ns - used, resident
        depth: dict[str, Note] = {
            "entries": state.waiting_entries,
            "bytes": state.waiting_bytes,
            "samples": state.waiting_samples,
        }
        oldest = state.oldest_unix_ns
        # a wall clock that was set back makes nothing younger than new
        yield HealthMetric.SPOOL_AGE, 0 if oldest is None else max(0, unix_ns - oldest), depth


def processor_ns() -> int:
    """Processor time of this process and of its children that have ended."""
    return round(sum(os.times()[:4]) * 1e9)


def resident_bytes() -> int:
    """Resident memory of this process; 0 where the kernel does not say."""
    try:
        return int(Path("/proc/self/statm").read_bytes().split()[1]) * _PAGE
    except (OSError, IndexError, ValueError):
        return 0


def _worse(one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return other if one is None else one
    return max(one, other)


def _stolen_ns(before: CpuTicks | None, after: CpuTicks | None) -> int | None:
    if before is None or after is None:
        return None
    return max(0, after.stolen - before.stolen) * TICK_NS


def _counted(before: SpoolState, after: SpoolState) -> dict[str, int]:
    """Samples since then; nothing where there were none, or less (torn ones that came again)."""
    now = {
        MADE: after.made_samples - before.made_samples,
        ACKNOWLEDGED: after.acknowledged_samples - before.acknowledged_samples,
        **{
            DROPPED + reason: number - before.dropped_samples.get(reason, 0)
            for reason, number in after.dropped_samples.items()
        },
    }
    return {word: number for word, number in now.items() if number > 0}
