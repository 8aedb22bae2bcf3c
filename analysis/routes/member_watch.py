"""Both ways in which one of parallel links can be sick, watched on one path."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field

from pathbudget.analysis.routes.delay_watch import DelayWatch
from pathbudget.analysis.routes.model import MemberFinding, PathSeries, Window
from pathbudget.analysis.routes.sweep_watch import SweepWatch
from pathbudget.probes.record import NoiseFloor, Sample


@dataclass(slots=True)
class MemberWatch:
    """One path. Samples in about the order of their sending."""

    series: PathSeries
    losses: SweepWatch = field(init=False)
    delays: DelayWatch = field(init=False)

    def __post_init__(self) -> None:
        self.losses, self.delays = SweepWatch(self.series), DelayWatch(self.series)

    def on_host(self, noise: NoiseFloor | None) -> None:
        """Differences below the noise floor of the host are none; the worst one counts."""
        if noise is not None:
            self.delays.floor_ns = max(self.delays.floor_ns, noise.floor_ns)

    def see(self, sample: Sample) -> list[MemberFinding]:
        """Take a sample; what was found with it."""
        return [*self.losses.see(sample), *self.delays.see(sample)]

    def finish(self) -> list[MemberFinding]:
        """Judge what there is. A sweep that is not complete says nothing of round trips."""
        return self.losses.finish()

    def forget(self, gone: Container[object]) -> None:
        """Drop illnesses that are over, of which these were findings."""
        self.losses.illnesses.forget(gone)
        self.delays.illnesses.forget(gone)

    @property
    def findings(self) -> list[MemberFinding]:
        """All that are remembered."""
        return [*self.losses.findings, *self.delays.findings]

    @property
    def clean(self) -> Mapping[str, Sequence[Window]]:
        """When the flows of a finding were well again, by what they had suffered from."""
        return {"loss": self.losses.clean, "rtt": self.delays.clean}
