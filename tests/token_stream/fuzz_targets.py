"""Fuzz targets of everything that reads streams of others. See tests/fuzzing.py."""

import contextlib

from pathbudget.agents.completions.chunks import read_request
from pathbudget.probes.stream.completion_events import read_event
from pathbudget.probes.stream.json_lines import JsonLineParser
from pathbudget.probes.stream.lines import StreamFormatError
from pathbudget.probes.stream.sse import EventParser, ServerEvent
from pathbudget.probes.stream.websocket import WebSocketClient

LIMIT = 256


def fuzz_one_events(data: bytes) -> None:
    """The same events at every cut, or the same refusal; each can be read, or is refused."""
    if not data:
        return
    size = 1 + data[0] % 16
    assert _events(data, len(data)) == _events(data, size)
    for event in _events(data, len(data)) or ():
        with contextlib.suppress(StreamFormatError):
            read_event(event)
    with contextlib.suppress(StreamFormatError):
        read_event(ServerEvent(data.decode("utf-8", "replace")))


def _events(data: bytes, size: int) -> list[ServerEvent] | None:
    parser = EventParser(line_bytes=LIMIT, event_bytes=2 * LIMIT)
    found: list[ServerEvent] = []
    try:
        for start in range(0, len(data), size):
            found += parser.feed(data[start : start + size])
    except StreamFormatError:
        return None
    return found


def fuzz_one_lines(data: bytes) -> None:
    """Lines hold no ends and are no longer than the limit."""
    parser = JsonLineParser(line_bytes=LIMIT)
    for start in range(0, len(data), 7):
        try:
            lines = parser.feed(data[start : start + 7])
        except StreamFormatError:
            return
        assert all(len(line) <= LIMIT and b"\n" not in line for line in lines)


def fuzz_one_websocket(data: bytes) -> None:
    """Whatever a server says, before and after the upgrade: messages within the limit, or no."""
    accepted = (
        b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\n"
        b"sec-websocket-accept: "
    )
    for begin in (b"", accepted):
        client = WebSocketClient("site.example", "/", message_bytes=LIMIT)
        client.start()
        with contextlib.suppress(StreamFormatError):
            for piece in (begin, data[:9], data[9:]):
                heard = client.receive(piece)
                assert all(len(message) <= LIMIT for message in heard.messages)
        client.goodbye()


def fuzz_one_request(data: bytes) -> None:
    """A request of a completion is read, or a ValueError."""
    with contextlib.suppress(ValueError, RecursionError):
        asked = read_request(data)
        assert asked.prompt_words >= 0
        assert asked.limit is None or asked.limit >= 1
