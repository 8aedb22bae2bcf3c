"""A plan in words: what would be sent, before anything is."""

from collections.abc import Mapping

from rich.console import Console
from rich.table import Table

from pathbudget.agents.campaign.limits import SECOND_NS, planned_cost
from pathbudget.agents.campaign.plan import CampaignPlan, SeriesPlan, rhythm_text
from pathbudget.agents.units import format_duration
from pathbudget.probes.contract import ProbeSpec


def explain(plan: CampaignPlan, table: Mapping[str, ProbeSpec], console: Console) -> None:
    """Print the plan: vantages, series, packets, bytes, duration, limits. Sends nothing."""
    cost = planned_cost(plan, table)
    heading = f"Campaign {plan.name}, {format_duration(plan.duration_ns)}"
    console.print(heading, style="bold", highlight=False)
    console.print(_series_table(plan, table))
    fastest = max(cost.packets_per_second.values(), default=0.0)
    busiest = max(cost.packets_per_second_per_target.values(), default=0.0)
    series = [one for vantage in plan.vantages for one in vantage.series]
    limits = plan.limits
    wire = f"{cost.packets:,.0f} packets and {_bytes(cost.bytes)} on the wire"
    at_vantage = f"{fastest:.0f} at the busiest vantage (limit {limits.packets_per_second})"
    at_target = (
        f"{busiest:.0f} at the busiest target (limit {limits.packets_per_second_per_target})"
    )
    lines = [
        f"Seed {plan.seed}: the same seed gives the same send times.",
        f"{len(plan.vantages)} vantages, {len(series)} series, about {cost.shots:,.0f} probes;",
        f"  {wire}, both ways, without loss.",
        f"Packets per second: {at_vantage},",
        f"  {at_target}.",
    ]
    if any(one.family is None for one in series):
        lines.append("Names are resolved at the start; a second address family adds as much again.")
    lines.append("Nothing was sent.")
    console.print("\n".join(lines), highlight=False)


def _series_table(plan: CampaignPlan, table: Mapping[str, ProbeSpec]) -> Table:
    rows = Table(box=None, pad_edge=False)
    for heading in ("vantage", "probe", "schedule"):
        rows.add_column(heading, overflow="fold")
    for heading in ("targets", "packets/s", "kB/s"):
        rows.add_column(heading, justify="right")
    for vantage in plan.vantages:
        grouped: dict[tuple[str, str], list[SeriesPlan]] = {}
        for series in vantage.series:
            grouped.setdefault((series.probe, rhythm_text(series)), []).append(series)
        for (probe, schedule), members in grouped.items():
            rate = [series.expected_shots(SECOND_NS) for series in members]
            cost = [table[series.kind].cost(series.options) for series in members]
            packets = sum(r * c.packets for r, c in zip(rate, cost, strict=True))
            octets = sum(r * c.bytes for r, c in zip(rate, cost, strict=True))
            cells = (str(len(members)), f"{packets:.1f}", f"{octets / 1000:.1f}")
            rows.add_row(vantage.vantage.name, probe, schedule, *cells)
    return rows


def _bytes(octets: float) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if octets >= size:
            return f"{octets / size:.1f} {unit}"
    return f"{octets:.0f} bytes"
