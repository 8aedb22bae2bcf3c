"""A small store with every kind of sample that decides where another one belongs."""

import random
from collections.abc import Iterator
from typing import Any

import pytest

from pathbudget.agents.lake.envelopes import FilePair
from pathbudget.agents.lake.store import file_pairs
from pathbudget.agents.store.parquet import Store
from pathbudget.probes.record import (
    AddressFamily,
    ClockSource,
    ConnectionMode,
    Failure,
    FailureKind,
    Flag,
    Measurement,
    Metric,
    NoiseFloor,
    Sample,
    Stage,
    Target,
    Transport,
    Vantage,
)

START = 1_772_323_200_000_000_000
HOUR_NS = 3_600_000_000_000
ADDRESSES = {AddressFamily.IPV4: "192.0.2.1", AddressFamily.IPV6: "2001:db8::1"}
FAILURES = [(kind, stage) for kind in FailureKind for stage in (Stage.RESOLVE, Stage.WAIT)]


def icmp(rng: random.Random, hour: int, odd: bool) -> tuple[Sample, ...]:
    """A round trip every ten seconds; some equal times, marks, failures, strangers, negatives."""
    found: list[Sample] = []
    for i in range(90):
        sent = START + hour * HOUR_NS + (i // 2 * 2 if i > 80 else i) * 40 * 10**9
        given: dict[str, Any] = {"value_ns": round(2e7 + 1e6 * rng.expovariate(1) + i % 5)}
        if odd and rng.random() < 0.3:
            flags = (Flag.LATE, Flag.CLOCK_STEP, Flag.HOST_BUSY, Flag.LOADED, Flag.DUPLICATED)
            given["flags"] = tuple(rng.sample(flags, 2))
            given["clock_source"] = rng.choice((ClockSource.KERNEL, ClockSource.USER))
        if odd and rng.random() < 0.05:
            given["responder"] = rng.choice((*ADDRESSES.values(), "198.51.100.9"))
        if odd and rng.random() < 0.02:
            given["value_ns"] = -5
        if rng.random() < (0.1 if odd else 0.01):
            kind = rng.choice(FAILURES) if odd else (FailureKind.TIMEOUT, Stage.WAIT)
            given = {"failure": Failure(*kind)}
        found.append(Sample(rng.randrange(1000) if i > 80 else i, "rtt", sent, **given))
    return tuple(found)


def tls(rng: random.Random, hour: int, odd: bool) -> tuple[Sample, ...]:
    """Connect, handshake and set-up of each shot; some are refused, retried or of no mode."""
    found: list[Sample] = []
    for i in range(40):
        sent = START + hour * HOUR_NS + i * 80 * 10**9 + 123
        mode = ConnectionMode.COLD if i % 2 else ConnectionMode.RESUMED
        trip = round(2e7 + 1e6 * rng.expovariate(1))
        flags: tuple[str, ...] = ()
        if odd and rng.random() < 0.3:
            flags = (rng.choice((Flag.REFUSED, Flag.SYN_RETRANSMITTED, Flag.LATE)),)
        found.append(Sample(i, Metric.CONNECT, sent, trip, flags=flags))
        if rng.random() < 0.05:
            kind = rng.choice((FailureKind.NOT_RESUMED, FailureKind.CERTIFICATE))
            failure = Failure(kind, Stage.HANDSHAKE)
            found.append(Sample(i, Metric.SETUP, sent, failure=failure, mode=mode))
            continue
        found.append(Sample(i, Metric.TLS_HANDSHAKE, sent + trip, trip + 10**6, mode=mode))
        found.append(Sample(i, Metric.SETUP, sent, 2 * trip + 10**6, mode=mode))
    return tuple(found)


def measurements() -> Iterator[Measurement]:
    number = 0
    for hour in range(0, 32, 4):
        for vantage, region in (("dallas-1", "us"), ("dallas-2", "us"), ("paris-1", "eu")):
            for site, family in (("stemmons", AddressFamily.IPV4), ("stemmons", AddressFamily.IPV6),
                                 ("infomart", AddressFamily.IPV4)):  # fmt: skip
                odd = site == "stemmons" and family is AddressFamily.IPV4
                for probe, make in (("icmp", icmp), ("tls", tls)):
                    number += 1
                    rng = random.Random(f"{number}")
                    yield Measurement(
                        id=f"{hour:03d}-{number:06d}",
                        vantage=Vantage(vantage, region, latitude=1.0, longitude=float(hour > 8)),
                        target=Target(f"{site}-edge", "edge.example", site),
                        probe=probe,
                        started_unix_ns=START + hour * HOUR_NS,
                        address=ADDRESSES[family],
                        family=family,
                        samples=make(rng, hour, odd),
                        campaign="one" if hour < 16 else "two",
                        transport=Transport.TLS if probe == "tls" else None,
                        noise=NoiseFloor(1000 * (number % 90), ClockSource.KERNEL, 1, 2)
                        if number % 3
                        else None,
                    )


@pytest.fixture(scope="session")
def every() -> list[Measurement]:
    return list(measurements())


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory, every: list[Measurement]) -> Store:
    """Two days, several files, one of them copied."""
    store = Store(tmp_path_factory.mktemp("lake") / "store")
    for first in range(0, len(every), 30):
        store.write(every[first : first + 30])
    copied = min(store.layout.table("samples").rglob("*.parquet"))
    for path in (copied, store.layout.table("measurements") / copied.parent.name / copied.name):
        path.with_name("zz-copy.parquet").write_bytes(path.read_bytes())
    return store


@pytest.fixture(scope="session")
def files(store: Store) -> list[FilePair]:
    return list(file_pairs(store.layout))


@pytest.fixture(autouse=True)
def small_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a small store too is read in many portions, by many tasks, into many parts."""
    monkeypatch.setattr("pathbudget.agents.lake.rows.PIECE_ROWS", 500, raising=True)
    monkeypatch.setattr("pathbudget.agents.lake.lines.TASK_SAMPLES", 1_500, raising=True)
    monkeypatch.setattr("pathbudget.agents.lake.lines.PART_SAMPLES", 4_000, raising=True)
    monkeypatch.setattr("pathbudget.agents.lake.inventory.STRIDE", 5, raising=True)
