"""One line that says how far a campaign is and how long it will take."""

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from pathbudget.agents.campaign.controller import WorkerState
from pathbudget.agents.campaign.plan import CampaignPlan


class ProgressLine:
    """A bar on a terminal; nothing where output goes to a file. Use as a context manager.

    Sends are fixed in time beforehand, so the time left is known, not guessed.
    """

    def __init__(self, plan: CampaignPlan, *, shown: bool) -> None:
        self._duration_s = plan.duration_ns / 1e9
        console = Console(stderr=True)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            TextColumn("{task.fields[state]}"),
            TimeElapsedColumn(),
            console=console,
            disable=not (shown and console.is_terminal),
            transient=True,
        )
        self._task = self._bar.add_task("starting", total=self._duration_s, state="")

    def update(self, workers: Sequence[WorkerState]) -> None:
        """Show the state of the slowest worker and the sums of all."""
        reached_s = min(worker.report.reached_ns for worker in workers) / 1e9
        fired = sum(worker.report.fired for worker in workers)
        failures = sum(sum(worker.report.failures.values()) for worker in workers)
        left = max(0.0, self._duration_s - reached_s)
        state = f"{fired} sent, {failures} failed, {_clock(left)} left"
        self._bar.update(self._task, description="measuring", completed=reached_s, state=state)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._bar.stop()


def _clock(seconds: float) -> str:
    whole = round(seconds)
    hours, rest = divmod(whole, 3600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02}" if hours else f"{rest // 60}:{rest % 60:02}"
