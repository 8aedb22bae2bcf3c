"""All commands put together; to be loaded late (see main.py)."""

import importlib
from typing import Annotated

import typer

from pathbudget.agents.cli.main import COMMANDS

application = typer.Typer(
    name="pathbudget",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _say_version(wanted: bool) -> None:
    if wanted:
        from pathbudget.agents.version import software_name

        typer.echo(software_name())
        raise typer.Exit


@application.callback()
def main(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_say_version, is_eager=True, help="Say it and exit."),
    ] = False,
) -> None:
    """Network paths in, latency-budget lines with intervals and siting recommendations out."""


for _module in COMMANDS:
    importlib.import_module(f"pathbudget.agents.cli.{_module}").register(application)
