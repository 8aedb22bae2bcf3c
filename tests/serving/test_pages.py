"""What each path answers, and the paced stream, without any socket."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pathbudget.agents.reflector.serving.fakes import UNIX_NS, HandClock, Line, Said, at, pages
from pathbudget.agents.reflector.serving.limits import Limits
from pathbudget.agents.reflector.serving.pacing import StreamError, framed, padded, read_plan
from pathbudget.agents.reflector.serving.pages import Asked
from pathbudget.probes.reflector_http import Chunk, UploadReceipt

TOKEN = b"0123456789abcdef"
STREAM = "/stream?chunks=3&interval_us=20000&form=chunked"


def ask(asked: Asked, **named: object) -> Said:
    """The answer to a request that is whole at once."""
    clock = HandClock()
    reply = Said(clock)
    site, _ = pages(clock, **named)  # type: ignore[arg-type]
    site.ask(asked, reply, at(clock)).complete(at(clock))
    return reply


@pytest.mark.parametrize(
    ("method", "target", "status"),
    [
        ("GET", "/ping", 204),
        ("HEAD", "/ping", 204),
        ("GET", "/", 200),
        ("GET", "/nowhere", 404),
        ("GET", "*", 404),
        ("GET", "http://elsewhere/ping", 404),
        ("GET", "/ping/../upload", 404),
        ("GET", "/" + "x" * 3_000, 404),
        ("POST", "/ping", 405),
        ("GET", "/upload", 405),
        ("POST", "/stream", 405),
        ("CONNECT", "/ping", 405),
        ("GET", "/stream?chunks=0", 400),
        ("POST", "/upload", 200),
        ("PUT", "/upload", 200),
    ],
)
def test_what_a_path_answers(method: str, target: str, status: int) -> None:
    reply = ask(Asked(method, target))
    assert reply.status == status
    assert reply.ended
    assert int(reply.headers["residence-ns"]) >= 0
    assert "residence;dur=" in reply.headers["server-timing"]


def test_a_head_request_gets_no_body() -> None:
    reply = ask(Asked("HEAD", "/"))
    assert reply.pieces == []
    assert int(reply.headers["content-length"]) > 0


def test_the_receipt_of_an_upload_has_the_moments_of_its_bytes() -> None:
    clock, reply = HandClock(), Said(HandClock())
    site, _ = pages(clock)
    exchange = site.ask(Asked("POST", "/upload"), reply, at(clock))
    clock.now_ns = 40_000_000
    began = at(clock)
    clock.now_ns = 80_000_000
    exchange.body(16_000, began, at(clock))
    clock.now_ns = 120_000_000
    exchange.body(4_000, at(clock), last := at(clock))
    clock.now_ns = 120_500_000
    exchange.complete(last)
    receipt = json.loads(reply.pieces[0])
    assert receipt == {
        "bytes": 20_000,
        "first_unix_ns": UNIX_NS + 40_000_000,
        "last_unix_ns": UNIX_NS + 120_000_000,
        "residence_ns": 500_000,
        "kernel": True,
    }
    assert reply.headers["residence-ns"] == "500000"


def test_a_receipt_says_so_when_one_of_its_times_is_not_the_kernels() -> None:
    clock, reply = HandClock(), Said(HandClock())
    site, _ = pages(clock)
    exchange = site.ask(Asked("POST", "/upload"), reply, at(clock))
    exchange.body(1, at(clock, kernel=False), at(clock))
    exchange.complete(at(clock))
    assert not json.loads(reply.pieces[0])["kernel"]


def test_an_upload_that_is_too_long_is_refused_as_soon_as_it_is() -> None:
    clock, reply = HandClock(), Said(HandClock())
    site, _ = pages(clock, Limits(upload_bytes=1_000))
    exchange = site.ask(Asked("POST", "/upload"), reply, at(clock))
    exchange.body(1_001, at(clock), at(clock))
    assert (reply.status, reply.cut) == (413, True)
    exchange.body(5_000, at(clock), at(clock))
    exchange.complete(at(clock))
    assert len(reply.pieces) == 1


@pytest.mark.parametrize("length", ["1001", "9" * 40])
def test_a_stated_length_that_is_too_long_is_refused_at_once(length: str) -> None:
    asked = Asked("POST", "/upload", (("content-length", length),))
    reply = ask(asked, limits=Limits(upload_bytes=1_000))
    assert (reply.status, reply.cut) == (413, True)


@pytest.mark.parametrize(
    ("path", "shown", "status"),
    [
        ("/ping", "", 204),
        ("/upload", "", 401),
        (STREAM, "", 401),
        (STREAM, "Basic 0123456789abcdef", 401),
        (STREAM, "Bearer 0123456789abcdeF", 401),
        (STREAM, "Bearer 0123456789abcdef0", 401),
        (STREAM, "Bearer \udcff", 401),
        (STREAM, "bearer 0123456789abcdef", 200),
        (STREAM, "Bearer  0123456789abcdef", 200),
    ],
)
def test_a_token_guards_what_costs_something(path: str, shown: str, status: int) -> None:
    method = "POST" if path == "/upload" else "GET"
    reply = ask(Asked(method, path, (("authorization", shown),)), tokens=(b"x" * 16, TOKEN))
    assert reply.status == status
    if status == 401:
        assert reply.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize(
    ("query", "word"),
    [
        ("chunks=0", "chunks"),
        ("chunks=1e3", "chunks"),
        ("chunks=٣", "chunks"),
        ("chunks=-1", "chunks"),
        ("chunks=999999999999999", "chunks"),
        ("interval_us=99", "interval_us"),
        ("chunks=100000&interval_us=10000000", "times"),
        ("bytes=65536&interval_us=1000", "bytes a second"),
        ("form=csv", "form"),
        ("tokens=3", "unknown"),
        ("chunks", "query"),
        ("a&b", "query"),
    ],
)
def test_what_a_stream_cannot_be(query: str, word: str) -> None:
    with pytest.raises(StreamError, match=word):
        read_plan(query, websocket=False)


@given(st.integers(0, 400), st.integers(0, 10**6), st.booleans())
def test_a_chunk_is_as_long_as_was_asked_and_still_json(octets: int, due: int, last: bool) -> None:
    chunk = Chunk(n=7, due_ns=due, sent_unix_ns=UNIX_NS, left=((6, UNIX_NS),), last=last)
    plain = len(padded(chunk, lambda one: json_of(one), 0))
    text = padded(chunk, lambda one: json_of(one), octets)
    assert len(text) == max(plain, octets)
    read = json.loads(text)
    assert (read["n"], read["due_ns"]) == (7, due)
    assert json.loads(framed(text, "sse").removeprefix(b"data: ")) == read
    assert framed(text, "sse").endswith(b"\n\n")


def json_of(chunk: Chunk) -> bytes:
    import msgspec

    return msgspec.json.encode(chunk)


def run(line: Line, clock: HandClock, lateness: list[int]) -> None:
    """Step the one stream of a line to its end, each time so late."""
    due, stream = line.waiting[0]
    number = 0
    again: int | None = due
    while again is not None:
        clock.now_ns = again + lateness[number % len(lateness)]
        again = stream.step(clock.now_ns)
        number += 1
        assert number < 1_000


def start(target: str = STREAM, *, stamping: bool = True) -> tuple[HandClock, Line, Said]:
    clock = HandClock()
    reply = Said(clock, stamping=stamping)
    site, line = pages(clock)
    site.ask(Asked("GET", target), reply, at(clock)).complete(at(clock))
    return clock, line, reply


def chunks_of(reply: Said) -> list[dict[str, object]]:
    return [json.loads(piece) for piece in reply.pieces]


def test_a_late_chunk_makes_no_other_late() -> None:
    clock, line, reply = start()
    run(line, clock, [0, 15_000_000, 1_000_000, 0])
    chunks = chunks_of(reply)
    assert [chunk["due_ns"] for chunk in chunks] == [0, 20_000_000, 40_000_000, 60_000_000]
    sent = [int(str(chunk["sent_unix_ns"])) - UNIX_NS for chunk in chunks]
    assert sent == [0, 35_000_000, 41_000_000, 60_000_000]
    assert reply.ended


def test_every_chunk_that_left_is_told_of_once() -> None:
    clock, line, reply = start()
    run(line, clock, [0])
    chunks = chunks_of(reply)
    left = [tuple(one) for chunk in chunks for one in chunk.get("left", [])]  # type: ignore[attr-defined]
    assert left == [(n, UNIX_NS + n * 20_000_000 + 5_000) for n in range(3)]
    assert [chunk.get("last", False) for chunk in chunks] == [False, False, False, True]
    assert "pad" not in chunks[-1]


def test_the_last_chunk_waits_a_moment_for_stamps_and_no_longer() -> None:
    clock, line, reply = start(stamping=True)
    reply.stamps = lambda: True  # type: ignore[method-assign]  # asked for, and never told
    run(line, clock, [0])
    last = chunks_of(reply)[-1]
    assert last["last"]
    waited = int(str(last["sent_unix_ns"])) - UNIX_NS - 60_000_000
    assert 100_000_000 <= waited <= 110_000_000


def test_without_stamps_nothing_waits() -> None:
    clock, line, reply = start(stamping=False)
    run(line, clock, [0])
    assert chunks_of(reply)[-1]["sent_unix_ns"] == UNIX_NS + 60_000_000


def test_chunks_wait_while_the_other_side_takes_nothing() -> None:
    clock, line, reply = start()
    _, stream = line.waiting[0]
    reply.is_full = True
    again = stream.step(0)
    assert again == 5_000_000
    assert reply.pieces == []
    reply.is_full = False
    clock.now_ns = again
    assert stream.step(again) == again + 20_000_000  # the first sets the schedule
    assert len(reply.pieces) == 1


def test_a_stream_whose_asker_is_gone_sends_nothing() -> None:
    clock, reply = HandClock(), Said(HandClock())
    site, line = pages(clock)
    exchange = site.ask(Asked("GET", STREAM), reply, at(clock))
    exchange.complete(at(clock))
    exchange.cancel()
    assert line.waiting[0][1].step(0) is None
    assert reply.pieces == []


def test_a_stream_that_breaks_ends_its_connection_and_no_more() -> None:
    _, line, reply = start()

    def breaks() -> bool:
        raise RuntimeError("as a library may")

    reply.full = breaks  # type: ignore[method-assign]
    assert line.waiting[0][1].step(0) is None
    assert reply.aborted


def test_the_receipt_is_what_the_probe_reads() -> None:
    import msgspec

    reply = ask(Asked("POST", "/upload"))
    assert msgspec.json.decode(reply.pieces[0], type=UploadReceipt).bytes == 0
