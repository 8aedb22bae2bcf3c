"""``python -m pathbudget.agents.reflector``: the command `pathbudget reflector`, by itself."""

import typer

from pathbudget.agents.cli.reflector import reflector

typer.run(reflector)
