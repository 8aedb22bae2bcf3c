"""What ``pathbudget routes`` and the route page show: everything known of the ways of a store."""

from dataclasses import dataclass, field

from pathbudget.analysis.routes.model import (
    FeedStatus,
    Incident,
    PathObservation,
    PathSeries,
    RouteEvent,
    RouteStability,
)


@dataclass(frozen=True, slots=True)
class Timeline:
    """Quantiles of a series in buckets of equal length; None where a bucket has no answer."""

    series: PathSeries
    metric: str
    starts_unix_ns: tuple[int, ...]
    bucket_ns: int
    p50_ns: tuple[float | None, ...]
    p95_ns: tuple[float | None, ...]
    minimum_ns: tuple[float | None, ...]
    loss: tuple[float, ...]
    n: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RouteReport:
    """What ``pathbudget routes`` and the route page show. `paths` are the latest of each series."""

    stability: tuple[RouteStability, ...]
    paths: tuple[PathObservation, ...]
    events: tuple[RouteEvent, ...]
    incidents: tuple[Incident, ...]
    feeds: tuple[FeedStatus, ...]
    timelines: tuple[Timeline, ...]
    hop_names: dict[str, str] = field(default_factory=dict[str, str])
    """What is known of an address: ``AS65012``, or ``AS65012 carrier-b``."""
    cautions: tuple[str, ...] = ()
