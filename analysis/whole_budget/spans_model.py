"""One span of a trace, as far as the budget needs it (OpenTelemetry Trace, `trace.proto`)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

Value: TypeAlias = "str | bool | int | float | bytes | list[Value] | dict[str, Value] | None"
"""What an attribute holds."""


class SpanKind(StrEnum):
    """In the order of their numbers on the wire."""

    UNSPECIFIED = "unspecified"
    INTERNAL = "internal"
    SERVER = "server"
    CLIENT = "client"
    PRODUCER = "producer"
    CONSUMER = "consumer"


@dataclass(frozen=True, slots=True)
class SpanEvent:
    """Something that happened at one moment of a span."""

    name: str
    unix_ns: int


@dataclass(frozen=True, slots=True)
class Span:
    """A sound span: ids in lower-case hex (16 and 8 bytes, not all zero), `end` not before `start`.

    Both times are of one clock, that of the service which made the span.
    """

    trace_id: str
    span_id: str
    parent_id: str
    """Empty: the span is the root of its trace."""
    name: str
    start_unix_ns: int
    end_unix_ns: int
    kind: SpanKind = SpanKind.UNSPECIFIED
    failed: bool = False
    """Status ERROR."""
    attributes: Mapping[str, Value] = field(default_factory=dict[str, Value])
    events: tuple[SpanEvent, ...] = ()
    resource: Mapping[str, Value] = field(default_factory=dict[str, Value])

    @property
    def service(self) -> str:
        """``service.name`` of the resource; empty where it has none."""
        name = self.resource.get("service.name")
        return name if isinstance(name, str) else ""
