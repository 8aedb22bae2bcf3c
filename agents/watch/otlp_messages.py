"""Measurements as requests of OTLP in protobuf: traces of requests, and distributions.

A distribution is an exponential histogram of scale 3 (its values are known to 4.5 %), of one
measurement: temporality delta, from its begin to its end. Sent again it is the same point again.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from pathbudget.agents.watch.book import labels_of
from pathbudget.agents.watch.outcomes import delay_of, failure_of, outcome_of
from pathbudget.agents.watch.request_traces import Span, traces_of
from pathbudget.agents.watch.trace_attributes import SCOPE, Value, resource_attributes
from pathbudget.probes.agent_health import AGENT
from pathbudget.probes.record import Measurement, Metric
from pathbudget.probes.table import probe_table

if TYPE_CHECKING:
    from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2
    from opentelemetry.proto.collector.trace.v1 import trace_service_pb2
    from opentelemetry.proto.common.v1 import common_pb2
    from opentelemetry.proto.metrics.v1 import metrics_pb2
    from opentelemetry.proto.trace.v1 import trace_pb2

SCALE = 3
SERVICE = "pathbudget"
_INT64 = 1 << 63


def trace_request(
    measurements: Iterable[Measurement], service: str = SERVICE
) -> "trace_service_pb2.ExportTraceServiceRequest":
    """One request with all of their traces; empty where none makes requests."""
    from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

    request = trace_service_pb2.ExportTraceServiceRequest()
    for measurement in measurements:
        traces = [] if measurement.probe == AGENT else list(traces_of(measurement))
        if not traces:
            continue
        resource = request.resource_spans.add()
        resource.resource.attributes.extend(_pairs(resource_attributes(measurement, service)))
        scope = resource.scope_spans.add()
        scope.scope.name = SCOPE
        scope.spans.extend(_span(span) for trace in traces for span in trace)
    return request


def metrics_request(
    measurements: Iterable[Measurement], service: str = SERVICE
) -> "metrics_service_pb2.ExportMetricsServiceRequest":
    """One request with all of their numbers."""
    from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2

    request = metrics_service_pb2.ExportMetricsServiceRequest()
    for measurement in measurements:
        if measurement.probe == AGENT or not measurement.samples:
            continue
        resource = request.resource_metrics.add()
        resource.resource.attributes.extend(_pairs(resource_attributes(measurement, service)))
        scope = resource.scope_metrics.add()
        scope.scope.name = SCOPE
        _add_numbers(scope, measurement)
    return request


def _span(span: Span) -> "trace_pb2.Span":
    from opentelemetry.proto.trace.v1 import trace_pb2

    kind = trace_pb2.Span.SPAN_KIND_CLIENT if span.is_root else trace_pb2.Span.SPAN_KIND_INTERNAL
    made = trace_pb2.Span(
        trace_id=span.trace_id,
        span_id=span.span_id,
        parent_span_id=span.parent_id,
        name=_clean(span.name),
        kind=kind,
        start_time_unix_nano=span.start_unix_ns,
        end_time_unix_nano=span.end_unix_ns,
        attributes=_pairs(span.attributes),
    )
    if span.failure is not None:
        failure = span.failure
        made.status.code = trace_pb2.Status.STATUS_CODE_ERROR
        detail = f": {failure.detail}" if failure.detail else ""
        made.status.message = _clean(f"{failure.kind} ({failure.stage}){detail}")
    return made


def _add_numbers(scope: "metrics_pb2.ScopeMetrics", measurement: Measurement) -> None:
    labels = {
        name: value
        for name, value in labels_of(measurement)._asdict().items()
        if value and name not in ("agent", "region")  # the resource says them
    }
    span = (measurement.started_unix_ns, measurement.started_unix_ns + measurement.duration_ns)
    delays: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    outcomes: defaultdict[tuple[str, str, str], int] = defaultdict(int)
    spec = probe_table().get(measurement.probe)
    primary = Metric.RTT if spec is None else spec.primary_metric
    for sample in measurement.samples:
        value = delay_of(sample)
        if value is not None:
            delays[sample.metric, sample.mode or ""].append(value)
        if sample.metric == primary:
            failure = failure_of(sample)
            kind, stage = failure or ("", "")
            outcomes[str(outcome_of(failure)), kind, stage] += 1
    for (metric, mode), values in sorted(delays.items()):
        more = {"mode": mode} if mode else {}
        _add_histogram(scope, f"pathbudget.{metric}", labels | more, span, values)
    if outcomes:
        _add_outcomes(scope, labels, span, outcomes)


def _add_histogram(
    scope: "metrics_pb2.ScopeMetrics",
    name: str,
    labels: Mapping[str, Value],
    span: tuple[int, int],
    values: Sequence[int],
) -> None:
    from opentelemetry.proto.metrics.v1 import metrics_pb2

    metric = scope.metrics.add(name=_clean(name), unit="s")
    metric.exponential_histogram.aggregation_temporality = metrics_pb2.AGGREGATION_TEMPORALITY_DELTA
    point = metric.exponential_histogram.data_points.add(
        start_time_unix_nano=span[0],
        time_unix_nano=span[1],
        count=len(values),
        sum=sum(values) / 1e9,
        min=min(values) / 1e9,
        max=max(values) / 1e9,
        scale=SCALE,
        zero_count=sum(1 for value in values if value == 0),
        attributes=_pairs(labels),
    )
    places = [bucket_of(value / 1e9) for value in values if value > 0]
    if places:
        counts = [0] * (max(places) - min(places) + 1)
        for place in places:
            counts[place - min(places)] += 1
        point.positive.offset = min(places)
        point.positive.bucket_counts.extend(counts)


def bucket_of(value: float) -> int:
    """Number of the bucket: it ends with `2 ** ((n + 1) / 8)`, which is part of it."""
    return math.ceil(math.log2(value) * (1 << SCALE)) - 1


def _add_outcomes(
    scope: "metrics_pb2.ScopeMetrics",
    labels: Mapping[str, Value],
    span: tuple[int, int],
    outcomes: Mapping[tuple[str, str, str], int],
) -> None:
    from opentelemetry.proto.metrics.v1 import metrics_pb2

    metric = scope.metrics.add(name="pathbudget.probes", unit="{shot}")
    metric.sum.aggregation_temporality = metrics_pb2.AGGREGATION_TEMPORALITY_DELTA
    metric.sum.is_monotonic = True
    for (outcome, kind, stage), count in sorted(outcomes.items()):
        why = {"error.type": kind, "pathbudget.stage": stage} if kind else {}
        metric.sum.data_points.add(
            start_time_unix_nano=span[0],
            time_unix_nano=span[1],
            as_int=count,
            attributes=_pairs({**labels, "outcome": outcome, **why}),
        )


def _pairs(attributes: Mapping[str, Value]) -> "list[common_pb2.KeyValue]":
    from opentelemetry.proto.common.v1 import common_pb2

    return [
        common_pb2.KeyValue(key=_clean(name), value=_value(value))
        for name, value in attributes.items()
    ]


def _value(value: Value) -> "common_pb2.AnyValue":
    from opentelemetry.proto.common.v1 import common_pb2

    if isinstance(value, bool):
        return common_pb2.AnyValue(bool_value=value)
    if isinstance(value, int) and -_INT64 <= value < _INT64:
        return common_pb2.AnyValue(int_value=value)
    if isinstance(value, float):
        return common_pb2.AnyValue(double_value=value)
    return common_pb2.AnyValue(string_value=_clean(str(value)))


def _clean(text: str) -> str:
    """Protobuf takes no half of a surrogate pair."""
    return text.encode("utf-8", "replace").decode()
