"""The OTLP/HTTP receiver: connections, bounds, and a stop that loses nothing acknowledged.

async with Receiver(options, files) as receiver:    # listens
    ...
receiver.counts                                     # what happened

HTTP/1.1 by h11. One thread reads bodies and writes files, one request after the other; until that
is done a request counts against `held_bytes`, and beyond it clients are told to come again (429).
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Awaitable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import Self, TypeVar

import h11

from pathbudget.agents.telemetry.receive_answers import Answer, Encoding, refused
from pathbudget.agents.telemetry.receive_files import FullError, TraceFiles
from pathbudget.agents.telemetry.receive_request import (
    Head,
    Taken,
    read_head,
    take_body,
    too_large,
)
from pathbudget.probes.errors import PathbudgetError, ReflectorError

T = TypeVar("T")
MEBIBYTE = 1 << 20
PIECE = 65_536
HEAD_BYTES = 16_384


@dataclass(frozen=True, slots=True)
class ReceiverOptions:
    """Where to listen, and how much is given at most. Times are seconds."""

    host: str = "127.0.0.1"
    port: int = 4318
    body_bytes: int = 20 * MEBIBYTE
    """Of one request, packed and unpacked (what the OTLP specification recommends)."""
    held_bytes: int = 64 * MEBIBYTE
    """Of all requests that are not answered yet."""
    connections: int = 256
    idle_seconds: float = 75.0
    head_seconds: float = 10.0
    body_seconds: float = 60.0
    answer_seconds: float = 10.0
    stop_seconds: float = 5.0
    """What requests under way have to come to an end in."""


class Receiver:
    """Listens while the block runs. Raises ReflectorError where it cannot."""

    def __init__(self, options: ReceiverOptions, files: TraceFiles) -> None:
        self.counts: Counter[str] = Counter()
        self._options = options
        self._files = files
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="traces")
        self._held = 0
        self._stopping = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def port(self) -> int:
        """The port that is listened on."""
        number: int = self._server.sockets[0].getsockname()[1]
        return number

    async def __aenter__(self) -> Self:
        host, port = self._options.host, self._options.port
        try:
            self._server = await asyncio.start_server(self._accept, host, port, limit=PIECE)
        except OSError as error:
            self._worker.shutdown()
            why = (error.strerror or str(error)).lower()
            raise ReflectorError(f"cannot listen on {host} port {port}: {why}") from error
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.close()
        self._stopping.set()
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=self._options.stop_seconds)
            for task in late:
                self.counts["cut off by the stop"] += 1
                task.cancel()
            if late:
                await asyncio.wait(late)
        await self._server.wait_closed()
        self._worker.shutdown()
        self._files.close()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if self._stopping.is_set() or len(self._tasks) >= self._options.connections:
            self.counts["connections turned away"] += 1
            writer.transport.abort()
            return
        self._tasks.add(task)
        try:
            await _Connection(self, reader, writer).serve()
        except (OSError, TimeoutError, asyncio.CancelledError):
            writer.transport.abort()
        finally:
            self._tasks.discard(task)
            writer.close()
            with contextlib.suppress(OSError, asyncio.CancelledError):
                await writer.wait_closed()

    def hold(self, count: int) -> bool:
        """Count bytes in, unless there is no room for them."""
        if self._held + count > self._options.held_bytes:
            return False
        self._held += count
        return True

    def release(self, count: int) -> None:
        """Count bytes out."""
        self._held -= count

    @property
    def options(self) -> ReceiverOptions:
        """What it was told."""
        return self._options

    @property
    def stopping(self) -> asyncio.Event:
        """Set when no new request is taken."""
        return self._stopping

    async def take(self, head: Head, body: bytes) -> Answer:
        """Read, keep, and only then answer."""
        loop = asyncio.get_running_loop()
        taken = await loop.run_in_executor(self._worker, self._keep, head, body)
        self.counts["spans"] += taken.spans
        self.counts["spans rejected"] += taken.rejected
        return taken.answer

    def _keep(self, head: Head, body: bytes) -> Taken:
        """In the thread of the files."""
        try:
            taken = take_body(head, body, self._options.body_bytes)
            if taken.spans:
                self._files.append(head.encoding, taken.keep)
        except FullError as error:
            return Taken(refused(503, f"no room: {error}", head.encoding))
        except PathbudgetError as error:
            return Taken(refused(415, str(error), head.encoding))
        return taken


class _Connection:
    """One client, one request after the other."""

    def __init__(
        self, receiver: Receiver, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._receiver = receiver
        self._options = receiver.options
        self._reader = reader
        self._writer = writer
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_BYTES)
        self._encoding = Encoding.JSON

    async def serve(self) -> None:
        """Until the client leaves, errs or the receiver stops."""
        while not self._receiver.stopping.is_set():
            try:
                if not await self._begins():
                    return
                async with asyncio.timeout(self._options.head_seconds):
                    event = await self._event()
                if not isinstance(event, h11.Request):
                    return
                answer = await self._ask(event)
            except h11.RemoteProtocolError as error:
                answer = refused(error.error_status_hint, str(error), self._encoding, close=True)
            if not await self._say(answer):
                return

    async def _begins(self) -> bool:
        """Wait for the first byte of a request; False when there will be none."""
        if self._http.trailing_data[0]:
            return True
        data = await self._unless_stopped(self._reader.read(PIECE))
        if not data:
            return False
        self._http.receive_data(data)
        return True

    async def _unless_stopped(self, waited: Awaitable[bytes]) -> bytes:
        """What comes within the idle time; nothing when the receiver stops meanwhile."""
        reading = asyncio.ensure_future(waited)
        stopping = asyncio.ensure_future(self._receiver.stopping.wait())
        try:
            await asyncio.wait(
                (reading, stopping),
                timeout=self._options.idle_seconds,
                return_when=asyncio.FIRST_COMPLETED,
            )
            return reading.result() if reading.done() else b""
        finally:
            for one in (reading, stopping):
                one.cancel()

    async def _event(self) -> object:
        """The next event of HTTP."""
        while True:
            event = self._http.next_event()
            if event is not h11.NEED_DATA:
                return event
            self._http.receive_data(await self._reader.read(PIECE))

    async def _ask(self, request: h11.Request) -> Answer:
        self._receiver.counts["requests"] += 1
        headers = [
            (name.decode("latin-1"), value.decode("latin-1")) for name, value in request.headers
        ]
        head = read_head(
            request.method.decode("latin-1"),
            request.target.decode("latin-1"),
            headers,
            self._options.body_bytes,
        )
        if isinstance(head, Answer):
            return head
        self._encoding = head.encoding
        if self._http.they_are_waiting_for_100_continue:
            self._writer.write(
                self._http.send(h11.InformationalResponse(status_code=100, headers=[])) or b""
            )
        body = bytearray()
        try:
            async with asyncio.timeout(self._options.body_seconds):
                refusal = await self._read_body(head, body)
            return refusal or await self._receiver.take(head, bytes(body))
        finally:
            self._receiver.release(len(body))

    async def _read_body(self, head: Head, body: bytearray) -> Answer | None:
        """All of it into `body`, which is held; or why not."""
        while not isinstance(event := await self._event(), h11.EndOfMessage):
            if not isinstance(event, h11.Data):
                raise h11.RemoteProtocolError("the body ends early", error_status_hint=400)
            if len(body) + len(event.data) > self._options.body_bytes:
                return too_large(head.encoding, self._options.body_bytes)
            if not self._receiver.hold(len(event.data)):
                problem = "too many requests at once; come again"
                return refused(429, problem, head.encoding, close=True)
            body += event.data
        return None

    async def _say(self, answer: Answer) -> bool:
        """Whether the connection goes on."""
        if answer.status != 200:
            self._receiver.counts[f"answered {answer.status}"] += 1
        if self._http.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            return False
        close = answer.close or self._receiver.stopping.is_set()
        answer = Answer(answer.status, answer.encoding, answer.body, close, answer.headers)
        response = h11.Response(
            status_code=answer.status, headers=answer.all_headers, reason=answer.reason.encode()
        )
        events: tuple[h11.Event, ...] = (response, h11.Data(data=answer.body), h11.EndOfMessage())
        self._writer.write(b"".join(self._http.send(event) or b"" for event in events))
        async with asyncio.timeout(self._options.answer_seconds):
            await self._writer.drain()
        return await self._go_on()

    async def _go_on(self) -> bool:
        """Whether another request can come on the connection."""
        ours, theirs = self._http.our_state, self._http.their_state
        if ours is h11.DONE and theirs is h11.DONE:
            self._http.start_next_cycle()
            return True
        if theirs not in (h11.DONE, h11.MUST_CLOSE):
            await self._linger()
        return False

    async def _linger(self) -> None:
        """Let the client read the answer: a reset, for bytes nobody read, would take it away."""
        if self._writer.can_write_eof():
            self._writer.write_eof()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1.0):
                left = 4 * PIECE
                while left > 0 and (data := await self._reader.read(PIECE)):
                    left -= len(data)
