"""What is remembered of each question over UDP, from its sending until it is forgotten."""

import heapq
import itertools
import random
from collections import deque
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from pathbudget.probes.carriers import Moment
from pathbudget.probes.clock import Reading
from pathbudget.probes.contract import Shot
from pathbudget.probes.dns.questions import Question

REMEMBERED_NS = 60_000_000_000
"""How long a question is remembered after its outcome, so that another answer is known as one."""
REMEMBERED = 20_000
IDENTIFIERS = 1 << 16
TRIES = 64


class Server(NamedTuple):
    """Who is asked. The address as the system writes it."""

    address: str
    port: int


class Step(Enum):
    """What a question is for."""

    PRIME = "prime"
    """Not measured: so that the server has the name at hand."""
    ASK = "ask"


@dataclass(slots=True)
class Sending:
    """One datagram of ours."""

    flight: "Flight"
    step: Step
    question: Question
    read: Reading
    key: int | None = None
    kernel_unix_ns: int | None = None

    @property
    def moment(self) -> Moment:
        """When it left."""
        return Moment(self.read, self.kernel_unix_ns)


@dataclass(slots=True)
class Flight:
    """One question of one shot."""

    shot: Shot
    metric: str
    server: Server
    step: Step
    begun: Reading
    sendings: list[Sending] = field(default_factory=list[Sending])
    duplicated: bool = False
    case_changed: bool = False
    truncated: Moment | None = None
    """When an answer came that was cut short: the whole one is asked for over TCP."""
    done: bool = False
    timed_out: bool = False

    @property
    def deadline_ns(self) -> int:
        """Monotonic time at which it is given up."""
        return self.begun.monotonic_ns + self.shot.timeout_ns

    def of_step(self) -> list[Sending]:
        """What has been sent for the step that it is at."""
        return [one for one in self.sendings if one.step is self.step]

    @property
    def asked(self) -> Moment:
        """When the question left for the first time; before that, when the shot began."""
        sent = self.of_step()
        return sent[0].moment if sent else Moment(self.begun)


class FlightTable:
    """The questions under way and those remembered, by who was asked under which number."""

    def __init__(self, rng: random.Random) -> None:
        self.under_way = 0
        self.ports: dict[str, set[int]] = {}
        """Of each address ever asked: the ports."""
        self._rng = rng
        self._sendings: dict[tuple[str, int, int], Sending] = {}
        self._by_key: dict[int, Sending] = {}
        self._ended: deque[tuple[int, Flight]] = deque()
        self._alarms: list[tuple[int, int, Flight, int]] = []
        self._order = itertools.count()

    def begin(self, flight: Flight) -> None:
        """A question will be asked."""
        self.under_way += 1
        self.ports.setdefault(flight.server.address, set()).add(flight.server.port)
        self.alarm(flight.deadline_ns, flight, 0)

    def free_identifier(self, server: Server) -> int | None:
        """A number that nobody could foretell and that no question under way has."""
        for _ in range(TRIES):
            number = self._rng.randrange(IDENTIFIERS)
            held = self._sendings.get((server.address, server.port, number))
            if held is None or held.flight.done:
                return number
        return None

    def add(self, sending: Sending) -> None:
        """A datagram is about to leave."""
        sending.flight.sendings.append(sending)
        self._sendings[_place(sending)] = sending

    def find(self, address: str, port: int, identifier: int) -> Sending | None:
        """What was sent there under this number."""
        return self._sendings.get((address, port, identifier))

    def keyed(self, sending: Sending, key: int) -> None:
        """The kernel will report its stamp under this key."""
        sending.key = key
        self._by_key[key] = sending

    def stamped(self, key: int, kernel_unix_ns: int) -> None:
        """The kernel has reported it."""
        sending = self._by_key.pop(key, None)
        if sending is not None:
            sending.kernel_unix_ns = kernel_unix_ns

    def alarm(self, due_ns: int, flight: Flight, sent: int) -> None:
        """Look at the question again then: it is given up (0), or repeated if no more than `sent`
        datagrams have left for it by then.
        """
        heapq.heappush(self._alarms, (due_ns, next(self._order), flight, sent))

    def next_alarm_ns(self) -> int | None:
        """Monotonic time of the next one that matters; None where nothing is under way."""
        while self._alarms and self._alarms[0][2].done:
            heapq.heappop(self._alarms)
        return self._alarms[0][0] if self._alarms else None

    def take_due(self, now_ns: int) -> tuple[Flight, int] | None:
        """Whose time has come: the question and what `alarm` was told."""
        due_ns = self.next_alarm_ns()
        if due_ns is None or due_ns > now_ns:
            return None
        _, _, flight, sent = heapq.heappop(self._alarms)
        return flight, sent

    def end(self, flight: Flight, now_ns: int) -> None:
        """It has its outcome. Forget those that have had theirs for long."""
        flight.done = True
        self.under_way -= 1
        for one in flight.sendings:
            if one.key is not None:
                self._by_key.pop(one.key, None)
        ended = self._ended
        ended.append((now_ns, flight))
        while len(ended) > REMEMBERED or ended[0][0] < now_ns - REMEMBERED_NS:
            self._forget(ended.popleft()[1])

    def _forget(self, flight: Flight) -> None:
        for one in flight.sendings:
            if self._sendings.get(_place(one)) is one:
                del self._sendings[_place(one)]
        flight.sendings.clear()  # they refer to each other


def _place(sending: Sending) -> tuple[str, int, int]:
    address, port = sending.flight.server
    return address, port, sending.question.identifier
