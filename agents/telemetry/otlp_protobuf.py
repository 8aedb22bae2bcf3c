"""Spans of one OTLP export request in protobuf.

The fields of the request itself (`trace_service.proto`: only ``resource_spans = 1``) are found
here, so that one that is corrupt has a place and hides none of the others. What is in them is read
by the generated code of OpenTelemetry.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from pathbudget.agents.telemetry.intake import Problems, RawSpan, SpanError, sound
from pathbudget.agents.telemetry.proto import trace_messages
from pathbudget.analysis.whole_budget.spans_model import Span, Value

if TYPE_CHECKING:
    from opentelemetry.proto.common.v1 import common_pb2
    from opentelemetry.proto.trace.v1 import trace_pb2

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
"""Wire types (protobuf encoding)."""
RESOURCE_SPANS = 1
DEEPEST = 32


class WireError(Exception):
    """The bytes are no protobuf message; `offset` is where that shows."""

    def __init__(self, offset: int, problem: str) -> None:
        self.offset, self.problem = offset, problem
        super().__init__(f"byte {offset}: {problem}")


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """The number at `at`, and where the next byte is. Raises WireError."""
    number = 0
    for place in range(10):
        if at + place >= len(data):
            raise WireError(at, "ends within a number")
        byte = data[at + place]
        number |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return number, at + place + 1
    raise WireError(at, "a number of more than 10 bytes")


def fields(data: bytes) -> Iterator[tuple[int, int, int, int]]:
    """(field, wire type, begin, end) of what one message holds. Raises WireError."""
    at = 0
    while at < len(data):
        begin = at
        tag, at = read_varint(data, at)
        number, kind = tag >> 3, tag & 7
        if not 0 < number < 1 << 29:
            raise WireError(begin, f"field number {number}")
        if kind == VARINT:
            start, (_, at) = at, read_varint(data, at)
        elif kind == LENGTH:
            size, start = read_varint(data, at)
            at = start + size
        elif kind in (FIXED64, FIXED32):
            start, at = at, at + (8 if kind == FIXED64 else 4)
        else:
            raise WireError(begin, f"wire type {kind}")
        if at > len(data):
            raise WireError(begin, f"field {number} ends {at - len(data)} bytes after the end")
        yield number, kind, start, at


def request_spans(
    data: bytes, file: str, place: str, problems: Problems, *, offset: int = 0
) -> Iterator[Span]:
    """The spans of one request. What cannot be read goes to `problems`.

    `offset` is where `data` begins in the file. Raises PathbudgetError without the library.
    """
    message, corrupt = trace_messages()
    at = -1
    try:
        for number, kind, begin, end in fields(data):
            if number != RESOURCE_SPANS or kind != LENGTH:
                continue
            at += 1
            where = f"{place}byte {offset + begin}, resourceSpans[{at}]"
            try:
                content = message.FromString(data[begin:end])
            except corrupt as error:
                problem = f"corrupt protobuf ({str(error)[:60]})"
                problems.part(file, where, problem, "a ResourceSpans message")
                continue
            yield from _of_resource(content, file, where, problems)
    except WireError as error:
        where = f"{place}byte {offset + error.offset}"
        problems.part(file, where, f"no protobuf: {error.problem}", "an OTLP export request")


def _of_resource(
    content: "trace_pb2.ResourceSpans", file: str, where: str, problems: Problems
) -> Iterator[Span]:
    resource = _attributes(content.resource.attributes)
    for at, scope in enumerate(content.scope_spans):
        for number, span in enumerate(scope.spans):
            try:
                yield sound(_fields(span), resource)
            except SpanError as error:
                problems.span(file, f"{where}.scopeSpans[{at}].spans[{number}]", error)


def _fields(span: "trace_pb2.Span") -> RawSpan:
    return RawSpan(
        span.trace_id,
        span.span_id,
        span.parent_span_id,
        span.name,
        span.kind,
        span.start_time_unix_nano,
        span.end_time_unix_nano,
        span.status.code,
        _attributes(span.attributes),
        [(event.name, event.time_unix_nano) for event in span.events],
    )


def _attributes(pairs: "Iterable[common_pb2.KeyValue]") -> dict[str, Value]:
    return {pair.key: _value(pair.value, 0) for pair in pairs}


def _value(told: "common_pb2.AnyValue", depth: int) -> Value:
    which = told.WhichOneof("value")
    if which is None or depth > DEEPEST:
        return None
    if which == "array_value":
        return [_value(one, depth + 1) for one in told.array_value.values]
    if which == "kvlist_value":
        return {pair.key: _value(pair.value, depth + 1) for pair in told.kvlist_value.values}
    value: Value = getattr(told, which)
    return value
