"""What a version of HTTP makes of bytes, whatever carries them. No socket, no clock.

Exchanges    requests in, bytes out; bytes in, events out (`http1.py`, `http2.py`)
Outgoing     bytes to write, and which request begins or ends with them
Head, Body, Whole, Broken   what becomes of a request
"""

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from pathbudget.probes.carriers import Moment, Request
from pathbudget.probes.http.settings import Limits
from pathbudget.probes.record import Failure, FailureKind, Stage

Headers = tuple[tuple[str, str], ...]
LONGEST_DETAIL = 160


class Outgoing(NamedTuple):
    """Bytes to write. `key` is the request that they belong to; None of those of the connection."""

    data: bytes
    key: int | None = None
    begins: bool = False
    ends: bool = False


class Head(NamedTuple):
    """Status and headers; the moment is that of the packet with their first byte."""

    key: int
    status: int
    headers: Headers
    moment: Moment


class Body(NamedTuple):
    """A piece of the body: all that one call of `receive` held of it."""

    key: int
    data: bytes


class Whole(NamedTuple):
    """The answer is complete."""

    key: int
    protocol: str
    """``HTTP/1.1`` and so on, as the server says."""
    informational: int
    """Answers of class 1xx that came before it."""


class Broken(NamedTuple):
    """There will be no (whole) answer; `key` None: to none of the requests under way."""

    key: int | None
    failure: Failure


Event = Head | Body | Whole | Broken


class Exchanges(Protocol):
    """One connection's side of the protocol."""

    @property
    def usable(self) -> bool:
        """Whether another request may be sent now."""
        ...

    @property
    def stalled(self) -> frozenset[int]:
        """Requests that wait for the other end's flow-control window."""
        ...

    def ask(self, request: Request) -> int:
        """Make ready a request that has been checked; its key."""
        ...

    def outgoing(self) -> list[Outgoing]:
        """What may be written now, once."""
        ...

    def receive(self, data: bytes, moment: Moment) -> list[Event]:
        """Take bytes."""
        ...

    def ended(self) -> list[Event]:
        """The other side has ended the stream in good order."""
        ...

    def goodbye(self) -> bytes:
        """What is said before we end it."""
        ...


def protocol_error(why: str) -> Failure:
    """The other side does not keep to the protocol."""
    return Failure(FailureKind.PROTOCOL, Stage.PARSE, detail=printable(why))


def cut_short() -> Failure:
    """It ended in good order, in the middle of an answer."""
    detail = "closed by the other side in the middle of the answer"
    return Failure(FailureKind.CLOSED, Stage.WAIT, detail=detail)


def printable(text: str, longest: int = LONGEST_DETAIL) -> str:
    """Foreign words, fit for a line on a terminal."""
    clean = "".join(char if char.isprintable() else "?" for char in text[: longest + 1])
    return clean if len(clean) <= longest else clean[: longest - 3] + "..."


def too_much_head(headers: Iterable[tuple[bytes, bytes]], limits: Limits) -> Failure | None:
    """Whether the headers of an answer go beyond what is taken."""
    count = size = 0
    for name, value in headers:
        count += 1
        size += len(name) + len(value)
    if count > limits.headers:
        return protocol_error(f"{count} headers in an answer")
    if size > limits.header_bytes:
        return protocol_error(f"{size} bytes of headers in an answer")
    return None


def too_much_body(limits: Limits) -> Failure:
    """More of a body than is taken."""
    return protocol_error(f"an answer of more than {limits.body_bytes} bytes")


def decoded(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    """Names and values as text, one character for each byte."""
    return tuple(
        (bytes(name).decode("latin-1").lower(), bytes(value).decode("latin-1"))
        for name, value in headers
    )
