"""What is gone leaves nothing: a reflector runs for months and collects garbage seldom."""

import asyncio
import gc
import weakref
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection

from pathbudget.agents.reflector.serving import connection
from pathbudget.agents.reflector.serving.tls_server import TlsServer

Start = Callable[..., AbstractAsyncContextManager[Any]]
HEAD = [(":scheme", "https"), (":authority", "a")]


def one_of_each() -> bytes:
    http = H2Connection(H2Configuration(client_side=True))
    http.initiate_connection()
    http.send_headers(1, [(":method", "GET"), (":path", "/ping"), *HEAD], end_stream=True)
    http.send_headers(3, [(":method", "POST"), (":path", "/upload"), *HEAD])
    http.send_headers(5, [(":method", "GET"), (":path", "/stream"), *HEAD], end_stream=True)
    return http.data_to_send()


@pytest.mark.parametrize(
    ("protocol", "said"),
    [
        ("http/1.1", b""),
        ("http/1.1", b"GET /ping HTTP/1.1\r\nhost: a\r\n\r\n"),
        ("http/1.1", b"POST /upload HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\nabc"),
        ("http/1.1", b"GET /stream?interval_us=20000 HTTP/1.1\r\nhost: a\r\n\r\n"),
        ("h2", one_of_each()),
    ],
    ids=["nothing", "ping", "half an upload", "stream", "http2"],
)
async def test_a_connection_that_is_gone_is_freed_without_the_collector(
    serving: Start, protocol: str, said: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[weakref.ref[object]] = []

    class Watched(TlsServer):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            made.append(weakref.ref(self))

    monkeypatch.setattr(connection, "TlsServer", Watched)
    async with serving() as one:
        gc.disable()
        try:
            async with one.client(protocol) as client:
                await client.say(said)
                await asyncio.sleep(0.05)
            for _ in range(300):
                if made[0]() is None:
                    break
                await asyncio.sleep(0.01)
            assert len(made) == 1
            assert made[0]() is None
        finally:
            gc.enable()
