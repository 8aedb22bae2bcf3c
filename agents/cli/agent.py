"""`pathbudget agent`: measure for months what a plan says, of a file or of a fleet."""

from pathlib import Path
from typing import Annotated

import typer

from pathbudget.agents.cli.agent_process import AgentOptions, become_agent
from pathbudget.agents.cli.exits import ExitCode, fail, reports_errors
from pathbudget.agents.spool.bounds import DropPolicy
from pathbudget.probes.scheduling import RealTime

PlanArgument = Annotated[
    Path | None,
    typer.Argument(
        metavar="[PLAN]", help="Signed plan (.json) or campaign file (.toml); else --login."
    ),
]
LoginOption = Annotated[
    Path | None,
    typer.Option("--login", help="Login file of a fleet: plans from there, results to there."),
]
TrustOption = Annotated[
    Path | None, typer.Option("--trust", help="Public keys of operators; for signed plans.")
]
PolicyOption = Annotated[
    Path | None, typer.Option("--policy", help="What this host allows; default: the built-in.")
]
StateOption = Annotated[
    Path, typer.Option("--state", help="Folder for the spool and what must be remembered.")
]
StoreOption = Annotated[
    Path | None,
    typer.Option("--store", help="Folder that results go to; default: pathbudget-store."),
]
AgentOption = Annotated[
    str, typer.Option("--agent", help="Which vantage of the file; default: its only one.")
]
BytesOption = Annotated[
    int, typer.Option("--spool-bytes", min=1 << 20, max=1 << 40, help="Room of the spool.")
]
AgeOption = Annotated[
    str, typer.Option("--spool-age", help="After which results are dropped: 12h, 30d.")
]
DropOption = Annotated[
    DropPolicy, typer.Option("--drop", help="Which results go when the spool is full.")
]
RealTimeOption = Annotated[
    RealTime, typer.Option("--realtime", help="SCHED_FIFO, so that sends are on time.")
]

MetricsOption = Annotated[
    str,
    typer.Option(
        "--metrics", metavar="HOST:PORT", help="Let Prometheus ask here; default: nowhere."
    ),
]


def register(application: typer.Typer) -> None:
    """Add the command."""
    application.command(name="agent")(agent)


@reports_errors
def agent(
    plan: PlanArgument = None,
    login: LoginOption = None,
    trust: TrustOption = None,
    policy: PolicyOption = None,
    state: StateOption = Path("pathbudget-agent"),
    store: StoreOption = None,
    agent: AgentOption = "",
    spool_bytes: BytesOption = 256 << 20,
    spool_age: AgeOption = "30d",
    drop: DropOption = DropPolicy.OLDEST,
    realtime: RealTimeOption = RealTime.AUTO,
    metrics: MetricsOption = "",
) -> None:
    """Measure what a plan says until stopped, for months; results flow into the store.

    With --login plan and results come from and go to the fleet, unless PLAN or --store are given.

    Looks at PLAN again and again and takes a new one without a gap. SIGHUP reads plan and policy
    anew; SIGTERM or Ctrl-C stops, and nothing that was measured is lost.
    """
    if plan is None and login is None:
        raise fail("a PLAN, or --login with the login file of a fleet, is needed", ExitCode.USAGE)
    become_agent(
        AgentOptions(
            plan=_text(plan),
            login=_text(login),
            trust=_text(trust),
            policy=_text(policy),
            state=str(state),
            store=_text(store),
            agent=agent,
            spool_bytes=spool_bytes,
            spool_age=spool_age,
            drop=drop,
            realtime=realtime,
            metrics=metrics,
        )
    )


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)
