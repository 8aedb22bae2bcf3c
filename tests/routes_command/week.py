"""A made-up report on a week of routes, large enough for every table and chart."""

import math
import random
from dataclasses import replace

from pathbudget.analysis.routes.model import (
    BgpEvent,
    BgpEventKind,
    Cause,
    Estimate,
    FeedEvent,
    FeedState,
    FeedStatus,
    FlowPath,
    Granularity,
    Hop,
    Incident,
    LevelShift,
    MemberFinding,
    MovedLine,
    Outage,
    OutageKind,
    PathObservation,
    PathSeries,
    RouteEvent,
    RouteEventKind,
    RouteShare,
    RouteStability,
    Window,
)
from pathbudget.analysis.routes.route_report import RouteReport, Timeline
from pathbudget.probes.record import AddressFamily

SECOND = 1_000_000_000
MINUTE, HOUR, DAY = 60 * SECOND, 3_600 * SECOND, 86_400 * SECOND
START = 1_764_547_200 * SECOND
"""2025-12-01 00:00 UTC."""
MS = 1e6
NAMES = {
    "10.0.0.1": "AS65010 access",
    "10.1.0.1": "AS65012 carrier-b",
    "10.1.0.2": "AS65012 carrier-b",
    "10.1.1.1": "AS65012 carrier-b",
    "10.1.1.2": "AS65012 carrier-b",
    "10.2.0.1": "AS65013 carrier-c",
    "10.3.0.1": "AS65020 site",
}


def make_series(number: int) -> PathSeries:
    """One of several series from two regions."""
    region, site = (("tokyo", "frankfurt"), ("tokyo", "london"), ("osaka", "frankfurt"))[number % 3]
    address = f"10.3.{number}.9"
    return PathSeries(
        f"{region}-1", region, site, f"{site}-icmp", address, AddressFamily.IPV4, "udp"
    )


def only(*addresses: str) -> tuple[Hop, ...]:
    """Hops with one address each; empty text is nobody."""
    return tuple(frozenset((one,) if one else ()) for one in addresses)


def make_observation(series: PathSeries) -> PathObservation:
    """A diamond of two branches, a wild hop, MPLS on one branch."""
    flows = tuple(
        FlowPath(
            flow=33_434 + n,
            hops=only(
                "10.0.0.1",
                f"10.1.0.{n % 2 + 1}",
                f"10.1.1.{n % 2 + 1}",
                "",
                "10.2.0.1",
                series.address,
            ),
            reached=True,
            hop_rtt_ns=(0.4 * MS, 1.9 * MS, 5.2 * MS, None, 14.8 * MS, 15.2 * MS),
            labels=("", "", "24015/0/1/1" if n % 2 else "", "", "", ""),
        )
        for n in range(6)
    )
    return PathObservation(series, START + 7 * DAY, START + 7 * DAY + SECOND, flows, 0.95, "m1")


def make_stability(series: PathSeries) -> RouteStability:
    """Two routes, one of them dominant."""
    usual = frozenset({("AS65010", "AS65012", "AS65020")})
    other = frozenset({("AS65010", "AS65013", "AS65020")})

    def share(paths: frozenset[tuple[str, ...]], n: int, stays: int) -> RouteShare:
        part = n / 2_016
        return RouteShare(
            paths=paths,
            observations=n,
            prevalence=part,
            low=max(0.0, part - 0.01),
            high=min(1.0, part + 0.01),
            sojourns=stays,
            mean_sojourn_ns=n * 5 * MINUTE / stays,
            first_unix_ns=START,
            last_unix_ns=START + 7 * DAY,
        )

    return RouteStability(
        series=series,
        granularity=Granularity.AS,
        observations=2_016,
        first_unix_ns=START,
        last_unix_ns=START + 7 * DAY,
        gap_ns=5 * MINUTE,
        routes=(share(usual, 1_950, 3), share(other, 66, 2)),
        entropy_bits=0.21,
        flutters=233,
        changes=4,
        changes_per_day=0.57,
        changes_low=0.16,
        changes_high=1.46,
        as_paths=(("AS65010", "AS65012", "AS65020"), ("AS65010", "AS65013", "AS65020")),
    )


def make_timeline(series: PathSeries, buckets: int = 336) -> Timeline:
    """A diurnal swing, a step of 12 ms on the third day, an outage on the fifth."""
    rng = random.Random(series.address)
    p50: list[float | None] = []
    p95: list[float | None] = []
    low: list[float | None] = []
    loss: list[float] = []
    for n in range(buckets):
        day = 7 * n / buckets
        base = (15.2 + (12.0 if 2.25 < day < 3.5 else 0.0)) * MS
        swing = max(0.0, math.sin(2 * math.pi * (day - 0.3))) * 1.5 * MS
        away = 4.5 < day < 4.6
        p50.append(None if away else base + swing + rng.random() * 0.1 * MS)
        p95.append(None if away else base + 2.2 * swing + (0.4 + rng.random() * 0.5) * MS)
        low.append(None if away else base)
        loss.append(1.0 if away else 0.03 if 5.5 < day < 6.2 else 0.0)
    starts = tuple(START + n * 7 * DAY // buckets for n in range(buckets))
    return Timeline(
        series,
        "rtt",
        starts,
        7 * DAY // buckets,
        tuple(p50),
        tuple(p95),
        tuple(low),
        tuple(loss),
        (60,) * buckets,
    )


def at(day: float, minutes: float = 2) -> Window:
    """A window that ends so many days after the start."""
    return Window(START + int(day * DAY - minutes * MINUTE), START + int(day * DAY))


def plus(ms: float, error: float) -> Estimate:
    """A cost with its interval."""
    return Estimate(ms * MS, (ms - error) * MS, (ms + error) * MS)


def make_incidents(all_series: tuple[PathSeries, ...]) -> tuple[Incident, ...]:
    """One of each kind that a week has."""
    one, some = all_series[:1], all_series[: min(3, len(all_series))]
    series = all_series[0]
    usual = frozenset({("10.0.0.1", "10.1.0.1", series.address)})
    other = frozenset({("10.0.0.1", "10.2.0.1", series.address)})
    moved = RouteEvent(
        RouteEventKind.SHIFT,
        series,
        at(2.25),
        Granularity.ADDRESS,
        usual,
        other,
        ("AS65010", "AS65012"),
        ("AS65010", "AS65013"),
        first_difference=2,
    )
    slower = LevelShift(
        series,
        "rtt",
        "rtt",
        at(2.25),
        plus(15.3, 0.1),
        plus(27.4, 0.1),
        plus(12.1, 0.3),
        0.5,
    )
    told = BgpEvent(
        BgpEventKind.PATH,
        "10.3.0.0/16",
        "frankfurt",
        at(2.25, 1),
        3,
        4,
        "65010 65012 65020",
        "65010 65013 65020",
    )
    silent = FeedEvent("ris", "", at(6.5), FeedState.LIVE, FeedState.STALE)
    away = Outage(OutageKind.OUTAGE, series, at(4.5, 0.2), at(4.6, 0.2), 8_640)
    sick = MemberFinding(
        series,
        at(5.5, 30),
        (40_001, 40_017),
        "loss",
        0.03,
        0.021,
        0.041,
        0.0001,
        2e-7,
        0.01,
        "Fisher, Holm",
        128,
    )
    line = MovedLine(
        "tokyo", "frankfurt", "Voice AI", "network p95", 21.1, 33.2, 25.0, "pass", "fail"
    )
    return (
        Incident(
            Cause.PATH_MOVED,
            at(2.25),
            some,
            plus(12.1, 0.3),
            "AS65013",
            "The path sets differ from hop 2 on, where AS65013 stands in for AS65012; 3 of 4 BGP "
            "peers changed within a minute of it.",
            over=at(3.5),
            lines=(line,),
            evidence=(moved, slower, told),
        ),
        Incident(Cause.FLAP, at(1.1), one, None, "AS65012", "It came back after four minutes."),
        Incident(
            Cause.WITHDRAWN,
            at(4.5, 0.2),
            one,
            None,
            "AS65020",
            "All 4 peers withdrew 10.3.0.0/16, and nothing came back since.",
            over=at(4.6, 0.2),
            evidence=(away,),
        ),
        Incident(
            Cause.MEMBER,
            at(5.5, 30),
            one,
            plus(0.04, 0.03),
            "10.1.0.1 > 10.1.1.1",
            "Only flows that pass this link lose packets.",
            lines=(replace(line, line="network p99"),),
            evidence=(sick,),
        ),
        Incident(Cause.QUEUE, at(0.6, 60), some, plus(1.4, 0.2), "", "It swells every evening."),
        Incident(
            Cause.FEED, at(6.5), (), None, "", "No message for 20 minutes.", evidence=(silent,)
        ),
    )


def make_report(series: int = 4, *, incidents: bool = True, feeds: bool = True) -> RouteReport:
    """A week of `series` series."""
    all_series = tuple(make_series(n) for n in range(series))
    found = make_incidents(all_series) if incidents and all_series else ()
    return RouteReport(
        stability=tuple(make_stability(one) for one in all_series),
        paths=tuple(make_observation(one) for one in all_series),
        events=tuple(e for one in found for e in one.evidence if isinstance(e, RouteEvent)),
        incidents=found,
        feeds=(
            FeedStatus(
                feed="ris",
                kind="ris_live",
                state=FeedState.STALE,
                last_unix_ns=START + 6 * DAY,
                age_ns=1_200 * SECOND,
                lag_ns=2 * SECOND,
                peers=24,
                peers_live=3,
                prefixes=8,
                updates=4_711,
                quarantined=2,
                detail="no message for 20 minutes",
            ),
        )
        if feeds
        else (),
        timelines=tuple(make_timeline(one) for one in all_series),
        hop_names=NAMES | {one.address: "AS65020 site" for one in all_series},
        cautions=("Traces were 5 minutes apart: what came back between two is unseen.",),
    )
