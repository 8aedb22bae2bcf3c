"""What each path answers, whatever version it is asked in: the one place that decides. Sans-IO.

    GET  /        what this is                 GET /ping     204
    POST /upload  `UploadReceipt` as JSON      GET /stream   a paced stream

Nothing here changes anything, so all of it may be asked as early data, which can be replayed (RFC
8470 section 3): a replay is answered once more, to who replays it, within the same limits. So no
request is answered with 425.
"""

import hmac
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from pathbudget.agents.reflector.clocks import StampClock
from pathbudget.agents.reflector.serving.limits import Limits
from pathbudget.agents.reflector.serving.moments import Came
from pathbudget.agents.reflector.serving.paced_stream import PacedStream
from pathbudget.agents.reflector.serving.pacing import (
    SSE,
    Pacer,
    StreamError,
    StreamPlan,
    read_plan,
)
from pathbudget.agents.reflector.serving.reply import Headers, Reply
from pathbudget.probes.reflector_http import (
    PING_PATH,
    RESIDENCE_HEADER,
    STREAM_PATH,
    UPLOAD_PATH,
    UploadReceipt,
)

JSON, TEXT = "application/json", "text/plain; charset=utf-8"
GREETING = (
    b"A pathbudget reflector: it answers measurements and nothing else.\n"
    b"GET /ping, POST /upload, GET /stream\n"
)
METHODS = {
    "/": ("GET", "HEAD"),
    PING_PATH: ("GET", "HEAD"),
    UPLOAD_PATH: ("POST", "PUT"),
    STREAM_PATH: ("GET",),
}
GUARDED = (UPLOAD_PATH, STREAM_PATH)
LONGEST_TARGET = 2_048


@dataclass(frozen=True, slots=True)
class Asked:
    """The head of one request. Header names in lower case."""

    method: str
    target: str
    headers: Headers = ()
    websocket: bool = False
    early: bool = False
    """It came as early data."""

    def header(self, name: str) -> str:
        """The first of that name, or nothing."""
        return next((value for key, value in self.headers if key == name), "")


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer."""

    status: int
    headers: Headers = ()
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Upload:
    """What comes is counted and thrown away."""


Page = Answer | Upload | StreamPlan


class Pages:
    """All pages of one reflector. `tokens`, where there are any, guard `/upload` and `/stream`."""

    def __init__(
        self,
        clock: StampClock,
        limits: Limits,
        pacer: Pacer,
        counts: Counter[str],
        tokens: Sequence[bytes] = (),
    ) -> None:
        self.clock = clock
        self.limits = limits
        self.pacer = pacer
        self.counts = counts
        self._tokens = tuple(tokens)

    def ask(self, asked: Asked, reply: Reply, came: Came) -> "Exchange":
        """Begin to answer a request whose head came at `came`."""
        self.counts["requests"] += 1
        if asked.early:
            self.counts["early_requests"] += 1
        return Exchange(self, reply, self._page(asked), came, silent=asked.method == "HEAD")

    def _page(self, asked: Asked) -> Page:
        path, _, query = asked.target.partition("?")
        allowed = METHODS.get(path)
        if allowed is None or len(asked.target) > LONGEST_TARGET:
            return _refusal(404, "no such page")
        if asked.method not in allowed:
            return _refusal(405, "not so", ("allow", ", ".join(allowed)))
        if path in GUARDED and not self._authorised(asked.header("authorization")):
            self.counts["unauthorised"] += 1
            return _refusal(401, "a bearer token is needed", ("www-authenticate", "Bearer"))
        if asked.websocket and path != STREAM_PATH:
            return _refusal(400, "no WebSocket here")
        if path == UPLOAD_PATH:
            return self._upload(asked)
        if path == STREAM_PATH:
            try:
                return read_plan(query, websocket=asked.websocket)
            except StreamError as fault:
                return _refusal(400, str(fault))
        return (
            Answer(204) if path == PING_PATH else Answer(200, (("content-type", TEXT),), GREETING)
        )

    def _upload(self, asked: Asked) -> Page:
        stated = asked.header("content-length")
        if stated.isdecimal() and int(stated[:20]) > self.limits.upload_bytes:
            return too_large(self.limits)
        return Upload()

    def _authorised(self, header: str) -> bool:
        """Whether one of the tokens is shown; takes as long whichever it is."""
        if not self._tokens:
            return True
        scheme, _, shown = header.partition(" ")
        octets = shown.strip().encode("utf-8", "surrogateescape")
        found = [hmac.compare_digest(octets, token) for token in self._tokens]
        return scheme.lower() == "bearer" and any(found)


def _refusal(status: int, why: str, *headers: tuple[str, str]) -> Answer:
    return Answer(status, (("content-type", TEXT), *headers), f"{why}\n".encode())


def too_large(limits: Limits) -> Answer:
    """For an upload that is longer than is taken."""
    return _refusal(413, f"at most {limits.upload_bytes} bytes")


class Exchange:
    """One request and its answer. Told what comes by the connection it came on."""

    def __init__(self, pages: Pages, reply: Reply, page: Page, came: Came, *, silent: bool) -> None:
        self._pages = pages
        self._reply = reply
        self._page = page
        self._silent = silent
        self._began: Came | None = None
        self._last = came
        self._size = 0
        self._answered = False
        self._stream: PacedStream | None = None
        if isinstance(page, Answer) and page.status >= 400:
            self._answer(page)
            reply.read_no_more()

    @property
    def wants_body(self) -> bool:
        """Whether anything of a body is of interest (else no 100-continue)."""
        return not self._answered

    def body(self, size: int, began: Came, ended: Came) -> None:
        """So many bytes of the body came; what carried them began and ended to come then."""
        if self._answered:
            return
        self._began = self._began or began
        self._last = ended
        self._size += size
        self._pages.counts["upload_bytes"] += size
        if self._size > self._pages.limits.upload_bytes:
            self._answer(too_large(self._pages.limits))
            self._reply.read_no_more()

    def complete(self, came: Came) -> None:
        """The request is whole; the last of it came at `came`."""
        if self._answered:
            return
        if isinstance(self._page, Upload):
            self._last = came
            self._receipt()
        elif isinstance(self._page, StreamPlan):
            self._last = came
            self._start_stream(self._page)
        else:
            self._last = came
            self._answer(self._page)

    def cancel(self) -> None:
        """The asker is gone, or wants no more of it."""
        self._answered = True
        if self._stream is not None:
            self._stream.cancel()

    def _receipt(self) -> None:
        first = self._began or self._last
        self._pages.counts["uploads"] += 1
        receipt = UploadReceipt(
            bytes=self._size,
            first_unix_ns=first.unix_ns,
            last_unix_ns=self._last.unix_ns,
            residence_ns=self._pages.clock.unix_ns() - self._last.unix_ns,
            kernel=first.kernel and self._last.kernel,
        )
        self._answer(Answer(200, (("content-type", JSON),), msgspec.json.encode(receipt)))

    def _answer(self, answer: Answer) -> None:
        self._answered = True
        headers = answer.headers
        if answer.status != 204:
            headers = (*headers, ("content-length", str(len(answer.body))))
        whole = not answer.body or self._silent
        self._reply.head(answer.status, self._timed(headers), end=whole)
        if not whole:
            self._reply.body(answer.body, end=True)

    def _start_stream(self, plan: StreamPlan) -> None:
        self._answered = True
        kind = "text/event-stream" if plan.form == SSE else "application/x-ndjson"
        self._reply.head(200, self._timed((("content-type", kind),)), end=False)
        self._stream = PacedStream(self._pages.clock, self._pages.counts, plan, self._reply)
        self._pages.pacer.start(self._stream, self._pages.clock.monotonic_ns())

    def _timed(self, headers: Headers) -> Headers:
        residence_ns = max(0, self._pages.clock.monotonic_ns() - self._last.monotonic_ns)
        return (
            *headers,
            ("cache-control", "no-store"),
            (RESIDENCE_HEADER, str(residence_ns)),
            ("server-timing", f"residence;dur={residence_ns / 1e6:.3f}"),
        )
