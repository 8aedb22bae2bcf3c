"""One request to the receiver, without a socket: is it one for traces, and what is in its body."""

import zlib
from collections.abc import Iterable
from dataclasses import dataclass

from pathbudget.agents.telemetry import otlp_json, otlp_protobuf
from pathbudget.agents.telemetry.intake import Problems
from pathbudget.agents.telemetry.receive_answers import Answer, Encoding, accepted, refused

PATH = "/v1/traces"
OTHER_PATHS = {"/v1/metrics": "metrics", "/v1/logs": "logs", "/v1development/profiles": "profiles"}
TYPES = {str(encoding): encoding for encoding in Encoding} | {
    "application/protobuf": Encoding.PROTOBUF
}
GZIP_WINDOW = 31
SHOWN = 3
"""Problems that an answer names."""


@dataclass(frozen=True, slots=True)
class Head:
    """What the head of an acceptable request says of its body."""

    encoding: Encoding
    is_gzip: bool
    length: int | None


@dataclass(frozen=True, slots=True)
class Taken:
    """A body: what is to be kept of it (nothing, where it is refused), and the answer."""

    answer: Answer
    keep: bytes = b""
    spans: int = 0
    rejected: int = 0


def read_head(
    method: str, target: str, headers: Iterable[tuple[str, str]], most_bytes: int
) -> Head | Answer:
    """What the body will be, or the answer to a request whose body nobody reads."""
    told = dict(headers)
    kind = told.get("content-type", "").partition(";")[0].strip().lower()
    encoding = TYPES.get(kind, Encoding.JSON)
    path = target.partition("?")[0]
    if path != PATH:
        what = OTHER_PATHS.get(path)
        problem = f"{what} are not taken here" if what else f"nothing is at {path[:80]}"
        return refused(404, f"{problem}; traces go to {PATH}", encoding, close=True)
    if method != "POST":
        return refused(405, f"{method[:20]} is not for {PATH}; expected POST", encoding, close=True)
    if kind not in TYPES:
        expected = "application/x-protobuf or application/json"
        return refused(415, f"content-type {kind[:80]!r}; expected {expected}", close=True)
    packed = told.get("content-encoding", "identity").strip().lower()
    if packed not in ("identity", "", "gzip", "x-gzip"):
        problem = f"content-encoding {packed[:80]!r}; expected gzip or none"
        return refused(415, problem, encoding, close=True)
    length = int(told["content-length"]) if "content-length" in told else None
    if length is not None and length > most_bytes:
        return too_large(encoding, most_bytes)
    return Head(encoding, packed in ("gzip", "x-gzip"), length)


def too_large(encoding: Encoding, most_bytes: int) -> Answer:
    """413: clients must not send it again."""
    return refused(413, f"over {most_bytes} bytes; send smaller batches", encoding, close=True)


def take_body(head: Head, body: bytes, most_bytes: int) -> Taken:
    """Read a whole body. Raises PathbudgetError where protobuf is not installed."""
    if head.is_gzip:
        unpacked = _unpacked(body, most_bytes)
        if isinstance(unpacked, str):
            return Taken(refused(400, unpacked, head.encoding))
        body = unpacked
    if len(body) > most_bytes:
        return Taken(too_large(head.encoding, most_bytes))
    problems = Problems()
    try:
        spans = _count(head.encoding, body, problems)
    except otlp_json.UNREADABLE as error:
        return Taken(refused(400, f"no JSON: {str(error)[:200]}", head.encoding))
    rejected = problems.spans.total() + problems.parts
    message = "; ".join(_without_file(str(fault)) for fault in problems.faults[:SHOWN])
    if rejected > SHOWN:
        message += f"; and {rejected - SHOWN} more"
    if rejected and not spans:
        return Taken(refused(400, message, head.encoding), rejected=rejected)
    return Taken(accepted(head.encoding, rejected, message), body, spans, rejected)


def _count(encoding: Encoding, body: bytes, problems: Problems) -> int:
    if encoding is Encoding.PROTOBUF:
        return sum(1 for _ in otlp_protobuf.request_spans(body, "", "", problems))
    return sum(1 for _ in otlp_json.request_spans(body, "", "", problems))


def _without_file(text: str) -> str:
    return text.removeprefix(": ")


def _unpacked(data: bytes, most_bytes: int) -> bytes | str:
    """What gzip holds, at most one byte more than may be; or what is wrong with it."""
    found = bytearray()
    while data:
        member = zlib.decompressobj(GZIP_WINDOW)
        try:
            found += member.decompress(data, most_bytes + 1 - len(found))
        except zlib.error as error:
            return f"the gzip data is damaged: {error}"
        if len(found) > most_bytes:
            return bytes(found)
        if not member.eof:
            return "the gzip data ends early"
        data = member.unused_data.lstrip(b"\0")
    return bytes(found)
