"""HTTP/2 without a socket, against the h2 library, and against what no server says."""

import struct

import pytest
from tests.http.parts import H2Server, get, moment, post

from pathbudget.probes.http.exchanges import Body, Broken, Event, Head, Whole
from pathbudget.probes.http.http2 import RECEIVE_WINDOW_BYTES, Http2Exchanges
from pathbudget.probes.http.settings import Limits
from pathbudget.probes.record import FailureKind

IDLE_FRAMES = 200
"""Of the tests; the real bound is higher, and its floods take seconds."""
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS = bytes(3) + b"\x04" + bytes(5)


def frame(kind: int, payload: bytes = b"", *, flags: int = 0, stream: int = 0) -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(
        ">I", stream
    ) + payload  # fmt: skip


def goaway(last: int, code: int = 0, said: bytes = b"") -> bytes:
    return frame(7, struct.pack(">II", last, code) + said)


def client(limits: Limits | None = None) -> Http2Exchanges:
    return Http2Exchanges(limits or Limits(), "https")


def flush(exchanges: Http2Exchanges) -> bytes:
    return b"".join(piece.data for piece in exchanges.outgoing())


def talk(exchanges: Http2Exchanges, server: H2Server) -> list[Event]:
    """Until nobody has anything to say."""
    events: list[Event] = []
    while data := flush(exchanges):
        events += exchanges.receive(server.take(data), moment(20))
    return events


def kinds(events: list[Event]) -> list[type]:
    return [type(event) for event in events]


def test_the_first_words_and_the_request_leave_together() -> None:
    exchanges = client()
    key = exchanges.ask(get("/ping"))
    first, second = exchanges.outgoing()
    assert first.data.startswith(PREFACE)
    assert (first.key, second.key, second.begins, second.ends) == (None, key, True, True)
    server = H2Server()
    server.take(first.data + second.data)
    headers = next(event.headers for event in server.events if hasattr(event, "headers"))
    assert headers == [
        (":method", "GET"),
        (":scheme", "https"),
        (":authority", "site.example"),
        (":path", "/ping"),
    ]
    windows = {server.h2.remote_flow_control_window(key)}
    assert windows == {65_535}  # ours to them; theirs to us:
    assert server.h2.local_flow_control_window(key) == RECEIVE_WINDOW_BYTES


def test_an_answer() -> None:
    exchanges, server = client(), H2Server()
    key = exchanges.ask(get())
    talk(exchanges, server)
    events = exchanges.receive(server.answer(key, more=[("server-timing", "a;dur=1")]), moment(30))
    assert events == [
        Head(key, 200, (("server-timing", "a;dur=1"),), moment(30)),
        Body(key, b"hi"),
        Whole(key, "HTTP/2", 0),
    ]
    assert exchanges.usable


def test_the_head_has_the_moment_of_its_first_byte_and_bodies_come_by_packet() -> None:
    exchanges, server = client(), H2Server()
    key = exchanges.ask(get())
    talk(exchanges, server)
    answer = server.answer(key, b"a" * 10, end=False)
    server.h2.send_data(key, b"b" * 10, end_stream=True)
    answer += server.h2.data_to_send()
    assert exchanges.receive(answer[:4], moment(30)) == []
    events = exchanges.receive(answer[4:-12], moment(35))
    assert events == [Head(key, 200, (), moment(30)), Body(key, b"a" * 10)]
    assert exchanges.receive(answer[-12:], moment(40)) == [
        Body(key, b"b" * 10),
        Whole(key, "HTTP/2", 0),
    ]


def test_requests_side_by_side_are_told_apart() -> None:
    exchanges, server = client(), H2Server()
    first, second = exchanges.ask(get("/a")), exchanges.ask(get("/b"))
    talk(exchanges, server)
    events = exchanges.receive(server.answer(second, b"B") + server.answer(first, b"A"), moment(3))
    assert [(event.key, type(event)) for event in events] == [
        (second, Head), (second, Body), (second, Whole), (first, Head), (first, Body),
        (first, Whole),
    ]  # fmt: skip


def test_a_body_beyond_the_window_waits_for_it() -> None:
    exchanges, server = client(), H2Server(window=30_000)
    key = exchanges.ask(post(bytes(100_000)))
    sent = flush(exchanges)
    assert exchanges.stalled == {key}
    assert 65_535 < len(sent) < 66_500  # what all may send before the settings of a server
    exchanges = client()
    talk(exchanges, server)
    key = exchanges.ask(post(bytes(100_000)))
    sent = flush(exchanges)
    assert len(sent) < 31_000
    assert exchanges.stalled == {key}
    server.take(sent)
    server.h2.increment_flow_control_window(1 << 20)
    exchanges.receive(server.h2.data_to_send(), moment(40))
    assert (flush(exchanges), set(exchanges.stalled)) == (
        b"",
        {key},
    )  # the stream has one of its own
    server.h2.increment_flow_control_window(1 << 20, key)
    exchanges.receive(server.h2.data_to_send(), moment(50))
    pieces = exchanges.outgoing()
    assert sum(len(piece.data) for piece in pieces) > 70_000
    assert [piece.ends for piece in pieces] == [False] * (len(pieces) - 1) + [True]
    assert exchanges.stalled == frozenset()


def test_a_download_larger_than_any_window_of_theirs_never_waits() -> None:
    exchanges, server = client(), H2Server()
    key = exchanges.ask(get())
    talk(exchanges, server)
    came = 0
    exchanges.receive(server.answer(key, b"", end=False), moment(1))
    for _ in range(2_000):  # 32 MB
        server.h2.send_data(key, bytes(16_384))
        for event in exchanges.receive(server.h2.data_to_send(), moment(2)):
            came += len(event.data) if isinstance(event, Body) else 0
        server.take(flush(exchanges))
    assert came == 2_000 * 16_384


def test_pings_and_settings_are_answered() -> None:
    exchanges, server = client(), H2Server()
    talk(exchanges, server)
    server.h2.ping(b"01234567")
    server.h2.update_settings({3: 7})
    exchanges.receive(server.h2.data_to_send(), moment(1))
    server.take(flush(exchanges))
    names = [type(event).__name__ for event in server.events]
    assert "PingAckReceived" in names
    assert names.count("SettingsAcknowledged") == 2


def test_a_server_that_goes_away_still_answers_what_it_has_seen() -> None:
    exchanges, server = client(), H2Server()
    first, second = exchanges.ask(get("/a")), exchanges.ask(get("/b"))
    talk(exchanges, server)
    (event,) = exchanges.receive(goaway(first, said=b"maintenance"), moment(2))
    assert isinstance(event, Broken)
    assert (event.key, event.failure.kind) == (second, FailureKind.CLOSED)
    assert event.failure.detail == "the server goes away: NO_ERROR, maintenance"
    assert not exchanges.usable
    assert kinds(exchanges.receive(server.answer(first), moment(3))) == [Head, Body, Whole]
    assert exchanges.ended() == []


def test_a_stream_that_is_reset_is_the_failure_of_one_request() -> None:
    exchanges, server = client(), H2Server()
    first, second = exchanges.ask(get("/a")), exchanges.ask(get("/b"))
    talk(exchanges, server)
    server.h2.reset_stream(first, 7)
    (event,) = exchanges.receive(server.h2.data_to_send(), moment(2))
    assert isinstance(event, Broken)
    assert event.failure.kind is FailureKind.RESET
    assert event.failure.detail == "the server reset the stream: REFUSED_STREAM"
    assert kinds(exchanges.receive(server.answer(second), moment(3))) == [Head, Body, Whole]


def test_an_answer_before_the_body_has_been_read_ends_its_sending() -> None:
    exchanges, server = client(), H2Server(window=1_000)
    talk(exchanges, server)
    key = exchanges.ask(post(bytes(50_000)))
    talk(exchanges, server)
    assert exchanges.stalled == {key}
    answer = server.answer(key)
    server.h2.reset_stream(key, 0)
    events = exchanges.receive(answer + server.h2.data_to_send(), moment(3))
    assert kinds(events) == [Head, Body, Whole]
    assert (exchanges.stalled, exchanges.outgoing()) == (frozenset(), [])


def test_early_hints_are_counted() -> None:
    exchanges, server = client(), H2Server()
    key = exchanges.ask(get())
    talk(exchanges, server)
    server.h2.send_headers(key, [(":status", "103")])
    assert exchanges.receive(server.h2.data_to_send(), moment(10)) == []
    events = exchanges.receive(server.answer(key), moment(20))
    assert events[0] == Head(key, 200, (), moment(20))
    assert events[-1] == Whole(key, "HTTP/2", 1)


def test_as_many_requests_as_the_server_allows() -> None:
    exchanges, server = client(), H2Server()
    server.h2.update_settings({3: 1})
    exchanges.receive(server.h2.data_to_send(), moment(1))
    assert exchanges.usable
    exchanges.ask(get())
    assert not exchanges.usable


def hpack(*headers: tuple[str, str]) -> bytes:
    from hpack import Encoder

    return Encoder().encode(headers)


WRONG = {
    "http-1": b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "garbage": b"\x00\x00\x01\x99 nonsense and more",
    "no-settings": frame(6, bytes(8)),
    "large-frame": SETTINGS + b"\xff\xff\xff\x00\x00" + bytes(4),
    "bad-status": SETTINGS + frame(1, hpack((":status", "2OO")), flags=5, stream=1),
    "no-status": SETTINGS + frame(1, hpack(("a", "b")), flags=5, stream=1),
    "bad-header-block": SETTINGS + frame(1, b"\xff" * 40, flags=5, stream=1),
    "push": SETTINGS + frame(5, bytes([0, 0, 0, 2]) + hpack((":method", "GET")), flags=4, stream=1),
    "data-first": SETTINGS + frame(0, b"hi", flags=1, stream=1),
    "wrong-length": SETTINGS
    + frame(1, hpack((":status", "200"), ("content-length", "5")), flags=4, stream=1)
    + frame(0, b"hi", flags=1, stream=1),
    "stream-of-nobody": SETTINGS + frame(1, hpack((":status", "200")), flags=5, stream=8),
    "short-goaway": SETTINGS + frame(7, b"abc"),
    "window-overflow": SETTINGS + frame(8, b"\x7f\xff\xff\xff") * 2,
    "many-headers": SETTINGS
    + frame(1, hpack((":status", "200"), *(("a", "b"),) * 300), flags=5, stream=1),
    "header-bomb": SETTINGS
    + frame(1, hpack((":status", "200"), *(("a" * 60, "b" * 4_000),) * 60), flags=5, stream=1),
    "endless-continuation": SETTINGS
    + frame(1, hpack((":status", "200")), stream=1)
    + frame(9, b"", stream=1) * 100,
    "endless-hints": SETTINGS + frame(1, hpack((":status", "103")), flags=4, stream=1) * 40,
    "ping-flood": SETTINGS + frame(6, bytes(8)) * (IDLE_FRAMES + 1),
    "settings-flood": SETTINGS * (IDLE_FRAMES + 2),
    "empty-data-flood": SETTINGS
    + frame(1, hpack((":status", "200")), flags=4, stream=1)
    + frame(0, stream=1) * (IDLE_FRAMES + 1),
    "reset-flood": SETTINGS + frame(3, bytes(4), stream=1) * (IDLE_FRAMES + 1),
    "unknown-flood": SETTINGS + frame(77, bytes(4)) * (IDLE_FRAMES + 1),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_no_server_says_ends_the_connection(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pathbudget.probes.http.http2.IDLE_FRAMES", IDLE_FRAMES)
    exchanges = client()
    exchanges.ask(get())
    flush(exchanges)
    events = exchanges.receive(WRONG[name], moment(20))
    failures = [event.failure for event in events if isinstance(event, Broken)]
    assert failures, events
    assert not exchanges.usable
    assert failures[-1].kind is FailureKind.PROTOCOL, failures
    assert failures[-1].detail.isprintable()
    assert len(failures[-1].detail) <= 160
    assert len(flush(exchanges)) <= 20 * IDLE_FRAMES


def test_a_body_ends_at_the_bound_padding_counted() -> None:
    exchanges, server = client(Limits(body_bytes=50_000)), H2Server()
    key = exchanges.ask(get())
    talk(exchanges, server)
    exchanges.receive(server.answer(key, b"", end=False), moment(1))
    events: list[Event] = []
    number = 0
    while number < 1_000 and not any(isinstance(event, Broken) for event in events):
        number += 1
        server.h2.send_data(key, b"x", pad_length=255)
        events = exchanges.receive(server.h2.data_to_send(), moment(2))
        server.take(flush(exchanges))
    assert number < 200
    assert isinstance(events[-1], Broken)
    assert events[-1].failure.detail == "an answer of more than 50000 bytes"


def test_a_request_makes_room_for_more_frames_that_carry_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pathbudget.probes.http.http2.IDLE_FRAMES", IDLE_FRAMES)
    exchanges, server = client(), H2Server()
    talk(exchanges, server)
    for _ in range(5):
        key = exchanges.ask(get())
        talk(exchanges, server)
        assert exchanges.receive(frame(6, bytes(8)) * (IDLE_FRAMES - 10), moment(1)) == []
        assert exchanges.receive(server.answer(key), moment(2))[-1] == Whole(key, "HTTP/2", 0)


@pytest.mark.parametrize("headed", [False, True])
def test_an_answer_cut_short_is_no_answer(headed: bool) -> None:
    exchanges, server = client(), H2Server()
    key = exchanges.ask(get())
    talk(exchanges, server)
    if headed:
        exchanges.receive(server.answer(key, b"x", end=False), moment(1))
    (event,) = exchanges.ended()
    assert isinstance(event, Broken)
    assert event.failure.kind is FailureKind.CLOSED
    assert event.failure.detail.endswith("middle of the answer") is headed


def test_goodbye_is_said_once() -> None:
    exchanges, server = client(), H2Server()
    talk(exchanges, server)
    server.take(exchanges.goodbye())
    assert [type(event).__name__ for event in server.events][-1] == "ConnectionTerminated"
