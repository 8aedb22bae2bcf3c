"""From what is on the wire to sound spans, and what was wrong with the others.

JSON and protobuf bring the same fields; here they are checked once. A broken span is one problem
with its place, and hides none of its neighbours.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pathbudget.analysis.whole_budget.spans_model import Span, SpanEvent, SpanKind, Value
from pathbudget.probes.errors import ConfigError, Fault

KEPT = 20
"""Problems that are kept with their place; all of them are counted."""
KINDS = tuple(SpanKind)
ERROR = 2
"""Status code (trace.proto)."""
LATEST = 1 << 63


class SpanError(Exception):
    """A span is unusable: which field, what stands there, what would be right, in a word or two."""

    def __init__(self, field: str, problem: str, expected: str, kind: str) -> None:
        self.field, self.problem, self.expected, self.kind = field, problem, expected, kind
        self.trace_id = self.parent_id = ""
        """Of the span, where that much could be read."""
        super().__init__(f"{field}: {problem}; expected {expected}")


@dataclass(slots=True)
class Problems:
    """What could not be read. Without `strict` it is counted; with it the first is raised."""

    strict: bool = False
    faults: list[Fault] = field(default_factory=list[Fault])
    spans: Counter[str] = field(default_factory=Counter[str])
    """Spans that were left out, by reason."""
    missing: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    """By trace, the spans that had such a one below them."""
    parts: int = 0
    """Larger pieces that cannot be read at all: lines, messages, files."""
    others: Counter[str] = field(default_factory=Counter[str])
    """What a file holds beside spans, and other remarks."""

    def part(self, file: str, where: str, problem: str, expected: str) -> None:
        """Note that something cannot be read in which there may be many spans."""
        self.parts += 1
        self._keep(Fault(file, where, problem, expected))

    def span(self, file: str, where: str, error: SpanError) -> None:
        """Note one unusable span."""
        self.spans[error.kind] += 1
        if error.trace_id:
            self.missing.setdefault(error.trace_id, set()).add(error.parent_id)
        place = f"{where}.{error.field}" if error.field else where
        self._keep(Fault(file, place, error.problem, error.expected))

    @property
    def count(self) -> int:
        """All that was left out."""
        return self.parts + self.spans.total()

    def _keep(self, fault: Fault) -> None:
        if self.strict:
            raise ConfigError([fault])
        if len(self.faults) < KEPT:
            self.faults.append(fault)


@dataclass(frozen=True, slots=True)
class RawSpan:
    """The fields of a span as they came, types right and nothing else checked."""

    trace_id: bytes
    span_id: bytes
    parent_id: bytes
    name: str
    kind: int
    start_unix_ns: int
    end_unix_ns: int
    status: int
    attributes: dict[str, Value]
    events: Sequence[tuple[str, int]]


def sound(raw: RawSpan, resource: dict[str, Value]) -> Span:
    """The span. Raises SpanError."""
    trace_id = _id(raw.trace_id, "traceId", 16)
    try:
        return _of_trace(trace_id, raw, resource)
    except SpanError as error:
        error.trace_id, error.parent_id = trace_id, raw.parent_id.hex()
        raise


def _of_trace(trace_id: str, raw: RawSpan, resource: dict[str, Value]) -> Span:
    span_id = _id(raw.span_id, "spanId", 8)
    parent = _id(raw.parent_id, "parentSpanId", 8) if any(raw.parent_id) else ""
    _check_times(raw.start_unix_ns, raw.end_unix_ns)
    events = tuple(SpanEvent(name, unix_ns) for name, unix_ns in raw.events)
    return Span(
        trace_id,
        span_id,
        parent,
        raw.name,
        raw.start_unix_ns,
        raw.end_unix_ns,
        KINDS[raw.kind] if 0 <= raw.kind < len(KINDS) else SpanKind.UNSPECIFIED,
        raw.status == ERROR,
        raw.attributes,
        events,
        resource,
    )


def _id(value: bytes, key: str, size: int) -> str:
    if len(value) == size and any(value):
        return value.hex()
    if not value:
        problem = "is missing"
    elif len(value) != size:
        problem = f"{len(value)} bytes"
    else:
        problem = "only zeros"
    raise SpanError(key, problem, f"{size} bytes, not all of them 0", "wrong ids")


def _check_times(start: int, end: int) -> None:
    for key, value in (("startTimeUnixNano", start), ("endTimeUnixNano", end)):
        if not 0 < value < LATEST:
            problem = f"{value}" if value else "is missing"
            raise SpanError(key, problem, "nanoseconds since 1970", "wrong times")
    if end < start:
        problem = f"{end} is {start - end} ns before the start"
        raise SpanError("endTimeUnixNano", problem, "an end after the start", "end before start")


Spans = Iterator[Span]
