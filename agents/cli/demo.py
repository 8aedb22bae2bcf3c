"""`pathbudget demo`: the whole line on an emulated internet, in about a minute."""

import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from pathbudget.agents.cli.exits import ExitCode, fail, reports_errors


class WorldChoice(StrEnum):
    """Which world the demo measures."""

    AUTO = "auto"
    LAB = "lab"
    LOOPBACK = "loopback"


OutputOption = Annotated[Path, typer.Option("--output", help="Folder for store, files and report.")]
DurationOption = Annotated[
    int, typer.Option("--duration", help="Seconds to measure.", min=1, max=3600)
]
SeedOption = Annotated[int, typer.Option("--seed", help="Seed of the world and the send times.")]
WorldOption = Annotated[
    WorldChoice,
    typer.Option("--world", help="lab: emulated internet; loopback: no privileges needed."),
]


def register(application: typer.Typer) -> None:
    """Add the command."""
    application.command(name="demo")(demo)


@reports_errors
def demo(
    output: OutputOption = Path("demo-output"),
    duration: DurationOption = 48,
    seed: SeedOption = 1,
    world: WorldOption = WorldChoice.AUTO,
) -> None:
    """Measure six regions against four sites for three tiers; print budgets, sites, report."""
    chosen = _choose(world)
    output.mkdir(parents=True, exist_ok=True)
    if chosen is WorldChoice.LAB and os.geteuid() != 0:
        from pathbudget.agents.lab.rootless import reexec_in_user_namespace

        reexec_in_user_namespace(sys.orig_argv[1:])  # also right after python -c and -m
    from pathbudget.agents.demo.tour import tour

    if not tour(output, lab=chosen is WorldChoice.LAB, duration_s=duration, seed=seed):
        raise typer.Exit(int(ExitCode.INTERRUPTED))


def _choose(world: WorldChoice) -> WorldChoice:
    """The lab where it can be; else say what is missing, and take loopback."""
    if world is WorldChoice.LOOPBACK:
        return world
    from pathbudget.agents.lab.capability import why_not

    reason = why_not()
    if reason is None:
        return WorldChoice.LAB
    if world is WorldChoice.LAB:
        raise fail(f"The lab cannot start here: {reason}", ExitCode.NOT_PERMITTED)
    typer.echo(
        f"The lab cannot start here: {reason}\n"
        "Going on with the loopback world: the same TCP and TLS probes against responders on\n"
        "this machine that delay their answers in user space; ICMP and path probes are left out.",
        err=True,
    )
    return WorldChoice.LOOPBACK
