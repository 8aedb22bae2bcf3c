"""Server-sent events, lines of JSON: the rules of WHATWG HTML 9.2, at every cut, within bounds."""

import json
import random
from pathlib import Path

import pytest

from pathbudget.probes.stream.completion_events import Piece, read_event
from pathbudget.probes.stream.json_lines import JsonLineParser
from pathbudget.probes.stream.lines import LineSplitter, StreamFormatError
from pathbudget.probes.stream.sse import EventParser, ServerEvent

BODIES = Path(__file__).resolve().parents[3] / "shared" / "data" / "llm" / "sse"


def parse(data: bytes, size: int = 1 << 30) -> list[ServerEvent]:
    parser = EventParser()
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    return [event for piece in pieces for event in parser.feed(piece)]


def feed_for_ever(parser: EventParser, data: bytes) -> None:
    for _ in range(100):
        parser.feed(data)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"data: a\n\n", [ServerEvent("a")]),
        (b"data:a\r\n\r\n", [ServerEvent("a")]),
        (b"data: a\r\rdata: b\r\r", [ServerEvent("a"), ServerEvent("b")]),
        (b"data:  two\n\n", [ServerEvent(" two")]),
        (b"data: a\ndata: b\n\n", [ServerEvent("a\nb")]),
        (b"data\n\n", [ServerEvent("")]),
        (b"data\ndata\n\n", [ServerEvent("\n")]),
        (b": a comment\n\ndata: x\n\n", [ServerEvent("x")]),
        (b"event: add\ndata: x\n\ndata: y\n\n", [ServerEvent("x", "add"), ServerEvent("y")]),
        (b"event: add\n\ndata: y\n\n", [ServerEvent("y")]),
        (
            b"id: 7\ndata: x\n\ndata: y\n\n",
            [ServerEvent("x", last_id="7"), ServerEvent("y", last_id="7")],
        ),
        (b"id: 7\0\ndata: x\n\n", [ServerEvent("x")]),
        (b"\xef\xbb\xbfdata: x\n\n", [ServerEvent("x")]),
        (b"\xef\xbb\xbf\xef\xbb\xbfdata: x\n\n", []),
        (b"data: x\n", []),
        (b"data: x", []),
        (b"Data: x\n\nfoo: y\n\n", []),
        (b"data: \xff\n\n", [ServerEvent("\ufffd")]),
        ("data: ä€\n\n".encode(), [ServerEvent("ä€")]),
        (b"\n\n\n", []),
    ],
)  # fmt: skip
def test_the_rules_hold_at_every_cut(body: bytes, expected: list[ServerEvent]) -> None:
    assert parse(body) == expected
    for size in range(1, len(body) + 1):
        assert parse(body, size) == expected


def test_an_event_that_ends_in_a_lone_return_is_told_at_once() -> None:
    assert EventParser().feed(b"data: x\r\r") == [ServerEvent("x")]


def test_a_retry_time_is_taken_where_it_is_a_number() -> None:
    parser = EventParser()
    parser.feed(b"retry: 2500\nretry: soon\nretry: 99999999999999999999\n")
    assert parser.retry_ms == 2500


def test_a_line_without_end_is_not_kept() -> None:
    parser = EventParser(line_bytes=1_000)
    with pytest.raises(StreamFormatError, match="longer than 1000"):
        feed_for_ever(parser, b"data: " + b"x" * 100)


def test_an_event_without_end_is_not_kept() -> None:
    parser = EventParser(event_bytes=1_000)
    with pytest.raises(StreamFormatError, match="larger than 1000"):
        feed_for_ever(parser, b"data: " + b"x" * 100 + b"\n")


def test_comments_for_ever_take_no_memory() -> None:
    lines = LineSplitter()
    parser = EventParser()
    for _ in range(10_000):
        assert parser.feed(b": still here\n\n") == []
        lines.feed(b": still here\n\n")
    assert lines.pending == 0


def test_lines_of_json_come_at_any_cut() -> None:
    body = b'{"n":0}\r\n\n{"n":1}\n{"n":2}'
    for size in range(1, len(body) + 1):
        parser = JsonLineParser()
        pieces = [body[start : start + size] for start in range(0, len(body), size)]
        assert [json.loads(line)["n"] for piece in pieces for line in parser.feed(piece)] == [0, 1]


@pytest.mark.needs("data")
def test_real_bodies_say_the_same_at_every_cut() -> None:
    rng = random.Random(5)
    files = sorted(BODIES.glob("*.sse"))
    assert len(files) > 50
    for file in files:
        body = file.read_bytes()
        whole = parse(body)
        assert whole
        assert parse(body, rng.randrange(1, 60)) == whole
        # An oracle of another make: split at blank lines, join what stands behind "data:".
        blocks = body.replace(b"\r\n", b"\n").decode().split("\n\n")[:-1]
        said = [
            "\n".join(
                line[5:].removeprefix(" ") for line in block.split("\n") if line[:5] == "data:"
            )
            for block in blocks
        ]
        assert [event.data for event in whole] == [text for text in said if text]


@pytest.mark.needs("data")
def test_real_chat_streams_are_understood() -> None:
    files = sorted(BODIES.glob("openai__test_chat_*.sse")) + sorted(BODIES.glob("mistralai*.sse"))
    role_alone: set[bool] = set()
    for file in files:
        texts: list[str] = []
        pieces: list[Piece] = []
        for event in parse(file.read_bytes()):
            pieces.append(read_event(event))
            if event.data != "[DONE]":
                choices = json.loads(event.data).get("choices") or []
                texts += [c.get("delta", {}).get("content") or "" for c in choices]
        assert pieces[-1].done, file.name
        assert any(piece.finished for piece in pieces), file.name
        calls = sum(piece.answer for piece in pieces) - len("".join(texts))
        assert calls >= 0
        assert "tool" in file.name or (calls == 0 and texts), file.name
        role_alone.add(pieces[0].answer == 0)
        assert not any(piece.error for piece in pieces), file.name
    assert role_alone == {True, False}, "some begin with a role alone, some with text"
