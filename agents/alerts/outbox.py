"""Messages until their receiver has them. Each receiver has an outbox: one that is away holds none
of the others.
"""

from collections.abc import Callable

import msgspec

from pathbudget.agents.alerts.delivery import Answer, Receipt
from pathbudget.agents.alerts.message import Message

SECOND_NS = 1_000_000_000
FIRST_PAUSE_NS, LONGEST_PAUSE_NS = 10 * SECOND_NS, 600 * SECOND_NS
GIVE_UP_NS = 24 * 3600 * SECOND_NS
MOST_WAITING = 1000


class Counts(msgspec.Struct):
    """Of one receiver, since its memory began."""

    sent: int = 0
    failed: int = 0
    """Tries that failed."""
    lost: int = 0
    """Messages that were given up."""


class Outbox(msgspec.Struct):
    """Messages of one receiver in their order. Kept over restarts."""

    waiting: list[Message] = []
    tries: int = 0
    """Of the first of them, in a row."""
    next_unix_ns: int = 0
    trouble: str = ""
    """Why the last try failed; empty where it did not."""
    counts: Counts = msgspec.field(default_factory=Counts)

    def put(self, message: Message) -> None:
        """Let it wait. Of too many the oldest is given up."""
        self.waiting.append(message)
        while len(self.waiting) > MOST_WAITING:
            self._lose()

    def due(self, now_unix_ns: int) -> tuple[Message, ...]:
        """What is to be sent now, if it is time to try."""
        return tuple(self.waiting) if now_unix_ns >= self.next_unix_ns else ()

    def answered(
        self, message: Message, answer: Answer, now_unix_ns: int, say: Callable[[str], None]
    ) -> None:
        """What came of sending the first."""
        if not self.waiting or self.waiting[0].id != message.id:
            return
        if isinstance(answer, Receipt):
            del self.waiting[0]
            self.counts.sent += 1
            self.tries, self.next_unix_ns, self.trouble = 0, 0, ""
            return
        self.failed(answer.why, now_unix_ns)
        old = now_unix_ns - message.at_unix_ns > GIVE_UP_NS
        if answer.final or old:
            say(f"given up: {message.title}: {answer.why}")
            self._lose()
            self.next_unix_ns = 0

    def failed(self, why: str, now_unix_ns: int) -> None:
        """Wait longer after each try that failed."""
        self.counts.failed += 1
        self.trouble = why
        pause = min(FIRST_PAUSE_NS << min(self.tries, 16), LONGEST_PAUSE_NS)
        self.tries += 1
        self.next_unix_ns = now_unix_ns + pause

    def _lose(self) -> None:
        del self.waiting[0]
        self.tries = 0
        self.counts.lost += 1
