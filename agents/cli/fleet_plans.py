"""`pathbudget fleet push|plans`: signed plans on their way to agents."""

import asyncio
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pathbudget.agents.cli.exits import reports_errors, tell
from pathbudget.agents.cli.fleet_server import FOLDER
from pathbudget.agents.cli.plan import Format

if TYPE_CHECKING:
    from pathbudget.agents.fleet.plan_bucket import SignedPlan

PlansArgument = Annotated[
    list[Path], typer.Argument(metavar="PLAN...", help="Files of `plan sign`.")
]
LoginOption = Annotated[
    Path, typer.Option("--login", help="The operator's login, from the folder of `fleet serve`.")
]
TrustOption = Annotated[
    Path | None, typer.Option("--trust", help="Public keys: check the signatures before.")
]
FormatOption = Annotated[Format, typer.Option("--format", help="How to print it.")]
LOGIN = FOLDER / "operator.toml"


def register(group: typer.Typer) -> None:
    """Add the commands."""
    for command in (push, plans):
        group.command(name=command.__name__)(command)


@reports_errors
def push(plan: PlansArgument, login: LoginOption = LOGIN, trust: TrustOption = None) -> None:
    """Bring signed plans to their agents. All files are read before the first one goes out."""
    from pathbudget.agents.bus.login import read_login
    from pathbudget.agents.extras import require
    from pathbudget.agents.fleet.plan_bucket import push as bring
    from pathbudget.agents.fleet.plan_bucket import read_signed
    from pathbudget.agents.plans.keys import read_trusted

    require("fleet", "cryptography", "nats", "nkeys")
    keys = None if trust is None else read_trusted(trust)
    signed = [read_signed(path, keys) for path in plan]
    asyncio.run(bring(read_login(login), signed, tell))
    typer.echo(f"{len(signed)} plans are on the bus.")


@reports_errors
def plans(login: LoginOption = LOGIN, format: FormatOption = Format.TABLE) -> None:  # noqa: A002
    """List the plans that agents get."""
    from pathbudget.agents.bus.login import read_login
    from pathbudget.agents.extras import require
    from pathbudget.agents.fleet.plan_bucket import list_plans

    require("fleet", "nats", "nkeys")
    found = asyncio.run(list_plans(read_login(login), tell))
    if format is Format.JSON:
        import msgspec

        rows = [_row(agent, one) for agent, one in found.items()]
        typer.echo(msgspec.json.format(msgspec.json.encode(rows), indent=2).decode())
        return
    if not found:
        tell("No plans yet: pathbudget fleet push plans/*.plan.json")
    width = max(map(len, found), default=0)
    for agent, one in found.items():
        typer.echo(f"{agent:<{width}}  {_words(one)}")


def _words(one: "SignedPlan | None") -> str:
    if one is None:
        return "no plan: what lies there is unreadable"
    until = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(one.plan.expires_unix_ns // 10**9))
    what = f"{len(one.plan.series)} series of {one.plan.campaign or 'no name'}"
    return f"serial {one.plan.serial}, {what}, until {until}, key {one.key[:16]}"


def _row(agent: str, one: "SignedPlan | None") -> dict[str, object]:
    if one is None:
        return {"agent": agent, "readable": False}
    return {
        "agent": agent,
        "readable": True,
        "serial": one.plan.serial,
        "series": len(one.plan.series),
        "campaign": one.plan.campaign,
        "expires_unix_ns": one.plan.expires_unix_ns,
        "key": one.key,
    }
