"""One HTTP connection on a stream: the moments of a request by its bytes, and every way to end."""

from collections.abc import Callable

import pytest
from tests.http.parts import (
    Dialled,
    H2Server,
    Heard,
    dial,
    get,
    moment,
    post,
    version_1,
    version_2,
)

from pathbudget.probes.carriers import Moment, Phase, Request
from pathbudget.probes.clock import StampedInterval
from pathbudget.probes.contract import Shot
from pathbudget.probes.fake_collector import shot_at
from pathbudget.probes.http.exchanges import Exchanges
from pathbudget.probes.record import (
    ClockSource,
    ConnectionMode,
    Failure,
    FailureKind,
    Metric,
    Stage,
    Transport,
)

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
MS = 1_000_000


@pytest.fixture
def shot() -> Shot:
    return shot_at("192.0.2.1", host="site.example")


@pytest.fixture
def first(shot: Shot) -> Dialled:
    """An open connection of HTTP/1.1."""
    dialled = dial(shot, version_1, "http/1.1")
    dialled.stream.stand()
    return dialled


@pytest.fixture
def second(shot: Shot) -> tuple[Dialled, H2Server]:
    """An open connection of HTTP/2."""
    dialled, server = dial(shot, version_2, "h2"), H2Server()
    dialled.stream.stand("h2")
    answer(dialled, server.take(dialled.stream.written), 1)
    return dialled, server


def answer(dialled: Dialled, data: bytes, ms: float) -> None:
    dialled.stream.listener.received(data, moment(ms))


def test_the_moments_of_a_request_and_its_answer(first: Dialled) -> None:
    heard = Heard()
    first.connection.request(get(), heard)
    first.stream.left(5)
    first.stream.listener.acknowledged(len(first.stream.written) - 1, moment(24))
    answer(first, OK[:30], 25)
    answer(first, OK[30:], 27)
    assert heard.events == ["left", "acknowledged", "head", "complete"]
    assert heard.left_at == (moment(5), moment(5))
    assert (heard.acknowledged_at, heard.head_at, heard.whole_at) == (
        moment(24), moment(25), moment(27)
    )  # fmt: skip
    assert heard.data == b"hi"
    assert heard.notes == {"protocol": "HTTP/1.1", "rtt_us": 20_000}
    assert first.connection.usable


@pytest.mark.parametrize("segments", [True, False])
def test_the_first_byte_of_a_long_request(shot: Shot, segments: bool) -> None:
    """Its stamp is the kernel's where each segment has one; else user space alone knows."""
    dialled, heard = dial(shot, version_1, "http/1.1", segments=segments), Heard()
    dialled.stream.stand()
    dialled.connection.request(post(bytes(50_000)), heard)
    if segments:
        dialled.stream.listener.sent(1_447, moment(5))
        dialled.stream.listener.sent(20_000, moment(7))
        assert heard.events == []
    dialled.stream.left(9)
    assert heard.left_at is not None
    start, end = heard.left_at
    assert end == moment(9)
    assert start == (moment(5) if segments else moment(9)._replace(kernel_unix_ns=None))


def test_a_retransmission_and_a_stamp_of_earlier_bytes_change_nothing(first: Dialled) -> None:
    one, two = Heard(), Heard()
    first.connection.request(get(), one)
    first.stream.left(5)
    answer(first, OK, 25)
    end = len(first.stream.written) - 1
    first.connection.request(get(), two)
    first.stream.listener.sent(end, moment(26))
    first.stream.listener.acknowledged(end, moment(27))
    assert two.events == []
    first.stream.left(30)
    first.stream.left(230)
    assert two.left_at == (moment(30), moment(30))
    assert two.events == ["left"]


def test_without_stamps_user_space_says_when_it_left(first: Dialled) -> None:
    heard = Heard()
    first.connection.request(get(), heard)
    answer(first, OK, 25)
    assert heard.events == ["left", "head", "complete"]
    assert heard.left_at is not None
    assert heard.left_at[0].kernel_unix_ns is None


def test_an_answer_before_the_whole_request_has_left_is_noted(shot: Shot) -> None:
    dialled, heard = dial(shot, version_1, "http/1.1", segments=True), Heard()
    dialled.stream.stand()
    dialled.connection.request(post(bytes(50_000)), heard)
    dialled.stream.listener.sent(1_447, moment(5))
    answer(dialled, OK, 25)
    assert heard.events == ["head", "complete"]
    assert heard.notes["answered_early"] is True


def test_early_data_leaves_with_the_dial(shot: Shot) -> None:
    heard = Heard()
    dialled = dial(shot, version_1, "http/1.1", early=(get("/ping"), heard))
    assert dialled.stream.early.startswith(b"GET /ping HTTP/1.1\r\n")
    dialled.stream.left(3)
    assert heard.left_at == (moment(3), moment(3))
    dialled.stream.stand(mode=ConnectionMode.EARLY_DATA)
    answer(dialled, OK, 23)
    assert heard.status == 200
    assert dialled.stream.writes == []


def test_early_data_of_http_2_begins_with_its_first_words(shot: Shot) -> None:
    heard, server = Heard(), H2Server()
    dialled = dial(shot, version_2, "h2", early=(get("/ping"), heard))
    dialled.stream.left(3)
    said = server.take(dialled.stream.early)
    dialled.stream.stand("h2", mode=ConnectionMode.EARLY_DATA)
    answer(dialled, said + server.answer(1), 23)
    assert heard.events == ["left", "head", "complete"]


def test_early_data_without_stamps_left_with_the_client_hello(shot: Shot) -> None:
    heard = Heard()
    dialled = dial(shot, version_1, "http/1.1", early=(get("/ping"), heard))
    span = StampedInterval(20 * MS, ClockSource.USER)
    hello = Phase(Metric.TLS_HANDSHAKE, moment(2, kernel=False), span)
    dialled.stream.stand(mode=ConnectionMode.EARLY_DATA, beside=(hello,))
    answer(dialled, OK, 23)
    assert heard.left_at == (hello.began, hello.began)


def test_requests_of_http_2_share_a_connection(second: tuple[Dialled, H2Server]) -> None:
    dialled, server = second
    one, two = Heard(), Heard()
    dialled.connection.request(get("/a"), one)
    dialled.stream.left(2)
    dialled.connection.request(get("/b"), two)
    dialled.stream.left(3)
    server.take(b"".join(dialled.stream.writes[1:]))
    answer(dialled, server.answer(3, b"B"), 23)
    answer(dialled, server.answer(1, b"A"), 24)
    assert (one.data, two.data) == (b"A", b"B")
    assert one.left_at == (moment(2), moment(2))
    assert two.left_at == (moment(3), moment(3))


@pytest.mark.parametrize(
    ("left_ms", "stalled_ms"),
    [(5, 45), (None, None)],
    ids=["all-that-may-has-left", "our-own-window-holds-some-back"],
)
def test_a_stall_is_the_time_in_which_nothing_is_under_way(
    second: tuple[Dialled, H2Server], left_ms: float | None, stalled_ms: float | None
) -> None:
    dialled, server = second
    heard = Heard()
    dialled.stream.left(1)
    dialled.connection.request(post(bytes(100_000)), heard)
    if left_ms is not None:
        dialled.stream.left(left_ms)
    server.take(b"".join(dialled.stream.writes[1:]))
    before = len(dialled.stream.written)
    server.h2.increment_flow_control_window(1 << 20)
    server.h2.increment_flow_control_window(1 << 20, 1)
    answer(dialled, server.h2.data_to_send(), 50)
    assert len(dialled.stream.written) - before > 34_000
    dialled.stream.left(52)
    server.take(dialled.stream.written[before:])
    answer(dialled, server.answer(1), 80)
    assert heard.left_at is not None
    assert heard.left_at[1] == moment(52)
    assert heard.notes.get("flow_stall_ns") == (None if stalled_ms is None else stalled_ms * MS)
    assert heard.notes.get("flow_stalls") == (None if stalled_ms is None else 1)


@pytest.mark.parametrize(
    ("versions", "wanted", "chosen", "detail"),
    [
        (version_2, "h2", "", "the server does not speak h2"),
        (version_2, "h2", "http/1.1", "the server chose 'http/1.1', not h2"),
        (version_1, "http/1.1", "h2", "the server chose 'h2', not http/1.1"),
    ],
    ids=["none", "older", "newer"],
)
def test_another_protocol_than_asked_for_is_no_connection(
    shot: Shot, versions: Callable[[], Exchanges], wanted: str, chosen: str, detail: str
) -> None:
    dialled = dial(shot, versions, wanted)
    done = (Phase(Metric.CONNECT, moment(0), StampedInterval(MS, ClockSource.TCP_INFO)),)
    dialled.stream.stand(chosen, phases=done)
    ((metric, failure, phases),) = dialled.opener.failures
    assert (metric, failure.kind, failure.detail) == (Metric.SETUP, FailureKind.PROTOCOL, detail)
    assert phases == done
    assert dialled.opener.opened_as is None
    assert dialled.stream.ending == "abandoned"


def test_a_server_that_chooses_nothing_speaks_http_1(shot: Shot) -> None:
    dialled = dial(shot, version_1, "http/1.1")
    dialled.stream.stand("")
    assert dialled.connection.usable
    plain = dial(shot, version_2, "h2")
    plain.stream.stand("", transport=Transport.TCP)
    assert plain.connection.usable


BAD = Request("GET", "site.example", "/", (("x", "a\r\nhost: other"),))


def test_a_request_that_would_smuggle_another_is_never_sent(first: Dialled) -> None:
    heard = Heard()
    first.connection.request(BAD, heard)
    assert heard.failure is not None
    assert (heard.failure.kind, heard.failure.stage) == (FailureKind.LOCAL, Stage.SEND)
    assert first.stream.written == b""
    assert first.connection.usable


def test_nor_as_early_data(shot: Shot) -> None:
    heard = Heard()
    dialled = dial(shot, version_1, "http/1.1", early=(BAD, heard))
    assert heard.events == ["failed"]
    assert dialled.stream.early == b""


def test_a_request_while_another_is_under_way_is_refused(first: Dialled) -> None:
    one, two = Heard(), Heard()
    first.connection.request(get(), one)
    first.connection.request(get(), two)
    assert (one.events, two.events) == ([], ["failed"])
    answer(first, OK, 25)
    assert one.status == 200


def test_a_broken_opening_is_told_once_to_everybody(shot: Shot) -> None:
    heard = Heard()
    dialled = dial(shot, version_1, "http/1.1", early=(get(), heard))
    failure = Failure(FailureKind.TIMEOUT, Stage.CONNECT)
    dialled.stream.listener.failed(Metric.CONNECT, failure, ())
    dialled.stream.listener.failed(Metric.CONNECT, failure, ())
    assert dialled.opener.failures == [(Metric.CONNECT, failure, ())]
    assert heard.events == ["failed"]
    assert not dialled.connection.usable


def test_a_reset_in_the_middle_fails_what_is_under_way(first: Dialled) -> None:
    heard = Heard()
    first.connection.request(get(), heard)
    first.stream.left(5)
    first.stream.listener.failed("", Failure(FailureKind.RESET, Stage.WAIT), ())
    assert heard.events == ["left", "failed"]
    assert len(first.opener.failures) == 1
    answer(first, OK, 25)
    assert heard.events == ["left", "failed"]


def test_an_end_in_good_order_spends_an_idle_connection_and_tells_nobody(first: Dialled) -> None:
    first.stream.listener.ended()
    assert not first.connection.usable
    assert first.opener.failures == []


def test_an_end_in_good_order_may_end_an_answer(first: Dialled) -> None:
    heard = Heard()
    first.connection.request(get(), heard)
    answer(first, b"HTTP/1.0 200 OK\r\n\r\nhi", 25)
    first.stream.listener.ended()
    assert heard.events[-1] == "complete"
    assert heard.whole_at == moment(25)


def test_garbage_ends_the_connection(first: Dialled) -> None:
    heard = Heard()
    first.connection.request(get(), heard)
    answer(first, b"nonsense\r\n\r\n", 25)
    assert heard.failure is not None
    assert heard.failure.kind is FailureKind.PROTOCOL
    assert not first.connection.usable


def test_garbage_ends_every_request_of_http_2(second: tuple[Dialled, H2Server]) -> None:
    dialled, _ = second
    one, two = Heard(), Heard()
    dialled.connection.request(get("/a"), one)
    dialled.connection.request(get("/b"), two)
    answer(dialled, b"\xff" * 20, 25)
    assert (one.events, two.events) == (["failed"], ["failed"])
    assert dialled.stream.ending == "abandoned"


@pytest.mark.parametrize("how", ["close", "abandon"])
def test_after_an_end_of_ours_nothing_is_told(second: tuple[Dialled, H2Server], how: str) -> None:
    dialled, server = second
    heard = Heard()
    dialled.connection.request(get(), heard)
    writes = len(dialled.stream.writes)
    getattr(dialled.connection, how)()
    assert dialled.stream.ending == {"close": "closed", "abandon": "abandoned"}[how]
    said = b"".join(dialled.stream.writes[writes:])
    assert (b"\x07" in said[3:4]) is (how == "close")  # GOAWAY
    server.take(b"".join(dialled.stream.writes[1:]))
    dialled.stream.listener.received(server.answer(1) if how == "abandon" else b"", moment(30))
    dialled.stream.listener.ended()
    dialled.connection.close()
    assert heard.events == []


def test_a_listener_may_end_the_connection_in_the_middle_of_what_it_is_told(shot: Shot) -> None:
    dialled = dial(shot, version_1, "http/1.1")
    dialled.stream.stand()

    class Leaves(Heard):
        def head(self, status: int, headers: tuple[tuple[str, str], ...], moment: Moment) -> None:
            super().head(status, headers, moment)
            dialled.connection.abandon()

    heard = Leaves()
    dialled.connection.request(get(), heard)
    answer(dialled, OK, 25)
    assert heard.events == ["left", "head"]
    assert dialled.stream.ending == "abandoned"
