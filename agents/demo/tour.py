"""What the demo does, step by step: world, campaign, store, evaluation, report."""

import shutil
import time
from pathlib import Path

import typer
from rich.console import Console

from pathbudget.agents.campaign.campaign_file import Campaign, load_campaign
from pathbudget.agents.campaign.execute import Outcome, execute
from pathbudget.agents.campaign.progress import ProgressLine
from pathbudget.agents.campaign.run_state import RunState
from pathbudget.agents.demo.show import show
from pathbudget.agents.demo.worlds import lab_world, loopback_world
from pathbudget.agents.evaluation import evaluate_store
from pathbudget.agents.store.parquet import Store
from pathbudget.analysis.results import Evaluation
from pathbudget.probes.table import probe_table


def tour(folder: Path, *, lab: bool, duration_s: int, seed: int) -> bool:
    """Run the demo in `folder`; False when Ctrl-C ended the measuring."""
    console = Console(highlight=False, emoji=False)
    store = _fresh_store(folder / "demo-store")
    begun = time.monotonic()
    world = (lab_world if lab else loopback_world)(folder, duration_s=duration_s, seed=seed)
    with world as said:
        campaign = load_campaign(folder / "campaign.toml", probe_table())
        took = time.monotonic() - begun
        kind = "an emulated internet with two carriers" if lab else "the loopback world"
        console.print(f"Up in {took:.1f} s: {kind}. Measuring for {duration_s} s ...")
        outcome = _measure(folder, campaign, store)
    for line in said:
        console.print(f"The lab about itself: {line}", style="dim", markup=False)
    if outcome.interrupted or not outcome.samples:
        console.print(f"Stopped; {outcome.samples} samples are in {store.path}.", markup=False)
        return False
    evaluation = evaluate_store(store, campaign.catalogue, title="pathbudget demo")
    show(evaluation, console)
    _write_reports(folder, evaluation, console)
    return True


def _fresh_store(path: Path) -> Store:
    """The demo's own store starts empty each time: an earlier demo had another world."""
    if (path / "measurements").is_dir() or (path / "spool").is_dir():
        shutil.rmtree(path)
    return Store(path)


def _measure(folder: Path, campaign: Campaign, store: Store) -> Outcome:
    path = folder / "campaign.toml"
    state = RunState(campaign.plan, str(path.resolve()), campaign.digest, {})
    with ProgressLine(campaign.plan, shown=True) as line:
        outcome = execute(state, store, line.update)
    for problem in outcome.problems:
        typer.echo(problem, err=True)
    return outcome


def _write_reports(folder: Path, evaluation: Evaluation, console: Console) -> None:
    from pathbudget.analysis.report.html import render_html
    from pathbudget.analysis.report.json_report import render_json
    from pathbudget.analysis.report.markdown import render_markdown

    (folder / "report.html").write_text(render_html(evaluation), encoding="utf-8")
    (folder / "report.md").write_text(render_markdown(evaluation), encoding="utf-8")
    (folder / "report.json").write_bytes(render_json(evaluation))
    files = (
        f"\nReport: {folder / 'report.html'} (also report.md, report.json)\n"
        f"Files to start from: {folder / 'catalogue.toml'}, {folder / 'campaign.toml'}"
    )
    console.print(files, markup=False, soft_wrap=True)
