"""One line per host: how far it is, or why it is away."""

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from pathbudget.agents.campaign.controller import WorkerState
from pathbudget.agents.campaign.plan import CampaignPlan
from pathbudget.agents.ssh.host_state import Doing, HostState


class HostLines:
    """Bars on a terminal; where output goes to a file, a line for each change of what a host does.

    Use as a context manager; `say` writes such a line.
    """

    def __init__(self, plan: CampaignPlan, *, shown: bool, say: Callable[[str], None]) -> None:
        self._duration_s = plan.duration_ns / 1e9
        self._states: dict[str, HostState] = {}
        self._said: dict[str, str] = {}
        console = Console(stderr=True)
        self._live = shown and console.is_terminal
        self._say = say if shown and not console.is_terminal else None
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            TextColumn("{task.fields[state]}"),
            console=console,
            disable=not self._live,
        )
        self._tasks: dict[str, TaskID] = {
            one.vantage.name: self._bar.add_task(
                escape(one.vantage.name), total=self._duration_s, state=Doing.CONNECTING.value
            )
            for one in plan.vantages
        }

    def changed(self, state: HostState) -> None:
        """A host does something else."""
        self._states[state.vantage] = state
        note = state.note.partition("\n")[0]  # an error is told in full at the end
        line = f"{state.doing}: {note}" if note else state.doing.value
        if self._live:
            self._bar.update(self._tasks[state.vantage], state=escape(line))
        elif self._say is not None:
            word = state.doing if state.doing is Doing.BRINGING else line
            if self._said.get(state.vantage) != word:
                self._said[state.vantage] = word
                self._say(f"{state.vantage}: {word}")

    def update(self, workers: Sequence[WorkerState]) -> None:
        """What was sent, by host."""
        for worker in workers:
            name, report = worker.plan.vantage.name, worker.report
            state = self._states.get(name)
            failures = sum(report.failures.values())
            line = f"{report.fired} sent, {failures} failed"
            if state is not None and state.doing is not Doing.MEASURING:
                line += f"; {state.doing}" + (f": {state.note}" if state.note else "")
            reached_s = report.reached_ns / 1e9
            self._bar.update(self._tasks[name], completed=reached_s, state=escape(line))

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
