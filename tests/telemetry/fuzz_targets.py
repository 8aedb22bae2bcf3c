"""Fuzz targets of what reads spans, terms and requests from outside. See tests/fuzzing.py."""

import contextlib

import msgspec

from pathbudget.agents.telemetry import otlp_json, otlp_protobuf
from pathbudget.agents.telemetry.intake import Problems
from pathbudget.agents.telemetry.receive_answers import Answer
from pathbudget.agents.telemetry.receive_request import read_head, take_body
from pathbudget.analysis.whole_budget.spans import terms_of
from pathbudget.analysis.whole_budget.spans_model import Span
from pathbudget.analysis.whole_budget.term_files import parse_terms
from pathbudget.probes.errors import ConfigError

MOST = 100_000
HEAD = (("content-type", "application/json"),)
KNOWN = b'{"resourceSpans":[{"scopeSpans":[{"spans":[%s]}]}]}'


def fuzz_one_json(data: bytes) -> None:
    """Any bytes as a request, and as a span of one: a problem or sound spans, nothing else."""
    for text in (data, KNOWN % data):
        problems = Problems()
        try:
            spans = list(otlp_json.request_spans(text, "f", "line 1", problems))
        except otlp_json.UNREADABLE:
            continue
        _hold(spans)


def fuzz_one_protobuf(data: bytes) -> None:
    """Any bytes as a request, and as the spans of one resource."""
    size = len(data)
    length = bytes([size & 0x7F | 0x80, size >> 7 & 0x7F | 0x80, size >> 14])
    for text in (data, b"\x0a" + length + data):
        _hold(list(otlp_protobuf.request_spans(text, "f", "", Problems())))


def fuzz_one_request(data: bytes) -> None:
    """Words of a head out of the first bytes, the rest as its body, packed and not."""
    words, _, body = data.partition(b"\n")
    method, _, target = words.decode("latin-1").partition(" ")
    headers = (("content-type", target[-30:]), ("content-encoding", method[-9:]))
    assert isinstance(read_head(method, target, headers, MOST), Answer)
    for encoding in ("identity", "gzip"):
        for kind in ("application/json", "application/x-protobuf"):
            told = (("content-type", kind), ("content-encoding", encoding))
            head = read_head("POST", "/v1/traces", told, MOST)
            assert not isinstance(head, Answer)
            taken = take_body(head, body, MOST)
            assert taken.answer.status in (200, 400, 413)
            assert bool(taken.keep) <= (taken.answer.status == 200)


def fuzz_one_terms(data: bytes) -> None:
    """Any bytes as files of terms: faults, or terms without a NaN."""
    for suffix in (".toml", ".csv", ".json"):
        with contextlib.suppress(ConfigError):
            terms = parse_terms(data, "f", suffix)
            assert all((term.values_ns >= 0).all() for term in terms)


def _hold(spans: list[Span]) -> None:
    for span in spans:
        assert len(span.trace_id) == 32
        assert len(span.span_id) == 16
        assert 0 < span.start_unix_ns <= span.end_unix_ns
    found = terms_of(spans)
    assert sum(found.used.values()) + sum(found.left_out.values()) == len(spans)
    assert msgspec.json.encode(found.notes)
