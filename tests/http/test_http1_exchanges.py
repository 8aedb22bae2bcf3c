"""HTTP/1.1 without a socket: what is sent, what is taken from an answer, and what is not."""

import pytest
from tests.http.parts import get, moment, post

from pathbudget.probes.http.exchanges import Body, Broken, Event, Head, Whole
from pathbudget.probes.http.http1 import Http1Exchanges
from pathbudget.probes.http.settings import Limits
from pathbudget.probes.record import FailureKind, Stage

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"


def asked(limits: Limits | None = None) -> Http1Exchanges:
    exchanges = Http1Exchanges(limits or Limits())
    exchanges.ask(get())
    exchanges.outgoing()
    return exchanges


def broken(events: list[Event]) -> Broken:
    found = [event for event in events if isinstance(event, Broken)]
    assert len(found) == 1, events
    return found[0]


def test_a_request_is_written_once_and_marked_with_where_it_begins_and_ends() -> None:
    exchanges = Http1Exchanges(Limits())
    key = exchanges.ask(get("/ping?a=1", ("accept", "*/*")))
    (piece,) = exchanges.outgoing()
    assert piece == (
        b"GET /ping?a=1 HTTP/1.1\r\nhost: site.example\r\naccept: */*\r\n\r\n", key, True, True
    )  # fmt: skip
    assert exchanges.outgoing() == []
    assert not exchanges.usable


@pytest.mark.parametrize(("body", "length"), [(b"abc", b"3"), (b"", b"0")])
def test_a_body_comes_with_its_length(body: bytes, length: bytes) -> None:
    exchanges = Http1Exchanges(Limits())
    exchanges.ask(post(body))
    (piece,) = exchanges.outgoing()
    assert piece.data.endswith(b"content-length: " + length + b"\r\n\r\n" + body)


def test_an_answer_in_one_packet() -> None:
    exchanges = asked()
    events = exchanges.receive(OK, moment(20))
    assert events == [
        Head(1, 200, (("content-length", "2"),), moment(20)),
        Body(1, b"hi"),
        Whole(1, "HTTP/1.1", 0),
    ]
    assert exchanges.usable


def test_the_head_has_the_moment_of_its_first_byte_and_bodies_come_by_packet() -> None:
    exchanges = asked()
    assert exchanges.receive(OK[:9], moment(20)) == []
    events = exchanges.receive(OK[9:-1], moment(25))
    assert events == [Head(1, 200, (("content-length", "2"),), moment(20)), Body(1, b"h")]
    assert exchanges.receive(OK[-1:], moment(30)) == [Body(1, b"i"), Whole(1, "HTTP/1.1", 0)]


def test_chunks_of_one_packet_are_one_piece() -> None:
    exchanges = asked()
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    events = exchanges.receive(head + b"2\r\nhi\r\n1\r\n!\r\n", moment(20))
    assert events[1:] == [Body(1, b"hi!")]
    assert exchanges.receive(b"0\r\n\r\n", moment(30)) == [Whole(1, "HTTP/1.1", 0)]
    assert exchanges.usable


@pytest.mark.parametrize("apart", [True, False], ids=["apart", "together"])
def test_early_hints_are_counted_and_are_no_first_byte(apart: bool) -> None:
    hint = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
    exchanges = asked()
    if apart:
        assert exchanges.receive(hint, moment(10)) == []
        events = exchanges.receive(OK, moment(20))
    else:
        events = exchanges.receive(hint + OK, moment(20))
    assert isinstance(events[0], Head)
    assert events[0].moment == moment(20)
    assert events[-1] == Whole(1, "HTTP/1.1", 1)


def test_a_body_that_ends_with_the_connection_is_whole_and_the_connection_spent() -> None:
    exchanges = asked()
    events = exchanges.receive(b"HTTP/1.0 200 OK\r\n\r\nhi", moment(20))
    assert [type(event) for event in events] == [Head, Body]
    assert exchanges.ended() == [Whole(1, "HTTP/1.0", 0)]
    assert not exchanges.usable


@pytest.mark.parametrize(
    "answer",
    [b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi", OK + b"surplus"],
    ids=["close", "surplus"],
)
def test_no_other_request_after_an_answer_that_forbids_it(answer: bytes) -> None:
    exchanges = asked()
    assert exchanges.receive(answer, moment(20))[-1] == Whole(1, "HTTP/1.1", 0)
    assert not exchanges.usable


def test_many_requests_on_one_connection() -> None:
    exchanges = Http1Exchanges(Limits())
    for number in range(1, 4):
        assert exchanges.ask(get()) == number
        exchanges.outgoing()
        assert exchanges.receive(OK, moment(20))[-1] == Whole(number, "HTTP/1.1", 0)


def test_what_comes_unasked_spends_the_connection() -> None:
    exchanges = Http1Exchanges(Limits())
    assert exchanges.usable
    assert exchanges.receive(b"HTTP/1.1 408 Request Timeout\r\n\r\n", moment(1)) == []
    assert not exchanges.usable


def test_an_end_while_nothing_is_asked_breaks_nothing() -> None:
    exchanges = Http1Exchanges(Limits())
    assert exchanges.ended() == []
    assert not exchanges.usable


HEAD = b"HTTP/1.1 200 OK\r\n"
WRONG = {
    "garbage": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n\r\n",
    "another-protocol": b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
    "two-lengths": HEAD + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\nhi!",
    "negative-length": HEAD + b"Content-Length: -2\r\n\r\nhi",
    "length-and-chunks": HEAD + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n",
    "chunks-of-http-1.0": b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
    "unknown-encoding": HEAD + b"Transfer-Encoding: gzip\r\n\r\n",
    "chunk-of-no-length": HEAD + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n",
    "header-without-colon": HEAD + b"what is this\r\n\r\n",
    "switched-unasked": b"HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\n\r\n",
    "long-header": HEAD + b"a: " + b"b" * 70_000,
    "long-headers": HEAD + b"a: bbbbbbbb\r\n" * 10_000,
    "many-headers": HEAD + b"a: b\r\n" * 257 + b"\r\n",
    "endless-hints": b"HTTP/1.1 100 Continue\r\n\r\n" * 40,
    "long-chunk-extension": HEAD + b"Transfer-Encoding: chunked\r\n\r\n2;" + b"x" * 70_000,
}


@pytest.mark.parametrize("name", WRONG)
def test_an_answer_that_is_none_is_a_protocol_failure(name: str) -> None:
    exchanges = asked()
    failure = broken(exchanges.receive(WRONG[name], moment(20))).failure
    assert (failure.kind, failure.stage) == (FailureKind.PROTOCOL, Stage.PARSE)
    assert 0 < len(failure.detail) <= 160
    assert failure.detail.isprintable()
    assert not exchanges.usable
    assert exchanges.receive(OK, moment(21)) == []


@pytest.mark.parametrize(
    "step", [b"400\r\n" + b"x" * 1_024 + b"\r\n", b"1;" + b"y" * 900 + b"\r\nx\r\n"],
    ids=["body", "framing"],
)  # fmt: skip
def test_endless_chunks_end_at_the_bound(step: bytes) -> None:
    exchanges = asked(Limits(body_bytes=100_000))
    exchanges.receive(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", moment(20))
    events: list[Event] = []
    steps = 0
    while steps < 1_000 and not any(isinstance(event, Broken) for event in events):
        steps += 1
        events = exchanges.receive(step, moment(20 + steps))
    assert steps <= 113
    assert broken(events).failure.detail == "an answer of more than 100000 bytes"


@pytest.mark.parametrize(
    ("came", "detail"),
    [
        (b"", "closed by the other side"),
        (OK[:10], "closed by the other side in the middle of the answer"),
        (OK[:-1], "closed by the other side in the middle of the answer"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n",
         "closed by the other side in the middle of the answer"),
    ],
    ids=["before", "in-the-head", "in-the-body", "between-chunks"],
)  # fmt: skip
def test_an_answer_cut_short_is_no_answer(came: bytes, detail: str) -> None:
    exchanges = asked()
    if came:
        exchanges.receive(came, moment(20))
    (event,) = exchanges.ended()
    assert isinstance(event, Broken)
    assert (event.failure.kind, event.failure.detail) == (FailureKind.CLOSED, detail)


def test_an_answer_to_head_has_no_body() -> None:
    from pathbudget.probes.carriers import Request

    exchanges = Http1Exchanges(Limits())
    exchanges.ask(Request("HEAD", "site.example", "/"))
    events = exchanges.receive(HEAD + b"Content-Length: 1000\r\n\r\n", moment(20))
    assert [type(event) for event in events] == [Head, Whole]
    assert exchanges.usable
