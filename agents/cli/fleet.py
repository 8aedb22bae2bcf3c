"""`pathbudget fleet`: the server's side of agents that run for months."""

import importlib

import typer

MODULES: tuple[str, ...] = ("fleet_server", "fleet_members", "fleet_plans")
"""Modules of this folder in the order of the help; each has ``register(group)``."""


def register(application: typer.Typer) -> None:
    """Add the group."""
    group = typer.Typer(help="Agents for months: server, members, plans, hosts.")
    for name in MODULES:
        importlib.import_module(f"pathbudget.agents.cli.{name}").register(group)
    application.add_typer(group, name="fleet", no_args_is_help=True)
