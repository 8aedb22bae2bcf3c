"""Messages that are written together, with what became of each."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pathbudget.agents.bus.uplink import MESSAGE_ID
from pathbudget.agents.collector.checking import Fault, RejectedError, measurement_of
from pathbudget.probes.record import Measurement

if TYPE_CHECKING:
    from nats.aio.msg import Msg

MOST_MESSAGES = 5_000
MOST_OCTETS = 32 << 20
LONGEST_S = 10.0
"""A batch is written when it is so old: small ones make small files."""

Reject = Callable[["Msg", Fault, str], None]


@dataclass(slots=True)
class Batch:
    """Each message once, in the order in which they came."""

    messages: list["Msg"] = field(default_factory=list["Msg"])
    measurements: list[Measurement] = field(default_factory=list[Measurement])
    octets: int = 0
    began_ns: int = 0
    """Monotonic, of its first message."""
    oldest_unix_ns: int | None = None

    def add(self, message: "Msg", now_ns: int, reject: Reject) -> None:
        """Take what is a measurement; the others go to `reject`."""
        try:
            found = measurement_of(message.subject, message.data, message.headers)
        except RejectedError as error:
            reject(message, error.fault, str(error))
            return
        if not self.messages:
            self.began_ns = now_ns
            self.oldest_unix_ns = round(message.metadata.timestamp.timestamp() * 1e9)
        self.messages.append(message)
        self.measurements.append(found)
        self.octets += len(message.data)

    def singly(self) -> "list[Batch]":
        """Each message by itself."""
        pairs = zip(self.messages, self.measurements, strict=True)
        return [Batch([message], [measurement]) for message, measurement in pairs]

    def drop(self, message: "Msg") -> None:
        """Leave it out, and what was in it."""
        place = next(n for n, one in enumerate(self.messages) if one is message)
        del self.messages[place], self.measurements[place]

    def room(self) -> int:
        """How many more messages it takes."""
        return MOST_MESSAGES - len(self.messages)

    def is_due(self, now_ns: int) -> bool:
        """Whether it is to be written now."""
        if not self.messages:
            return False
        full = self.room() <= 0 or self.octets >= MOST_OCTETS
        return full or now_ns - self.began_ns >= LONGEST_S * 1e9


def message_id(message: "Msg") -> str:
    """What the publisher called it."""
    return (message.headers or {}).get(MESSAGE_ID, "")
