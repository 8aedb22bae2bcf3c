"""`pathbudget status`: how the agents of a fleet are."""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pathbudget.agents.cli.exits import ExitCode, fail, reports_errors

if TYPE_CHECKING:
    from pathbudget.agents.watch.fleet_look import FleetLook

CLEAR = "\x1b[H\x1b[2J"
DEFAULT_STATE = Path("pathbudget-agent")


def register(application: typer.Typer) -> None:
    """Add the command."""
    application.command(name="status")(status)


@reports_errors
def status(
    login: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Login of an operator: ask the bus of the fleet."),
    ] = None,
    state: Annotated[
        list[Path] | None,
        typer.Option(metavar="FOLDER", help="State folder of an agent on this machine."),
    ] = None,
    store: Annotated[
        list[Path] | None,
        typer.Option(metavar="FOLDER", help="Store on this machine that a collector writes."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
    live: Annotated[bool, typer.Option("--live", help="Look again and again.")] = False,
    every: Annotated[float, typer.Option(min=0.5, max=3600, help="Seconds between looks.")] = 2.0,
) -> None:
    """How each agent is: what it does, when it was last heard, what waits, its clock, its version.

    Asks the bus with --login, else the state folders of this machine (default:
    pathbudget-agent). An agent is silent when three heartbeats are missing. Collectors of this
    machine are named by their stores.
    """
    if login is not None and state:
        raise fail("give either --login or --state", ExitCode.USAGE)
    look = _looker(login, state or ([] if store else [DEFAULT_STATE]), store or [])
    if not live:
        _print(look(), as_json=as_json)
        return
    try:
        while True:
            _print(look(), as_json=as_json, live=True)
            time.sleep(every)
    except KeyboardInterrupt:
        return


def _looker(
    login: Path | None, folders: list[Path], stores: list[Path]
) -> "Callable[[], FleetLook]":
    from pathbudget.agents.watch.fleet_look import look_at_folders, look_at_stores

    if login is None:
        return lambda: look_at_stores(look_at_folders(folders), stores)
    import asyncio

    from pathbudget.agents.extras import require

    require("fleet", "nats", "nkeys")
    from pathbudget.agents.bus.login import read_login
    from pathbudget.agents.watch.bus_look import look_at_bus

    user = read_login(login)
    return lambda: look_at_stores(asyncio.run(look_at_bus(user)), stores)


def _print(look: "FleetLook", *, as_json: bool, live: bool = False) -> None:
    from pathbudget.agents.watch.fleet_table import table

    if as_json:
        import msgspec

        sys.stdout.write(msgspec.json.encode(look).decode() + "\n")
    else:
        clear = CLEAR if live and sys.stdout.isatty() else ""
        sys.stdout.write(clear + table(look))
    sys.stdout.flush()
    if not look.agents and not look.collectors and not live:
        raise fail("no agent has ever been heard", ExitCode.NOTHING_MEASURED)
