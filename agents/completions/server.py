"""The server: HTTP/1.1 (h11) over TCP or TLS, one answer at a time on each connection."""

import asyncio
import contextlib
import errno
import hmac
import socket
import ssl
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import h11
import msgspec

from pathbudget.agents.completions.chunks import (
    COMPLETIONS_PATH,
    MODELS_PATH,
    error_body,
    read_request,
)
from pathbudget.agents.completions.performance import Performance, Stage, TroubleError
from pathbudget.agents.completions.script import Script
from pathbudget.probes.clock import Clock, SystemClock
from pathbudget.probes.errors import PrivilegeError, ReflectorError

BODY_BYTES = 16 << 20
CONNECTIONS = 4_096
IDLE_SECONDS = 60.0
_JSON = ("content-type", "application/json")
_EVENTS = [("content-type", "text/event-stream"), ("cache-control", "no-cache")]


@dataclass(frozen=True, slots=True)
class Serving:
    """Where and how a server listens. Port 0 lets the kernel choose."""

    script: Script
    address: str = "127.0.0.1"
    port: int = 8600
    tls: ssl.SSLContext | None = None
    api_key: str = ""
    """What clients have to show as a bearer token; empty: nothing."""


class CompletionsServer:
    """``async with CompletionsServer(serving) as server``: answers until the block ends.

    `stage.served` tells what became of the requests. Raises ReflectorError, PrivilegeError when it
    cannot listen.
    """

    def __init__(self, serving: Serving, clock: Clock | None = None) -> None:
        self.serving = serving
        self.stage = Stage(serving.script, clock or SystemClock())
        self.open: set[_Connection] = set()
        self._server: asyncio.Server | None = None

    @property
    def port(self) -> int:
        """The port that is listened on."""
        assert self._server is not None
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def __aenter__(self) -> Self:
        serving = self.serving
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(
                lambda: _Connection(self), serving.address, serving.port, ssl=serving.tls
            )
        except OSError as error:
            raise _explained(error, serving) from error
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._server is not None
        self._server.close()
        for connection in tuple(self.open):
            connection.abort()
        await asyncio.sleep(0)
        await self._server.wait_closed()


class _Connection(asyncio.Protocol):
    """One client."""

    def __init__(self, server: CompletionsServer) -> None:
        self._server = server
        self._http = h11.Connection(h11.SERVER)
        self._transport: asyncio.Transport | None = None
        self._request: h11.Request | None = None
        self._body = bytearray()
        self._task: asyncio.Task[None] | None = None
        self._idle: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        if len(self._server.open) >= CONNECTIONS:
            transport.abort()
            return
        self._server.open.add(self)
        self._wait_for_request()

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._server.open.discard(self)
        self._transport = None
        if self._task is not None:
            self._task.cancel()
        if self._idle is not None:
            self._idle.cancel()

    def data_received(self, data: bytes) -> None:
        if self._task is not None and len(data) + len(self._http.trailing_data[0]) > BODY_BYTES:
            self.abort()
            return
        try:
            self._http.receive_data(data)
            self._read()
        except h11.RemoteProtocolError as error:
            self._refuse(error.error_status_hint, str(error))

    def abort(self) -> None:
        """Drop it."""
        if self._transport is not None:
            self._transport.abort()

    def _reset(self) -> None:
        """Drop it with a RST: a socket that does not linger sends one as it is closed."""
        if self._transport is not None:
            sock = self._transport.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._transport.abort()

    def _wait_for_request(self) -> None:
        loop = asyncio.get_running_loop()
        self._idle = loop.call_later(IDLE_SECONDS, self.abort)

    def _read(self) -> None:
        while True:
            event = self._http.next_event()
            if isinstance(event, h11.Request):
                self._request, self._body = event, bytearray()
            elif isinstance(event, h11.Data):
                self._body += event.data
                if len(self._body) > BODY_BYTES:
                    self._refuse(413, f"at most {BODY_BYTES} bytes")
                    return
            elif isinstance(event, h11.EndOfMessage):
                self._begin()
                return
            else:
                if isinstance(event, h11.ConnectionClosed) and self._transport is not None:
                    self._transport.close()
                return

    def _begin(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        self._task = asyncio.get_running_loop().create_task(self._answer())

    async def _answer(self) -> None:
        try:
            await self._answer_one()
        except TroubleError as trouble:
            if trouble.reset:
                self._reset()
            elif self._transport is not None:
                self._transport.close()
            return
        self._task = None
        if self._transport is None:
            return
        if self._http.our_state is h11.DONE and self._http.their_state is h11.DONE:
            self._http.start_next_cycle()
            self._wait_for_request()
            self._read()
        else:
            self._transport.close()

    async def _answer_one(self) -> None:
        request = self._request
        assert request is not None
        path = request.target.partition(b"?")[0].decode("ascii", "replace")
        if not self._authorised(request):
            self._whole(401, error_body("the API key is not the right one", "invalid_api_key"))
        elif path == MODELS_PATH and request.method == b"GET":
            self._whole(200, _models(self._server.serving.script))
        elif path != COMPLETIONS_PATH:
            self._whole(404, error_body(f"no such path: {path[:100]}", "not_found"))
        elif request.method != b"POST":
            self._whole(405, error_body("only POST", "invalid_request_error"))
        elif self._server.stage.full:
            self._whole(429, error_body("the queue is full", "rate_limit_exceeded"))
        else:
            await self._complete()

    async def _complete(self) -> None:
        try:
            asked = read_request(bytes(self._body))
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            self._whole(400, error_body(str(error), "invalid_request_error"))
            return
        performance = Performance(self._server.stage, asked, self._chunk)
        if performance.status != 200:
            message = self._server.serving.script.trouble.message
            self._whole(performance.status, error_body(message, "server_error"))
        elif asked.stream:
            self._send(h11.Response(status_code=200, headers=_EVENTS))
            await performance.give()
            self._send(h11.EndOfMessage())
        else:
            self._whole(200, await performance.give_whole())

    def _authorised(self, request: h11.Request) -> bool:
        key = self._server.serving.api_key
        shown = dict(request.headers).get(b"authorization", b"")
        return not key or hmac.compare_digest(shown, b"Bearer " + key.encode())

    def _whole(self, status: int, body: bytes) -> None:
        headers = [_JSON, ("content-length", str(len(body)))]
        self._send(h11.Response(status_code=status, headers=headers))
        self._send(h11.Data(data=body))
        self._send(h11.EndOfMessage())

    def _refuse(self, status: int, why: str) -> None:
        """Say so where that is still possible, and end the connection."""
        with contextlib.suppress(h11.LocalProtocolError):
            self._whole(status, error_body(why, "invalid_request_error"))
        if self._transport is not None:
            self._transport.close()

    def _chunk(self, data: bytes) -> None:
        self._send(h11.Data(data=data))

    def _send(self, event: h11.Event) -> None:
        data = self._http.send(event)
        if data and self._transport is not None:
            self._transport.write(data)


def _models(script: Script) -> bytes:
    data: Sequence[object] = [{"id": script.model, "object": "model", "owned_by": "pathbudget"}]
    return msgspec.json.encode({"object": "list", "data": data})


def _explained(error: OSError, serving: Serving) -> ReflectorError | PrivilegeError:
    if error.errno == errno.EACCES:
        return PrivilegeError("CAP_NET_BIND_SERVICE", "choose a port above 1023")
    why = (error.strerror or str(error)).lower()
    return ReflectorError(f"cannot listen on {serving.address} port {serving.port}: {why}")
