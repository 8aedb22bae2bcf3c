"""A store as one file: CSV of samples, JSON lines of measurements, or Parquet of samples.

Everything streams. A file appears under its name only when it is whole.
"""

import csv
import io
import os
import sys
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

import msgspec

from pathbudget.agents.store.disk import explain_os_error, sync
from pathbudget.agents.store.table_files import parquet_writer, sample_writer, write_samples
from pathbudget.agents.store.update_files import ROW_GROUP, update_batches
from pathbudget.probes.bgp.record import RouteUpdate
from pathbudget.probes.bgp.update_table import UPDATE_SCHEMA, update_table
from pathbudget.probes.codec import encode_line
from pathbudget.probes.errors import StoreError
from pathbudget.probes.record import Measurement, Sample
from pathbudget.probes.spreadsheet import harmless

CSV_HEADER = (
    "sent (UTC)",
    "campaign",
    "region",
    "vantage",
    "network",
    "site",
    "target",
    "address",
    "family",
    "probe",
    "metric",
    "connection mode",
    "value (ms)",
    "failure",
    "failure stage",
    "failure detail",
    "ICMP type",
    "ICMP code",
    "responder",
    "TTL (hops)",
    "clock source",
    "sent late by (ms)",
    "flags",
    "sequence",
    "measurement",
)


def write_csv(measurements: Iterable[Measurement], file: BinaryIO) -> int:
    """One row per sample, under a header with units. Returns the number of rows."""
    text = io.TextIOWrapper(file, encoding="utf-8", newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(CSV_HEADER)
    rows = 0
    for measurement in measurements:
        writer.writerows(_csv_row(measurement, sample) for sample in measurement.samples)
        rows += len(measurement.samples)
    text.flush()
    text.detach()
    return rows


def write_json_lines(measurements: Iterable[Measurement], file: BinaryIO) -> int:
    """One line per measurement, as `codec` writes it. Returns the number of lines."""
    lines = 0
    for measurement in measurements:
        file.write(encode_line(measurement))
        lines += 1
    return lines


def write_parquet(measurements: Iterable[Measurement], file: BinaryIO) -> int:
    """The sample table as one Parquet file. Returns the number of rows."""
    with sample_writer(file) as writer:
        return write_samples(writer, measurements)


UPDATE_CSV_HEADER = (
    "time (UTC)",
    "arrived (UTC)",
    "feed",
    "feed kind",
    "collector",
    "peer",
    "peer AS",
    "kind",
    "prefix",
    "AS path",
    "origin",
    "next hop",
    "local preference",
    "MED",
    "communities",
    "path id",
    "detail",
    "update",
)


def write_updates_csv(updates: Iterable[RouteUpdate], file: BinaryIO) -> int:
    """One row per update, under a header. Returns the number of rows."""
    text = io.TextIOWrapper(file, encoding="utf-8", newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(UPDATE_CSV_HEADER)
    rows = 0
    for update in updates:
        writer.writerow(_update_row(update))
        rows += 1
    text.flush()
    text.detach()
    return rows


def write_updates_json_lines(updates: Iterable[RouteUpdate], file: BinaryIO) -> int:
    """One line per update. Returns the number of lines."""
    lines = 0
    for update in updates:
        file.write(msgspec.json.encode(update) + b"\n")
        lines += 1
    return lines


def write_updates_parquet(updates: Iterable[RouteUpdate], file: BinaryIO) -> int:
    """The table of updates as one Parquet file. Returns the number of rows."""
    rows = 0
    with parquet_writer(file, UPDATE_SCHEMA) as writer:
        for batch in update_batches(updates):
            writer.write_table(update_table(batch), row_group_size=ROW_GROUP)
            rows += len(batch)
    return rows


UPDATE_FORMATS: dict[str, Callable[[Iterable[RouteUpdate], BinaryIO], int]] = {
    "csv": write_updates_csv,
    "jsonl": write_updates_json_lines,
    "parquet": write_updates_parquet,
}
FORMATS: dict[str, Callable[[Iterable[Measurement], BinaryIO], int]] = {
    "csv": write_csv,
    "jsonl": write_json_lines,
    "parquet": write_parquet,
}


@contextmanager
def whole_file(path: Path | None) -> Generator[BinaryIO]:
    """A file that gets its name when it is complete; standard output for None.

    Raises StoreError for what the disk says.
    """
    if path is None:
        with _standard_output() as file:
            yield file
        return
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("xb") as file:
            yield file
        sync(part)
        part.replace(path)
    except OSError as error:
        raise StoreError(f"{path}: cannot be written: {explain_os_error(error)}") from None
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def _standard_output() -> Generator[BinaryIO]:
    try:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise  # whoever reads has seen enough; the command line knows what to do
    except OSError as error:
        raise StoreError(f"standard output: {explain_os_error(error)}") from None


def milliseconds(ns: int | None) -> str:
    """Exact: ``-0.000125`` for -125 ns. Empty for None."""
    if ns is None:
        return ""
    whole, rest = divmod(abs(ns), 1_000_000)
    return f"{'-' if ns < 0 else ''}{whole}.{rest:06d}"


def _update_row(update: RouteUpdate) -> tuple[object, ...]:
    return (
        utc_text(update.time_unix_ns),
        utc_text(update.arrived_unix_ns),
        harmless(update.feed),
        update.feed_kind,
        harmless(update.collector),
        update.peer_address,
        update.peer_asn,
        update.kind,
        update.prefix,
        update.as_path,
        update.origin,
        update.next_hop,
        update.local_preference,
        update.med,
        " ".join(update.communities),
        update.path_id,
        harmless(update.detail),
        update.id,
    )


def utc_text(unix_ns: int) -> str:
    """``2026-03-01T12:00:00.123456789Z``."""
    seconds, rest = divmod(unix_ns, 1_000_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:09d}Z"


def _csv_row(measurement: Measurement, sample: Sample) -> tuple[object, ...]:
    vantage, target, failure = measurement.vantage, measurement.target, sample.failure
    return (
        utc_text(sample.sent_unix_ns),
        harmless(measurement.campaign),
        harmless(vantage.region),
        harmless(vantage.name),
        harmless(vantage.network),
        harmless(target.site),
        harmless(target.name),
        measurement.address,
        measurement.family or "",
        harmless(measurement.probe),
        harmless(sample.metric),
        sample.mode or "",
        milliseconds(sample.value_ns),
        failure.kind if failure else "",
        failure.stage if failure else "",
        harmless(failure.detail) if failure else "",
        failure.icmp_type if failure else None,
        failure.icmp_code if failure else None,
        sample.responder,
        sample.ttl,
        sample.clock_source,
        milliseconds(sample.lateness_ns),
        " ".join(sample.flags),
        sample.seq,
        measurement.id,
    )
