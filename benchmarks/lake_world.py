"""Writes the lake of `lake_speed.py`: seeded samples in the layout of a store."""

import multiprocessing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from pathbudget.agents.store.layout import Layout, date_of
from pathbudget.agents.store.table_files import parquet_writer
from pathbudget.probes.arrow_schema import MEASUREMENT_SCHEMA, SAMPLE_SCHEMA, measurement_table
from pathbudget.probes.record import (
    AddressFamily,
    ClockSource,
    Measurement,
    NoiseFloor,
    Target,
    Transport,
    Vantage,
)

REGIONS, SITES, VANTAGES = 6, 8, 2
BEGIN_NS = 1_772_323_200_000_000_000  # 2026-03-01
HOUR_NS = 3_600_000_000_000
DAYS = 10
SHARES = {"icmp": 0.66, "tcp": 0.17, "tls": 0.17}
TLS_PARTS = ("connect", "tls_handshake", "setup", "client_compute")
WORKERS = 2


def write_lake(folder: Path, samples: int) -> int:
    """A file pair for each day, as compacting leaves them. Returns how many samples there are."""
    layout = Layout(folder)
    layout.create()
    per_hour = samples / (REGIONS * SITES * VANTAGES * DAYS * 24)
    with multiprocessing.get_context("forkserver").Pool(WORKERS) as pool:
        return sum(pool.starmap(write_day, [(folder, day, per_hour) for day in range(DAYS)], 1))


def write_day(folder: Path, day: int, per_hour: float) -> int:
    layout = Layout(folder)
    date = date_of(BEGIN_NS + day * 24 * HOUR_NS)
    for table in ("measurements", "samples"):
        layout.folder(table, date).mkdir(parents=True)
    name = f"{date}.parquet"
    rows, envelopes, batch, size = 0, [], [], 0
    rng = np.random.default_rng([7, day])
    with parquet_writer(layout.folder("samples", date) / name, SAMPLE_SCHEMA) as writer:
        for measurement, columns in measurements_of(day, per_hour, rng):
            envelopes.append((measurement, len(columns["seq"])))
            batch.append(sample_rows(measurement, columns))
            size += len(columns["seq"])
            if size >= 100_000:
                writer.write_table(pa.concat_tables(batch), row_group_size=65_536)
                rows, batch, size = rows + size, [], 0
        if batch:
            writer.write_table(pa.concat_tables(batch), row_group_size=65_536)
    table = measurement_table([one for one, _ in envelopes])
    counts = pa.array([count for _, count in envelopes], pa.int64())
    place = MEASUREMENT_SCHEMA.get_field_index("sample_count")
    table = table.set_column(place, MEASUREMENT_SCHEMA.field(place), counts)
    with parquet_writer(layout.folder("measurements", date) / name, MEASUREMENT_SCHEMA) as writer:
        writer.write_table(table, row_group_size=8_192)
    return rows + size


def measurements_of(
    day: int, per_hour: float, rng: np.random.Generator
) -> Iterator[tuple[Measurement, dict[str, Any]]]:
    """In the order of their ids: hour by hour."""
    number = 0
    for hour in range(24):
        started = BEGIN_NS + (day * 24 + hour) * HOUR_NS
        for region in range(REGIONS):
            for vantage in range(VANTAGES):
                for site in range(SITES):
                    for probe, share in SHARES.items():
                        n = max(8, round(per_hour * share))
                        number += 1
                        envelope = envelope_of(region, vantage, site, probe, started, number)
                        yield envelope, columns_of(region, site, vantage, probe, n, started, rng)


def envelope_of(
    region: int, vantage: int, site: int, probe: str, started: int, number: int
) -> Measurement:
    return Measurement(
        id=f"{started:019d}-{number:06d}",
        vantage=Vantage(f"region-{region}-{'ab'[vantage]}", f"region-{region}"),
        target=Target(f"site-{site}-edge", f"edge.site-{site}.example", f"site-{site}", 443),
        probe=probe,
        started_unix_ns=started,
        samples=(),
        campaign="lake",
        address=f"192.0.2.{site + 1}",
        family=AddressFamily.IPV4,
        duration_ns=HOUR_NS,
        noise=NoiseFloor(20_000 + number % 7 * 1000, ClockSource.KERNEL, 5_000, 60_000),
        transport=Transport.TLS if probe == "tls" else None,
    )


def columns_of(
    region: int,
    site: int,
    vantage: int,
    probe: str,
    n: int,
    started: int,
    rng: np.random.Generator,
) -> dict[str, Any]:
    """Delays with a daily swing, queues that last, rare long tails, and losses."""
    from scipy.signal import lfilter  # slow to import, and readers of the lake need it not

    shots = n // len(TLS_PARTS) if probe == "tls" else n
    sent = started + np.sort(rng.integers(0, HOUR_NS, shots))
    base = 2e6 * (1.35 ** ((5 * region + 3 * site) % 13)) * (1 + 0.02 * vantage)
    swing = 1 + 0.04 * np.sin(2 * np.pi * (sent - BEGIN_NS) / (24 * HOUR_NS) + region)
    queue = lfilter([1.0], [1.0, -0.7], rng.exponential(1.0, shots)) * 0.3
    tail = np.where(rng.random(shots) < 0.01, rng.pareto(2.5, shots) * 10, 0)
    trips = base * swing + 1e5 * (queue + tail)
    lost = rng.random(shots) < 0.003
    if probe != "tls":
        return {
            "seq": np.arange(n),
            "metric": np.full(n, "rtt" if probe == "icmp" else "connect", dtype=object),
            "mode": np.full(n, None, dtype=object),
            "sent": sent,
            "value": np.where(lost, -1, np.round(trips)).astype(np.int64),
            "busy": rng.random(n) < 0.001,
        }
    modes = np.where(np.arange(shots) % 2, "resumed", "cold").astype(object)
    work = np.where(modes == "cold", 1.5e6, 0.4e6) * rng.uniform(0.8, 1.4, shots)
    flight = trips * rng.uniform(1.0, 1.05, shots) + work
    parts = np.column_stack((trips, flight, trips + flight, work / 3))
    parts[lost] = -1
    parts = np.round(parts).astype(np.int64)
    each = len(TLS_PARTS)
    offsets = np.column_stack((np.zeros(shots), trips, np.zeros(shots), trips)).astype(np.int64)
    return {
        "seq": np.repeat(np.arange(shots), each),
        "metric": np.tile(np.array(TLS_PARTS, dtype=object), shots),
        "mode": np.repeat(modes, each),
        "sent": np.repeat(sent, each) + offsets.ravel(),
        "value": parts.ravel(),
        "busy": np.zeros(shots * each, dtype=bool),
    }


def sample_rows(envelope: Measurement, columns: dict[str, Any]) -> pa.Table:
    n = len(columns["seq"])
    failed = columns["value"] < 0
    words = {
        "measurement_id": envelope.id,
        "campaign": envelope.campaign,
        "vantage": envelope.vantage.name,
        "region": envelope.vantage.region,
        "network": "",
        "target": envelope.target.name,
        "site": envelope.target.site,
        "probe": envelope.probe,
        "transport": envelope.transport,
        "address": envelope.address,
        "family": envelope.family,
        "clock_source": "kernel",
    }
    arrays: dict[str, Any] = {
        name: pa.repeat(pa.scalar(None if word is None else str(word), pa.string()), n)
        for name, word in words.items()
    }
    arrays |= {
        "position": pa.array(np.arange(n)),
        "seq": pa.array(columns["seq"]),
        "metric": pa.array(columns["metric"], pa.string()),
        "mode": pa.array(columns["mode"], pa.string()),
        "sent_unix_ns": pa.array(columns["sent"]),
        "value_ns": pa.array(columns["value"], mask=failed),
        "failure_kind": pa.array(np.where(failed, "timeout", None), pa.string()),
        "failure_stage": pa.array(np.where(failed, "wait", None), pa.string()),
        "flags": pa.ListArray.from_arrays(
            pa.array(np.concatenate(([0], np.cumsum(columns["busy"]))), pa.int32()),
            pa.repeat(pa.scalar("host_busy"), int(columns["busy"].sum())),
        ),
    }
    return pa.Table.from_arrays(
        [arrays.get(field.name, pa.nulls(n, field.type)) for field in SAMPLE_SCHEMA],
        schema=SAMPLE_SCHEMA,
    )
