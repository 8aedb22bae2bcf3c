"""`pathbudget fleet`: the server's side of agents that run for months."""

import importlib
import importlib.util

import typer

MODULES: tuple[str, ...] = (
    "fleet_server",
    "fleet_members",
    "fleet_plans",
    "fleet_probe",
    "fleet_hosts",
)
"""Modules of this folder in the order of the help; each has ``register(group)``."""


def register(application: typer.Typer) -> None:
    """Add the group."""
    group = typer.Typer(help="Agents for months: server, members, plans, hosts.")
    for name in MODULES:
        module = f"pathbudget.agents.cli.{name}"
        if importlib.util.find_spec(module) is not None:
            importlib.import_module(module).register(group)
    application.add_typer(group, name="fleet", no_args_is_help=True)
