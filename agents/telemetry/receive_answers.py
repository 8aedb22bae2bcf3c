"""What an OTLP/HTTP server says (OTLP specification, "OTLP/HTTP Response"), in both encodings.

Success is an ExportTraceServiceResponse, everything else a `google.rpc.Status` with a message for
people. Both are two fields long, so they are written here.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from http import HTTPStatus

import msgspec


class Encoding(StrEnum):
    """Of a request, and so of its answer."""

    PROTOBUF = "application/x-protobuf"
    JSON = "application/json"


CODES = {400: 3, 404: 5, 405: 12, 413: 8, 415: 3, 429: 8, 431: 3, 503: 14}
"""HTTP status to gRPC code; clients must not act on it, people may read it."""
RETRY_SECONDS = {429: 1, 503: 30}
"""The only two of ours that a client may try again."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Of one request. `close` says that the connection ends with it."""

    status: int
    encoding: Encoding
    body: bytes
    close: bool = False
    headers: tuple[tuple[str, str], ...] = field(default=())

    @property
    def reason(self) -> str:
        """The words of the status line."""
        return HTTPStatus(self.status).phrase

    @property
    def all_headers(self) -> list[tuple[str, str]]:
        """Those of every answer, and its own."""
        told = [("content-type", str(self.encoding)), ("content-length", str(len(self.body)))]
        return [*told, *self.headers, *([("connection", "close")] if self.close else [])]


def accepted(encoding: Encoding, rejected: int = 0, message: str = "") -> Answer:
    """200. With `rejected` spans a partial success, which a client must not send again."""
    if not rejected:
        return Answer(200, encoding, b"{}" if encoding is Encoding.JSON else b"")
    if encoding is Encoding.JSON:
        partial = {"rejectedSpans": str(rejected), "errorMessage": message}
        return Answer(200, encoding, msgspec.json.encode({"partialSuccess": partial}))
    inner = b"\x08" + _varint(rejected) + _text(2, message)
    return Answer(200, encoding, b"\x0a" + _varint(len(inner)) + inner)


def refused(
    status: int, message: str, encoding: Encoding = Encoding.JSON, *, close: bool = False
) -> Answer:
    """4xx or 5xx with what is wrong."""
    code = CODES.get(status, 2)
    headers: tuple[tuple[str, str], ...] = ()
    if status in RETRY_SECONDS:
        headers = (("retry-after", str(RETRY_SECONDS[status])),)
    if status == 405:
        headers = (("allow", "POST"),)
    if encoding is Encoding.JSON:
        body = msgspec.json.encode({"code": code, "message": message})
    else:
        body = b"\x08" + _varint(code) + _text(2, message)
    return Answer(status, encoding, body, close, headers)


def _text(number: int, text: str) -> bytes:
    data = text.encode()
    return bytes([number << 3 | 2]) + _varint(len(data)) + data


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)
