"""`pathbudget fleet install|upgrade|remove|status`: the agent as a service on hosts, over SSH."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pathbudget.agents.cli.exits import ExitCode, fail, reports_errors, tell
from pathbudget.agents.cli.plan import Format

if TYPE_CHECKING:
    from pathbudget.agents.ssh.services import Do, ServiceState

HostsOption = Annotated[Path, typer.Option("--hosts", help="The hosts file.")]
OnlyOption = Annotated[
    list[str] | None, typer.Option("--only", help="Only the host of this agent; repeatable.")
]
LoginsOption = Annotated[
    Path, typer.Option("--logins", help="Folder with a login file AGENT.toml for each.")
]
PolicyOption = Annotated[
    Path | None, typer.Option("--policy", help="Policy file that all of them get.")
]
RealTimeOption = Annotated[
    bool, typer.Option("--realtime", help="Let it take SCHED_FIFO; costs CAP_SYS_NICE.")
]
RootOption = Annotated[
    str, typer.Option("--root", help="A folder of the hosts in place of /; starts nothing.")
]
PurgeOption = Annotated[
    bool, typer.Option("--purge", help="Also what was measured and not yet delivered.")
]
FormatOption = Annotated[Format, typer.Option("--format", help="How to print it.")]


def register(group: typer.Typer) -> None:
    """Add the commands."""
    for command in (install, upgrade, remove, status):
        group.command(name=command.__name__)(command)


@reports_errors
def install(
    hosts: HostsOption,
    logins: LoginsOption,
    only: OnlyOption = None,
    policy: PolicyOption = None,
    realtime: RealTimeOption = False,
    root: RootOption = "",
) -> None:
    """Set the agent up as a service of systemd on each host, and start it.

    An unprivileged user, CAP_NET_RAW alone, the bundle in /opt/pathbudget, the login file with
    mode 600. Nothing updates itself. Doing it again does no harm.
    """
    from pathbudget.agents.ssh.services import Do

    _work(Do.INSTALL, hosts, only, logins=logins, policy=policy, realtime=realtime, root=root)


@reports_errors
def upgrade(
    hosts: HostsOption,
    only: OnlyOption = None,
    policy: PolicyOption = None,
    realtime: RealTimeOption = False,
    root: RootOption = "",
) -> None:
    """Bring this version to hosts that have an agent, and restart it. Logins stay."""
    from pathbudget.agents.ssh.services import Do

    _work(Do.INSTALL, hosts, only, policy=policy, realtime=realtime, root=root)


@reports_errors
def remove(
    hosts: HostsOption, only: OnlyOption = None, purge: PurgeOption = False, root: RootOption = ""
) -> None:
    """Stop the agent and take it off the hosts; what it has not delivered stays without --purge."""
    from pathbudget.agents.ssh.services import Do

    _work(Do.REMOVE, hosts, only, purge=purge, root=root)


@reports_errors
def status(
    hosts: HostsOption,
    only: OnlyOption = None,
    root: RootOption = "",
    format: FormatOption = Format.TABLE,  # noqa: A002
) -> None:
    """What systemd says of the agent on each host. `pathbudget status` asks the agents."""
    from pathbudget.agents.ssh.services import Do

    states = _work(Do.STATUS, hosts, only, root=root, quiet=True)
    if format is Format.JSON:
        import msgspec

        typer.echo(msgspec.json.format(msgspec.json.encode(states), indent=2).decode())
        return
    for one in states:
        version = "" if not one.state or one.state == "not installed" else "another version"
        words = [one.state, "this version" if one.current else version, one.says]
        typer.echo(f"{one.vantage:<20} {one.host:<28} {', '.join(word for word in words if word)}")


def _work(
    do: "Do",
    hosts_file: Path,
    only: list[str] | None,
    *,
    logins: Path | None = None,
    policy: Path | None = None,
    realtime: bool = False,
    root: str = "",
    purge: bool = False,
    quiet: bool = False,
) -> "list[ServiceState]":
    import asyncio

    from pathbudget.agents.extras import require
    from pathbudget.agents.plans.policy_file import read_policy
    from pathbudget.agents.ssh.hosts_file import load_hosts

    loaded = load_hosts(hosts_file)
    names = only or list(loaded.by_vantage)
    wanted = list(loaded.of(names, "--only").values())
    require("ssh", "asyncssh")
    from pathbudget.agents.ssh.bundle import agent_bundle
    from pathbudget.agents.ssh.services import ServiceWish, on_all, read_logins

    if root and not root.startswith("/"):
        raise fail("--root: an absolute path is needed", ExitCode.USAGE)
    if policy is not None:
        read_policy(policy)
    texts = {} if logins is None else read_logins(logins, names)
    wish = ServiceWish(
        do,
        agent_bundle(),
        texts,
        policy="" if policy is None else policy.read_text(encoding="utf-8"),
        realtime=realtime,
        root=root.rstrip("/"),
        purge=purge,
    )

    def done(state: "ServiceState") -> None:
        if state.trouble:
            tell(state.trouble)
        elif not quiet:
            typer.echo(f"{state.vantage}: {do} done")

    states = asyncio.run(on_all(wanted, wish, done))
    if any(state.trouble for state in states):
        raise typer.Exit(int(ExitCode.TROUBLE))
    return states
