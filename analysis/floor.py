"""Each region x site against the speed of light in fibre."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pathbudget.analysis.finding_kinds import FindingKind
from pathbudget.analysis.results import Finding, Pair
from pathbudget.analysis.series import NOT_OF_THE_PATH, NS_PER_MS, REFUSALS, Series
from pathbudget.probes.record import Metric
from pathbudget.sites.geodesy import distance_km, floor_rtt_ms

CLOCK_SLACK_MS = 0.05
"""Allowed for where a measurement does not say how fine it is."""

Point = tuple[float, float]
"""Latitude and longitude in degrees."""


@dataclass(frozen=True, slots=True)
class Nearest:
    """The quickest answer of a pair: which vantage saw it, in ms, give or take how much."""

    vantage: int
    minimum_ms: float
    noise_ms: float


ROUND_TRIPS = (Metric.RTT, Metric.CONNECT, REFUSALS)


def nearest_answers(
    series: Sequence[Series], *, behind_middlebox: bool = False
) -> dict[int, Nearest]:
    """Smallest round trip per vantage, over ICMP echoes and TCP connects, refused ones too.

    Where a middlebox answers those, TLS flights are what went all the way.
    """
    metrics = (Metric.TLS_HANDSHAKE,) if behind_middlebox else ROUND_TRIPS
    best: dict[int, Nearest] = {}
    for one in series:
        if one.key.metric not in metrics or one.key.probe in NOT_OF_THE_PATH:
            continue
        floor_ns = one.noise_floor_ns
        noise_ms = CLOCK_SLACK_MS if floor_ns is None else floor_ns / NS_PER_MS
        for vantage, values in one.track.by_vantage():
            minimum_ms = float(values.min()) / NS_PER_MS
            known = best.get(vantage)
            if math.isfinite(minimum_ms) and (known is None or minimum_ms < known.minimum_ms):
                best[vantage] = Nearest(vantage, minimum_ms, noise_ms)
    return best


def pair_of(
    region: str,
    site: str,
    series: Sequence[Series],
    *,
    region_at: Point | None,
    site_at: Point | None,
    vantages_at: Mapping[int, Point],
    behind_middlebox: bool = False,
) -> tuple[Pair, tuple[Finding, ...]]:
    """Distance, light floor and inflation of a pair, and what is impossible about it.

    A vantage that knows where it is stands for itself, else its region does. The pair shows the
    vantage that comes nearest to its floor.
    """
    rows: list[tuple[float, Pair]] = []
    findings: list[Finding] = []
    for answer in nearest_answers(series, behind_middlebox=behind_middlebox).values():
        here = vantages_at.get(answer.vantage, region_at)
        pair = _pair(region, site, here, site_at, answer.minimum_ms)
        rows.append((pair.inflation if pair.inflation is not None else math.inf, pair))
        finding = _impossible(pair, answer.noise_ms)
        if finding is not None:
            findings.append(finding)
    if not rows:
        return _pair(region, site, region_at, site_at, None), ()
    nearest = min(rows, key=lambda row: (row[0], row[1].minimum_rtt_ms or 0.0))[1]
    return nearest, tuple(sorted(findings, key=lambda finding: finding.text)[:1])


def _pair(
    region: str, site: str, here: Point | None, there: Point | None, minimum_ms: float | None
) -> Pair:
    known = here is not None and there is not None
    distance = distance_km(*here, *there) if known and here and there else None
    floor = None if distance is None else floor_rtt_ms(distance)
    inflation = minimum_ms / floor if minimum_ms is not None and floor else None
    return Pair(
        region=region,
        site=site,
        distance_km=distance,
        floor_rtt_ms=floor,
        minimum_rtt_ms=minimum_ms,
        inflation=inflation,
    )


def _impossible(pair: Pair, noise_ms: float) -> Finding | None:
    floor, minimum = pair.floor_rtt_ms, pair.minimum_rtt_ms
    if floor is None or minimum is None or minimum + noise_ms >= floor:
        return None
    text = (
        f"the smallest round trip of {minimum:.2f} ms is below the light floor of {floor:.2f} ms "
        f"({pair.distance_km:.0f} km): the coordinates of the region or the site are wrong, or an "
        "anycast or CDN edge answered."
    )
    return Finding(kind=FindingKind.IMPOSSIBLE_RTT, region=pair.region, site=pair.site, text=text)
