"""``python -m pathbudget.agents.telemetry``: `pathbudget telemetry receive`, by itself."""

import typer

from pathbudget.agents.cli.telemetry import receive

typer.run(receive)
