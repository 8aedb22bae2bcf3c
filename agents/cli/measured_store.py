"""The folder that a command reads measurements from, and what is said where there are none."""

from pathlib import Path

import typer

from pathbudget.agents.cli.exits import ExitCode, fail


def need_store(folder: Path) -> None:
    """Exit with a message where there is no folder."""
    if not folder.is_dir():
        message = f"{folder}: there is no store; measure first (pathbudget run) or name another."
        raise fail(message, ExitCode.NOTHING_MEASURED)


def no_sample(folder: Path, campaign: str | None) -> typer.Exit:
    """What is to be raised of a store without a sample, or without one of a campaign."""
    what = "no sample" if campaign is None else f"no sample of a campaign {campaign!r}"
    return fail(f"{folder}: the store holds {what}.", ExitCode.NOTHING_MEASURED)
