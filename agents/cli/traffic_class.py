"""The value of an option such as ``--dscp EF``."""

import typer

from pathbudget.agents.dscp import parse_dscp


def traffic_class(text: str) -> int:
    """A DSCP by number or name. Raises typer.BadParameter."""
    try:
        return parse_dscp(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
