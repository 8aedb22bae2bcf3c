"""Exports of the OpenTelemetry SDK itself, in every form of file, whole and broken."""

import base64
import gzip
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from pathbudget.agents.telemetry.intake import Problems
from pathbudget.agents.telemetry.otlp_files import read_spans
from pathbudget.analysis.whole_budget.spans import terms_of
from pathbudget.analysis.whole_budget.spans_model import Span, SpanKind
from pathbudget.analysis.whole_budget.terms import TermName
from pathbudget.probes.errors import ConfigError

Encode = Callable[[Sequence[ReadableSpan]], bytes]
MS = 1_000_000


@pytest.fixture
def spans(service: Any, exported: InMemorySpanExporter) -> tuple[ReadableSpan, ...]:
    """Of two requests."""
    service.requests(2)
    return exported.get_finished_spans()


def write(folder: Path, content: bytes, name: str = "traces.json") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def told(path: Path) -> tuple[list[Span], list[str]]:
    """The spans, and the faults without the folder."""
    problems = Problems()
    found = list(read_spans(path, problems))
    return found, [str(fault).replace(f"{path.parent}/", "") for fault in problems.faults]


def id_of(span: ReadableSpan) -> str:
    context = span.get_span_context()
    assert context is not None
    return f"{context.span_id:016x}"


def same(found: Sequence[Span], spans: Sequence[ReadableSpan]) -> bool:
    return [(one.span_id, one.start_unix_ns, one.end_unix_ns, one.name) for one in found] == [
        (id_of(one), one.start_time, one.end_time, one.name) for one in spans
    ]


def test_what_the_sdk_exports_becomes_the_terms_of_its_script(
    tmp_path: Path, service: Any, exported: InMemorySpanExporter, encode: Encode
) -> None:
    truth = service.requests(5)
    path = write(tmp_path, encode(exported.get_finished_spans()))
    found = terms_of(read_spans(path))
    assert [term.name for term in found.terms] == list(truth[0].by_term)
    for term in found.terms:
        expected = [one.by_term[term.name] for one in truth]
        assert [value / MS for value in term.values_ns] == pytest.approx(expected)
        assert term.requests == found.terms[0].requests
        assert len(set(term.requests)) == 5
    assert list(found.input_tokens) == [812.0] * 5
    assert list(found.output_tokens) == [61.0] * 5


def test_a_failed_request_of_the_sdk_is_kept_as_a_loss(
    tmp_path: Path, service: Any, exported: InMemorySpanExporter, encode: Encode
) -> None:
    service.requests(3)
    service.failing_request()
    found = terms_of(read_spans(write(tmp_path, encode(exported.get_finished_spans()))))
    losses = {term.name: (term.distribution.n, term.distribution.losses) for term in found.terms}
    assert losses[TermName.TTFT] == losses[TermName.FIRST_TOKENS] == (4, 1)
    assert losses[TermName.GATEWAY] == (4, 0)
    assert losses[TermName.GUARDRAIL] == (3, 0)


def test_every_field_of_a_span_arrives(
    tmp_path: Path, spans: tuple[ReadableSpan, ...], encode: Encode
) -> None:
    found, faults = told(write(tmp_path, encode(spans)))
    assert faults == []
    assert same(found, spans)
    call = next(one for one in found if one.name == "chat llama")
    assert call.kind is SpanKind.CLIENT
    assert call.service == "api-gateway"
    assert call.attributes["gen_ai.request.stream"] is True
    assert call.attributes["gen_ai.usage.output_tokens"] == 61
    assert [event.name for event in call.events] == ["First Token Stream Event"]
    assert next(one for one in found if one.name.startswith("POST")).parent_id == ""


def pretty(text: bytes) -> bytes:
    return json.dumps(json.loads(text), indent=2).encode()


JSON_FORMS: dict[str, Callable[[list[bytes]], bytes]] = {
    "lines": lambda texts: b"\n".join(texts) + b"\n",
    "blank lines": lambda texts: b"\n\n" + b"\r\n\n".join(texts),
    "list": lambda texts: b" [" + b",\n".join(texts) + b"]",
    "gzip": lambda texts: gzip.compress(b"\n".join(texts)),
    "byte order mark": lambda texts: b"\xef\xbb\xbf" + b"\n".join(texts),
    "pretty list": lambda texts: b"[" + b",".join(map(pretty, texts)) + b"]",
}


@pytest.mark.parametrize("form", JSON_FORMS)
def test_forms_of_json_files(
    tmp_path: Path, spans: tuple[ReadableSpan, ...], json_of: Encode, form: str
) -> None:
    content = JSON_FORMS[form]([json_of(spans[:4]), json_of(spans[4:])])
    found, faults = told(write(tmp_path, content))
    assert faults == []
    assert same(found, spans)


def test_one_pretty_request(
    tmp_path: Path, spans: tuple[ReadableSpan, ...], json_of: Encode
) -> None:
    found, faults = told(write(tmp_path, pretty(json_of(spans))))
    assert (same(found, spans), faults) == (True, [])


def varint(number: int) -> bytes:
    return bytes([number & 0x7F | 0x80, number >> 7]) if number > 0x7F else bytes([number])


PROTOBUF_FORMS: dict[str, Callable[[list[bytes]], bytes]] = {
    "joined": b"".join,
    "behind 4 bytes": lambda all_: b"".join(len(one).to_bytes(4, "big") + one for one in all_),
    "behind varints": lambda all_: b"".join(varint(len(one)) + one for one in all_),
    "gzip": lambda all_: gzip.compress(all_[0] + all_[1]),
}


@pytest.mark.parametrize("form", PROTOBUF_FORMS)
def test_forms_of_protobuf_files(
    tmp_path: Path, spans: tuple[ReadableSpan, ...], protobuf_of: Encode, form: str
) -> None:
    content = PROTOBUF_FORMS[form]([protobuf_of(spans[:4]), protobuf_of(spans[4:])])
    found, faults = told(write(tmp_path, content))
    assert faults == []
    assert same(found, spans)


@pytest.mark.needs("data")
def test_the_example_of_the_specification(shared_data: Path) -> None:
    found = terms_of(read_spans(shared_data / "llm" / "otlp_trace_example.json"))
    (term,) = found.terms
    assert (term.name, list(term.values_ns)) == (TermName.GATEWAY, [1e9])
    assert term.requests == ("5b8efff798038103d269b633813fc60c",)
    assert found.notes == {"incomplete: a parent is missing": 1}


def one_span(**fields: Any) -> dict[str, Any]:
    usual = {
        "traceId": "5B8EFFF798038103D269B633813FC60C", "spanId": "EEE19B7EC3C1B174",
        "name": "a", "startTimeUnixNano": "1544712660000000000",
        "endTimeUnixNano": 1544712661000000000,
    }  # fmt: skip
    return {key: value for key, value in {**usual, **fields}.items() if value != "none"}


def request_of(*spans: dict[str, Any]) -> bytes:
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": list(spans)}]}]}).encode()


PLACE = "line 1, resourceSpans[0].scopeSpans[0].spans[1]"
BROKEN: dict[str, tuple[dict[str, Any], str]] = {
    "short id": ({"traceId": "5B8E"}, ".traceId: 2 bytes; expected 16 bytes, not all of them 0"),
    "no hex": ({"spanId": "EEE19B7EC3C1B17Z"}, '.spanId: "EEE19B7EC3C1B17Z"; expected 16 hex'),
    "zero id": ({"spanId": "0" * 16}, ".spanId: only zeros; expected 8 bytes"),
    "no id": ({"traceId": "none"}, ".traceId: is missing; expected 16 bytes"),
    "long parent": ({"parentSpanId": "EE" * 9}, ".parentSpanId: 9 bytes; expected 8 bytes"),
    "backwards": ({"endTimeUnixNano": "1544712659999999999"},
                  ".endTimeUnixNano: 1544712659999999999 is 1 ns before the start"),
    "no end": ({"endTimeUnixNano": "none"}, ".endTimeUnixNano: is missing; expected nanoseconds"),
    "time in words": ({"startTimeUnixNano": "noon"}, '.startTimeUnixNano: "noon"; expected'),
    "time as a list": ({"startTimeUnixNano": [1]}, ".startTimeUnixNano: Expected `int | str"),
    "name as a number": ({"name": 7}, ".name: Expected `str | null`, got `int`; expected a span"),
    "attributes as a map": ({"attributes": {"a": 1}}, ".attributes: Expected `array | null`"),
    "attribute": ({"attributes": [{"key": "n", "value": {"intValue": "x"}}]},
                  '.attributes.n: "x"; expected a whole number'),
    "kind": ({"kind": "SPAN_KIND_ODD"}, '.kind: "SPAN_KIND_ODD"; expected one of 0 to 5'),
    "status": ({"status": {"code": {}}}, ".status.code: Expected `int | str | null`, got `object`"),
    "too large": ({"startTimeUnixNano": 1 << 70}, ".startTimeUnixNano: "),
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_span_has_a_place_and_hides_no_other(tmp_path: Path, case: str) -> None:
    fields, expected = BROKEN[case]
    path = write(tmp_path, request_of(one_span(), one_span(**fields), one_span()))
    found, faults = told(path)
    assert len(found) == 2
    assert len(faults) == 1
    assert f"traces.json: {PLACE}{expected}" in faults[0]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "traces.json: is empty; expected an OTLP export"),
        (b"\n \n", "traces.json: is empty"),
        (b"hello world", "traces.json: line 1: 'hello world' is no JSON object"),
        (b'{"a": 1}', "traces.json: line 1: an object with a; expected resourceSpans in it"),
        (b'{"resource_spans": []}', "an object with resource_spans; expected resourceSpans in it"),
        (b'{"resourceSpans": 3}', "line 1, resourceSpans: Expected `array | null`, got `int`"),
        (b'{"resourceSpans": [7]}', "line 1, resourceSpans[0]: Expected `object`, got `int`"),
        (b'{"resourceSpans": [{"scopeSpans": {}}]}', "resourceSpans[0].scopeSpans: Expected `arr"),
        (b"[1, 2", "traces.json: line 1: '[1, 2' is no JSON object"),
        (b'[{"resourceSpans": []}, 2]', "request 2: 2 is no object"),
        (b"[" * 100_000, "is no JSON object"),
        (b'{"a":' * 100_000, "traces.json: is nested too deeply"),
        (b"\x28\xb5\x2f\xfd....", "traces.json: is packed with zstd"),
        (b'{"resourceSpans"\n:[{}\n,,]}', "traces.json: line 3, column 2: JSON is malformed"),
        (b'{"resourceSpans": [{"\xff": 1}]}', "traces.json"),
    ],
)  # fmt: skip
def test_what_is_no_export_is_said(tmp_path: Path, content: bytes, expected: str) -> None:
    found, faults = told(write(tmp_path, content))
    assert found == []
    if b"\xff" in content:
        return  # a key that nobody reads
    assert len(faults) == 1
    assert expected in faults[0]


def test_a_cut_off_line_leaves_the_others(
    tmp_path: Path, spans: tuple[ReadableSpan, ...], json_of: Encode
) -> None:
    whole, cut = json_of(spans), json_of(spans)[:-7]
    for lines in ((whole, cut), (cut, whole)):
        found, faults = told(write(tmp_path, b"\n".join(lines)))
        assert same(found, spans)
        place = 1 + (lines[1] is cut)
        expected = f"line {place}: the JSON is cut off after {len(cut)} bytes; expected whole JSON"
        assert faults == [f"traces.json: {expected}"]
    _, (fault,) = told(write(tmp_path, pretty(whole)[:-9]))
    assert "the JSON is cut off after" in fault


def test_cut_off_and_corrupt_protobuf_has_a_place(
    tmp_path: Path, spans: tuple[ReadableSpan, ...], protobuf_of: Encode
) -> None:
    one = protobuf_of(spans)
    found, (fault,) = told(write(tmp_path, one[:-5]))
    assert found == []
    assert fault.startswith("traces.json: byte 0: no protobuf: field 1 ends 5 bytes after the end")
    frame = len(one).to_bytes(4, "big") + one
    found, (fault,) = told(write(tmp_path, frame + frame[:-3]))
    assert same(found, spans)
    assert f"message 2, byte {len(frame) + 4}: is cut off: {len(one) - 3} of {len(one)}" in fault
    found, (fault,) = told(write(tmp_path, frame + frame[:2]))
    assert same(found, spans)
    assert f"message 2, byte {len(frame)}: is cut off" in fault
    corrupt = bytearray(one + one)
    corrupt[6] ^= 0xFF
    found, (fault,) = told(write(tmp_path, bytes(corrupt)))
    assert same(found, spans)
    assert "resourceSpans[0]: corrupt protobuf" in fault


def test_protobuf_spans_are_checked_like_those_of_json(tmp_path: Path) -> None:
    from opentelemetry.proto.trace.v1 import trace_pb2

    good: dict[str, Any] = {"trace_id": b"t" * 16, "span_id": b"s" * 8}
    good |= {"start_time_unix_nano": 5, "end_time_unix_nano": 9}
    wrong: list[dict[str, Any]] = [
        {"trace_id": b"t"},
        {"span_id": bytes(8)},
        {"end_time_unix_nano": 4},
        {"parent_span_id": b"ppp"},
        {"start_time_unix_nano": 0},
    ]
    made = [trace_pb2.Span(**{**good, **fields}) for fields in (*wrong, {})]
    data = trace_pb2.TracesData(
        resource_spans=[
            trace_pb2.ResourceSpans(scope_spans=[trace_pb2.ScopeSpans(spans=made)]),
        ]
    )
    found, faults = told(write(tmp_path, data.SerializeToString(), "traces.pb"))
    assert len(found) == 1
    assert [fault.partition("spans[")[2].partition(";")[0] for fault in faults] == [
        "0].traceId: 1 bytes",
        "1].spanId: only zeros",
        "2].endTimeUnixNano: 4 is 1 ns before the start",
        "3].parentSpanId: 3 bytes",
        "4].startTimeUnixNano: is missing",
    ]


def test_other_signals_and_damage_are_told(tmp_path: Path) -> None:
    problems = Problems()
    lines = b'{"resourceLogs": []}\n{"resourceMetrics": []}\n' + request_of(one_span())
    assert len(list(read_spans(write(tmp_path, lines), problems))) == 1
    assert sorted(problems.others) == [
        "requests with logs, which hold no spans", "requests with metrics, which hold no spans",
    ]  # fmt: skip
    text = b"\n".join(
        request_of(one_span(spanId=base64.b16encode(at.to_bytes(8, "big")).decode()))
        for at in range(1, 3000)
    )
    found, faults = told(write(tmp_path, gzip.compress(text)[:-900]))
    assert len(found) > 0
    assert faults[-1] == (
        "traces.json: the gzip file is cut off; what came before was read; expected the whole file"
    )


def test_base64_ids_and_names_of_enumerations_are_understood(tmp_path: Path) -> None:
    """As protobuf's own JSON has them; the standard wants hexadecimal digits and numbers."""
    one = one_span(
        traceId=base64.b64encode(b"t" * 16).decode(), spanId=base64.b64encode(b"s" * 8).decode(),
        kind="SPAN_KIND_SERVER", status={"code": "STATUS_CODE_ERROR"},
    )  # fmt: skip
    ((found,), faults) = told(write(tmp_path, request_of(one)))
    assert faults == []
    assert (found.trace_id, found.kind, found.failed) == ("74" * 16, SpanKind.SERVER, True)


def test_every_kind_of_value(tmp_path: Path) -> None:
    values = {
        "text": {"stringValue": "x"}, "truth": {"boolValue": False}, "whole": {"intValue": "7"},
        "real": {"doubleValue": 0.5}, "infinite": {"doubleValue": "Infinity"}, "nothing": {},
        "list": {"arrayValue": {"values": [{"intValue": 1}, {}]}},
        "map": {"kvlistValue": {"values": [{"key": "k", "value": {"intValue": 2}}]}},
        "bytes": {"bytesValue": "AA=="},
    }  # fmt: skip
    pairs = [{"key": key, "value": value} for key, value in values.items()]
    ((found,), _) = told(write(tmp_path, request_of(one_span(attributes=pairs))))
    assert found.attributes == {
        "text": "x", "truth": False, "whole": 7, "real": 0.5, "infinite": float("inf"),
        "nothing": None, "list": [1, None], "map": {"k": 2}, "bytes": "AA==",
    }  # fmt: skip


def test_without_problems_to_count_the_first_is_raised(tmp_path: Path) -> None:
    path = write(tmp_path, request_of(one_span(), one_span(spanId="")))
    with pytest.raises(ConfigError, match="spanId: is missing"):
        list(read_spans(path))


def test_a_file_that_unpacks_to_hundreds_of_mib_of_blanks_is_refused_at_once(
    tmp_path: Path,
) -> None:
    path = tmp_path / "blank.json.gz"
    path.write_bytes(gzip.compress(b" " * (4 << 20)) * 50)
    problems = Problems()
    assert list(read_spans(path, problems)) == []
    assert "begins with a MiB of blanks" in str(problems.faults[0])


@pytest.mark.parametrize("form", ["json", "protobuf"])
def test_the_trace_of_an_unreadable_span_is_known(tmp_path: Path, form: str) -> None:
    problems = Problems()
    if form == "json":
        bad = {"traceId": "01" * 16, "spanId": "02" * 8, "name": "chat", "endTimeUnixNano": "0"}
        content = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [bad]}]}]}).encode()
    else:
        request = trace_service_pb2.ExportTraceServiceRequest()
        one = request.resource_spans.add().scope_spans.add().spans.add()
        one.trace_id, one.span_id = b"\x01" * 16, b"\x02" * 8
        content = request.SerializeToString()
    assert list(read_spans(write(tmp_path, content), problems)) == []
    assert problems.missing == {"01" * 16: {""}}
