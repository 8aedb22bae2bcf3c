"""A scripted service, traced by the OpenTelemetry SDK itself, with times that are known."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.exporter.otlp.json.common.trace_encoder import encode_spans as encode_json
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans as encode_protobuf
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.trace import SpanKind, Status, StatusCode

from pathbudget.analysis.whole_budget.spans_model import Span
from pathbudget.analysis.whole_budget.terms import TermName

BEGIN = 1_790_000_000 * 10**9
MS = 1_000_000


class CountingIds(IdGenerator):
    """The same ids in every run."""

    def __init__(self) -> None:
        self.last = 0

    def generate_span_id(self) -> int:
        self.last += 1
        return self.last

    def generate_trace_id(self) -> int:
        self.last += 1
        return self.last << 64 | 1


@dataclass(frozen=True)
class Truth:
    """What one request took, in ms, by the script."""

    gateway: float
    retrieval: float
    tokenization: float
    ttft: float
    first_tokens: float
    guardrail: float

    @property
    def by_term(self) -> dict[TermName, float]:
        return {
            TermName.GATEWAY: self.gateway,
            TermName.RETRIEVAL: self.retrieval,
            TermName.TOKENIZATION: self.tokenization,
            TermName.TTFT: self.ttft,
            TermName.FIRST_TOKENS: self.first_tokens,
            TermName.GUARDRAIL: self.guardrail,
        }


class Service:
    """A gateway, two parallel searches, a tokenizer, a streamed call of a model, a guardrail."""

    def __init__(self, exporter: SpanExporter) -> None:
        provider = TracerProvider(
            resource=Resource.create({"service.name": "api-gateway"}),
            id_generator=CountingIds(),
            shutdown_on_exit=False,
        )
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        self._tracer = provider.get_tracer("service")
        self.truth: list[Truth] = []
        self._at = BEGIN

    def requests(self, count: int) -> list[Truth]:
        """Serve some, the later ones slower; the truth of all of them."""
        for number in range(count):
            self.truth.append(self._request(self._at, number))
            self._at += 2_000 * MS
        return self.truth

    def _request(self, at: int, slower: int) -> Truth:
        model, further = 120 + 3 * slower, 600 + 10 * slower
        root = self._begin("POST /v1/chat", at, None, SpanKind.SERVER)
        self._span("auth", at + 1 * MS, 4, root)
        retrieval = self._begin("retrieve documents", at + 10 * MS, root)
        self._span("search of one shard", at + 12 * MS, 28, retrieval)
        self._span("search of another", at + 15 * MS, 30 + slower, retrieval)
        retrieval.end(at + (50 + slower) * MS)
        self._span("tokenize", at + 100 * MS, 3, root)
        call = self._begin("chat llama", at + 110 * MS, root, SpanKind.CLIENT, MODEL)
        call.set_attribute("gen_ai.usage.output_tokens", 61)
        call.add_event("First Token Stream Event", timestamp=at + (110 + model) * MS)
        end = 110 + model + further
        call.end(at + end * MS)
        self._span("guardrail output", at + (end + 5) * MS, 25, root)
        root.end(at + (end + 40) * MS)
        retrieved = 40 + slower
        own = end + 40 - retrieved - 3 - (model + further) - 25
        return Truth(own, retrieved, 3, model, 10 * further / 60, 25)

    def failing_request(self) -> None:
        """One whose call of a model failed before the first token."""
        at, self._at = self._at, self._at + 2_000 * MS
        root = self._begin("POST /v1/chat", at, None, SpanKind.SERVER)
        call = self._begin("chat llama", at + 10 * MS, root, SpanKind.CLIENT, MODEL)
        for span in (call, root):
            span.set_status(Status(StatusCode.ERROR, "overloaded"))
            span.end(at + 30 * MS)

    def _span(self, name: str, at: int, milliseconds: float, parent: Any) -> None:
        self._begin(name, at, parent).end(at + round(milliseconds * MS))

    def _begin(
        self,
        name: str,
        at: int,
        parent: Any,
        kind: SpanKind = SpanKind.INTERNAL,
        attributes: Any = None,
    ) -> Any:
        context = trace.set_span_in_context(parent) if parent is not None else None
        return self._tracer.start_span(name, context, kind, attributes, start_time=at)


MODEL = {
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": "openai",
    "gen_ai.request.model": "llama",
    "gen_ai.request.stream": True,
    "gen_ai.usage.input_tokens": 812,
}


@pytest.fixture
def exported() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def service(exported: InMemorySpanExporter) -> Service:
    return Service(exported)


@pytest.fixture
def make_service() -> Callable[[SpanExporter], Service]:
    return Service


def as_json(spans: Sequence[ReadableSpan]) -> bytes:
    return encode_json(list(spans)).to_json().encode()


def as_protobuf(spans: Sequence[ReadableSpan]) -> bytes:
    return encode_protobuf(list(spans)).SerializeToString()


@pytest.fixture(params=["json", "protobuf"])
def encode(request: pytest.FixtureRequest) -> Callable[[Sequence[ReadableSpan]], bytes]:
    """The SDK's own encoder of export requests, in JSON and in protobuf."""
    return as_json if request.param == "json" else as_protobuf


@pytest.fixture
def json_of() -> Callable[[Sequence[ReadableSpan]], bytes]:
    return as_json


@pytest.fixture
def protobuf_of() -> Callable[[Sequence[ReadableSpan]], bytes]:
    return as_protobuf


@pytest.fixture
def span() -> Callable[..., Span]:
    """A span of trace ``t`` by hand: id, parent, begin and end in ms, and what else is given."""

    def make(span_id: str, parent: str, begin: float, end: float, **fields: Any) -> Span:
        service = fields.pop("service", "app")
        given: dict[str, Any] = {
            "trace_id": "t",
            "name": span_id,
            "resource": {"service.name": service},
            **fields,
        }
        start, stop = BEGIN + round(begin * MS), BEGIN + round(end * MS)
        return Span(
            span_id=span_id, parent_id=parent, start_unix_ns=start, end_unix_ns=stop, **given
        )

    return make
