"""How an agent fares, as a file beside its spool: what `pathbudget status` prints."""

import time
from pathlib import Path

import msgspec

from pathbudget.agents import status_file
from pathbudget.agents.daemon.agent import Agent
from pathbudget.agents.spool.bounds import Bounds
from pathbudget.agents.spool.entry import SpoolState
from pathbudget.agents.version import software_name
from pathbudget.probes.record import ClockQuality, NoiseFloor

STATUS = "status.json"


class AgentStatus(msgspec.Struct, frozen=True, omit_defaults=True):
    """One look at an agent."""

    agent: str
    software: str
    at_unix_ns: int
    spool: SpoolState
    bounds: Bounds | None = None
    serial: int | None = None
    campaign: str = ""
    series: int = 0
    quiet: bool = False
    expired: bool = False
    spent: bool = False
    """The bytes of today are used up."""
    bytes_today: int = 0
    fired: int = 0
    """Since this plan was begun."""
    samples: int = 0
    failures: dict[str, int] = {}
    clock: ClockQuality | None = None
    noise: NoiseFloor | None = None
    delivered_unix_ns: int | None = None
    """When results were last acknowledged; None: not since the start."""
    trouble: str = ""
    """Why results cannot be handed on, or the disk takes none."""
    problems: tuple[str, ...] = ()


def status_of(agent: Agent, spool: SpoolState) -> AgentStatus:
    """What an agent says of itself now."""
    plan, measuring, state = agent.plan, agent.measuring, agent.state
    clock, noise = measuring.run.host_state() if measuring is not None else (None, None)
    progress = None if measuring is None else measuring.run.progress
    return AgentStatus(
        agent="" if plan is None else plan.agent,
        software=software_name(),
        at_unix_ns=time.time_ns(),
        spool=spool,
        bounds=agent.bounds,
        serial=state.serial,
        campaign="" if plan is None else plan.campaign,
        series=0 if measuring is None else len(measuring.run.plan.series),
        quiet=state.quiet,
        expired=state.expired,
        spent=state.spent,
        bytes_today=agent.bytes_today,
        fired=0 if progress is None else progress.fired,
        samples=0 if progress is None else progress.samples,
        failures={} if progress is None else dict(progress.failures),
        clock=clock,
        noise=noise,
        delivered_unix_ns=agent.delivered_unix_ns,
        trouble=agent.trouble,
        problems=(*state.problems, *(() if progress is None else progress.problems)),
    )


def write_status(path: Path, status: AgentStatus) -> None:
    """See `status_file.write`."""
    status_file.write(path, status)


def read_status(path: Path) -> AgentStatus:
    """Raises StoreError."""
    return status_file.read(path, AgentStatus, "an agent")
