"""One paced stream under way: makes its chunks, and tells in them of those that have left."""

from collections import Counter

import msgspec

from pathbudget.agents.reflector.clocks import StampClock
from pathbudget.agents.reflector.serving.pacing import (
    FULL_NS,
    LAST_STAMPS_NS,
    StreamPlan,
    framed,
    padded,
)
from pathbudget.agents.reflector.serving.reply import Reply
from pathbudget.probes.reflector_http import Chunk


class PacedStream:
    """One stream under way; see `pacing.Paced`."""

    def __init__(
        self, clock: StampClock, counts: Counter[str], plan: StreamPlan, reply: Reply
    ) -> None:
        self._clock = clock
        self._counts = counts
        self._plan = plan
        self._reply = reply
        self._encode = msgspec.json.Encoder().encode
        self._next = 0
        self._start_ns = 0
        self._known: list[tuple[int, int]] = []
        self._stamped = 0
        self._ended = False
        self._counts["streams"] += 1

    def cancel(self) -> None:
        """Send nothing more."""
        self._ended = True

    def step(self, now_ns: int) -> int | None:
        """See `pacing.Paced.step`."""
        try:
            return self._step(now_ns)
        except Exception:  # noqa: BLE001
            # One client's connection broke in a way of its own: the others' streams go on.
            self._ended = True
            self._reply.abort()
            return None

    def _step(self, now_ns: int) -> int | None:
        if self._ended:
            return None
        plan, number = self._plan, self._next
        if number == 0:
            self._start_ns = now_ns
        if self._reply.full():
            return now_ns + FULL_NS
        stamping = self._reply.stamps()
        due_ns = number * plan.interval_ns
        if number == plan.chunks:
            waited_ns = now_ns - self._start_ns - due_ns
            if stamping and self._stamped < number and waited_ns < LAST_STAMPS_NS:
                return now_ns + FULL_NS
            self._send(number, due_ns, last=True)
            self._ended = True
            return None
        self._send(number, due_ns, last=False)
        self._next += 1
        return self._start_ns + self._next * plan.interval_ns

    def _send(self, number: int, due_ns: int, *, last: bool) -> None:
        known, self._known = tuple(self._known), []
        sent_unix_ns = self._clock.unix_ns()
        chunk = Chunk(n=number, due_ns=due_ns, sent_unix_ns=sent_unix_ns, left=known, last=last)
        text = padded(chunk, self._encode, 0 if last else self._plan.octets)

        def left(stamp_unix_ns: int) -> None:
            self._stamped += 1
            self._known.append((number, self._clock.of_kernel(stamp_unix_ns)))

        data = framed(text, self._plan.form)
        self._reply.body(data, end=last, left=None if last else left)
        self._counts["chunks"] += 1
