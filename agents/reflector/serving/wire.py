"""What a version of HTTP has below it, and what it owes: plain bytes, and how long it may wait."""

from collections.abc import Callable
from typing import Protocol

from pathbudget.agents.reflector.serving.moments import Came

IDLE, HEAD, BODY, ANSWER = "idle", "head", "body", "answer"


class Wire(Protocol):
    """Plain bytes to one client, in order."""

    def write(self, data: bytes, left: Callable[[int], None] | None = None) -> None:
        """Send; `left` gets the kernel's stamp of its last byte."""

    def stamps(self) -> bool:
        """See `pages.Reply.stamps`."""
        ...

    def full(self) -> bool:
        """See `pages.Reply.full`."""
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
