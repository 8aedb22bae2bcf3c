"""`pathbudget budget`: what a budget is made of, whether it holds, and the gate of a pipeline.

``pathbudget budget STORE`` is older than its sub-commands and means ``lines``.
"""

import difflib
import importlib
import importlib.util
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

DEFAULT = "lines"
HELP = "--help"
FOLDER = "pathbudget.agents.cli"
COMMANDS = (
    ("budget_lines", "register_lines"),
    ("budget_check", "register_check"),
    ("budget_whole", "register_whole"),
    ("budget_what_if", "register_what_if"),
)
"""Module of this folder and its function ``register_x(group)``, in the order of the help."""


class LinesUnlessNamed(TyperGroup):
    """A group in which anything but the name of a command is for `default`."""

    default = DEFAULT

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the name of the default command before its arguments, where it was left out."""
        first = args[0] if args else ""
        if first != HELP and first not in self.commands:
            self._refuse_misspelt(ctx, first)
            args = [self.default, *args]
        return super().parse_args(ctx, args)

    def _refuse_misspelt(self, ctx: Any, word: str) -> None:
        """A word that is almost a command, and no folder, is no store either."""
        near = difflib.get_close_matches(word, self.commands, n=1, cutoff=0.7)
        if near and not Path(word).exists():
            ctx.fail(f"No such command or store {word!r}. Did you mean {near[0]!r}?")


def register(application: typer.Typer) -> None:
    """Add the group of commands."""
    group = typer.Typer(
        cls=LinesUnlessNamed,
        help="Budget lines, whole budgets, what-ifs, and the gate of a pipeline.",
        epilog="pathbudget budget STORE is pathbudget budget lines STORE.",
    )
    for module, function in COMMANDS:
        if importlib.util.find_spec(f"{FOLDER}.{module}") is not None:
            getattr(importlib.import_module(f"{FOLDER}.{module}"), function)(group)
    application.add_typer(group, name="budget")
