"""The command `pathbudget`: puts the commands of this folder together."""

import importlib

import typer

COMMANDS: tuple[str, ...] = (
    "check",
    "run",
    "demo",
    "import_results",
    "report",
    "budget",
    "catalogue",
    "store",
    "lab",
    "responder",
    "capabilities",
)
"""Modules of this folder in the order of the help; each has ``register(application)``."""

application = typer.Typer(
    name="pathbudget",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@application.callback()
def main() -> None:
    """Network paths in, latency-budget lines with intervals and siting recommendations out."""


for _module in COMMANDS:
    importlib.import_module(f"pathbudget.agents.cli.{_module}").register(application)


def run() -> None:
    """Entry point of the console script."""
    application()
