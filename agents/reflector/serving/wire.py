"""What a version of HTTP has below it, and what it owes: plain bytes, and how long it may wait."""

from collections.abc import Callable
from typing import Protocol

from pathbudget.agents.reflector.serving.limits import Limits
from pathbudget.agents.reflector.serving.moments import Came

SECOND_NS = 1_000_000_000
IDLE, HEAD, BODY, ANSWER = "idle", "head", "body", "answer"


class Wire(Protocol):
    """Plain bytes to one client, in order."""

    def write(self, data: bytes, left: Callable[[int], None] | None = None) -> None:
        """Send; `left` gets the kernel's stamp of its last byte."""

    def stamps(self) -> bool:
        """See `reply.Reply.stamps`."""
        ...

    def full(self) -> bool:
        """See `reply.Reply.full`."""
        ...

    def finish(self) -> None:
        """End the connection once all is sent."""

    def abort(self, reason: str) -> None:
        """End it at once; `reason` is counted."""

    @property
    def early(self) -> bool:
        """Whether what comes now is early data."""
        ...

    def now_ns(self) -> int:
        """Monotonic."""
        ...


class Version(Protocol):
    """One connection in one version of HTTP."""

    phase: str
    """What is waited for: `IDLE`, `HEAD`, `BODY`; `ANSWER` is ours to end."""
    since_ns: int
    """Since when."""

    def receive(self, data: bytes, began: Came, ended: Came) -> None:
        """Plain bytes, and when what carried them began and ended to come."""

    def closed(self) -> None:
        """The connection is gone, or the other side sends no more."""


def overdue(limits: Limits, now_ns: int, began_ns: int, phase: str, since_ns: int) -> str:
    """Which time of a connection is up, as a counter's name; nothing while it may go on. No phase:
    it is being opened.
    """
    if now_ns - began_ns > limits.connection_seconds * SECOND_NS:
        return "over_connection_time"
    if not phase:
        late = now_ns - began_ns > limits.handshake_seconds * SECOND_NS
        return "over_handshake_time" if late else ""
    seconds, word = {
        IDLE: (limits.idle_seconds, "idle"),
        HEAD: (limits.request_seconds, "over_request_time"),
        BODY: (limits.body_seconds, "over_body_time"),
    }.get(phase, (limits.connection_seconds, ""))
    return word if now_ns - since_ns > seconds * SECOND_NS else ""
