"""From the schedule to the probes: everything that is due, when it is due, in few calls.

A backlog (the host stalled, was stopped or could not keep up) is sent in full and its lateness
recorded, but no faster than the packet limit: a second's worth at once, the rest at its rate. A
host that was suspended has none, because the monotonic clock stood still; the wall clock then makes
a step, which the measurement says.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence

from pathbudget.agents.campaign.epochs import Epoch
from pathbudget.agents.campaign.keeping_up import KeepingUp
from pathbudget.agents.campaign.limits import PacketAllowance
from pathbudget.agents.campaign.measurements import OpenMeasurements
from pathbudget.agents.campaign.merging import Shot as DueShot
from pathbudget.agents.campaign.plan import VantagePlan, due_shots
from pathbudget.agents.campaign.progress_state import Progress
from pathbudget.probes.channels import Cancellable
from pathbudget.probes.clock import Clock
from pathbudget.probes.contract import BatchProbe, Probe, Shot
from pathbudget.probes.network import Network
from pathbudget.probes.record import AddressFamily, Failure, FailureKind, Sample, Stage

Due = Sequence[tuple[int, DueShot]]


class Firing:
    """One run through the schedule of a vantage. `current` is the epoch of each series, by index;
    `forbidden` says of a probe that may not be opened why.
    """

    def __init__(
        self,
        plan: VantagePlan,
        *,
        network: Network,
        clock: Clock,
        current: Sequence[Epoch],
        probes: Mapping[str, Probe],
        forbidden: Mapping[str, str],
        measurements: OpenMeasurements,
        progress: Progress,
        keeping_up: KeepingUp,
    ) -> None:
        self._plan = plan
        self._network = network
        self._clock = clock
        self._current = current
        self._probes = probes
        self._batching = {name: one for name, one in probes.items() if isinstance(one, BatchProbe)}
        self._forbidden = forbidden
        self._measurements = measurements
        self._progress = progress
        self._keeping_up = keeping_up
        self._start_ns = 0
        self._pacing: Cancellable | None = None
        self._over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def run(self, start_monotonic_ns: int) -> None:
        """Return when everything has been sent, or `stop` was called."""
        if self._over.done():
            return
        self._start_ns = start_monotonic_ns - self._plan.resume_at_ns
        self._pacing = self._network.pace(self._due(), self._fire, self._finished)
        try:
            await self._over
        finally:
            self._pacing.cancel()

    def stop(self) -> None:
        """Send nothing more."""
        if self._pacing is not None:
            self._pacing.cancel()
        self._end(None)

    def _end(self, error: Exception | None) -> None:
        if self._over.done():
            return
        if error is None:
            self._over.set_result(None)
        else:
            self._over.set_exception(error)

    def _finished(self) -> None:
        if not self._over.done() and self._plan.duration_ns is not None:
            self._progress.reached_ns = self._plan.duration_ns
        self._end(None)

    def _due(self) -> Iterator[tuple[int, DueShot]]:
        """Every shot with the time from which it may leave: its due time, later in a backlog."""
        try:
            yield from self._released()
        except Exception as error:  # noqa: BLE001 - whoever waits for the end is told
            self._end(error)

    def _released(self) -> Iterator[tuple[int, DueShot]]:
        now_ns, start_ns, current = self._clock.monotonic_ns, self._start_ns, self._current
        allowance = PacketAllowance(self._plan.packets_per_second, now_ns())
        released_ns = before_ns = 0
        for shot in due_shots(self._plan):
            due_ns = start_ns + shot[0]
            at_ns = max(due_ns, now_ns())
            wait_ns = allowance.wait_ns(current[shot[1]].packets, at_ns)
            if due_ns != before_ns:  # what belongs together in time leaves together
                released_ns = max(released_ns, at_ns + wait_ns if wait_ns else due_ns)
                before_ns = due_ns
            yield released_ns, shot

    def _fire(self, due: Due) -> None:
        try:
            self._send(due)
        except Exception as error:  # noqa: BLE001 - whoever waits for the end is told
            self.stop_with(error)

    def stop_with(self, error: Exception) -> None:
        """Send nothing more; `run` raises `error`."""
        self._end(error)
        self.stop()

    def _send(self, due: Due) -> None:
        """One reading of the clock for all: each probe reads it again as it sends."""
        now_ns, start_ns = self._clock.monotonic_ns(), self._start_ns
        self._keeping_up.note(len(due), now_ns - due[len(due) // 2][0])
        current, batching, behind = self._current, self._batching, self._keeping_up.behind
        batches: dict[str, list[Shot]] = {}
        singles: list[tuple[Epoch, int, int]] = []
        octets = 0
        for _, (offset_ns, series, seq) in due:
            epoch = current[series]
            epoch.fired += 1
            if epoch.family is not None:
                octets += epoch.octets
            if behind:
                self._measurements.count(epoch.number, "host_busy")
            name, due_ns = epoch.plan.probe, start_ns + offset_ns
            if name not in batching or epoch.family is None:
                singles.append((epoch, seq, due_ns))
            elif name in batches:
                batches[name].append(_shot(epoch, epoch.family, seq, due_ns, now_ns))
            else:
                batches[name] = [_shot(epoch, epoch.family, seq, due_ns, now_ns)]
        for name, shots in batches.items():
            batching[name].fire_all(shots)
        for epoch, seq, due_ns in singles:
            self._send_one(epoch, seq, due_ns)
        self._progress.fired += len(due)
        self._progress.octets += octets
        self._progress.reached_ns = due[-1][1][0] + 1

    def _send_one(self, epoch: Epoch, seq: int, due_ns: int) -> None:
        probe = self._probes.get(epoch.plan.probe)
        now_ns = self._clock.monotonic_ns()
        if probe is None or epoch.family is None:
            self._emit_unsent(epoch, seq, max(0, now_ns - due_ns))
        else:
            probe.fire(_shot(epoch, epoch.family, seq, due_ns, now_ns))

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
        self._measurements.emit(epoch.number, sample)


def _shot(epoch: Epoch, family: AddressFamily, seq: int, due_ns: int, now_ns: int) -> Shot:
    plan, late_ns = epoch.plan, now_ns - due_ns
    return Shot(  # by place: naming the fields costs as much again
        epoch.number,
        seq,
        plan.target,
        epoch.address,
        family,
        plan.timeout_ns,
        max(0, late_ns),
        epoch.resolves,
        due_ns,
    )
