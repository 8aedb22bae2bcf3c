"""The command `pathbudget`: puts the commands of this folder together."""

import contextlib
import importlib
import os
import sys
from typing import Annotated

import typer

COMMANDS: tuple[str, ...] = (
    "check",
    "ping",
    "run",
    "demo",
    "import_results",
    "report",
    "budget",
    "catalogue",
    "store",
    "lab",
    "reflector",
    "responder",
    "doctor",
    "capabilities",
)
"""Modules of this folder in the order of the help; each has ``register(application)``."""

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


def run() -> None:
    """Entry point of the console script."""
    _open_what_is_closed()
    application()


def _open_what_is_closed() -> None:
    """Give every standard stream that the caller closed (``>&-``) a place that takes all.

    Otherwise the next file that is opened, a journal perhaps, becomes standard output.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            with contextlib.suppress(OSError):
                os.fstat(number)
                continue
            os.open(os.devnull, os.O_RDWR)  # the kernel hands out the lowest free number
            file = open(number, mode, encoding="utf-8", closefd=False)  # noqa: SIM115
            setattr(sys, name, file)
