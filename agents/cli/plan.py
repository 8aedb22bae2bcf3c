"""`pathbudget plan`: keys, signed plans of agents, and whether a host would take one."""

import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pathbudget.agents.cli.duration_option import duration_within
from pathbudget.agents.cli.exits import ExitCode, fail, reports_errors

if TYPE_CHECKING:
    from pathbudget.agents.plans.plan import AgentPlan

SUFFIX = ".plan.json"
"""End of the name of a file with a signed plan: ``dallas-1.plan.json``."""
LONGEST_NS = 400 * 86_400 * 1_000_000_000


class Format(StrEnum):
    """How a plan is printed."""

    TABLE = "table"
    JSON = "json"


KeyArgument = Annotated[
    Path, typer.Argument(metavar="KEY", help="Private key to make; KEY.pub is the public one.")
]
CampaignArgument = Annotated[Path, typer.Argument(metavar="CAMPAIGN", help="The campaign file.")]
PlanArgument = Annotated[Path, typer.Argument(metavar="PLAN", help="A file of `plan sign`.")]
PrivateOption = Annotated[Path, typer.Option("--key", help="The operator's private key.")]
TrustedOption = Annotated[Path, typer.Option("--trust", help="Public keys that are trusted.")]
OutputOption = Annotated[Path, typer.Option("--output", help="Folder for a plan per agent.")]
LifetimeOption = Annotated[
    str, typer.Option("--expires-in", help="After which an agent stops: 12h, 90d.")
]
RollOption = Annotated[str, typer.Option("--roll", help="How often results are sent: 10s to 1h.")]
PolicyOption = Annotated[
    Path | None, typer.Option("--policy", help="Policy file of the host; default: the built-in.")
]
AgentOption = Annotated[
    str | None, typer.Option("--agent", help="Of which agent; default: the one of the plan.")
]
FormatOption = Annotated[Format, typer.Option("--format", help="How to print it.")]


def register(application: typer.Typer) -> None:
    """Add the commands."""
    commands = typer.Typer(help="Signed plans for agents: make keys, sign, look, verify.")
    for command in (keygen, sign, show, verify):
        commands.command(name=command.__name__)(command)
    application.add_typer(commands, name="plan", no_args_is_help=True)


@reports_errors
def keygen(key: KeyArgument) -> None:
    """Make the pair of keys that plans are signed with. Agents get only the public one."""
    from pathbudget.agents.plans.keys import generate

    public = key.with_name(key.name + ".pub")
    name = generate(key, public)
    typer.echo(f"Key {name}.")
    typer.echo(f"{key}  private: keep it away from agents and brokers")
    typer.echo(f"{public}  public: agents are started with --trust {public.name}")


@reports_errors
def sign(
    campaign: CampaignArgument,
    key: PrivateOption,
    output: OutputOption = Path("plans"),
    expires_in: LifetimeOption = "90d",
    roll: RollOption = "60s",
) -> None:
    """Sign a plan for each vantage of a campaign: the agent of that name.

    The agent measures until it gets another plan, or this one expires.
    """
    from pathbudget.agents.plans.from_campaign import agent_plans
    from pathbudget.agents.plans.keys import read_private
    from pathbudget.agents.plans.signing import sign as signed
    from pathbudget.agents.store.disk import replace_file
    from pathbudget.probes.table import probe_table

    lifetime = duration_within(expires_in, "--expires-in", 60_000_000_000, LONGEST_NS)
    rolls = duration_within(roll, "--roll", 10_000_000_000, 3_600_000_000_000)
    private = read_private(key)
    plans = agent_plans(
        campaign, probe_table(), issued_unix_ns=time.time_ns(), lifetime_ns=lifetime, roll_ns=rolls
    )
    output.mkdir(parents=True, exist_ok=True)
    for name, plan in plans.items():
        path = output / f"{name}{SUFFIX}"
        replace_file(path, signed(plan, private))  # an agent may be watching it
        typer.echo(f"{path}  {len(plan.series)} series, until {_day(plan.expires_unix_ns)}")


@reports_errors
def show(plan: PlanArgument, trust: TrustedOption, format: FormatOption = Format.TABLE) -> None:  # noqa: A002
    """Print what a signed plan says, if its signature holds."""
    from pathbudget.agents.plans.keys import read_trusted
    from pathbudget.agents.plans.signing import opened

    found = opened(_bytes(plan), read_trusted(trust))
    if format is Format.JSON:
        import msgspec

        typer.echo(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
    else:
        typer.echo("\n".join(_lines(found)))


@reports_errors
def verify(
    plan: PlanArgument,
    trust: TrustedOption,
    policy: PolicyOption = None,
    agent: AgentOption = None,
) -> None:
    """Say whether an agent would take a plan now, by its keys and its policy.

    Exit code 1 and the reason where it would not.
    """
    from pathbudget.agents.plans.keys import read_trusted
    from pathbudget.agents.plans.policy import Policy
    from pathbudget.agents.plans.policy_file import read_policy
    from pathbudget.agents.plans.refusal import PlanRefusedError
    from pathbudget.agents.plans.signing import admit, opened

    envelope, keys = _bytes(plan), read_trusted(trust)
    rules = Policy() if policy is None else read_policy(policy)
    try:
        found = admit(
            envelope,
            keys=keys,
            agent=agent or opened(envelope, keys).agent,
            now_unix_ns=time.time_ns(),
            last_serial=None,
            policy=rules,
        )
    except PlanRefusedError as error:
        raise fail(str(error), ExitCode.OBJECTIVE_NOT_MET) from None
    typer.echo(f"Agent {found.agent} would take it: {len(found.series)} series.")


def _lines(plan: "AgentPlan") -> list[str]:
    from pathbudget.agents.campaign.plan import rhythm_text

    dates = f"issued {_day(plan.issued_unix_ns)}, until {_day(plan.expires_unix_ns)}"
    head = [
        f"agent     {plan.agent}, region {plan.vantage.region}",
        f"campaign  {plan.campaign}, seed {plan.seed}",
        f"serial    {plan.serial}, {dates}",
        f"limit     {plan.packets_per_second} packets per second",
    ]
    return head + [
        f"  {one.probe:<14} {one.target.site or '-':<20} {one.target.host}  {rhythm_text(one)}"
        for one in plan.series
    ]


def _day(unix_ns: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(unix_ns // 1_000_000_000))


def _bytes(path: Path) -> bytes:
    from pathbudget.agents.plans.plan import LARGEST_PLAN

    try:
        with path.open("rb") as file:
            return file.read(LARGEST_PLAN + 1)
    except OSError as error:
        raise fail(f"{path}: cannot be read: {error.strerror}", ExitCode.USAGE) from None
