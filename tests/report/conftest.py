"""A factory of realistic evaluations, large and small, friendly and hostile."""

from collections.abc import Callable

import pytest
from tests.report.evaluation_parts import (
    STARTED,
    distance_km,
    make_lines,
    make_recommendation,
    make_regions,
    make_sites,
    make_summary,
    make_tiers,
    make_vantage,
)

from pathbudget.analysis.finding_kinds import FindingKind
from pathbudget.analysis.results import Evaluation, Exclusion, Finding, Pair, Provenance, Summary

EvaluationFactory = Callable[..., Evaluation]


def make_evaluation(
    regions: int = 6,
    sites: int = 4,
    tiers: int = 3,
    *,
    n: int = 400,
    imported: bool = False,
    title: str = "Where to place inference capacity",
) -> Evaluation:
    """`regions` x `sites` x `tiers`; the last region never reaches the last site."""
    the_regions, the_sites, the_tiers = make_regions(regions), make_sites(sites), make_tiers(tiers)
    pairs: list[Pair] = []
    summaries: list[Summary] = []
    for region in the_regions:
        for site in the_sites:
            distance = distance_km(region, site)
            floor = 2 * distance / 204.2
            dead = (region, site) == (the_regions[-1], the_sites[-1]) and regions * sites > 1
            losses = n if dead else n // 50
            series = make_summary(
                region.name,
                site.name,
                1.6 * floor + 1.0,
                n,
                losses,
                region.name + site.name,
            )
            summaries.append(series)
            pairs.append(
                Pair(
                    region=region.name,
                    site=site.name,
                    distance_km=distance,
                    floor_rtt_ms=floor,
                    minimum_rtt_ms=series.minimum_ms,
                    inflation=None
                    if series.minimum_ms is None or floor < 0.5
                    else series.minimum_ms / floor,
                )
            )
    lines = [
        line for summary in summaries for tier in the_tiers for line in make_lines(summary, tier)
    ]
    measured = bool(summaries)
    return Evaluation(
        title=title,
        generated_unix_ns=STARTED + 7_200_000_000_000,
        provenance=Provenance(
            campaigns=("spring",) if measured else (),
            software=("pathbudget 0.1.0",),
            started_unix_ns=STARTED if measured else 0,
            ended_unix_ns=STARTED + 3_600_000_000_000 if measured else 0,
            measurements=len(summaries),
            samples=sum(s.n for s in summaries),
            losses=sum(s.losses for s in summaries),
            probes=("icmp", "tcp", "tls"),
            schedules=("poisson 250ms seed 7",),
            confidence=0.95,
            counters={"late": 3, "foreign": 1},
            imported_from=("atlas-results.json.gz",) if imported else (),
        ),
        regions=the_regions,
        sites=the_sites,
        tiers=the_tiers,
        vantages=tuple(make_vantage(region, imported) for region in the_regions),
        pairs=tuple(pairs),
        summaries=tuple(summaries),
        lines=tuple(lines),
        recommendations=tuple(
            make_recommendation(tier, the_regions, the_sites, lines, k)
            for tier in the_tiers
            for k in range(1, min(sites, 3) + 1)
            if regions
        ),
        findings=(
            Finding(
                kind=FindingKind.IMPOSSIBLE_RTT,
                region="us-south",
                site="dallas",
                text="Texas to Dallas: 0.10 ms is below the light floor of 0.31 ms.",
            ),
        )
        if measured
        else (),
        exclusions=(
            Exclusion(
                what="TCP connects with a retransmitted SYN",
                n=12,
                why="They contain a retransmission timer and are no round trips.",
            ),
        )
        if measured
        else (),
    )


HOSTILE = "<script>alert(1)</script>"


def make_hostile() -> Evaluation:
    """Every name and text is markup, very long, or both."""
    import msgspec

    plain = msgspec.json.encode(make_evaluation(2, 2, 2))
    long_name = "x" * 300 + " " + "Ω" * 120
    swaps = {
        "us-south": HOSTILE,
        "Texas": "</script><img src=http://evil.example/a.png onerror=alert(2)>",
        "us-east": "a|b`c\\n*d* [l](http://evil.example/)",
        "US East Coast": long_name,
        "dallas": "'\\\" onmouseover=alert(3) x=",
        "Ashburn": "]]><!--<a href='https://evil.example/'>$x^2$</a>{{ 7*7 }}",
        "Voice AI": HOSTILE * 2,
        "Where to place": HOSTILE + " & ",
    }
    text = plain.decode()
    for old, new in swaps.items():
        text = text.replace(old, new.replace('"', "'").replace("\\", "\\\\").replace("\\\\'", "'"))
    return msgspec.json.decode(text, type=Evaluation)


@pytest.fixture
def evaluation() -> Evaluation:
    """Six regions, four sites, three tiers."""
    return make_evaluation()


@pytest.fixture
def evaluation_of() -> EvaluationFactory:
    """`make_evaluation`, for other sizes."""
    return make_evaluation


@pytest.fixture
def hostile() -> Evaluation:
    """An evaluation that somebody built to break the page."""
    return make_hostile()
