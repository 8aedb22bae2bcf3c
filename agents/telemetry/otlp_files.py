"""Spans of OTLP files, whatever form they have.

    JSON lines     one export request a line, as the collector's file exporter writes
    JSON           one request, over any number of lines, or a list of them
    protobuf       one request; or many, each behind its length in 4 bytes (the collector's file
                   exporter) or as a varint (protobuf's own delimited form)

gzip and bzip2 are unpacked. Raises OSError; ConfigError at the first problem where no `Problems`
are given to count them.
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec

from pathbudget.agents.importers.byte_stream import DamagedError, read_chunks
from pathbudget.agents.telemetry import otlp_json, otlp_protobuf
from pathbudget.agents.telemetry.intake import Problems
from pathbudget.analysis.whole_budget.spans_model import Span

LONGEST = 256 * 1024 * 1024
"""Bytes of one request, or of one JSON document; a collector's are some MiB."""
ZSTD = b"\x28\xb5\x2f\xfd"
BLANK = b" \t\r\n"
MOST_BLANK = 1024 * 1024
"""Bytes at the beginning of a file; some are packed so that a little becomes very much of it."""
_ReadLength = Callable[[bytes, int], tuple[int, int]]


def read_spans(path: Path, problems: Problems | None = None) -> Iterator[Span]:
    """The sound spans of one file, in its order."""
    problems = Problems(strict=True) if problems is None else problems
    source = _Source(path)
    head = source.peek()
    first = head.lstrip(BLANK)[:1]
    if len(head) >= MOST_BLANK and not head.strip(BLANK):
        problems.part(str(path), "", "begins with a MiB of blanks", "an OTLP export")
    elif not head.strip(BLANK):
        problems.part(str(path), "", "is empty", "an OTLP export in JSON or protobuf")
    elif head[:4] == ZSTD:
        problems.part(str(path), "", "is packed with zstd", "the file unpacked: zstd -d")
    elif first == b"{" or (first == b"[" and head.lstrip(BLANK)[1:].lstrip(BLANK)[:1] in b"{]"):
        yield from _json(source, str(path), problems)
    elif _looks_like_text(head):
        shown = head.lstrip()[:30].decode(errors="replace")
        problems.part(str(path), "line 1", f"{shown!r} is no JSON object", "an OTLP export")
    else:
        yield from _protobuf(source, str(path), problems)
    if source.damage:
        problems.part(str(path), "", source.damage, "the whole file")


def read_all(paths: Iterable[Path], problems: Problems) -> Iterator[Span]:
    """The spans of several files; a file that cannot be opened is a problem too."""
    for path in paths:
        try:
            yield from read_spans(path, problems)
        except OSError as error:
            problems.part(str(path), "", error.strerror or str(error), "a file to read")


class _Source:
    """Bytes of a file, unpacked. What comes before damage is handed on, then `damage` is told."""

    def __init__(self, path: Path) -> None:
        self._chunks = read_chunks(path, lambda _count: None)
        self._rest = b""
        self._ended = False
        self.damage = ""

    def more(self) -> bytes:
        """The next bytes; none at the end."""
        if self._rest:
            chunk, self._rest = self._rest, b""
            return chunk
        try:
            return next(self._chunks, b"")
        except DamagedError as error:
            self.damage = str(error)
            return b""

    def peek(self) -> bytes:
        """The first bytes: as many as say what the file is, of blanks `MOST_BLANK`."""
        head = self.more()
        while head and not head.strip(BLANK) and len(head) < MOST_BLANK and (chunk := self.more()):
            head += chunk
        self._rest = head
        return head

    def all(self) -> bytes:
        """What is left, up to one byte more than `LONGEST`."""
        found = bytearray()
        while len(found) <= LONGEST and (chunk := self.more()):
            found += chunk
        return bytes(found)

    def lines(self) -> Iterator[bytes]:
        """Lines without their ends; a longer one than `LONGEST` comes cut."""
        rest = bytearray()
        while chunk := self.more():
            *whole, last = chunk.split(b"\n")
            for line in whole:
                rest += line
                yield bytes(rest)
                rest.clear()
            if len(rest) <= LONGEST:
                rest += last
        if rest:
            yield bytes(rest)


def _looks_like_text(head: bytes) -> bool:
    return all(byte >= 32 or byte in BLANK for byte in head[:64])


def _json(source: _Source, file: str, problems: Problems) -> Iterator[Span]:
    """Lines where the first or the second is a whole value, else one document."""
    lines = enumerate(source.lines(), 1)
    number, first = next((at, line) for at, line in lines if line.strip())
    second = next(((at, line) for at, line in lines if line.strip()), None)
    if not _whole(first) and (second is None or not _whole(second[1])):
        between = b"\n" * (second[0] - number) if second is not None else b""
        rest = b"\n".join(line for _, line in lines)
        text = b"\n" * (number - 1) + first + between
        text += b"" if second is None else second[1] + b"\n" + rest
        yield from _document(text, file, problems)
        return
    yield from _line(first, file, number, problems)
    if second is not None:
        yield from _line(second[1], file, second[0], problems)
    for number, line in lines:
        if line.strip():
            yield from _line(line, file, number, problems)


def _whole(line: bytes) -> bool:
    if line.lstrip()[:1] not in (b"{", b"["):
        return False
    try:
        msgspec.json.decode(line, type=msgspec.Raw)
    except otlp_json.UNREADABLE:
        return False
    return True


def _line(line: bytes, file: str, number: int, problems: Problems) -> Iterator[Span]:
    place = f"line {number}"
    if len(line) > LONGEST:
        problems.part(file, place, f"over {LONGEST >> 20} MiB", "one export request a line")
        return
    yield from _value(line, file, place, problems)


def _document(text: bytes, file: str, problems: Problems) -> Iterator[Span]:
    if len(text) > LONGEST:
        problems.part(file, "", f"JSON over {LONGEST >> 20} MiB", "one export request a line")
        return
    yield from _value(text, file, "", problems)


def _value(text: bytes, file: str, place: str, problems: Problems) -> Iterator[Span]:
    """One request, or a list of them."""
    try:
        if text.lstrip()[:1] == b"[":
            for at, one in enumerate(msgspec.json.decode(text, type=list[msgspec.Raw])):
                inner = f"{place}, request {at + 1}" if place else f"request {at + 1}"
                yield from otlp_json.request_spans(bytes(one), file, inner, problems)
        else:
            yield from otlp_json.request_spans(text, file, place, problems)
    except otlp_json.UNREADABLE as error:
        problems.part(file, _place_in(text, place, error), _why(text, error), "whole JSON")


def _why(text: bytes, error: Exception) -> str:
    if "truncated" in str(error):
        return f"the JSON is cut off after {len(text)} bytes"
    return (
        str(error).partition(" (byte")[0]
        if not isinstance(error, RecursionError)
        else ("is nested too deeply")
    )


def _place_in(text: bytes, place: str, error: Exception) -> str:
    """Line and column, where the text has several lines; msgspec says the byte."""
    if place or isinstance(error, RecursionError):
        return place
    told = str(error).partition("(byte ")[2].partition(")")[0]
    before = text[: int(told)] if told.isdigit() else text.rstrip()
    return f"line {before.count(10) + 1}, column {len(before) - before.rfind(10)}"


def _protobuf(source: _Source, file: str, problems: Problems) -> Iterator[Span]:
    data = source.all()
    if len(data) > LONGEST:
        problems.part(file, "", f"over {LONGEST >> 20} MiB", "smaller files")
        return
    frames = _frames(data)
    for at, (begin, end) in enumerate(frames):
        place = f"message {at + 1}, " if len(frames) > 1 else ""
        if end > len(data):
            problem = f"is cut off: {max(0, len(data) - begin)} of {end - begin} bytes"
            problems.part(file, f"{place}byte {begin}", problem, "the whole message")
            return
        message = data[begin:end]
        yield from otlp_protobuf.request_spans(message, file, place, problems, offset=begin)


def _frames(data: bytes) -> list[tuple[int, int]]:
    """Where the messages are: one that is the whole, or many, each behind its length.

    The end of the last one may lie beyond the data: it is cut off.
    """
    if _is_message(data):
        return [(0, len(data))]
    for read_length in (_four_bytes, otlp_protobuf.read_varint):
        frames = _behind_lengths(data, read_length)
        if frames:
            return frames
    return [(0, len(data))]


def _behind_lengths(data: bytes, read_length: _ReadLength) -> list[tuple[int, int]]:
    """The messages; none where these are no lengths of messages."""
    frames: list[tuple[int, int]] = []
    at = 0
    while at < len(data):
        try:
            size, begin = read_length(data, at)
        except otlp_protobuf.WireError:
            return [*frames, (at, len(data) + 1)] if frames else []
        if size > LONGEST or (size and data[begin : begin + 1] not in (b"\n", b"")):
            return []
        at = begin + size
        frames.append((begin, at))
    return frames


def _four_bytes(data: bytes, at: int) -> tuple[int, int]:
    if at + 4 > len(data):
        raise otlp_protobuf.WireError(at, "ends within a length")
    return int.from_bytes(data[at : at + 4], "big"), at + 4


def _is_message(data: bytes) -> bool:
    """Whether all of it are fields, and all of these the one that a request has."""
    try:
        return all(number == 1 and kind == 2 for number, kind, _, _ in otlp_protobuf.fields(data))
    except otlp_protobuf.WireError:
        return False
