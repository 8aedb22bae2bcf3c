"""Limits on what a campaign puts on the wire: checked on the plan, then enforced on the clock."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pathbudget.agents.campaign.plan import CampaignPlan, SeriesPlan, VantagePlan
from pathbudget.probes.contract import Cost, Options, ProbeSpec

SECOND_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class PlannedCost:
    """What one plan puts on the wire on average (Poisson plans vary around it), without loss."""

    shots: float
    packets: float
    bytes: float
    packets_per_second: dict[str, float]
    """By vantage."""
    packets_per_second_per_target: dict[str, float]
    """By target host, all vantages together."""
    packets_of_a_train: int
    """What the longest train puts on the wire within its first second; 0 without trains."""


def planned_cost(plan: CampaignPlan, table: Mapping[str, ProbeSpec]) -> PlannedCost:
    """Expected totals and rates of a plan."""
    per_vantage: defaultdict[str, float] = defaultdict(float)
    per_target: defaultdict[str, float] = defaultdict(float)
    shots = packets = octets = 0.0
    of_a_train = 0
    for vantage in plan.vantages:
        for series in vantage.series:
            cost, expected = _cost(series, table), series.expected_shots(vantage.duration_ns)
            shots += expected
            packets += expected * cost.packets
            octets += expected * cost.bytes
            rate = cost.packets * series.expected_shots(SECOND_NS)
            per_vantage[vantage.vantage.name] += rate
            per_target[series.target.host] += rate
            of_a_train = max(of_a_train, cost.packets * _within_a_second(series))
    return PlannedCost(shots, packets, octets, dict(per_vantage), dict(per_target), of_a_train)


def _within_a_second(series: SeriesPlan) -> int:
    """Sends of one train in its first second; none where there are no trains."""
    if series.train == 1:
        return 0
    if series.train_gap_ns == 0:
        return series.train
    return min(series.train, 1 + SECOND_NS // series.train_gap_ns)


def _cost(series: SeriesPlan, table: Mapping[str, ProbeSpec]) -> Cost:
    return table[series.kind].cost(series.options)


def broken_limits(
    plan: CampaignPlan, cost: PlannedCost, table: Mapping[str, ProbeSpec]
) -> list[tuple[str, str, str]]:
    """(key path of the limit, what the plan would do, what would be right) per broken limit."""
    broken: list[tuple[str, str, str]] = []
    per_vantage = plan.limits.packets_per_second
    for name, rate in cost.packets_per_second.items():
        if rate > per_vantage:
            advice = f"at most {per_vantage}: longer intervals, fewer targets, or a higher limit"
            what = f"vantage {name} would send and receive {rate:.0f} packets per second"
            of_it = [one for one in plan.vantages if one.vantage.name == name]
            what += dearest(_series(of_it), table)
            broken.append(("limits.packets_per_second", what, advice))
    per_target = plan.limits.packets_per_second_per_target
    for host, rate in cost.packets_per_second_per_target.items():
        if rate > per_target:
            advice = f"at most {per_target}: longer intervals, fewer vantages, or a higher limit"
            what = f"target {host} would see {rate:.0f} packets per second"
            to_it = [one for one in _series(plan.vantages) if one.target.host == host]
            broken.append(
                ("limits.packets_per_second_per_target", what + dearest(to_it, table), advice)
            )
    if cost.bytes > plan.limits.bytes:
        what = f"the plan puts {cost.bytes:.0f} bytes on the wire"
        what += dearest(_series(plan.vantages), table, of=lambda one: one.bytes)
        advice = f"at most {plan.limits.bytes}: a shorter duration, or a higher limit"
        broken.append(("limits.bytes", what, advice))
    if cost.packets_of_a_train > per_vantage:
        what = f"a train puts {cost.packets_of_a_train} packets on the wire within a second"
        advice = f"at most {per_vantage}: a shorter train, a longer train_gap, or a higher limit"
        broken.append(("limits.packets_per_second", what, advice))
    return broken


def _series(vantages: Sequence[VantagePlan]) -> list[SeriesPlan]:
    return [series for vantage in vantages for series in vantage.series]


def dearest(
    series: Sequence[SeriesPlan],
    table: Mapping[str, ProbeSpec],
    *,
    of: Callable[[Cost], int] = lambda cost: cost.packets,
) -> str:
    """Which probe takes most of it, and the option that most of that is due to, where one is."""
    shares: defaultdict[str, float] = defaultdict(float)
    for one in series:
        shares[one.probe] += of(_cost(one, table)) * one.expected_shots(SECOND_NS)
    label = max(shares, key=lambda name: shares[name])
    costly = next(one for one in series if one.probe == label)
    driver = cost_driver(table[costly.kind], costly.options, of)
    because = f" for {driver} = {costly.options[driver]}" if driver else ""
    share = shares[label] / (sum(shares.values()) or 1)
    return f"; {share:.0%} of it is probe {label}{because}"


def cost_driver(spec: ProbeSpec, options: Options, of: Callable[[Cost], int]) -> str:
    """The amount without which (at its least) a shot would cost less than half; empty if none."""
    whole = of(spec.cost(options))
    least, driver = whole / 2, ""
    for name, option in spec.options.items():
        if option.minimum is None or option.kind is not int:
            continue
        rest = of(spec.cost({**options, name: int(option.minimum)}))
        if rest < least:
            least, driver = rest, name
    return driver


class PacketAllowance:
    """Token bucket over one second's worth of packets, for the moments after a stall.

    A late burst is spread out, never dropped: the caller waits, and the lateness is recorded.
    """

    def __init__(self, packets_per_second: int, now_ns: int) -> None:
        self._rate = packets_per_second
        self._tokens = float(packets_per_second)
        self._at_ns = now_ns

    def wait_ns(self, packets: int, now_ns: int) -> int:
        """Take `packets`; return how long to wait before sending them (0: send now)."""
        refill = (now_ns - self._at_ns) * self._rate / SECOND_NS
        self._tokens = min(float(self._rate), self._tokens + refill) - packets
        self._at_ns = now_ns
        return 0 if self._tokens >= 0 else int(-self._tokens * SECOND_NS / self._rate)
