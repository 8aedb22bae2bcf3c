"""`pathbudget lab`: an emulated internet on one machine, from a world file."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from pathbudget.agents.cli.exits import reports_errors
from pathbudget.agents.extras import require

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
) -> None:
    """Run a command in the lab; exit with its code.

    The command finds the lab through the variable PATHBUDGET_LAB; campaigns name its nodes as
    lab:NAME. It sees no network but the lab. Needs root, or user namespaces. When the command
    has ended, the lab says on stderr how exact it was.
    """
    from pathbudget.agents.lab.rootless import run_in_namespaces
    from pathbudget.agents.lab.world_file import load_world

    load_world(world)
    module = [sys.executable, "-m", "pathbudget.agents.lab.stage"]
    run_in_namespaces([*module, str(world), "--", *command])


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
