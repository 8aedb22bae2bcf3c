"""`pathbudget lab`: an emulated internet on one machine, from a world file."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from pathbudget.agents.cli.exits import reports_errors
from pathbudget.agents.extras import require
from pathbudget.probes.errors import ConfigError, Fault
from pathbudget.sites.entry import did_you_mean
from pathbudget.sites.entry import show as shown

group = typer.Typer(name="lab", help="An emulated internet on one machine.", no_args_is_help=True)
WorldFile = Annotated[Path, typer.Argument(help="The world file (TOML).", show_default=False)]


def register(application: typer.Typer) -> None:
    """Add the commands to `application`."""
    application.add_typer(group)


@group.command("run", context_settings={"ignore_unknown_options": True})
@reports_errors
def run(
    world: WorldFile,
    command: Annotated[
        list[str], typer.Argument(help="What to run in the lab, after --.", show_default=False)
    ],
    at: Annotated[
        str | None,
        typer.Option("--at", metavar="NODE", help="Run it there: the node's network is its own."),
    ] = None,
    ledger: Annotated[
        Path | None,
        typer.Option(help="Write when each event really happened, as JSON.", show_default=False),
    ] = None,
    week: Annotated[
        int | None,
        typer.Option(
            metavar="SEED",
            min=0,
            help="Random events by this seed instead of those of the world file.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Run a command in the lab; exit with its code.

    With --at NODE the command sends and receives as that node, as in --at tokyo -- pathbudget
    ping frankfurt.lab: NODE.lab is the name of every node. Without it the command has no
    network of its own but loopback; it is for campaigns, which name nodes as lab:NODE. Needs
    root, or user namespaces. Events of the world file happen while it runs. When the command
    has ended, the lab says on stderr how exact it was.
    """
    from pathbudget.agents.lab.rootless import run_in_namespaces
    from pathbudget.agents.lab.world_file import load_world

    nodes = load_world(world).nodes
    if ledger is not None:
        try:
            ledger.touch()
        except OSError as error:
            raise ConfigError(
                [
                    Fault(
                        "command line", "--ledger", f"{ledger}: {error.strerror}", "a file to write"
                    )
                ]
            ) from None
    if at is not None and at not in nodes:
        raise ConfigError(
            [Fault("command line", "--at", f"{shown(at)} is no node", did_you_mean(at, nodes))]
        )
    module = [sys.executable, "-m", "pathbudget.agents.lab.stage"]
    options = [at or "", str(ledger or ""), "" if week is None else str(week)]
    run_in_namespaces([*module, str(world), *options, "--", *command])


@group.command("check")
@reports_errors
def check(world: WorldFile) -> None:
    """Look for faults in a world file; print what is in it."""
    from pathbudget.agents.lab.tables import node_table
    from pathbudget.agents.lab.world_file import load_world

    typer.echo(node_table(load_world(world)))


@group.command("show")
@reports_errors
def show(world: WorldFile) -> None:
    """Print what the world file implies for every region and site."""
    require("analysis", "numpy")
    from pathbudget.agents.lab.tables import truth_table
    from pathbudget.agents.lab.world_file import load_world

    typer.echo(truth_table(load_world(world)))
