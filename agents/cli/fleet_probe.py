"""`pathbudget fleet probe`: one agent measures something at once, beside its plan."""

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pathbudget.agents.cli.duration_option import duration_within
from pathbudget.agents.cli.exits import ExitCode, reports_errors, tell
from pathbudget.agents.cli.fleet_plans import LOGIN, LoginOption
from pathbudget.agents.cli.plan import Format, PrivateOption

if TYPE_CHECKING:
    from pathbudget.agents.plans.request import ProbeRequest
    from pathbudget.probes.record import Measurement

SHORTEST_NS = 1_000_000

AgentArgument = Annotated[str, typer.Argument(metavar="AGENT", help="Which agent.")]
CampaignArgument = Annotated[
    Path, typer.Argument(metavar="CAMPAIGN", help="What to measure: its vantage of that name.")
]
DurationOption = Annotated[str, typer.Option("--duration", help="How long; 60s at most.")]
StoreOption = Annotated[
    Path | None, typer.Option("--store", help="Folder to keep it in, too; default: none.")
]
FormatOption = Annotated[
    Format, typer.Option("--format", help="A line for each series, or JSON of each measurement.")
]


def register(group: typer.Typer) -> None:
    """Add the command."""
    group.command(name=probe.__name__)(probe)


@reports_errors
def probe(
    agent: AgentArgument,
    campaign: CampaignArgument,
    key: PrivateOption,
    login: LoginOption = LOGIN,
    duration: DurationOption = "10s",
    store: StoreOption = None,
    format: FormatOption = Format.TABLE,  # noqa: A002
) -> None:
    """Have an agent measure something at once, beside its plan and within its host's policy.

    The request is signed as plans are. What comes of it is printed here and is not in the fleet's
    results.
    """
    from pathbudget.agents.extras import require

    require("fleet", "cryptography", "nats", "nkeys")
    if store is not None:
        require("store", "pyarrow")
    from pathbudget.agents.bus.asking import ask
    from pathbudget.agents.bus.login import read_login
    from pathbudget.agents.plans.keys import read_private
    from pathbudget.agents.plans.request import LONGEST_NS, sign_request

    lasts_ns = duration_within(duration, "--duration", SHORTEST_NS, LONGEST_NS)
    wanted = request_of(campaign, agent, lasts_ns)
    envelope = sign_request(wanted, read_private(key))
    found = asyncio.run(ask(read_login(login), agent, envelope, wanted.duration_ns, tell))
    if store is not None:
        from pathbudget.agents.store.parquet import Store

        Store(store).write(found)
    _print(found, format)
    if not any(sample.failure is None for one in found for sample in one.samples):
        raise typer.Exit(ExitCode.NOTHING_MEASURED)


def request_of(campaign: Path, agent: str, duration_ns: int) -> "ProbeRequest":
    """The vantage of a campaign file as a request to the agent of that name. Raises ConfigError."""
    import msgspec

    from pathbudget.agents.plans.from_campaign import agent_plans
    from pathbudget.agents.plans.request import LIFETIME_NS, ProbeRequest
    from pathbudget.probes.errors import ConfigError, Fault
    from pathbudget.probes.table import probe_table

    now = time.time_ns()
    plans = agent_plans(campaign, probe_table(), issued_unix_ns=now, lifetime_ns=LIFETIME_NS)
    if agent not in plans:
        expected = f"one of: {', '.join(plans)}"
        raise ConfigError([Fault(str(campaign), "vantage", f"none is called {agent}", expected)])
    # two requests of one ms are two
    return ProbeRequest(msgspec.structs.replace(plans[agent], serial=now), duration_ns)


def _print(found: "Sequence[Measurement]", form: Format) -> None:
    from pathbudget.probes.codec import encode_line

    if form is Format.JSON:
        for one in found:
            typer.echo(encode_line(one).decode().rstrip())
        return
    for one in found:
        typer.echo(series_line(one))


def series_line(one: "Measurement") -> str:
    """``icmp  frankfurt 192.0.2.1  n 10, failed 0; rtt min 1.02 p50 1.11 max 1.40 ms``."""
    values: dict[str, list[int]] = {}
    for sample in one.samples:
        if sample.value_ns is not None:
            values.setdefault(sample.metric, []).append(sample.value_ns)
    failed = [sample.failure for sample in one.samples if sample.failure is not None]
    head = f"{one.probe}  {one.target.name} {one.address or one.target.host}"
    parts = [f"n {len(one.samples)}, failed {len(failed)}"]
    for metric, found in values.items():
        low, middle, high = min(found), sorted(found)[len(found) // 2], max(found)
        parts.append(f"{metric} min {low / 1e6:.3f} p50 {middle / 1e6:.3f} max {high / 1e6:.3f} ms")
    if failed:
        parts.append(f"first failure: {failed[0].kind} ({failed[0].stage})")
    return f"{head}  {'; '.join(parts)}"
