"""The endpoint against clients that are slow, many, or speak something else."""

import contextlib
import gzip
import socket
import time
from collections.abc import Callable, Iterator

import pytest
from tests.watch.conftest import request_of, sample

from pathbudget.agents.cli.metrics_option import metrics_address
from pathbudget.agents.watch import endpoint as module
from pathbudget.agents.watch.book import MeterBook
from pathbudget.agents.watch.endpoint import CONNECTIONS, Listening, MetricsEndpoint
from pathbudget.agents.watch.text import pieces
from pathbudget.probes.errors import ConfigError, WatchError

TEXT = "# TYPE a gauge\na 1\n"
LOOPBACK = Listening("127.0.0.1", 0)
ASKED = b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n"


@pytest.fixture
def endpoint() -> Iterator[MetricsEndpoint]:
    with MetricsEndpoint(LOOPBACK, lambda: TEXT) as one:
        yield one


def dial(endpoint: MetricsEndpoint) -> socket.socket:
    connection = socket.create_connection(endpoint.where, timeout=20)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def ask(endpoint: MetricsEndpoint, data: bytes, *, end: bool = False) -> bytes:
    """Everything that comes back until the other side ends it."""
    with dial(endpoint) as connection:
        connection.sendall(data)
        if end:
            connection.shutdown(socket.SHUT_WR)
        return everything(connection)


def everything(connection: socket.socket) -> bytes:
    found = b""
    while data := connection.recv(65_536):
        found += data
    return found


def split(answer: bytes) -> tuple[bytes, dict[bytes, bytes], bytes]:
    head, _, body = answer.partition(b"\r\n\r\n")
    line, *rest = head.split(b"\r\n")
    return line, dict(one.split(b": ", 1) for one in rest), body


def test_metrics_are_given_plain_and_packed(endpoint: MetricsEndpoint) -> None:
    line, headers, body = split(ask(endpoint, ASKED))
    assert line == b"HTTP/1.1 200 OK"
    assert headers[b"content-type"].startswith(b"text/plain; version=0.0.4")
    assert body == TEXT.encode()
    packed = b"GET /metrics?x=1 HTTP/1.0\r\nAccept-Encoding: br, GZIP;q=0.5\r\n\r\n"
    _, headers, body = split(ask(endpoint, packed))
    assert headers[b"content-encoding"] == b"gzip"
    assert gzip.decompress(body) == TEXT.encode()
    refused = b"GET /metrics HTTP/1.1\r\naccept-encoding: gzip;q=0\r\n\r\n"
    assert split(ask(endpoint, refused))[2] == TEXT.encode()
    line, headers, body = split(ask(endpoint, ASKED.replace(b"GET", b"HEAD")))
    assert (line, body) == (b"HTTP/1.1 200 OK", b"")
    assert headers[b"content-length"] == str(len(TEXT)).encode()


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"POST /metrics HTTP/1.1\r\n\r\n", b"405"),
        (b"GET / HTTP/1.1\r\n\r\n", b"404"),
        (b"GET /metrics/../etc HTTP/1.1\r\n\r\n", b"404"),
        (b"GET /metrics\r\n\r\n", b"400"),
        (b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", b"400"),
        (bytes(range(256)) * 8 + b"\r\n\r\n", b"400"),
        (b"GET /metrics HTTP/1.1\r\n" + b"a: b\r\n" * 10_000, b"400"),
        (b"A" * 200_000, b"400"),
    ],
)
def test_anything_else_gets_a_short_answer(
    endpoint: MetricsEndpoint, data: bytes, status: bytes
) -> None:
    with dial(endpoint) as connection:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # answered half way
            connection.sendall(data)
        try:
            answer = everything(connection)
        except ConnectionResetError:
            answer = b""
    if len(data) < 4_096 or answer:
        assert answer.split(b" ")[1] == status
    assert split(ask(endpoint, ASKED))[2] == TEXT.encode()


def test_half_a_request_and_none_are_let_go(endpoint: MetricsEndpoint) -> None:
    assert ask(endpoint, b"", end=True) == b""
    assert ask(endpoint, b"GET /metr", end=True) == b""
    assert split(ask(endpoint, ASKED))[2] == TEXT.encode()


def test_who_says_nothing_is_put_out_and_keeps_nobody_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "HEAD_S", 0.5)
    with MetricsEndpoint(LOOPBACK, lambda: TEXT) as endpoint:
        slow = [dial(endpoint) for _ in range(CONNECTIONS - 1)]
        for one in slow:
            one.sendall(b"GET /metrics HTTP/1.1\r\n")
        assert split(ask(endpoint, ASKED))[2] == TEXT.encode()
        for one in slow:
            with one:
                _ended(one)
        assert split(ask(endpoint, ASKED))[2] == TEXT.encode()


def test_beyond_the_bound_connections_are_turned_away(endpoint: MetricsEndpoint) -> None:
    held = [dial(endpoint) for _ in range(CONNECTIONS)]
    _until(lambda: endpoint.open == CONNECTIONS)
    with dial(endpoint) as one:
        _ended(one)
    assert endpoint.turned_away == 1
    for one in held:
        one.close()
    _until(lambda: endpoint.open == 0)
    assert split(ask(endpoint, ASKED))[2] == TEXT.encode()


def test_who_does_not_read_costs_one_piece_and_is_put_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ANSWER_S", 0.5)
    with MetricsEndpoint(LOOPBACK, lambda: TEXT * 2_000_000) as endpoint:
        with dial(endpoint) as lazy:
            lazy.sendall(ASKED)
            _until(lambda: endpoint.open == 1)
            _until(lambda: endpoint.open == 0)
        packed = b"GET /metrics HTTP/1.1\r\naccept-encoding: gzip\r\n\r\n"
        assert gzip.decompress(split(ask(endpoint, packed))[2]) == TEXT.encode() * 2_000_000


def test_text_is_made_once_a_second_however_often_somebody_asks() -> None:
    made: list[float] = []

    def text() -> str:
        made.append(time.monotonic())
        return TEXT

    with MetricsEndpoint(LOOPBACK, text) as endpoint:
        began = time.monotonic()
        for _ in range(40):
            ask(endpoint, ASKED)
        assert len(made) <= 2 + (time.monotonic() - began)


def test_a_fault_in_the_text_is_an_answer_and_no_end() -> None:
    faults = [RuntimeError("no")]

    def text() -> str:
        if faults:
            raise faults.pop()
        return TEXT

    with MetricsEndpoint(LOOPBACK, text) as endpoint:
        assert ask(endpoint, ASKED).startswith(b"HTTP/1.1 500 ")
        assert split(ask(endpoint, ASKED))[2] == TEXT.encode()


def test_an_address_in_use_or_of_somebody_else_is_told(endpoint: MetricsEndpoint) -> None:
    with pytest.raises(WatchError, match="cannot listen"), MetricsEndpoint(endpoint.where, str):
        pass
    with pytest.raises(WatchError), MetricsEndpoint(Listening("192.0.2.1", 9477), str):
        pass


def test_a_scrape_while_another_thread_counts() -> None:
    """Each scrape is whole: the buckets rise, and end in the count."""
    book = MeterBook()
    meters = [book.meters(request_of(probe=f"p{number}")) for number in range(50)]
    with MetricsEndpoint(LOOPBACK, lambda: "".join(pieces(book))) as endpoint:
        counted = 0
        for _ in range(3):
            until = time.monotonic() + 0.4
            while time.monotonic() < until:
                for one in meters:
                    book.note(one, sample("rtt", counted % 9, counted % 70 + 0.1))
                counted += 1
            lines = ask(endpoint, ASKED).decode().splitlines()
            ends = [one.rpartition(" ")[2] for one in lines if 'le="+Inf"' in one]
            counts = [one.rpartition(" ")[2] for one in lines if "_seconds_count{" in one]
            assert len(counts) == 50
            assert ends == counts


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("127.0.0.1:9477", "127.0.0.1:9477"),
        ("[::1]:9477", "[::1]:9477"),
        ("9477", "127.0.0.1:9477"),
        (":0", "127.0.0.1:0"),
    ],
)
def test_where_to_listen_is_read(text: str, where: str) -> None:
    assert str(metrics_address(text)) == where


@pytest.mark.parametrize("text", ["x", "127.0.0.1", "127.0.0.1:70000", "127.0.0.1:-1", "h:"])
def test_no_address_is_told(text: str) -> None:
    with pytest.raises(ConfigError, match="--metrics"):
        metrics_address(text)
    assert metrics_address("") is None


def _ended(connection: socket.socket) -> None:
    with contextlib.suppress(ConnectionResetError):
        assert connection.recv(1) == b""


def _until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)
