"""The command `pathbudget`: puts the commands of this folder together."""

import typer

application = typer.Typer(name="pathbudget", no_args_is_help=True, add_completion=False)


@application.callback()
def main() -> None:
    """Measure network paths; get latency-budget lines with intervals, and siting recommendations."""


def run() -> None:
    """Entry point of the console script."""
    application()
