"""An HTTP server for Prometheus in a thread of its own: the loop that measures has no part in it.

Whoever connects has five seconds to ask and thirty to take the answer; sixteen may do so at a time.
Text that was made less than a second ago is given again, so that nobody can keep the process busy
by asking. What is no request for `/metrics` gets a short answer, and nothing is read behind it.
"""

import asyncio
import contextlib
import logging
import os
import threading
import time
import zlib
from collections.abc import Callable
from http import HTTPStatus
from types import TracebackType
from typing import NamedTuple, Self

from pathbudget.probes.errors import WatchError

PATH = "/metrics"
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
HEAD_OCTETS, PIECE = 16_384, 65_536
HEAD_S, ANSWER_S, FRESH_S = 5.0, 30.0, 1.0
CONNECTIONS = 16
START_S = 10.0
_log = logging.getLogger(__name__)
_GZIP_WINDOW = 31


class Listening(NamedTuple):
    """Where to listen."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class MetricsEndpoint:
    """Serves while the block runs. `text` is called in the thread of the server.

    Raises WatchError where it cannot listen.
    """

    def __init__(self, where: Listening, text: Callable[[], str]) -> None:
        self.where = where
        self.open = 0
        """Connections of now."""
        self.turned_away = 0
        self._text = text
        self._made_at = -FRESH_S
        self._body = b""
        self._packed = b""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="metrics", daemon=True)
        self._stopped = asyncio.Event()
        self._begun = threading.Event()
        self._trouble: OSError | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        self._begun.wait(START_S)
        if self._trouble is not None:
            self._thread.join()
            number = self._trouble.errno  # the event loop has words of its own for it
            # those of a resolver are below zero
            known = os.strerror(number).lower() if number and number > 0 else ""
            why = known or str(self._trouble)
            raise WatchError(f"metrics: cannot listen on {self.where}: {why}")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join()

    def _serve(self) -> None:
        with contextlib.closing(self._loop):
            self._loop.run_until_complete(self._listen())

    async def _listen(self) -> None:
        try:
            server = await asyncio.start_server(
                self._accept, self.where.host, self.where.port, limit=HEAD_OCTETS
            )
        except OSError as error:
            self._trouble = error
            self._begun.set()
            return
        port: int = server.sockets[0].getsockname()[1]
        self.where = self.where._replace(port=port)
        self._begun.set()
        await self._stopped.wait()
        server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.open >= CONNECTIONS:
            self.turned_away += 1
            writer.transport.abort()
            return
        self.open += 1
        try:
            await self._converse(reader, writer)
        except (OSError, TimeoutError, asyncio.CancelledError):
            writer.transport.abort()
        finally:
            writer.close()
            with contextlib.suppress(OSError, asyncio.CancelledError):
                await writer.wait_closed()
            self.open -= 1

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(HEAD_S):
            try:
                head = await reader.readuntil(b"\r\n\r\n")
            except asyncio.IncompleteReadError:
                return  # gone, or not even a line
            except asyncio.LimitOverrunError:
                head = b""
        answer, body = self._answer(head)
        writer.write(answer)
        async with asyncio.timeout(ANSWER_S):
            for at in range(
                0, len(body), PIECE
            ):  # never more than one piece in memory for a client
                writer.write(body[at : at + PIECE])
                await writer.drain()
            writer.write_eof()
            # a reset, for bytes that nobody read, would take the answer away
            left = 4 * PIECE
            while left > 0 and (data := await reader.read(PIECE)):
                left -= len(data)

    def _answer(self, head: bytes) -> tuple[bytes, bytes]:
        """Head and body."""
        line, _, rest = head.partition(b"\r\n")
        words = line.split(b" ")
        if len(words) != 3 or not words[2].startswith(b"HTTP/1."):
            return _refused(HTTPStatus.BAD_REQUEST, "expected GET /metrics HTTP/1.1")
        method, target = words[0], words[1].partition(b"?")[0]
        if method not in (b"GET", b"HEAD"):
            return _refused(HTTPStatus.METHOD_NOT_ALLOWED, "expected GET", "allow: GET, HEAD\r\n")
        if target != PATH.encode():
            return _refused(HTTPStatus.NOT_FOUND, f"metrics are at {PATH}")
        return self._found(is_packed=_takes_gzip(rest), with_body=method == b"GET")

    def _found(self, *, is_packed: bool, with_body: bool) -> tuple[bytes, bytes]:
        try:
            self._renew()
        except Exception:  # noqa: BLE001 - whoever asks is told, and the agent goes on
            _log.exception("metrics")
            return _refused(HTTPStatus.INTERNAL_SERVER_ERROR, "see the log")
        body = self._packed if is_packed else self._body
        more = "content-encoding: gzip\r\n" if is_packed else ""
        head = _head(HTTPStatus.OK, CONTENT_TYPE, len(body), f"{more}vary: accept-encoding\r\n")
        return head, body if with_body else b""

    def _renew(self) -> None:
        if time.monotonic() - self._made_at < FRESH_S:
            return
        self._body = self._text().encode("utf-8", "replace")
        packer = zlib.compressobj(1, zlib.DEFLATED, _GZIP_WINDOW)
        self._packed = packer.compress(self._body) + packer.flush()
        self._made_at = time.monotonic()


def _takes_gzip(headers: bytes) -> bool:
    for line in headers.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"accept-encoding":
            offers = [one.replace(b" ", b"").lower() for one in value.split(b",")]
            return b"gzip" in offers or any(
                one.startswith(b"gzip;q=") and not one.endswith((b"=0", b"=0.0")) for one in offers
            )
    return False


def _refused(status: HTTPStatus, why: str, more: str = "") -> tuple[bytes, bytes]:
    body = f"{why}\n".encode()
    return _head(status, "text/plain; charset=utf-8", len(body), more), body


def _head(status: HTTPStatus, kind: str, octets: int, more: str) -> bytes:
    return (
        f"HTTP/1.1 {status.value} {status.phrase}\r\ncontent-type: {kind}\r\n"
        f"content-length: {octets}\r\nconnection: close\r\n{more}\r\n"
    ).encode()
