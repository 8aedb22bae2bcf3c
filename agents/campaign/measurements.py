"""The measurements that are open: where the samples of a running vantage go."""

import random
from collections.abc import Callable, Iterable

from pathbudget.agents.campaign.epochs import Epoch, envelope
from pathbudget.agents.campaign.plan import VantagePlan
from pathbudget.agents.campaign.progress_state import Progress
from pathbudget.agents.campaign.sink import SampleSink
from pathbudget.agents.version import software_name
from pathbudget.probes.clock import Clock
from pathbudget.probes.errors import SpoolError
from pathbudget.probes.host_watch import HostWatch
from pathbudget.probes.identifiers import new_id
from pathbudget.probes.record import (
    ClockQuality,
    FailureKind,
    Flag,
    Metric,
    NoiseFloor,
    Sample,
    Stage,
)


class OpenMeasurements:
    """Begins and ends measurements, and takes what the probes report of them.

    `on_trouble` is told why when the sink takes no more.
    """

    def __init__(
        self,
        sink: SampleSink,
        *,
        clock: Clock,
        rng: random.Random,
        host: HostWatch,
        progress: Progress,
        scheduling: str,
        on_trouble: Callable[[str], None],
    ) -> None:
        self._sink = sink
        self._clock = clock
        self._rng = rng
        self._host = host
        self._progress = progress
        self._scheduling = scheduling
        self._on_trouble = on_trouble
        self._epochs: dict[int, Epoch] = {}
        self._waited_ns = 0

    def begin(self, epoch: Epoch, plan: VantagePlan) -> None:
        """Open the measurement of an epoch."""
        now = self._clock.unix_ns()
        measurement = envelope(
            epoch,
            plan,
            identifier=new_id(now, self._rng),
            started_unix_ns=now,
            software=software_name(),
            scheduling=self._scheduling,
        )
        self._epochs[epoch.number] = epoch
        self._sink.begin(epoch.number, measurement)

    def is_open(self, epoch: Epoch) -> bool:
        """Whether it has not ended yet."""
        return epoch.number in self._epochs

    def open(self) -> Iterable[Epoch]:
        """All that are open, as of now."""
        return tuple(self._epochs.values())

    def end(self, epoch: Epoch, clock: ClockQuality, noise: NoiseFloor | None) -> None:
        """Shots that are still out are counted: nobody knows their fate, so they have no sample."""
        for _ in range(epoch.fired - epoch.answered):
            self._sink.count(epoch.number, "cut_off")
        del self._epochs[epoch.number]
        duration_ns = self._clock.monotonic_ns() - epoch.started_monotonic_ns
        self._sink.end(epoch.number, clock=clock, noise=noise, duration_ns=duration_ns)

    def emit(self, number: int, sample: Sample) -> None:
        """See `contract.ProbeEnvironment`."""
        epoch = self._epochs.get(number)
        if epoch is None:  # it has ended while the answer was under way
            return
        try:
            self._sink.append(number, sample)
        except SpoolError as error:  # called from inside the event loop: nobody above would see it
            self._on_trouble(str(error))
            return
        self._progress.samples += 1
        stamps = sample.stamps
        if stamps is not None and stamps.user_received_ns and stamps.kernel_received_ns:
            lag_ns = stamps.user_received_ns - stamps.kernel_received_ns
            # A negative lag is a stepped clock, and is not counted.
            self._host.note_receive_lag(max(0, lag_ns - self._waited_ns) if lag_ns > 0 else lag_ns)
        if sample.metric == epoch.spec.primary_metric:
            self._probe_ended(epoch, sample)

    def count(self, number: int, word: str) -> None:
        """See `contract.ProbeEnvironment`.

        Counts that belong to no series go to the first measurement that is open; those of one that
        has ended to nobody else.
        """
        if number < 0:
            number = next(iter(self._epochs), -1)
        if number in self._epochs:
            self._sink.count(number, word)

    def waited(self, ns: int) -> None:
        """See `contract.ProbeEnvironment`."""
        self._waited_ns = ns

    def _probe_ended(self, epoch: Epoch, sample: Sample) -> None:
        epoch.answered += 1
        if sample.lateness_ns is not None:
            self._host.note_send_lateness(sample.lateness_ns)
        kind = "" if sample.failure is None else str(sample.failure.kind)
        if Flag.REFUSED in sample.flags and sample.metric == Metric.CONNECT:
            kind = FailureKind.REFUSED  # a round trip, but who counts on a connection has none
        if sample.failure is not None and sample.failure.stage is Stage.RESOLVE:
            kinds = self._progress.unresolved.setdefault(epoch.plan.target.host, {})
            kinds[kind] = kinds.get(kind, 0) + 1
        if kind:
            failures = self._progress.failures
            failures[kind] = failures.get(kind, 0) + 1
