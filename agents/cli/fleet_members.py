"""`pathbudget fleet invite|enrol|revoke|agents`: who belongs to a fleet."""

import time
from pathlib import Path
from typing import Annotated

import typer

from pathbudget.agents.cli.duration_option import duration_within
from pathbudget.agents.cli.exits import ExitCode, fail, reports_errors, tell
from pathbudget.agents.cli.fleet_server import FOLDER
from pathbudget.agents.cli.plan import Format

SHORTEST_NS, LONGEST_NS = 1_000_000, 30 * 86_400_000_000_000
AgentArgument = Annotated[str, typer.Argument(metavar="AGENT", help="Its name.")]
TicketArgument = Annotated[Path, typer.Argument(metavar="INVITATION", help="A file of `invite`.")]
FolderOption = Annotated[Path, typer.Option("--folder", help="Folder of `fleet serve`.")]
InvitationOption = Annotated[
    Path | None, typer.Option("--out", help="Default: AGENT.invitation.toml.")
]
TrustOption = Annotated[
    Path | None,
    typer.Option("--trust", help="Public keys of operators; default: those of the last time."),
]
LifetimeOption = Annotated[str, typer.Option("--expires-in", help="Up to 30d.")]
AgainOption = Annotated[
    bool, typer.Option("--again", help="Its host was replaced: let another key follow.")
]
PurgeOption = Annotated[
    bool, typer.Option("--purge", help="Drop its plan, heartbeat, and results that wait, too.")
]
LoginOption = Annotated[Path, typer.Option("--out", help="Login file to make.")]
FormatOption = Annotated[Format, typer.Option("--format", help="How to print it.")]


def register(group: typer.Typer) -> None:
    """Add the commands."""
    for command in (invite, enrol, revoke, agents):
        group.command(name=command.__name__)(command)


@reports_errors
def invite(
    agent: AgentArgument,
    folder: FolderOption = FOLDER,
    out: InvitationOption = None,
    trust: TrustOption = None,
    expires_in: LifetimeOption = "24h",
    again: AgainOption = False,
) -> None:
    """Make an invitation: a secret file that lets one host become the agent of this name, once."""
    from pathbudget.agents.bus.subjects import is_agent_name
    from pathbudget.agents.extras import require
    from pathbudget.agents.fleet.folder import Folder
    from pathbudget.agents.fleet.invitation import SUFFIX, write_ticket
    from pathbudget.agents.fleet.invitation import invite as make
    from pathbudget.agents.plans.plan import NAME_RULE

    require("fleet", "cryptography", "nkeys")
    fleet = Folder(folder)
    path = out or Path(f"{agent}{SUFFIX}")
    if out is None and not is_agent_name(agent):
        raise fail(f"{agent[:80]!r} cannot be the name of an agent; {NAME_RULE}", ExitCode.USAGE)
    if path.exists():
        raise fail(f"{path} is there already: remove it, or name another --out", ExitCode.USAGE)
    lifetime = duration_within(expires_in, "--expires-in", SHORTEST_NS, LONGEST_NS)
    fleet.settings()
    if trust is not None:
        fleet.trust(trust)
    ticket = make(fleet, agent, lifetime, again=again)
    write_ticket(path, ticket)
    until = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(ticket.expires_unix_ns // 10**9))
    typer.echo(f"{path}  for {agent}, once, until {until}")


@reports_errors
def enrol(invitation: TicketArgument, out: LoginOption = Path("login.toml")) -> None:
    """Make this host the agent of an invitation. Its key is made here and never leaves."""
    from pathbudget.agents.extras import require
    from pathbudget.agents.fleet.enrolment import enrol as become
    from pathbudget.agents.fleet.invitation import read_ticket

    require("fleet", "nats", "nkeys")
    ticket = read_ticket(invitation)
    become(ticket, out, tell)
    typer.echo(f"{out}  agent {ticket.agent}; start it with: pathbudget agent --login {out}")


@reports_errors
def revoke(agent: AgentArgument, folder: FolderOption = FOLDER, purge: PurgeOption = False) -> None:
    """Cut an agent off at once, and for good. Its name may be invited again, its key may not."""
    from pathbudget.agents.fleet.folder import Folder
    from pathbudget.agents.fleet.reload import running_pid

    fleet = Folder(folder)
    fleet.change(lambda registry: registry.revoked(agent, time.time_ns()))
    typer.echo(f"{agent} is revoked.")
    if fleet.settings().nodes:
        tell(f"Each server of the cluster needs {fleet.users} now, and a reload.")
    elif running_pid(fleet.nats) is None:
        tell("The server does not run; it will not let it in when it does.")
    if purge:
        import asyncio

        from pathbudget.agents.bus.subjects import OPERATOR
        from pathbudget.agents.fleet.forgetting import forget

        results = asyncio.run(forget(fleet.login(OPERATOR), agent, tell))
        typer.echo(f"{results} results of it that no collector had taken are dropped.")


@reports_errors
def agents(folder: FolderOption = FOLDER, format: FormatOption = Format.TABLE) -> None:  # noqa: A002
    """List the agents of a fleet: enrolled, invited, revoked."""
    from pathbudget.agents.fleet.folder import Folder

    fleet, now = Folder(folder), time.time_ns()
    fleet.settings()
    members = sorted(fleet.registry().members.values(), key=lambda one: one.name)
    if format is Format.JSON:
        import msgspec

        rows = [
            {
                "agent": one.name,
                "state": one.state(now),
                "key": one.key,
                "enrolled_unix_ns": one.enrolled_unix_ns,
                "revoked_unix_ns": one.revoked_unix_ns,
            }
            for one in members
        ]
        typer.echo(msgspec.json.format(msgspec.json.encode(rows), indent=2).decode())
        return
    if not members:
        tell("No agents yet: pathbudget fleet invite AGENT")
    width = max((len(one.name) for one in members), default=0)
    for one in members:
        when = one.enrolled_unix_ns or one.revoked_unix_ns
        day = "" if when is None else time.strftime("%Y-%m-%d", time.gmtime(when // 10**9))
        typer.echo(f"{one.name:<{width}}  {one.state(now):<28}  {day:<10}  {one.key}".rstrip())
