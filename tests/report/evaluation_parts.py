"""What an invented evaluation is made of: places, tiers, summaries, lines, recommendations."""

import math
import random
from collections.abc import Callable, Sequence

from pathbudget.analysis.results import (
    Assignment,
    BudgetLine,
    Direction,
    Method,
    Mode,
    Objective,
    Quantile,
    Recommendation,
    RegionInfo,
    SiteInfo,
    Summary,
    TierInfo,
    VantageInfo,
    Verdict,
)

STARTED = 1_790_000_000_000_000_000
REGIONS = (
    ("us-south", "Texas", 32.8, -96.8, 30.0),
    ("us-east", "US East Coast", 40.7, -74.0, 28.0),
    ("eu-west", "Western Europe", 50.1, 8.7, 18.0),
    ("ap-ne", "Tōkyō 東京", 35.7, 139.7, 12.0),
    ("sa-east", "São Paulo", -23.5, -46.6, 8.0),
    ("ap-south", "Mumbai", 19.1, 72.9, 4.0),
)
SITES = (
    ("dallas", "Dallas, 1950 Stemmons", 32.80, -96.82, 42000.0),
    ("ashburn", "Ashburn", 39.04, -77.49, 51000.0),
    ("frankfurt", "Frankfurt am Main", 50.11, 8.68, 47000.0),
    ("tokyo", "Tokyo, Ōtemachi", 35.69, 139.76, None),
)
TIERS = (
    ("voice-ai", "Voice AI", 400.0, (25.0, 5.0, 0.0, 3.0, 90.0, 180.0, 15.0)),
    ("chat", "Interactive chat", 800.0, (45.0, 10.0, 40.0, 8.0, 160.0, 220.0, 30.0)),
    ("rag", "Enterprise RAG", 1500.0, (70.0, 15.0, 250.0, 35.0, 380.0, 280.0, 80.0)),
)
COMPONENTS = ("network", "gateway", "retrieval", "tokenize", "ttft", "first_tokens", "guardrail")


def distance_km(a: RegionInfo, b: SiteInfo) -> float:
    one, two = math.radians(a.latitude or 0.0), math.radians(b.latitude or 0.0)
    turn = math.radians((a.longitude or 0.0) - (b.longitude or 0.0))
    cosine = math.sin(one) * math.sin(two) + math.cos(one) * math.cos(two) * math.cos(turn)
    return 6371 * math.acos(max(-1.0, min(1.0, cosine)))


def make_regions(count: int) -> tuple[RegionInfo, ...]:
    made: list[RegionInfo] = []
    for i in range(count):
        name, title, latitude, longitude, weight = REGIONS[i % len(REGIONS)]
        turn = i // len(REGIONS)
        made.append(
            RegionInfo(
                name=name if not turn else f"{name}-{turn}",
                title=title if not turn else f"{title} {turn}",
                latitude=latitude + 2.0 * (turn % 5),
                longitude=longitude + 3.0 * (turn // 5),
                weight=weight / (1 + turn),
                vantages=(f"{name}-{turn}-a",),
            )
        )
    return tuple(made)


def make_sites(count: int) -> tuple[SiteInfo, ...]:
    made: list[SiteInfo] = []
    for i in range(count):
        name, title, latitude, longitude, price = SITES[i % len(SITES)]
        turn = i // len(SITES)
        made.append(
            SiteInfo(
                name=name if not turn else f"{name}-{turn}",
                title=title if not turn else f"{title} {turn}",
                operator="Example Colocation",
                metro=title.split(",")[0],
                latitude=latitude - 2.0 * turn,
                longitude=longitude + 2.0 * turn,
                price_per_month=price,
                capacity=100.0,
                targets=(f"{name}-edge",),
            )
        )
    return tuple(made)


def make_tiers(count: int) -> tuple[TierInfo, ...]:
    return tuple(
        TierInfo(
            name=name,
            title=title,
            target_ms=target,
            network_allowance_ms=allowances[0],
            components={c: a for c, a in zip(COMPONENTS, allowances, strict=True) if a},
            percentile=95.0,
            mode=Mode.WARM,
            prompt_bytes=4000,
            mixture={"warm": 0.9, "resumed": 0.08, "cold": 0.02},
        )
        for name, title, target, allowances in TIERS[:count]
    )


def empirical(values: Sequence[float], losses: int) -> Callable[[float], float | None]:
    """Quantile function with the lost probes at plus infinity."""
    ordered = sorted(values)
    n = len(ordered) + losses

    def at(p: float) -> float | None:
        rank = max(1, math.ceil(p * n))
        return ordered[rank - 1] if rank <= len(ordered) else None

    return at


def make_summary(region: str, site: str, floor: float, n: int, losses: int, seed: str) -> Summary:
    random_numbers = random.Random(seed)
    spread = 7.5 if (region, site) == ("us-east", "dallas") else 0.2
    values = [floor + random_numbers.gammavariate(1.5, 0.02 * floor + spread) for _ in range(n)]
    at = empirical(values[losses:], losses)
    quantiles = tuple(
        Quantile(
            percentile=p,
            value_ms=at(p / 100),
            low_ms=at(max(0.0, p / 100 - 0.03)),
            high_ms=None if p == 99.0 else at(min(1.0, p / 100 + 0.02)),
            n=n,
            n_effective=0.8 * n,
        )
        for p in (50.0, 95.0, 99.0)
    )
    return Summary(
        region=region,
        site=site,
        target=f"{site}-edge",
        address="203.0.113.10",
        probe="icmp",
        metric="rtt",
        mode=None,
        family="ipv4",
        n=n,
        losses=losses,
        loss_ratio=losses / n if n else 0.0,
        loss_low=0.0,
        loss_high=min(1.0, (losses + 4) / n) if n else 1.0,
        minimum_ms=at(1 / n) if n > losses else None,
        maximum_ms=max(values) if n > losses else None,
        quantiles=quantiles,
        autocorrelation=0.11,
        failures={"timeout/wait": losses} if losses else {},
        clock_sources={"kernel": n - losses},
        flags={},
        noise_floor_ms=0.02,
        quantile_curve=tuple((i / 50, at(i / 50)) for i in range(1, 51)),
        started_unix_ns=STARTED,
        ended_unix_ns=STARTED + 3_600_000_000_000,
    )


def verdict_of(low: float | None, high: float | None, allowance: float) -> Verdict:
    if high is not None and high <= allowance:
        return Verdict.PASS
    if low is None or low > allowance:
        return Verdict.FAIL
    return Verdict.UNDECIDED


def make_lines(summary: Summary, tier: TierInfo) -> list[BudgetLine]:
    made: list[BudgetLine] = []
    for mode, trips in ((Mode.WARM, 1.0), (Mode.COLD, 3.0)):
        for q in summary.quantiles:
            for direction, part in (
                (Direction.INGRESS, 0.5 + trips - 1),
                (Direction.EGRESS, 0.5),
                (Direction.NETWORK, trips),
            ):
                value, low, high = (
                    None if end is None else part * end for end in (q.value_ms, q.low_ms, q.high_ms)
                )
                network = direction is Direction.NETWORK
                allowance = tier.network_allowance_ms if network else None
                verdict = Verdict.UNDECIDED
                if allowance is not None:
                    verdict = verdict_of(low, high, allowance)
                made.append(
                    BudgetLine(
                        region=summary.region,
                        site=summary.site,
                        tier=tier.name,
                        direction=direction,
                        mode=mode,
                        percentile=q.percentile,
                        value_ms=value,
                        low_ms=low,
                        high_ms=high,
                        n=q.n,
                        n_effective=q.n_effective,
                        losses=summary.losses,
                        method=Method.SYMMETRIC_SPLIT,
                        allowance_ms=allowance,
                        verdict=verdict,
                        reason="The whole interval lies on one side of the allowance."
                        if verdict is not Verdict.UNDECIDED
                        else "The interval straddles the allowance.",
                        headline=network and mode == tier.mode and q.percentile == tier.percentile,
                    )
                )
    return made


def make_recommendation(
    tier: TierInfo,
    regions: Sequence[RegionInfo],
    sites: Sequence[SiteInfo],
    lines: Sequence[BudgetLine],
    k: int,
) -> Recommendation:
    headlines = {(x.region, x.site): x for x in lines if x.headline and x.tier == tier.name}
    opened = sites[:k]
    assignments: list[Assignment] = []
    for region in regions:
        best = min(
            (headlines[region.name, site.name] for site in opened),
            key=lambda line: math.inf if line.high_ms is None else line.high_ms,
        )
        assignments.append(
            Assignment(
                region=region.name,
                weight=region.weight,
                site=best.site,
                cost_ms=best.high_ms,
                value_ms=best.value_ms,
                low_ms=best.low_ms,
                verdict=best.verdict,
            )
        )
    total = sum(region.weight for region in regions)
    costs = [(a.weight, a.cost_ms) for a in assignments if a.cost_ms is not None]
    value = sum(weight * cost for weight, cost in costs) / total if total else None
    return Recommendation(
        tier=tier.name,
        objective=Objective.P_MEDIAN,
        k=k,
        sites=tuple(site.name for site in opened),
        value=value,
        next_best_sites=tuple(site.name for site in sites[1 : k + 1]),
        next_best_value=None if value is None else value + 3.2,
        margin=3.2,
        decided=k != 2,
        reasons=("Smallest weighted mean of the upper interval ends.",),
        would_change=("More samples from Texas to Ashburn.",),
        assignments=tuple(assignments),
        uncovered=tuple(a.region for a in assignments if a.verdict is Verdict.FAIL),
        price_per_month=sum(site.price_per_month or 0.0 for site in opened),
    )


def make_vantage(region: RegionInfo, imported: bool) -> VantageInfo:
    return VantageInfo(
        name=region.vantages[0],
        region=region.name,
        software="ripe-atlas firmware 5020" if imported else "pathbudget 0.1.0",
        sync_state="unknown" if imported else "synchronised",
        clock_source="" if imported else "adjtimex",
        offset_bound_ms=None if imported else 1.5,
        clock_steps=0,
        largest_step_ms=0.0,
        noise_floor_ms=None if imported else 0.021,
        stamp_mode="foreign" if imported else "kernel",
        timer_lateness_p99_ms=None if imported else 0.08,
        steal_ratio=None if imported else 0.002,
        lateness_p99_ms=None if imported else 0.3,
    )
