"""Spans of one OTLP export request in JSON (OTLP 1.x, "JSON Protobuf Encoding").

By the standard: ids are hexadecimal, 64-bit numbers are texts or numbers, unknown fields are
ignored. Beyond it, because exporters send them: ids in base64, as protobuf's own JSON has them
(their length tells), and names of enumerations.
"""

import base64
import binascii
from collections.abc import Iterable, Iterator
from typing import Annotated

import msgspec

from pathbudget.agents.telemetry.intake import KINDS, Problems, RawSpan, SpanError, sound
from pathbudget.analysis.whole_budget.spans_model import Span, Value

DEEPEST = 32
"""Lists within lists of attribute values that are followed."""
STATUSES = ("UNSET", "OK", "ERROR")
OTHER_SIGNALS = {
    "resourceLogs": "logs",
    "resourceMetrics": "metrics",
    "resourceProfiles": "profiles",
}
LARGEST = 1 << 64

Nano = Annotated[int | str | None, "decimal"]


class _AnyValue(msgspec.Struct):
    stringValue: str | None = None  # noqa: N815
    boolValue: bool | None = None  # noqa: N815
    intValue: int | str | None = None  # noqa: N815
    doubleValue: float | str | None = None  # noqa: N815
    arrayValue: "_Array | None" = None  # noqa: N815
    kvlistValue: "_KeyValues | None" = None  # noqa: N815
    bytesValue: str | None = None  # noqa: N815


class _Array(msgspec.Struct):
    values: list[_AnyValue] | None = None


class _KeyValue(msgspec.Struct):
    key: str = ""
    value: _AnyValue | None = None


class _KeyValues(msgspec.Struct):
    values: list[_KeyValue] | None = None


class _Event(msgspec.Struct):
    name: str | None = None
    timeUnixNano: Nano = None  # noqa: N815


class _Status(msgspec.Struct):
    code: int | str | None = None


class _Span(msgspec.Struct):
    traceId: str | None = None  # noqa: N815
    spanId: str | None = None  # noqa: N815
    parentSpanId: str | None = None  # noqa: N815
    name: str | None = None
    kind: int | str | None = None
    startTimeUnixNano: Nano = None  # noqa: N815
    endTimeUnixNano: Nano = None  # noqa: N815
    attributes: list[_KeyValue] | None = None
    events: list[_Event] | None = None
    status: _Status | None = None


class _Resource(msgspec.Struct):
    attributes: list[_KeyValue] | None = None


class _ScopeSpans(msgspec.Struct):
    spans: list[msgspec.Raw] | None = None


class _ResourceSpans(msgspec.Struct):
    resource: _Resource | None = None
    scopeSpans: list[msgspec.Raw] | None = None  # noqa: N815
    instrumentationLibrarySpans: list[msgspec.Raw] | None = None  # noqa: N815
    """What it was called before OTLP 0.15."""


_request = msgspec.json.Decoder(dict[str, msgspec.Raw])
_list = msgspec.json.Decoder(list[msgspec.Raw] | None)
_resource_spans = msgspec.json.Decoder(_ResourceSpans)
_scope_spans = msgspec.json.Decoder(_ScopeSpans)
_span = msgspec.json.Decoder(_Span)

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def request_spans(text: bytes, file: str, place: str, problems: Problems) -> Iterator[Span]:
    """The spans of one request; `place` says where it stands in the file (``line 7``, or nothing).

    What cannot be read goes to `problems`. Raises `UNREADABLE` for what is no JSON at all, before
    the first span.
    """
    if text.lstrip()[:1] != b"{":
        msgspec.json.decode(text)
        problems.part(file, place, f"{_shown(text)} is no object", "an export request in JSON")
        return
    content = _request.decode(text)
    _look_around(content, file, place, problems)
    raw = content.get("resourceSpans")
    if raw is None:
        return
    try:
        found = _list.decode(raw) or []
    except UNREADABLE as error:
        problems.part(file, _at(place, "resourceSpans"), _said(error), "a list")
        return
    for at, one in enumerate(found):
        where = _at(place, f"resourceSpans[{at}]")
        yield from _of_resource(one, file, where, problems)


def _look_around(
    content: dict[str, msgspec.Raw], file: str, place: str, problems: Problems
) -> None:
    for key, signal in OTHER_SIGNALS.items():
        if key in content:
            problems.others[f"requests with {signal}, which hold no spans"] += 1
    if content and not {"resourceSpans", *OTHER_SIGNALS} & set(content):
        known = ", ".join(list(content)[:3])
        problems.part(file, place, f"an object with {known[:60]}", "resourceSpans in it")


def _of_resource(raw: msgspec.Raw, file: str, where: str, problems: Problems) -> Iterator[Span]:
    try:
        content = _resource_spans.decode(raw)
        attributes = _attributes(content.resource.attributes if content.resource else None)
    except UNREADABLE as error:
        problems.part(file, where + _inner(error), _said(error), "resource and scopeSpans")
        return
    except SpanError as error:
        problems.part(file, f"{where}.resource.{error.field}", error.problem, error.expected)
        return
    for key in ("scopeSpans", "instrumentationLibrarySpans"):
        for at, one in enumerate(getattr(content, key) or ()):
            scope = f"{where}.{key}[{at}]"
            try:
                spans = _scope_spans.decode(one).spans or []
            except UNREADABLE as error:
                problems.part(file, scope + _inner(error), _said(error), "a scope with its spans")
                continue
            yield from _of_scope(spans, attributes, file, scope, problems)


def _of_scope(
    spans: Iterable[msgspec.Raw],
    resource: dict[str, Value],
    file: str,
    where: str,
    problems: Problems,
) -> Iterator[Span]:
    for at, raw in enumerate(spans):
        try:
            span = sound(_fields(raw), resource)
        except SpanError as error:
            problems.span(file, f"{where}.spans[{at}]", error)
        else:
            yield span


def _fields(raw: msgspec.Raw) -> RawSpan:
    try:
        told = _span.decode(raw)
    except UNREADABLE as error:
        inner = _inner(error).removeprefix(".")
        raise SpanError(inner, _said(error), "a span", "wrong types") from error
    status = told.status.code if told.status is not None else None
    return RawSpan(
        _id("traceId", told.traceId, 16),
        _id("spanId", told.spanId, 8),
        _id("parentSpanId", told.parentSpanId, 8),
        told.name or "",
        _number_of("kind", told.kind, "SPAN_KIND_", [kind.upper() for kind in KINDS]),
        _integer("startTimeUnixNano", told.startTimeUnixNano),
        _integer("endTimeUnixNano", told.endTimeUnixNano),
        _number_of("status.code", status, "STATUS_CODE_", STATUSES),
        _attributes(told.attributes),
        [
            (event.name or "", _integer(f"events[{at}].timeUnixNano", event.timeUnixNano))
            for at, event in enumerate(told.events or ())
        ],
    )


def _id(key: str, text: str | None, size: int) -> bytes:
    """Hexadecimal by the standard, base64 where the length says so; empty for none."""
    if not text:
        return b""
    try:
        if len(text) == 4 * -(-size // 3):
            return base64.b64decode(text, validate=True)
        return bytes.fromhex(text) if text.isalnum() else _no_id(key, text, size)
    except (ValueError, binascii.Error):
        return _no_id(key, text, size)


def _no_id(key: str, text: str, size: int) -> bytes:
    raise SpanError(key, f'"{text[:40]}"', f"{2 * size} hexadecimal digits", "wrong ids")


def _integer(key: str, value: int | str | None) -> int:
    if value is None or value == "":
        return 0
    if isinstance(value, str):
        if not (value.isascii() and value.lstrip("-").isdigit() and len(value) <= 20):
            raise SpanError(key, f'"{value[:40]}"', "a whole number", "wrong types")
        value = int(value)
    if not -LARGEST < value < LARGEST:
        raise SpanError(key, "a number beyond 64 bits", "a whole number of 64 bits", "wrong types")
    return value


def _number_of(key: str, value: int | str | None, prefix: str, names: Iterable[str]) -> int:
    """An enumeration as its number; by its name too, which the standard forbids."""
    if isinstance(value, str) and not value.isdigit():
        names = list(names)
        name = value.upper().removeprefix(prefix)
        if name not in names:
            raise SpanError(key, f'"{value[:40]}"', f"one of 0 to {len(names) - 1}", "wrong types")
        return names.index(name)
    return _integer(key, value)


def _attributes(pairs: list[_KeyValue] | None) -> dict[str, Value]:
    return {pair.key: _value(pair.value, f"attributes.{pair.key[:40]}", 0) for pair in pairs or ()}


def _value(told: _AnyValue | None, key: str, depth: int) -> Value:
    if told is None or depth > DEEPEST:
        return None
    if told.stringValue is not None:
        return told.stringValue
    if told.boolValue is not None:
        return told.boolValue
    if told.intValue is not None:
        return _integer(key, told.intValue)
    if told.doubleValue is not None:
        return _double(key, told.doubleValue)
    if told.arrayValue is not None:
        return [_value(one, key, depth + 1) for one in told.arrayValue.values or ()]
    if told.kvlistValue is not None:
        pairs = told.kvlistValue.values or ()
        return {pair.key: _value(pair.value, key, depth + 1) for pair in pairs}
    return told.bytesValue


def _double(key: str, value: float | str) -> float:
    """Protobuf's JSON has NaN and Infinity as texts."""
    try:
        return float(value)
    except ValueError:
        raise SpanError(key, f'"{str(value)[:40]}"', "a number", "wrong types") from None


def _at(place: str, inner: str) -> str:
    return f"{place}, {inner}" if place else inner


def _inner(error: Exception) -> str:
    """The path that msgspec adds to what it says: `` - at `$.status.code` ``."""
    _, _, path = str(error).partition(" - at `$")
    return path.rstrip("`")


def _said(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "is nested too deeply"
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start} is not UTF-8"
    return str(error).partition(" - at `$")[0]


def _shown(text: bytes) -> str:
    return text.strip()[:30].decode(errors="replace")
