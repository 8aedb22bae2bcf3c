"""`pathbudget run CAMPAIGN`: measure what a campaign file says."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pathbudget.agents.cli.exits import ExitCode, fail, reports_errors, tell
from pathbudget.probes.record import FailureKind
from pathbudget.probes.scheduling import RealTime

if TYPE_CHECKING:
    from pathbudget.agents.campaign.campaign_file import Campaign
    from pathbudget.agents.campaign.execute import Outcome
    from pathbudget.agents.campaign.run_state import RunState
    from pathbudget.agents.store.parquet import Store

CampaignArgument = Annotated[Path, typer.Argument(metavar="CAMPAIGN", help="The campaign file.")]
StoreOption = Annotated[Path, typer.Option("--store", help="Folder to keep measurements in.")]
ExplainOption = Annotated[
    bool, typer.Option("--explain", help="Print the plan (packets, bytes, time); send nothing.")
]
ResumeOption = Annotated[
    bool, typer.Option("--resume", help="Go on with the interrupted run of this campaign.")
]
SeedOption = Annotated[
    int | None,
    typer.Option("--seed", help="Seed of the send times; overrides the file.", min=0, max=2**53),
]
RealTimeOption = Annotated[
    RealTime,
    typer.Option("--realtime", help="SCHED_FIFO, so that sends are on time on a busy host."),
]
HostsOption = Annotated[
    Path | None, typer.Option("--hosts", help="Measure from these hosts, over SSH (TOML).")
]
RemoveOption = Annotated[
    bool, typer.Option("--remove-bundle", help="Leave nothing on the hosts; with --hosts.")
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar, no summary.")]


def register(application: typer.Typer) -> None:
    """Add the command."""
    application.command(name="run")(run)


@reports_errors
def run(
    campaign: CampaignArgument,
    store: StoreOption = Path("pathbudget-store"),
    explain: ExplainOption = False,
    resume: ResumeOption = False,
    seed: SeedOption = None,
    realtime: RealTimeOption = RealTime.AUTO,
    hosts: HostsOption = None,
    remove_bundle: RemoveOption = False,
    quiet: QuietOption = False,
) -> None:
    """Measure what a campaign file says and keep it in a store.

    Ctrl-C stops within a second, keeps what was measured and says how to go on.
    """
    from pathbudget.agents.campaign.campaign_file import load_campaign
    from pathbudget.probes.table import probe_table

    table = probe_table()
    loaded = load_campaign(campaign, table, seed=seed)
    if explain:
        from rich.console import Console

        from pathbudget.agents.campaign import explain as words

        words.explain(loaded.plan, table, Console(markup=False, emoji=False))
        return
    wish = _Wish(campaign, store, hosts, realtime, resume, remove_bundle, quiet)
    _measure(wish, loaded)


@dataclass(frozen=True, slots=True)
class _Wish:
    """What the command line asks for."""

    path: Path
    folder: Path
    hosts: Path | None
    realtime: RealTime
    resume: bool
    remove_bundle: bool
    quiet: bool


def _measure(wish: _Wish, loaded: "Campaign") -> None:
    from pathbudget.agents.campaign.run_state import RunState
    from pathbudget.agents.extras import require

    require("store", "pyarrow")
    from pathbudget.agents.store.parquet import Store

    store = Store(wish.folder)
    state = _unfinished(wish.path, loaded, store) if wish.resume else None
    if state is None:
        hosts = "" if wish.hosts is None else str(wish.hosts.resolve())
        state = RunState(loaded.plan, str(wish.path.resolve()), loaded.digest, {}, hosts)
    if state.hosts:
        from pathbudget.agents.ssh.execute import execute_on_hosts

        outcome = execute_on_hosts(
            state,
            wish.hosts or Path(state.hosts),
            store,
            tell,
            realtime=wish.realtime,
            remove_bundle=wish.remove_bundle,
            shown=not wish.quiet,
        )
    else:
        outcome = _execute_here(state, store, wish)
    _tell(wish.path, wish.folder, outcome, quiet=wish.quiet)


def _execute_here(state: "RunState", store: "Store", wish: _Wish) -> "Outcome":
    from pathbudget.agents.campaign.execute import execute
    from pathbudget.agents.campaign.progress import ProgressLine

    if wish.remove_bundle or wish.hosts is not None:
        message = "--hosts goes with a run that was begun with it, --remove-bundle with --hosts"
        raise fail(message, ExitCode.USAGE)
    with ProgressLine(state.plan, shown=not wish.quiet) as line:
        return execute(state, store, line.update, wish.realtime)


def _unfinished(path: Path, loaded: "Campaign", store: "Store") -> "RunState":
    """The run to go on with, after what it left in the spool has been stored."""
    from pathbudget.agents.campaign.run_state import unfinished
    from pathbudget.agents.store.recovery import recover

    state = unfinished(store.spool, path)
    if state is None:
        message = f"{path}: no interrupted run of this campaign in {store.path}; nothing was sent."
        raise fail(message, ExitCode.USAGE)
    if state.digest != loaded.digest:
        message = (
            f"{path}: the campaign file or its catalogue has changed since it was interrupted.\n"
            "Undo the change to resume, or run without --resume to start anew; nothing was sent."
        )
        raise fail(message, ExitCode.USAGE)
    _, left_alone = recover(store)
    if left_alone:
        raise fail("\n".join(left_alone), ExitCode.TROUBLE)
    return state


def _tell(path: Path, folder: Path, outcome: "Outcome", *, quiet: bool) -> None:
    for problem in outcome.problems:
        tell(problem)
    if not quiet or outcome.problems or outcome.interrupted:
        tell(_summary(outcome, folder))
    again = ["pathbudget", "run", str(path), "--resume"]
    if str(folder) != "pathbudget-store":
        again[3:3] = ["--store", str(folder)]
    if outcome.interrupted:
        tell(f"Interrupted. To go on: {shlex.join(again)}")
        raise typer.Exit(int(ExitCode.INTERRUPTED))
    if outcome.stopped_early:
        tell(f"For what is missing: {shlex.join(again)}")
    if outcome.unsaved or outcome.stopped_early:
        raise typer.Exit(int(ExitCode.TROUBLE))
    if outcome.fired and outcome.failures.total() == outcome.fired:
        raise fail("Not one probe succeeded.", ExitCode.NOTHING_MEASURED)


def _summary(outcome: "Outcome", folder: Path) -> str:
    """What was sent, what failed and why, what was not sent, where it is."""
    from collections import Counter

    from pathbudget.agents.campaign.unresolved import not_sent

    nowhere = sum(outcome.unresolved.values(), Counter[str]())
    failed = outcome.failures - nowhere
    forbidden = failed.pop(FailureKind.PERMISSION, 0)
    sent = outcome.fired - forbidden - nowhere.total()
    lines = [f"{sent} probes sent, {failed.total()} failed"]
    if failed:
        kinds = failed.most_common()
        lines[0] += ": " + ", ".join(f"{kind.replace('_', ' ')} {count}" for kind, count in kinds)
    if forbidden:
        lines.append(f"{forbidden} not sent: not permitted (pathbudget capabilities says more)")
    lines += not_sent(outcome.unresolved)
    lines.append(f"{outcome.samples} samples in {outcome.measurements} measurements, in {folder}")
    return "\n".join(lines)
