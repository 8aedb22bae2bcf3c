"""A campaign file as plans for a fleet: each vantage is an agent of that name."""

from collections.abc import Mapping
from pathlib import Path, PurePath

import msgspec

from pathbudget.agents.campaign.campaign_file import load_campaign
from pathbudget.agents.campaign.plan import SeriesPlan, VantagePlan
from pathbudget.agents.plans.plan import AGENT_NAME, NAME_RULE, AgentPlan
from pathbudget.agents.plans.policy import names_file
from pathbudget.probes.contract import Option, ProbeSpec
from pathbudget.probes.errors import ConfigError, Fault


def agent_plans(
    path: Path,
    table: Mapping[str, ProbeSpec],
    *,
    issued_unix_ns: int,
    lifetime_ns: int,
    roll_ns: int = 60_000_000_000,
    serial: int | None = None,
) -> dict[str, AgentPlan]:
    """Plans by the names of their agents. Their serial is the time of issue in ms unless given.

    The duration of the campaign does not count: a fleet measures until it gets another plan. Files
    that options name travel as bare names, to be found in the folder that each host's policy names.
    Raises ConfigError with every fault of the file, and for vantages that no agent can be called.
    """
    campaign = load_campaign(path, table)
    faults = [
        Fault(str(path), f"vantage[{number}].{key}", problem, expected)
        for number, plan in enumerate(campaign.plan.vantages)
        for key, problem, expected in _unfit(plan)
    ]
    if faults:
        raise ConfigError(faults)
    return {
        plan.vantage.name: AgentPlan(
            agent=plan.vantage.name,
            serial=issued_unix_ns // 1_000_000 if serial is None else serial,
            issued_unix_ns=issued_unix_ns,
            expires_unix_ns=issued_unix_ns + lifetime_ns,
            vantage=plan.vantage,
            series=tuple(_portable(series, table[series.kind]) for series in plan.series),
            seed=plan.seed,
            campaign=plan.campaign,
            packets_per_second=plan.packets_per_second,
            resolve_every_ns=plan.resolve_every_ns,
            roll_ns=roll_ns,
            source=plan.source,
        )
        for plan in campaign.plan.vantages
    }


def _unfit(plan: VantagePlan) -> list[tuple[str, str, str]]:
    name, found = plan.vantage.name, list[tuple[str, str, str]]()
    if not AGENT_NAME.fullmatch(name):
        found.append(("name", f"{name!r} is no name of an agent", NAME_RULE))
    if plan.namespace:
        found.append(("namespace", "an agent measures from where it runs", "no namespace"))
    return found


def _portable(series: SeriesPlan, spec: ProbeSpec) -> SeriesPlan:
    options: dict[str, Option] = {
        name: PurePath(str(value)).name if names_file(spec, name, value) else value
        for name, value in series.options.items()
    }
    return msgspec.structs.replace(series, options=options, place="")
