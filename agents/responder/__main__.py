"""``python -m pathbudget.agents.responder``: the command `pathbudget responder`, by itself."""

import typer

from pathbudget.agents.cli.responder import responder

typer.run(responder)
