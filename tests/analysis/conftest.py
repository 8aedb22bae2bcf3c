"""Synthetic measurements with known truth, and a small catalogue."""

import itertools
import random
from collections.abc import Callable, Sequence

import pytest

from pathbudget.probes.record import (
    AddressFamily,
    ClockSource,
    ConnectionMode,
    Failure,
    FailureKind,
    Measurement,
    Metric,
    NoiseFloor,
    Sample,
    Stage,
    Target,
    Vantage,
)
from pathbudget.sites.catalogue import Catalogue, Region, Site, Tier

START = 1_790_000_000_000_000_000
MS = 1_000_000
TIMEOUT = Failure(FailureKind.TIMEOUT, Stage.WAIT)

MakeMeasurement = Callable[..., Measurement]


@pytest.fixture
def make_samples() -> Callable[..., tuple[Sample, ...]]:
    """Samples of one metric from values in ms; None is a timeout."""

    def make(
        values_ms: Sequence[float | None],
        metric: str = Metric.RTT,
        mode: ConnectionMode | None = None,
        *,
        first_seq: int = 0,
        start: int = START,
        gap_ms: float = 100.0,
        flags: tuple[str, ...] = (),
        clock_source: ClockSource = ClockSource.KERNEL,
    ) -> tuple[Sample, ...]:
        return tuple(
            Sample(
                seq=first_seq + i,
                metric=metric,
                sent_unix_ns=start + round(i * gap_ms * MS),
                value_ns=None if value is None else round(value * MS),
                failure=TIMEOUT if value is None else None,
                clock_source=clock_source,
                mode=mode,
                lateness_ns=1000 + i,
                flags=() if value is None else flags,
            )
            for i, value in enumerate(values_ms)
        )

    return make


@pytest.fixture
def make_measurement() -> MakeMeasurement:
    """One measurement; ids count up."""
    identifiers = itertools.count()

    def make(
        samples: Sequence[Sample],
        *,
        region: str = "west",
        site: str = "alpha",
        probe: str = "icmp",
        vantage: str = "",
        target: str = "",
        address: str = "192.0.2.1",
        family: AddressFamily | None = AddressFamily.IPV4,
        floor_ns: int | None = 10_000,
    ) -> Measurement:
        noise = None
        if floor_ns is not None:
            noise = NoiseFloor(floor_ns, ClockSource.KERNEL, 50_000, 900_000)
        return Measurement(
            id=f"m{next(identifiers):06d}",
            vantage=Vantage(vantage or f"{region}-1", region),
            target=Target(target or f"{site}-edge", "edge.example", site=site, port=443),
            probe=probe,
            started_unix_ns=samples[0].sent_unix_ns if samples else START,
            samples=tuple(samples),
            campaign="synthetic",
            address=address,
            family=family,
            schedule="poisson 100ms seed 1",
            software="pathbudget test",
            noise=noise,
        )

    return make


@pytest.fixture
def make_path(
    make_measurement: MakeMeasurement, make_samples: Callable[..., tuple[Sample, ...]]
) -> Callable[..., list[Measurement]]:
    """ICMP and TLS measurements of one pair around a round-trip time, with noise from a seed."""

    def make(
        region: str, site: str, rtt_ms: float, *, n: int = 300, spread: float = 0.05, seed: int = 1
    ) -> list[Measurement]:
        rng = random.Random(f"{region} {site} {seed}")
        draw = [rtt_ms * (1 + spread * rng.expovariate(1.0)) for _ in range(n)]
        tls: list[Sample] = []
        for i, mode in enumerate((ConnectionMode.COLD, ConnectionMode.RESUMED)):
            connect = [rtt_ms * (1 + spread * rng.expovariate(1.0)) for _ in range(n)]
            flight = [rtt_ms * (1 + spread * rng.expovariate(1.0)) + 0.5 for _ in range(n)]
            setup = [a + b for a, b in zip(connect, flight, strict=True)]
            phases = ((Metric.CONNECT, connect), (Metric.TLS_HANDSHAKE, flight))
            for metric, values in (*phases, (Metric.SETUP, setup)):
                tls += make_samples(values, metric, mode, first_seq=i * n, start=START + i)
        return [
            make_measurement(make_samples(draw), region=region, site=site),
            make_measurement(tls, region=region, site=site, probe="tls"),
        ]

    return make


@pytest.fixture
def catalogue() -> Catalogue:
    """Two regions, two sites, two tiers."""
    regions = (Region("west", 37.4, -122.1, 3.0), Region("east", 40.7, -74.0, 1.0))
    sites = (
        Site("alpha", 37.3, -121.9, price_per_month=100.0, capacity=10.0),
        Site("beta", 39.0, -77.5, price_per_month=200.0, capacity=10.0),
    )
    mixture = {"warm": 0.9, "resumed": 0.08, "cold": 0.02}
    voice = {"network": 25.0, "gateway": 5.0, "ttft": 90.0}
    rag = {"network": 70.0, "gateway": 15.0, "ttft": 380.0}
    tiers = (
        Tier("voice-ai", "Voice AI", 400.0, voice, 95.0, "warm", 800, mixture),
        Tier("rag", "RAG", 1500.0, rag, 95.0, "mixture", 32_000, mixture),
    )
    return Catalogue(
        {region.name: region for region in regions},
        {site.name: site for site in sites},
        {tier.name: tier for tier in tiers},
    )
