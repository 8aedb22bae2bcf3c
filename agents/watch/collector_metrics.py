"""What a collector says of itself, and of what it hands on, as metrics."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from pathbudget.agents.collector.status import CollectorStatus
from pathbudget.agents.watch.buckets import NS
from pathbudget.agents.watch.otlp_export import OtlpStream
from pathbudget.agents.watch.text import PREFIX

if TYPE_CHECKING:
    from prometheus_client.core import Metric as MetricFamily


class CollectorMetric(NamedTuple):
    """One number of a collector; None where it does not know it."""

    name: str
    help: str
    value: Callable[[CollectorStatus], float | None]

    @property
    def is_counter(self) -> bool:
        """By its name, as the convention has it."""
        return self.name.endswith("_total")


def _seconds(ns: int | None) -> float | None:
    return None if ns is None else ns / NS


def _stored(one: CollectorStatus) -> float:
    return one.measurements


def _samples(one: CollectorStatus) -> float:
    return one.samples


def _duplicates(one: CollectorStatus) -> float:
    return one.duplicates


def _waiting(one: CollectorStatus) -> float | None:
    return one.waiting


def _oldest(one: CollectorStatus) -> float | None:
    return _seconds(one.oldest_unix_ns)


def _written(one: CollectorStatus) -> float | None:
    return _seconds(one.written_unix_ns)


def _trouble(one: CollectorStatus) -> float:
    return bool(one.trouble)


def _started(one: CollectorStatus) -> float | None:
    return _seconds(one.started_unix_ns)


COLLECTOR_METRICS = (
    CollectorMetric(
        f"{PREFIX}_collector_measurements_total", "Measurements that were stored.", _stored
    ),
    CollectorMetric(
        f"{PREFIX}_collector_samples_total",
        "Samples of the measurements that were taken, duplicates too.",
        _samples,
    ),
    CollectorMetric(
        f"{PREFIX}_collector_duplicates_total",
        "Measurements that the store had already.",
        _duplicates,
    ),
    CollectorMetric(
        f"{PREFIX}_collector_waiting_measurements",
        "Measurements on the bus that no collector has vouched for.",
        _waiting,
    ),
    CollectorMetric(
        f"{PREFIX}_collector_oldest_timestamp_seconds",
        "When the oldest was published that is being written; absent where nothing is.",
        _oldest,
    ),
    CollectorMetric(
        f"{PREFIX}_collector_written_timestamp_seconds",
        "When the store last took something; absent before the first time.",
        _written,
    ),
    CollectorMetric(
        f"{PREFIX}_collector_trouble", "1: nothing can be taken or written now.", _trouble
    ),
    CollectorMetric(
        f"{PREFIX}_collector_start_timestamp_seconds", "When the collector was started.", _started
    ),
)
REJECTED = f"{PREFIX}_collector_rejected_total"
OTLP_SENT = f"{PREFIX}_otlp_measurements_total"
OTLP_DROPPED = f"{PREFIX}_otlp_dropped_measurements_total"
OTLP_WAITING = f"{PREFIX}_otlp_waiting_measurements"
OTLP_METRICS = (OTLP_SENT, OTLP_DROPPED, OTLP_WAITING)
_DROPPED = "dropped_"


def collector_families(status: CollectorStatus) -> "Iterator[MetricFamily]":
    """What one collector says."""
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    rejected = CounterMetricFamily(
        REJECTED, "Messages that can be no results, by what is wrong.", labels=["fault"]
    )
    for fault, count in sorted(status.rejected.items()):
        rejected.add_metric([fault], count)
    yield rejected
    for metric in COLLECTOR_METRICS:
        family = (CounterMetricFamily if metric.is_counter else GaugeMetricFamily)(
            metric.name, metric.help, labels=[]
        )
        value = metric.value(status)
        if value is not None:
            family.add_metric([], float(value))
        yield family


def stream_families(stream: OtlpStream) -> "Iterator[MetricFamily]":
    """What was handed on by OTLP, and what was not."""
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    counts = dict(stream.counts)
    sent = CounterMetricFamily(OTLP_SENT, "Measurements that were sent by OTLP.", labels=[])
    sent.add_metric([], counts.get("measurements", 0))
    yield sent
    dropped = CounterMetricFamily(
        OTLP_DROPPED, "Measurements that were not, by reason.", labels=["reason"]
    )
    for reason in ("queue", "refused", "given_up"):
        dropped.add_metric([reason], counts.get(_DROPPED + reason, 0))
    yield dropped
    waiting = GaugeMetricFamily(OTLP_WAITING, "Measurements that wait to be sent.", labels=[])
    waiting.add_metric([], stream.waiting)
    yield waiting
