"""The echo session: requests out, answers in, nothing lost. Bytes and `now` in, events out; no I/O.

Every shot ends in exactly one `Outcome`: an answer, an ICMP error, or a timeout. An answer is ours
when its payload carries the run's secret token; the ICMP identifier proves nothing (others choose
the same, NATs and unprivileged sockets change it). What is no outcome is counted:

    foreign      an echo reply under an identifier of ours, but without our secret
    duplicate    another answer to a probe that has its outcome (RFC 5560)
    late         an answer after the deadline; the probe stays a timeout
    corrupt      our secret, but the rest of the packet is damaged
    identifier_rotated   a new ICMP identifier after many losses in a row: a middlebox that has
                 forgotten or pinned the old flow would drop everything for ever

An outcome is final when the batch of packets that it came with has been worked through. So
`Flag.DUPLICATED` marks a sample whose second answer was read in the same batch as the first; later
ones are counted only. Waiting for them would delay every sample by its timeout.
"""

import functools
import heapq
import random
import socket
from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

from pathbudget.probes import icmp_wire
from pathbudget.probes.channels import Arrival, IcmpBatch, QueuedError
from pathbudget.probes.clock import Reading, measure_interval
from pathbudget.probes.contract import Shot
from pathbudget.probes.failures import from_icmp, timed_out
from pathbudget.probes.icmp_wire import Echo, QuotedEcho, Secret
from pathbudget.probes.record import (
    AddressFamily,
    Failure,
    FailureKind,
    Flag,
    Metric,
    Sample,
    Stage,
)

REMEMBERED_NS = 60_000_000_000
"""How long an answered probe is remembered, so that a duplicate is known as one."""
REMEMBERED_PROBES = 200_000


class Outcome(NamedTuple):
    """How a shot ended."""

    series: int
    sample: Sample


class Counted(NamedTuple):
    """Something that is no outcome; series -1 where it cannot be told."""

    series: int
    word: str


Event = Outcome | Counted


class _Answer(NamedTuple):
    received: Reading
    kernel_unix_ns: int | None
    sender: str
    ttl: int | None
    failure: Failure | None


@dataclass(slots=True)
class _Flight:
    """One probe under way."""

    shot: Shot
    address: str
    sent: Reading
    identifier: int
    sent_key: tuple[int, int] | None = None
    kernel_sent_unix_ns: int | None = None
    answer: _Answer | None = None
    duplicated: bool = False


class IcmpSession:
    """All echo probes of one address family. See the module for the rules."""

    def __init__(
        self,
        family: AddressFamily,
        rng: random.Random,
        *,
        payload_bytes: int = 56,
        rotate_after: int = 10,
    ) -> None:
        self.identifiers_are_ours = True
        """Whether requests leave with our identifiers; an unprivileged socket has its own."""
        self._family = family
        self._rng = rng
        self._payload_bytes = payload_bytes
        self._rotate_after = rotate_after
        self._token = rng.getrandbits(64)
        self._pattern = icmp_wire.build_payload(Secret(0, 0), payload_bytes)[
            icmp_wire.SECRET_BYTES :
        ]
        self._number = 0
        self._flights: dict[int, _Flight] = {}
        self._deadlines: list[tuple[int, int]] = []
        self._by_key: dict[tuple[int, int], int] = {}
        self._by_sequence: dict[tuple[str, int], int] = {}
        self._done: dict[int, tuple[int, bool]] = {}
        self._done_order: deque[tuple[int, int]] = deque()
        self._identifiers: dict[str, int] = {}
        self._identifiers_used: set[int] = set()
        self._losses: dict[str, int] = {}
        self._events: list[Event] = []

    @property
    def under_way(self) -> int:
        """Number of probes without an outcome."""
        return len(self._flights)

    def next_deadline_ns(self) -> int | None:
        """Monotonic time of the next timeout; None where nothing is under way."""
        while self._deadlines and self._deadlines[0][1] not in self._flights:
            heapq.heappop(self._deadlines)
        return self._deadlines[0][0] if self._deadlines else None

    def events(self) -> list[Event]:
        """What has happened since the last call, in order."""
        events, self._events = self._events, []
        return events

    def request(self, shot: Shot, now: Reading) -> tuple[int, bytes]:
        """Begin a probe: its number and the message to send now."""
        number = self._number
        self._number += 1
        address = canonical(shot.address)
        flight = _Flight(shot, address, now, self._identifier(address))
        self._flights[number] = flight
        self._by_sequence[address, number & 0xFFFF] = number
        heapq.heappush(self._deadlines, (now.monotonic_ns + shot.timeout_ns, number))
        payload = icmp_wire.build_payload(Secret(self._token, number), self._payload_bytes)
        echo = Echo(flight.identifier, number & 0xFFFF, payload)
        return number, icmp_wire.build_request(self._family, echo)

    def sent(self, number: int, channel: int, key: int) -> None:
        """The request has been handed to the kernel, on this channel and under this key."""
        flight = self._flights.get(number)
        if flight is not None:
            flight.sent_key = (channel, key)
            self._by_key[flight.sent_key] = number

    def refused(self, number: int, failure: Failure, now: Reading) -> None:
        """The request could not be sent: that is its outcome."""
        self._finish(number, failure, now)

    def receive(self, channel: int, batch: IcmpBatch, now: Reading) -> None:
        """Work through what was read at one wake-up of one channel."""
        for key, kernel_unix_ns in batch.sent:
            number = self._by_key.pop((channel, key), None)
            if number is not None:
                self._flights[number].kernel_sent_unix_ns = kernel_unix_ns
        answered = [self._error_queued(error, now) for error in batch.errors]
        answered += [self._arrived(arrival, now) for arrival in batch.arrivals]
        for number in answered:
            if number is not None:
                self._settle(number)

    def expire(self, now: Reading) -> None:
        """Time out what is due. Whatever has come must have been given to `receive` before."""
        while True:
            due = self.next_deadline_ns()
            if due is None or due > now.monotonic_ns:
                return
            _, number = heapq.heappop(self._deadlines)
            shot = self._flights[number].shot
            self._finish(number, timed_out(Stage.WAIT, shot.timeout_ns), now)

    def _identifier(self, address: str) -> int:
        if address not in self._identifiers:
            self._choose_identifier(address)
        return self._identifiers[address]

    def _choose_identifier(self, address: str) -> None:
        identifier = self._rng.randrange(1, 0x10000)
        self._identifiers[address] = identifier
        self._identifiers_used.add(identifier)

    def _arrived(self, arrival: Arrival, now: Reading) -> int | None:
        """Look at one message; the number of the probe that it answers first."""
        reply = icmp_wire.parse_reply(self._family, arrival.message)
        if reply is not None:
            return self._reply(reply, arrival, now)
        quoted = icmp_wire.parse_error(self._family, arrival.message)
        if quoted is None:
            return None
        number = self._quoted_number(quoted, check_identifier=True)
        return self._failed(number, quoted, arrival.sender, arrival.kernel_unix_ns, now)

    def _error_queued(self, error: QueuedError, now: Reading) -> int | None:
        echo = icmp_wire.parse_request(self._family, error.quoted)
        if echo is None:
            return None
        quoted = QuotedEcho(error.icmp_type, error.icmp_code, error.destination, echo)
        number = self._quoted_number(quoted, check_identifier=False)
        return self._failed(number, quoted, error.responder, error.kernel_unix_ns, now)

    def _reply(self, reply: Echo, arrival: Arrival, now: Reading) -> int | None:
        secret = icmp_wire.read_secret(reply.payload)
        if secret is None or secret.token != self._token or secret.number >= self._number:
            # A raw socket hears the answers to everybody's requests: those are no concern of ours.
            if not self.identifiers_are_ours or reply.identifier in self._identifiers_used:
                self._count(-1, "foreign")
            return None
        number = secret.number
        whole = reply.payload[icmp_wire.SECRET_BYTES :] == self._pattern
        if self._family is AddressFamily.IPV4:
            whole = whole and icmp_wire.checksum_holds(arrival.message)
        failure = None if whole else Failure(FailureKind.CORRUPT, Stage.PARSE, "damaged payload")
        if failure is not None:
            self._count(self._series(number), "corrupt")
        return self._take(
            number,
            _Answer(now, arrival.kernel_unix_ns, arrival.sender, arrival.ttl, failure),
        )

    def _quoted_number(self, quoted: QuotedEcho, *, check_identifier: bool) -> int | None:
        """Which probe a router speaks of. Where it quotes 8 bytes only, the secret is missing."""
        secret = icmp_wire.read_secret(quoted.echo.payload)
        if secret is not None:
            return secret.number if secret.token == self._token else None
        number = self._by_sequence.get((canonical(quoted.destination), quoted.echo.sequence))
        if number is None or number not in self._flights:
            return None
        identifier = self._flights[number].identifier
        return None if check_identifier and identifier != quoted.echo.identifier else number

    def _failed(
        self,
        number: int | None,
        quoted: QuotedEcho,
        responder: str,
        kernel_unix_ns: int | None,
        now: Reading,
    ) -> int | None:
        failure = from_icmp(self._family, quoted.icmp_type, quoted.icmp_code, Stage.WAIT)
        if number is None or number >= self._number or failure is None:
            return None
        return self._take(number, _Answer(now, kernel_unix_ns, responder, None, failure))

    def _take(self, number: int, answer: _Answer) -> int | None:
        """Keep the first answer to a probe, count the others."""
        flight = self._flights.get(number)
        if flight is None:
            series, timed_out_before = self._done.get(number, (-1, True))
            self._count(series, "late" if timed_out_before else "duplicate")
            return None
        if flight.answer is not None:
            flight.duplicated = True
            self._count(flight.shot.series, "duplicate")
            return None
        flight.answer = answer
        return number

    def _settle(self, number: int) -> None:
        """Turn the answer of a probe into its outcome."""
        flight = self._flights[number]
        answer = flight.answer
        assert answer is not None
        span = measure_interval(
            flight.sent, answer.received, flight.kernel_sent_unix_ns, answer.kernel_unix_ns
        )
        shot = flight.shot
        if span.value_ns > shot.timeout_ns:
            self._count(shot.series, "late")
            self._finish(number, timed_out(Stage.WAIT, shot.timeout_ns), answer.received)
            return
        responder = None if canonical(answer.sender) == flight.address else answer.sender
        if answer.failure is not None:
            self._finish(number, answer.failure, answer.received, responder or shot.address)
            return
        marks: tuple[str, ...] = (Flag.CLOCK_STEP,) if span.stepped else ()
        if flight.duplicated:
            marks = (*marks, Flag.DUPLICATED)
        sample = Sample(
            seq=shot.seq,
            metric=Metric.RTT,
            sent_unix_ns=_sent_unix_ns(flight),
            value_ns=span.value_ns,
            clock_source=span.source,
            lateness_ns=shot.lateness_ns,
            ttl=answer.ttl,
            responder=responder,
            flags=marks,
        )
        self._losses[flight.address] = 0
        self._close(number, answer.received, sample, timed_out_=False)

    def _finish(
        self, number: int, failure: Failure, now: Reading, responder: str | None = None
    ) -> None:
        """End a probe without a number."""
        flight = self._flights[number]
        shot = flight.shot
        sample = Sample(
            seq=shot.seq,
            metric=Metric.RTT,
            sent_unix_ns=_sent_unix_ns(flight),
            failure=failure,
            lateness_ns=shot.lateness_ns,
            responder=responder,
        )
        timeout = failure.kind is FailureKind.TIMEOUT
        self._close(number, now, sample, timed_out_=timeout)
        if timeout:
            self._lost(flight)

    def _lost(self, flight: _Flight) -> None:
        losses = self._losses.get(flight.address, 0) + 1
        current = flight.identifier == self._identifiers.get(flight.address)
        if losses >= self._rotate_after and current:
            losses = 0
            self._choose_identifier(flight.address)
            self._count(flight.shot.series, "identifier_rotated")
        self._losses[flight.address] = losses

    def _close(self, number: int, now: Reading, sample: Sample, *, timed_out_: bool) -> None:
        flight = self._flights.pop(number)
        if flight.sent_key is not None:
            self._by_key.pop(flight.sent_key, None)
        place = (flight.address, number & 0xFFFF)
        if self._by_sequence.get(place) == number:
            del self._by_sequence[place]
        self._done[number] = (flight.shot.series, timed_out_)
        self._done_order.append((now.monotonic_ns, number))
        self._forget(now.monotonic_ns)
        self._events.append(Outcome(flight.shot.series, sample))

    def _forget(self, now_ns: int) -> None:
        order = self._done_order
        while order and (order[0][0] < now_ns - REMEMBERED_NS or len(order) > REMEMBERED_PROBES):
            del self._done[order.popleft()[1]]

    def _series(self, number: int) -> int:
        flight = self._flights.get(number)
        return self._done.get(number, (-1, True))[0] if flight is None else flight.shot.series

    def _count(self, series: int, word: str) -> None:
        self._events.append(Counted(series, word))


@functools.lru_cache(maxsize=65_536)
def canonical(address: str) -> str:
    """An address as the system writes it, without its zone; other text as it is."""
    plain = address.partition("%")[0]
    family = socket.AF_INET6 if ":" in plain else socket.AF_INET
    try:
        return socket.inet_ntop(family, socket.inet_pton(family, plain))
    except OSError:
        return plain


def _sent_unix_ns(flight: _Flight) -> int:
    return flight.kernel_sent_unix_ns or flight.sent.unix_ns
