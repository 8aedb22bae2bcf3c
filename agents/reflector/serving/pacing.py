"""The paced stream: what is asked of it, its chunks, and the clock that sends them.

Chunk n is due n intervals after the first one, whatever became of those before (no drift). What is
late leaves late and says so: `due_ns` beside `sent_unix_ns`. Where the other side does not take
what was written, chunks wait until it does.
"""

import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import parse_qsl

from pathbudget.agents.reflector.clocks import StampClock
from pathbudget.probes.reflector_http import Chunk
from pathbudget.probes.timer import Alarm

SSE, CHUNKED, WEBSOCKET = "sse", "chunked", "websocket"
MOST_CHUNKS = 100_000
MOST_CHUNK_BYTES = 65_536
SHORTEST_INTERVAL_US, LONGEST_INTERVAL_US = 100, 10_000_000
LONGEST_STREAM_US = 3_600_000_000
MOST_BYTES_PER_SECOND = 12_500_000
CHUNK_OVERHEAD = 128
"""What a chunk of no stated size is about."""
DEFAULT_CHUNKS, DEFAULT_INTERVAL_US = 100, 33_333
FULL_NS = 5_000_000
"""How soon a stream looks again that the other side does not take."""
LAST_STAMPS_NS = 100_000_000
"""How long the last chunk waits for stamps of those before."""
_PAD_FIELD = len(',"pad":""')


class StreamError(Exception):
    """What is asked of the stream makes no sense, or is too much. The text is for the asker."""


@dataclass(frozen=True, slots=True)
class StreamPlan:
    """`chunks` of at least `octets` of JSON each, one every `interval_ns`, and one to end it."""

    chunks: int
    interval_ns: int
    octets: int
    form: str


def read_plan(query: str, *, websocket: bool) -> StreamPlan:
    """The plan in the query of a request. Raises StreamError."""
    try:
        given = dict(parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query)))
    except ValueError:
        raise StreamError("the query cannot be read") from None
    if unknown := sorted(set(given) - {"chunks", "interval_us", "bytes", "form"}):
        raise StreamError(f"unknown: {', '.join(unknown)[:80]}")
    form = given.get("form", SSE)
    if form not in (SSE, CHUNKED):
        raise StreamError("form is sse or chunked")
    chunks = _number(given, "chunks", DEFAULT_CHUNKS, 1, MOST_CHUNKS)
    interval = _number(
        given, "interval_us", DEFAULT_INTERVAL_US, SHORTEST_INTERVAL_US, LONGEST_INTERVAL_US
    )
    octets = _number(given, "bytes", 0, 0, MOST_CHUNK_BYTES)
    if chunks * interval > LONGEST_STREAM_US:
        raise StreamError(f"chunks times interval_us is at most {LONGEST_STREAM_US}")
    if max(octets, CHUNK_OVERHEAD) * 1_000_000 > MOST_BYTES_PER_SECOND * interval:
        raise StreamError(f"at most {MOST_BYTES_PER_SECOND} bytes a second")
    return StreamPlan(chunks, interval * 1_000, octets, WEBSOCKET if websocket else form)


def _number(given: dict[str, str], name: str, default: int, least: int, most: int) -> int:
    word = given.get(name)
    if word is None:
        return default
    if not (word.isascii() and word.isdigit() and len(word) <= 12 and least <= int(word) <= most):
        raise StreamError(f"{name} is a whole number of {least} to {most}")
    return int(word)


def padded(chunk: Chunk, encode: Callable[[Chunk], bytes], octets: int) -> bytes:
    """The chunk as JSON, filled up to `octets` where it is shorter."""
    plain = encode(chunk)
    lacking = octets - len(plain)
    if lacking <= _PAD_FIELD:
        return plain + b" " * lacking  # space behind a JSON value means nothing (RFC 8259)
    return plain[:-1] + b',"pad":"' + b"x" * (lacking - _PAD_FIELD) + b'"}'


def framed(text: bytes, form: str) -> bytes:
    """One chunk as it stands in the body of the answer."""
    if form == SSE:
        return b"data: " + text + b"\n\n"
    return text + b"\n" if form == CHUNKED else text


class Paced(Protocol):
    """What the pacer drives."""

    def step(self, now_ns: int) -> int | None:
        """Do what is due; when to be called again (monotonic), None for never."""
        ...


class Pacer:
    """One alarm for all streams of a reflector. Lives in the event loop."""

    def __init__(self, clock: StampClock) -> None:
        self._clock = clock
        self._alarm = Alarm(self._ring)
        self._waiting: list[tuple[int, int, Paced]] = []
        self._order = itertools.count()

    def start(self, stream: Paced, due_ns: int) -> None:
        """Call `stream.step` at `due_ns`, and when it asks for it."""
        heapq.heappush(self._waiting, (due_ns, next(self._order), stream))
        if self._waiting[0][2] is stream:
            self._alarm.set(due_ns)

    def close(self) -> None:
        """Call nobody any more."""
        self._waiting.clear()
        self._alarm.close()

    def _ring(self) -> None:
        waiting = self._waiting
        while waiting and waiting[0][0] <= (now := self._clock.monotonic_ns()):
            _, _, stream = heapq.heappop(waiting)
            again = stream.step(now)
            if again is not None:
                heapq.heappush(waiting, (again, next(self._order), stream))
        if waiting:
            self._alarm.set(waiting[0][0])
