"""Servers of HTTP/1.1 and 2 that go mad: good answers made bad, heads and bodies without end."""

import json
import struct
from collections.abc import Callable
from random import Random

from hostile.malice import MS, Step, deliver, endless, spoil

Body = Callable[[Random], bytes]
HTTP_1 = b"HTTP/1.1 "
DATA, HEADERS, PRIORITY, RESET, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION = range(10)
WORDS = (
    b"content-length", b"transfer-encoding", b"server-timing", b"location", b"connection",
    b"content-encoding", b"retry-after", b"x", b"set-cookie", b"content-type", b"residence-ns",
)  # fmt: skip
VALUES = (
    b"0", b"5", b"-1", b"99999999999999999999", b"chunked", b"gzip, chunked", b"/", b"//a/b",
    b"http://site.example:443/", b"close", b"keep-alive", b"a;dur=1e999", b"a;dur=3, b;dur=x",
    b"\xff\xfe", b"text/event-stream", b"1e9", b"",
)  # fmt: skip


def number(rng: Random) -> int:
    """One that a server might say, or never should."""
    some = (0, 1, 5, 999, 1_790_000_000_000_000_000, 1 << 62, 1 << 63, 1 << 64, 10**30, -1)
    return rng.choice(some)


def plain(rng: Random) -> bytes:
    """A body that means nothing."""
    return rng.randbytes(rng.choice((0, 1, 20, 500, 5_000)))


def receipt(rng: Random) -> bytes:
    """What the sink of a reflector says, more or less."""
    said = {
        "bytes": rng.choice((4_000, 4_000, number(rng))),
        "first_unix_ns": number(rng),
        "last_unix_ns": number(rng),
        "residence_ns": rng.choice((10, number(rng))),
        "kernel": rng.choice((True, False, 1, None)),
    }
    return spoil(rng, json.dumps(said).encode())


def _chunks(rng: Random) -> list[str]:
    count = rng.choice((0, 1, 5, 6, 40))
    made: list[dict[str, object]] = [
        {
            "n": n if rng.randrange(8) else number(rng),
            "due_ns": 10 * MS * n if rng.randrange(8) else number(rng),
            "sent_unix_ns": 1_790_000_000_000_000_000 + n if rng.randrange(8) else number(rng),
            "left": [[number(rng), number(rng)] for _ in range(rng.choice((0, 1, 1, 50)))],
            "pad": "x" * rng.choice((0, 100, 3_000)),
        }
        for n in range(count)
    ]
    made.append({"n": count, "due_ns": 0, "sent_unix_ns": number(rng), "last": True})
    return [json.dumps(one) for one in made]


def chunk_events(rng: Random) -> bytes:
    """A paced stream as server-sent events."""
    events = "".join(f"data: {one}\n\n" for one in _chunks(rng)).encode()
    return spoil(rng, events, b"\xef\xbb\xbfid: 1\rretry: 99999999999999999999\r\r")


def chunk_lines(rng: Random) -> bytes:
    """A paced stream as lines of JSON."""
    return spoil(rng, "".join(f"{one}\n" for one in _chunks(rng)).encode())


def chunk_messages(rng: Random) -> bytes:
    """A paced stream as frames of a WebSocket (RFC 6455), and control frames beside."""
    made = [_frame(1, one.encode()) for one in _chunks(rng)]
    for _ in range(rng.choice((0, 0, 3, 60))):
        kind = rng.choice((0, 2, 8, 9, 10, 11))
        made.insert(rng.randint(0, len(made)), _frame(kind, rng.randbytes(rng.choice((0, 125)))))
    if rng.randrange(5) == 0:
        made.append(b"\x81\x7f" + rng.choice((b"\x7f", b"\0", b"\xff")) * 8)
    return spoil(rng, b"".join(made))


def _frame(kind: int, data: bytes) -> bytes:
    if len(data) < 126:
        return bytes((0x80 | kind, len(data))) + data
    return bytes((0x80 | kind, 126)) + struct.pack(">H", len(data)) + data


def completion(rng: Random) -> bytes:
    """A streamed chat completion."""
    made: list[object] = [{"choices": [{"delta": {"role": "assistant"}}]}]
    for _ in range(rng.choice((0, 1, 5, 60))):
        words: tuple[object, ...] = ("word ", "", None, 7, [{"text": "x"}], "x" * 9_000)
        delta = {rng.choice(("content", "content", "reasoning_content", "tool_calls", "refusal")):
                 rng.choice(words)}  # fmt: skip
        made.append({"choices": [{"delta": delta, "finish_reason": rng.choice((None, "stop", 3))}]})
    if rng.randrange(2):
        made.append({"choices": [], "usage": {"completion_tokens": number(rng)}})
    if rng.randrange(6) == 0:
        made.append({"error": {"message": "no\x1b[31m", "code": number(rng)}})
    text = "".join(f"data: {json.dumps(one)}\n\n" for one in made)
    if rng.randrange(6) == 0:
        text += "data: " + "[" * rng.choice((10, 50_000)) + "\n\n"
    return spoil(rng, (text + "data: [DONE]\n\n").encode(), b"event: error\n: no\n\n")


class Http1Peer:
    """See `network.Peer`."""

    def __init__(self, rng: Random, body: Body, *, upgrades: bool = False) -> None:
        self._rng = rng
        self._body = body
        self._upgrades = upgrades
        self._asked = b""
        self._busy = False

    def take(self, data: bytes) -> list[Step]:
        """See `network.Peer.take`. Some answers come before the request is whole."""
        rng = self._rng
        self._asked = (self._asked + data)[-4_096:]
        if self._busy and rng.randrange(3):
            return []
        self._busy = True
        way = rng.randrange(12)
        if way == 0:
            return []
        if way == 1:
            return deliver(rng, rng.randbytes(rng.randint(1, 9_000)))
        if way == 2:
            return self._endless_head()
        if way == 3:
            return [Step(0, self._chunked_head()), *_endless_body(rng)]
        good = self._upgrade() if self._upgrades and rng.randrange(5) else self._whole()
        return deliver(rng, spoil(rng, good) if rng.randrange(2) else good)

    def _line(self) -> bytes:
        some = (b"200 OK", b"200 OK", b"200 OK", b"204 No", b"302 x", b"401 x", b"503 busy",
                b"100 C", b"103 Hints", b"101 Switch", b"999 x", b"20 x", b"200")  # fmt: skip
        return HTTP_1 + self._rng.choice(some) + b"\r\n"

    def _more(self) -> bytes:
        rng = self._rng
        return b"".join(
            rng.choice(WORDS) + b": " + rng.choice(VALUES) + b"\r\n"
            for _ in range(rng.choice((0, 0, 1, 3, 300)))
        )

    def _whole(self) -> bytes:
        rng = self._rng
        body = self._body(rng)
        if rng.randrange(2):
            head = HTTP_1 + b"200 OK\r\ncontent-type: text/event-stream\r\n"
            return head + b"content-length: %d\r\n\r\n" % len(body) + body
        hints = b"HTTP/1.1 103 Hints\r\nlink: x\r\n\r\n" * rng.choice((0, 0, 0, 1, 200))
        head = hints + (self._line() if rng.randrange(2) else HTTP_1 + b"200 OK\r\n")
        head += b"content-type: text/event-stream\r\n" + self._more()
        if rng.randrange(2):
            length = len(body) if rng.randrange(4) else abs(number(rng))
            return head + b"content-length: %d\r\n\r\n" % length + body
        return head + b"transfer-encoding: chunked\r\n\r\n" + _chunked(rng, body)

    def _chunked_head(self) -> bytes:
        return HTTP_1 + b"200 OK\r\ntransfer-encoding: chunked\r\n\r\n"

    def _endless_head(self) -> list[Step]:
        rng = self._rng
        step = rng.choice((b"a: b\r\n" * 200, b"b" * 1_000, b"a", b"HTTP/1.1 100 C\r\n\r\n"))
        first = rng.choice((b"", HTTP_1 + b"200 OK\r\n", HTTP_1 + b"200 OK\r\na: "))
        return [Step(0, first or b"H"), *endless(rng, step)]

    def _upgrade(self) -> bytes:
        import base64
        import hashlib

        key = self._asked.lower().partition(b"sec-websocket-key:")[0]
        given = self._asked[len(key) + 18 :].split(b"\r\n")[0].strip()
        digest = hashlib.sha1(given + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest()
        head = HTTP_1 + b"101 Switching\r\nupgrade: websocket\r\nconnection: Upgrade\r\n"
        head += b"sec-websocket-accept: " + base64.b64encode(digest) + b"\r\n\r\n"
        return head + self._body(self._rng)


def _endless_body(rng: Random) -> list[Step]:
    piece = rng.choice((b"1\r\nx\r\n" * 8, b"1f4\r\n" + bytes(500) + b"\r\n", b"0;x=",
                        b"10\r\ndata: {\"n\": 1}\n\r\n", b"2\r\n\n\n\r\n"))  # fmt: skip
    return [Step(rng.choice((5, 20, 40)) * MS, piece)] * 60


def _chunked(rng: Random, body: bytes) -> bytes:
    made, at = b"", 0
    while at < len(body):
        size = rng.choice((1, 10, 100, 4_000)) if len(made) < 9_000 else len(body)
        piece = body[at : at + size]
        made += b"%x\r\n" % len(piece) + piece + b"\r\n"
        at += size
    return made + b"0\r\n" + rng.choice((b"", b"a: b\r\n" * 60)) + b"\r\n"


def frame(kind: int, flags: int, stream: int, data: bytes) -> bytes:
    """One frame of HTTP/2 (RFC 9113, 4.1)."""
    return len(data).to_bytes(3, "big") + bytes((kind, flags)) + struct.pack(">I", stream) + data


class Http2Peer:
    """See `network.Peer`. The client's own frames are hardly looked at."""

    def __init__(self, rng: Random, body: Body) -> None:
        self._rng = rng
        self._body = body
        self._stream = -1

    def take(self, data: bytes) -> list[Step]:
        """See `network.Peer.take`."""
        rng = self._rng
        asks = (
            self._stream < 0 or b"\x01\x04\x00\x00\x00" in data or b"\x01\x05\x00\x00\x00" in data
        )
        if not asks:
            return []
        first = self._stream < 0
        self._stream = max(1, self._stream + 2)
        said = frame(SETTINGS, 0, 0, self._settings()) if first else b""
        said += frame(SETTINGS, 1, 0, b"") if first and rng.randrange(4) else b""
        way = rng.randrange(10)
        if way == 0:
            return deliver(rng, said)
        if way == 1:
            return deliver(rng, rng.randbytes(rng.randint(1, 9_000)))
        if way == 2:
            piece = self._flood()
            return [Step(0, said or b"\0"), *endless(rng, piece)]
        if rng.randrange(2):
            said = (frame(SETTINGS, 0, 0, b"") if first else b"") + frame(PING, 0, 0, bytes(8))
            said += self._answer()
            return deliver(rng, spoil(rng, said) if rng.randrange(3) == 0 else said)
        for _ in range(rng.choice((0, 0, 1, 4, 40))):
            said += self._some_frame()
        said += self._answer()
        for _ in range(rng.choice((0, 0, 0, 2))):
            said += self._some_frame()
        return deliver(rng, spoil(rng, said) if rng.randrange(2) else said)

    def _settings(self) -> bytes:
        rng = self._rng
        return b"".join(
            struct.pack(">HI", rng.randrange(9), rng.choice((0, 1, 100, 65_535, 1 << 24, 1 << 31)))
            for _ in range(rng.choice((0, 0, 1, 3)))
        )

    def _answer(self) -> bytes:
        rng, stream = self._rng, self._stream
        body = self._body(rng)
        said = frame(HEADERS, 4, stream, b"\x88" + self._fields())
        for at in range(0, len(body), 4_000):
            said += frame(DATA, 0, stream, body[at : at + 4_000])
        return said + frame(DATA, 1, stream, b"")

    def _fields(self) -> bytes:
        """Literal fields (RFC 7541, 6.2), and references to what is not there."""
        rng, made = self._rng, b""
        for _ in range(rng.choice((0, 0, 1, 5, 200))):
            name, value = rng.choice(WORDS), rng.choice(VALUES)
            made += rng.choice((b"\x00", b"\x40")) + bytes([len(name)]) + name
            made += bytes([len(value)]) + value
        return made + rng.choice((b"", b"", b"", b"\xff\xff\xff\xff\xff\x0f", b"\xbe" * 500))

    def _flood(self) -> bytes:
        rng = self._rng
        some = (
            frame(PING, 0, 0, bytes(8)), frame(SETTINGS, 0, 0, b""),
            frame(DATA, 0, self._stream, b"x"), frame(DATA, 0, self._stream, b""),
            frame(CONTINUATION, 0, self._stream, b"\x00\x01a\x01b"),
            frame(WINDOW, 0, 0, b"\0\0\0\1"), frame(99, 0, 0, bytes(50)),
        )  # fmt: skip
        return rng.choice(some) * rng.choice((1, 20))

    def _some_frame(self) -> bytes:
        rng = self._rng
        kind = rng.choice((*range(10), 11, 250))
        stream = rng.choice((0, self._stream, self._stream, 2, 3, 0x7FFFFFFF))
        size = rng.choice((0, 4, 5, 6, 8, 17, 600))
        return frame(kind, rng.choice((0, 1, 4, 8, 32, 255)), stream, rng.randbytes(size))
