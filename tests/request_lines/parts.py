"""Measurements of requests with known answers: one path, its round trips, set-ups and uploads."""

import itertools
from collections.abc import Iterable, Mapping, Sequence

from pathbudget.analysis.evaluate import EvaluationOptions, evaluate
from pathbudget.analysis.finding_kinds import FindingKind
from pathbudget.analysis.results import BudgetLine, Direction, Evaluation, Mode
from pathbudget.probes.contract import Option
from pathbudget.probes.record import (
    AddressFamily,
    ClockSource,
    ConnectionMode,
    Failure,
    FailureKind,
    Measurement,
    Metric,
    NoiseFloor,
    Note,
    Sample,
    Stage,
    Target,
    Transport,
    Vantage,
)
from pathbudget.sites.catalogue import Catalogue, Region, Site, Tier

START = 1_790_000_000_000_000_000
MS = 1_000_000
N = 400
RTT_MS = 40.0
TIMEOUT = Failure(FailureKind.TIMEOUT, Stage.HANDSHAKE)
OPTIONS = EvaluationOptions(generated_unix_ns=START)

_identifiers = itertools.count()


def sample(
    seq: int,
    metric: str,
    value_ms: float | None,
    mode: ConnectionMode | None = None,
    *,
    failure: Failure = TIMEOUT,
    flags: tuple[str, ...] = (),
    notes: Mapping[str, Note] | None = None,
    part: int | None = None,
    offset_ms: float = 0.0,
) -> Sample:
    """One sample of the shot `seq`, ten shots a second; None is a failure."""
    return Sample(
        seq=seq,
        metric=metric,
        sent_unix_ns=START + round((seq * 100 + offset_ms) * MS),
        value_ns=None if value_ms is None else round(value_ms * MS),
        failure=failure if value_ms is None else None,
        clock_source=ClockSource.KERNEL,
        mode=mode,
        flags=flags,
        notes=dict(notes) if notes else None,
        part=part,
    )


def measurement(
    samples: Iterable[Sample],
    probe: str,
    transport: Transport | None = None,
    *,
    region: str = "west",
    site: str = "alpha",
    options: Mapping[str, Option] | None = None,
) -> Measurement:
    """One measurement of the pair."""
    return Measurement(
        id=f"m{next(_identifiers):06d}",
        vantage=Vantage(f"{region}-1", region),
        target=Target(f"{site}-edge", "edge.example", site=site, port=443),
        probe=probe,
        started_unix_ns=START,
        samples=tuple(samples),
        address="192.0.2.1",
        family=AddressFamily.IPV4,
        options=dict(options or {}),
        noise=NoiseFloor(10_000, ClockSource.KERNEL, 50_000, 900_000),
        transport=transport,
    )


def echoes(rtt_ms: float = RTT_MS, n: int = N, region: str = "west") -> Measurement:
    """Round trips, all alike."""
    return measurement((sample(i, Metric.RTT, rtt_ms) for i in range(n)), "icmp", region=region)


def setups(
    transport: Transport,
    mode: ConnectionMode,
    values_ms: Sequence[float | None],
    *,
    failure: Failure = TIMEOUT,
    flags: tuple[str, ...] = (),
    notes: Mapping[str, Note] | None = None,
    compute_ms: float | None = None,
) -> Measurement:
    """Set-ups of one mode, by the probe that is made for the transport."""
    made: list[Sample] = []
    for i, value in enumerate(values_ms):
        made.append(sample(i, Metric.SETUP, value, mode, failure=failure, flags=flags, notes=notes))
        if compute_ms is not None and value is not None:
            made.append(sample(i, Metric.CLIENT_COMPUTE, compute_ms, mode))
    return measurement(made, transport, transport, options={"mode": str(mode)})


def uploads(
    transport: Transport,
    mode: ConnectionMode,
    upload_ms: Sequence[float | None],
    *,
    size: int,
    setup_ms: float = 0.0,
    failure: Failure = TIMEOUT,
    flags: tuple[str, ...] = (),
    version: str = "",
) -> Measurement:
    """Uploads of one size, each with the set-up that it waited for."""
    made: list[Sample] = []
    for i, value in enumerate(upload_ms):
        made.append(sample(i, Metric.SETUP, setup_ms, mode))
        made.append(
            sample(i, Metric.UPLOAD, value, mode, failure=failure, flags=flags, offset_ms=setup_ms)
        )
    options: dict[str, Option] = {"bytes": size, "mode": str(mode), "version": version}
    return measurement(made, "upload", transport, options=options)


def tier(
    mode: str = "warm",
    transport: str = "tls",
    *,
    sizes: tuple[int, ...] = (800,),
    mixture: dict[str, float] | None = None,
    allowance_ms: float = 500.0,
) -> Tier:
    """A tier at p95."""
    return Tier(
        "t",
        "T",
        4000.0,
        {"network": allowance_ms},
        95.0,
        mode,
        sizes[0],
        mixture or {"warm": 1.0},
        transport=transport,
        further_prompt_bytes=sizes[1:],
    )


def evaluated(measurements: Iterable[Measurement], a_tier: Tier | None = None) -> Evaluation:
    """The whole evaluation of one tier, two regions and one site."""
    a_tier = a_tier or tier()
    regions = {name: Region(name, 37.4, -122.1) for name in ("west", "east")}
    catalogue = Catalogue(regions, {"alpha": Site("alpha", 37.3, -121.9)}, {a_tier.name: a_tier})
    return evaluate(measurements, catalogue, OPTIONS)


def line(
    evaluation: Evaluation,
    mode: Mode,
    transport: str = "tls",
    direction: Direction = Direction.NETWORK,
    *,
    percentile: float = 95.0,
    prompt_bytes: int | None = None,
) -> BudgetLine:
    """The one line there; there must be exactly one."""
    (found,) = [
        one
        for one in evaluation.lines
        if (one.mode, one.transport, one.direction, one.percentile)
        == (mode, transport, direction, percentile)
        and prompt_bytes in (None, one.prompt_bytes)
        and one.region == "west"
    ]
    return found


def findings(evaluation: Evaluation) -> dict[FindingKind, str]:
    """One text of each kind."""
    return {finding.kind: finding.text for finding in evaluation.findings}
