"""Protobuf, loaded when it is needed: the messages of OTLP, or what to install."""

from typing import TYPE_CHECKING

from pathbudget.probes.errors import PathbudgetError

if TYPE_CHECKING:
    from opentelemetry.proto.trace.v1 import trace_pb2


def trace_messages() -> "tuple[type[trace_pb2.ResourceSpans], type[Exception]]":
    """The message around the spans of one resource, and what it raises for corrupt bytes.

    Raises PathbudgetError without the library.
    """
    try:
        from google.protobuf.message import DecodeError
        from opentelemetry.proto.trace.v1 import trace_pb2
    except ImportError as error:
        raise PathbudgetError(
            "OTLP in protobuf needs opentelemetry-proto; run: pip install 'pathbudget[telemetry]'"
        ) from error
    return trace_pb2.ResourceSpans, DecodeError
