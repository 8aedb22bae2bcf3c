"""A whole run: spool, workers, progress, store. What `pathbudget run` and the demo call."""

import asyncio
import contextlib
import signal
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from pathbudget.agents.campaign import run_state
from pathbudget.agents.campaign.channel import Channels
from pathbudget.agents.campaign.controller import Controller, OnProgress, WorkerState
from pathbudget.agents.campaign.plan import CampaignPlan
from pathbudget.agents.campaign.run_state import RunState
from pathbudget.agents.store.parquet import Store
from pathbudget.agents.store.recovery import commit_journal
from pathbudget.probes.errors import ConfigError, HostError, PathbudgetError
from pathbudget.probes.scheduling import RealTime

SAVE_STATE_EVERY_S = 1.0


@dataclass(slots=True)
class Outcome:
    """How a run ended. `unsaved` journals are still in the spool, with why in `problems`."""

    interrupted: bool = False
    stopped_early: bool = False
    """A worker died, or its spool took no more."""
    fired: int = 0
    samples: int = 0
    failures: Counter[str] = field(default_factory=Counter[str])
    """Probes that failed, by kind of failure."""
    unresolved: dict[str, Counter[str]] = field(default_factory=dict[str, Counter[str]])
    """Those of them that were not sent because a name led nowhere: by host, then by kind."""
    measurements: int = 0
    problems: list[str] = field(default_factory=list[str])
    unsaved: list[Path] = field(default_factory=list[Path])


def execute(
    state: RunState,
    store: Store,
    on_progress: OnProgress,
    realtime: RealTime = RealTime.AUTO,
    channels: Channels | None = None,
) -> Outcome:
    """Run a plan to its end or to Ctrl-C and store what was measured.

    Raises PrivilegeError, SpoolError or StoreError when nothing could be measured; then nothing
    was sent. What goes wrong later is in `Outcome.problems`, and every journal is kept until its
    samples are in the store.
    """
    store.check_writable()
    spool = store.spool
    spool.mkdir(parents=True, exist_ok=True)
    run_state.save(spool, state)
    controller = Controller(_resumed(state), spool, on_progress, realtime, channels)
    outcome = Outcome(interrupted=asyncio.run(_run(controller, state, spool)))
    refused = [worker.failed for worker in controller.workers if worker.failed is not None]
    if refused:
        _forget(controller.workers, spool, state)
        raise _refusal(refused)
    _account(controller.workers, outcome)
    _commit(controller.workers, store, outcome)
    if not (outcome.interrupted or outcome.stopped_early):
        run_state.remove(spool, state.plan.run_id)
    else:
        run_state.save(spool, _advanced(state, controller.workers))
    return outcome


def _resumed(state: RunState) -> CampaignPlan:
    """The plan with what an earlier run has done left out."""
    vantages = tuple(
        msgspec.structs.replace(one, resume_at_ns=state.reached_ns.get(one.vantage.name, 0))
        for one in state.plan.vantages
    )
    return msgspec.structs.replace(state.plan, vantages=vantages)


async def _run(controller: Controller, state: RunState, spool: Path) -> bool:
    """True when Ctrl-C, SIGTERM or the end of the terminal (SIGHUP) ended it."""
    interrupted = False

    def stop() -> None:
        nonlocal interrupted
        interrupted = True
        controller.stop()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stop)
    saving = asyncio.create_task(_save_again_and_again(controller, state, spool))
    try:
        await controller.run()
    finally:
        saving.cancel()
        await asyncio.gather(saving, return_exceptions=True)
    return interrupted


async def _save_again_and_again(controller: Controller, state: RunState, spool: Path) -> None:
    while True:
        await asyncio.sleep(SAVE_STATE_EVERY_S)
        with contextlib.suppress(PathbudgetError):  # the next one, or the end, will say it
            run_state.save(spool, _advanced(state, controller.workers))


def _advanced(state: RunState, workers: Sequence[WorkerState]) -> RunState:
    reached = {worker.plan.vantage.name: worker.report.reached_ns for worker in workers}
    return msgspec.structs.replace(state, reached_ns=reached)


def _forget(workers: Sequence[WorkerState], spool: Path, state: RunState) -> None:
    """Nothing was sent: leave nothing behind."""
    for worker in workers:
        worker.journal.unlink(missing_ok=True)
    if not any(state.reached_ns.values()):  # a run that was to be resumed still can be
        run_state.remove(spool, state.plan.run_id)


def _refusal(refused: Sequence[PathbudgetError]) -> PathbudgetError:
    """What the first vantage said; faults of a file, and of hosts, of all vantages."""
    if any(isinstance(one, HostError) for one in refused):
        return HostError("\n".join(dict.fromkeys(str(one) for one in refused)))
    if not isinstance(refused[0], ConfigError):
        return refused[0]
    faults = [fault for one in refused if isinstance(one, ConfigError) for fault in one.faults]
    return ConfigError(list(dict.fromkeys(faults)))


def _account(workers: Sequence[WorkerState], outcome: Outcome) -> None:
    outcome.problems.extend(shared_problems(workers))
    for worker in workers:
        name = worker.plan.vantage.name
        outcome.fired += worker.report.fired
        outcome.samples += worker.report.samples
        outcome.failures.update(worker.report.failures)
        for host, kinds in worker.report.unresolved.items():
            outcome.unresolved.setdefault(host, Counter()).update(kinds)
        if worker.died:
            outcome.stopped_early = True
            outcome.problems.append(f"vantage {name}: its worker stopped early: {worker.died}")


def shared_problems(workers: Iterable[WorkerState]) -> list[str]:
    """What the workers complain of; what several say in the same words stands there once."""
    complaining: dict[str, list[str]] = {}
    for worker in workers:
        for problem in dict.fromkeys(worker.problems):
            complaining.setdefault(problem, []).append(worker.plan.vantage.name)
    return [f"{_vantages(names)}: {problem}" for problem, names in complaining.items()]


def _vantages(names: Sequence[str]) -> str:
    if len(names) == 1:
        return f"vantage {names[0]}"
    return f"vantage {names[0]} and {len(names) - 1} more"


def _commit(workers: Sequence[WorkerState], store: Store, outcome: Outcome) -> None:
    for journal in _journals(workers):
        try:
            receipt = commit_journal(journal, store)
            outcome.problems.extend(receipt.problems)
        except PathbudgetError as error:
            outcome.unsaved.append(journal)
            if str(error) not in outcome.problems:
                outcome.problems.append(str(error))
        else:
            outcome.measurements += receipt.written


def _journals(workers: Iterable[WorkerState]) -> Iterator[Path]:
    """Of each worker its own, and those of earlier ones that only now came from its host."""
    for worker in workers:
        series = worker.journal.stem.rpartition("-")[0]
        yield from sorted(worker.journal.parent.glob(f"{series}-*.jsonl"))
