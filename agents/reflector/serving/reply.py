"""The way of one answer, whatever version of HTTP it leaves in."""

from collections.abc import Callable
from typing import Protocol

Headers = tuple[tuple[str, str], ...]


class Reply(Protocol):
    """The way of one answer, in the version of its connection."""

    def head(self, status: int, headers: Headers, *, end: bool) -> None:
        """Begin the answer; `end` when that is all of it."""

    def body(self, data: bytes, *, end: bool, left: Callable[[int], None] | None = None) -> None:
        """Send a piece of the body; `left` gets the kernel's stamp of when its last byte left."""

    def stamps(self) -> bool:
        """Tell every `left` what the kernel has said until now; false where it says nothing."""
        ...

    def full(self) -> bool:
        """Whether the other side does not take what was written: wait before writing more."""
        ...

    def read_no_more(self) -> None:
        """Nothing more of this request is of interest."""

    def abort(self) -> None:
        """End the connection: something went wrong on our side of it."""
