"""For tests: a clock by hand, a reply that remembers, a wire that goes nowhere."""

from collections import Counter
from collections.abc import Callable
from typing import Any, cast

from pathbudget.agents.reflector.serving.limits import DEFAULT_LIMITS, Limits
from pathbudget.agents.reflector.serving.moments import Came
from pathbudget.agents.reflector.serving.pacing import Paced, Pacer
from pathbudget.agents.reflector.serving.pages import Pages
from pathbudget.agents.reflector.serving.reply import Headers

UNIX_NS = 1_790_000_000_000_000_000


class HandClock:
    """Both clocks stand still until they are moved."""

    def __init__(self) -> None:
        self.now_ns = 0

    @property
    def clock(self) -> "HandClock":
        """See `clocks.StampClock`."""
        return self

    def monotonic_ns(self) -> int:
        """See `clocks.StampClock`."""
        return self.now_ns

    def unix_ns(self) -> int:
        """See `clocks.StampClock`."""
        return UNIX_NS + self.now_ns

    def of_kernel(self, kernel_unix_ns: int) -> int:
        """See `clocks.StampClock`."""
        return kernel_unix_ns


class Line:
    """Stands for the pacer: steps streams when told."""

    def __init__(self) -> None:
        self.waiting: list[tuple[int, Paced]] = []

    def start(self, stream: Paced, due_ns: int) -> None:
        """See `pacing.Pacer`."""
        self.waiting.append((due_ns, stream))


class Said:
    """A reply that keeps what was said. The kernel stamps a piece 5 us after it was written."""

    def __init__(self, clock: HandClock, *, stamping: bool = True) -> None:
        self.clock = clock
        self.stamping = stamping
        self.status = 0
        self.headers: dict[str, str] = {}
        self.pieces: list[bytes] = []
        self.ended = False
        self.is_full = False
        self.cut = False
        self.aborted = False
        self.leaving: list[tuple[Callable[[int], None], int]] = []

    def head(self, status: int, headers: Headers, *, end: bool) -> None:
        """See `reply.Reply`."""
        self.status, self.headers, self.ended = status, dict(headers), end

    def body(self, data: bytes, *, end: bool, left: Callable[[int], None] | None = None) -> None:
        """See `reply.Reply`."""
        self.pieces.append(data)
        self.ended = end
        if left is not None:
            self.leaving.append((left, self.clock.unix_ns() + 5_000))

    def stamps(self) -> bool:
        """See `reply.Reply`."""
        if self.stamping:
            for left, stamp in self.leaving:
                left(stamp)
            self.leaving.clear()
        return self.stamping

    def full(self) -> bool:
        """See `reply.Reply`."""
        return self.is_full

    def read_no_more(self) -> None:
        """See `reply.Reply`."""
        self.cut = True

    def abort(self) -> None:
        """See `reply.Reply`."""
        self.aborted = True


def pages(
    clock: HandClock, limits: Limits = DEFAULT_LIMITS, tokens: tuple[bytes, ...] = ()
) -> tuple[Pages, Line]:
    """Pages, and who steps their streams."""
    line = Line()
    return Pages(clock, limits, cast("Pacer", line), Counter(), tokens), line


def at(clock: HandClock, *, kernel: bool = True) -> Came:
    """An arrival now."""
    return Came(clock.now_ns, clock.unix_ns(), kernel)


class DeafWire:
    """A `Wire` that goes nowhere; `written` is what would have been sent."""

    def __init__(self) -> None:
        self.written = bytearray()
        self.finished = False
        self.aborted = ""
        self.early = False

    def write(self, data: bytes, left: Any = None) -> None:  # noqa: ARG002
        """See `wire.Wire`."""
        self.written += data

    def stamps(self) -> bool:
        """See `wire.Wire`."""
        return False

    def full(self) -> bool:
        """See `wire.Wire`."""
        return False

    def finish(self) -> None:
        """See `wire.Wire`."""
        self.finished = True

    def abort(self, reason: str) -> None:
        """See `wire.Wire`."""
        self.aborted = reason

    def now_ns(self) -> int:
        """See `wire.Wire`."""
        return 0
