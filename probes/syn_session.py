"""Half-open SYN probes: SYNs out, SYN-ACKs and RSTs in. Bytes and `now` in, events out; no I/O.

Every shot ends in exactly one `Outcome`. The sequence number of a SYN is drawn anew each time and
only who has seen the SYN can acknowledge it; that, the address and both ports make an answer ours.
What is no outcome is counted:

    foreign      an answer to one of our ports that acknowledges nothing of ours
    duplicate    another answer to a probe that has its outcome (a server repeats its SYN-ACK)
    late         an answer after the deadline; the probe stays a timeout
    corrupt      the checksum says that the segment is damaged: TCP itself would drop it, so do we
    forged       an ICMP error that quotes a SYN which we did not send

Two SYNs at once on one flow would answer each other at the server, so no two are under way there;
a flow that had no answer rests for a while, until the server has forgotten or repeated itself.
"""

import heapq
import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from pathbudget.probes.channels import QueuedError, Segment, SegmentBatch
from pathbudget.probes.clock import Reading, StampedInterval, measure_interval
from pathbudget.probes.contract import Shot
from pathbudget.probes.failures import from_icmp, timed_out
from pathbudget.probes.half_open import HalfOpen
from pathbudget.probes.icmp_flight import canonical
from pathbudget.probes.icmp_session import Counted, Event, Outcome
from pathbudget.probes.record import (
    AddressFamily,
    ClockSource,
    Failure,
    FailureKind,
    Flag,
    Metric,
    Sample,
    Stage,
    Stamps,
)
from pathbudget.probes.tcp_stamps import lateness_of, stamps_of
from pathbudget.probes.tcp_wire import (
    SEQUENCES,
    Answer,
    build_syn,
    checksum_holds,
    parse_answer,
    parse_quoted_syn,
)

REMEMBERED_NS = 60_000_000_000
REMEMBERED_PROBES = 200_000
REST_NS = 3_000_000_000
"""Servers repeat a SYN-ACK after one second (RFC 6298); our RST to it clears their memory."""
RESTING_FLOWS = 50_000

Flow = tuple[str, int, int]
"""Address, port there, port here."""


@dataclass(slots=True)
class _Flight:
    shot: Shot
    address: str
    port: int
    flow: int
    sent: Reading
    sent_key: int | None = None
    kernel_sent_unix_ns: int | None = None


class SynSession:
    """All half-open probes of one address family, from these local ports."""

    def __init__(
        self,
        family: AddressFamily,
        rng: random.Random,
        ports: Sequence[int],
        half_open: HalfOpen,
    ) -> None:
        self._family = family
        self._half_open = half_open
        self._rng = rng
        self._ports = tuple(ports)
        self._ours = frozenset(ports)
        self._turn = 0
        self._flights: dict[int, _Flight] = {}
        self._busy: set[Flow] = set()
        self._resting: dict[Flow, int] = {}
        self._deadlines: list[tuple[int, int]] = []
        self._by_key: dict[int, int] = {}
        self._done: dict[int, tuple[int, bool]] = {}
        self._done_order: deque[tuple[int, int]] = deque()
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

    def admit(self, shot: Shot, port: int, now: Reading, *, sweep: bool) -> int | Failure:
        """The local port for a SYN that may leave now; pay it back with `request`.

        In a sweep the ports take turns, come what may. Otherwise it is one that no SYN to this
        target is under way from, the best rested one.
        """
        where = canonical(shot.address)
        flow = self._next(where, port, shot.seq) if sweep else self._free(where, port, now)
        if isinstance(flow, Failure):
            return flow
        return self._half_open.enter((where, port)) or flow

    def _next(self, where: str, port: int, number: int) -> int | Failure:
        one = self._ports[number % len(self._ports)]
        return _busy(f"source port {one}") if (where, port, one) in self._busy else one

    def _free(self, where: str, port: int, now: Reading) -> int | Failure:
        best: tuple[int, int] | None = None
        for step in range(len(self._ports)):
            one = self._ports[(self._turn + step) % len(self._ports)]
            flow = (where, port, one)
            if flow in self._busy:
                continue
            until = self._resting.get(flow, 0)
            if until <= now.monotonic_ns:
                self._resting.pop(flow, None)
                self._turn += step + 1
                return one
            best = min(best or (until, one), (until, one))
        return best[1] if best is not None else _busy("every source port")

    def request(
        self, shot: Shot, port: int, flow: int, source: str, now: Reading
    ) -> tuple[int, bytes]:
        """Begin a probe that was admitted: its sequence number and the segment to send now."""
        sequence = self._rng.getrandbits(32)
        while sequence in self._flights or sequence in self._done:
            sequence = self._rng.getrandbits(32)
        flight = _Flight(shot, canonical(shot.address), port, flow, now)
        self._flights[sequence] = flight
        self._busy.add((flight.address, port, flow))
        heapq.heappush(self._deadlines, (now.monotonic_ns + shot.timeout_ns, sequence))
        return sequence, build_syn(source, shot.address, flow, port, sequence)

    def sent(self, sequence: int, key: int) -> None:
        """The SYN has been handed to the kernel, under this key."""
        flight = self._flights.get(sequence)
        if flight is not None:
            flight.sent_key = key
            self._by_key[key] = sequence

    def refused(self, sequence: int, failure: Failure, now: Reading) -> None:
        """The SYN could not be sent: that is its outcome."""
        self._finish(sequence, failure, now)

    def receive(self, batch: SegmentBatch, now: Reading) -> None:
        """Work through what was read at one wake-up."""
        for key, kernel_unix_ns in batch.sent:
            sequence = self._by_key.pop(key, None)
            if sequence is not None:
                self._flights[sequence].kernel_sent_unix_ns = kernel_unix_ns
        for error in batch.errors:
            self._error(error, now)
        for segment in batch.arrivals:
            self._arrived(segment, now)

    def expire(self, now: Reading) -> None:
        """Time out what is due. Whatever has come must have been given to `receive` before."""
        while True:
            due = self.next_deadline_ns()
            if due is None or due > now.monotonic_ns:
                return
            _, sequence = heapq.heappop(self._deadlines)
            timeout_ns = self._flights[sequence].shot.timeout_ns
            self._finish(sequence, timed_out(Stage.CONNECT, timeout_ns), now)

    def _arrived(self, segment: Segment, now: Reading) -> None:
        answer = parse_answer(segment.data)
        if answer is None or answer.destination_port not in self._ours:
            return  # somebody else's
        sequence = (answer.acknowledged - 1) % SEQUENCES
        flight = self._flights.get(sequence)
        if flight is None:
            self._answered_before(sequence)
        elif not _is_from(segment, answer, flight):
            self._count(-1, "foreign")
        elif segment.local and not checksum_holds(segment.sender, segment.local, segment.data):
            self._count(flight.shot.series, "corrupt")
        else:
            self._settle(sequence, flight, segment, answer, now)

    def _answered_before(self, sequence: int) -> None:
        done = self._done.get(sequence)
        if done is None:
            self._count(-1, "foreign")
            return
        series, lost = done
        self._count(series, "late" if lost else "duplicate")

    def _settle(
        self, sequence: int, flight: _Flight, segment: Segment, answer: Answer, now: Reading
    ) -> None:
        """Turn the answer to a probe into its outcome."""
        stamp = segment.kernel_unix_ns
        span = measure_interval(flight.sent, now, flight.kernel_sent_unix_ns, stamp)
        if span.value_ns > flight.shot.timeout_ns:
            self._count(flight.shot.series, "late")
            failure = timed_out(Stage.CONNECT, flight.shot.timeout_ns)
            self._finish(sequence, failure, now)
            return
        marks = [Flag.CLOCK_STEP] if span.stepped else []
        marks += [Flag.REFUSED] if answer.refused else []
        stamps = stamps_of(
            flight.shot, _sent_unix_ns(flight), flight.sent, now, flight.kernel_sent_unix_ns, stamp
        )
        sample = _sample(flight, stamps, span=span, flags=tuple(marks), ttl=segment.ttl)
        self._close(sequence, now, sample, lost=False)

    def _error(self, error: QueuedError, now: Reading) -> None:
        quoted = parse_quoted_syn(error.quoted)
        failure = from_icmp(self._family, error.icmp_type, error.icmp_code, Stage.CONNECT)
        if quoted is None or failure is None:
            return
        flight = self._flights.get(quoted.sequence)
        if flight is None or (quoted.source_port, quoted.destination_port) != (
            flight.flow,
            flight.port,
        ):
            self._count(-1, "late" if quoted.sequence in self._done else "forged")
            return
        there = canonical(error.responder)
        self._finish(quoted.sequence, failure, now, None if there == flight.address else there)

    def _finish(
        self, sequence: int, failure: Failure, now: Reading, responder: str | None = None
    ) -> None:
        """End a probe without a number."""
        flight = self._flights[sequence]
        stamps = stamps_of(
            flight.shot,
            _sent_unix_ns(flight),
            flight.sent,
            kernel_sent_unix_ns=flight.kernel_sent_unix_ns,
        )
        sample = _sample(flight, stamps, failure=failure, responder=responder)
        self._close(sequence, now, sample, lost=failure.kind is FailureKind.TIMEOUT)

    def _close(self, sequence: int, now: Reading, sample: Sample, *, lost: bool) -> None:
        flight = self._flights.pop(sequence)
        flow = (flight.address, flight.port, flight.flow)
        self._busy.discard(flow)
        self._half_open.leave((flight.address, flight.port))
        if lost:
            self._rest(flow, now.monotonic_ns)
        if flight.sent_key is not None:
            self._by_key.pop(flight.sent_key, None)
        self._done[sequence] = (flight.shot.series, lost)
        self._done_order.append((now.monotonic_ns, sequence))
        self._forget(now.monotonic_ns)
        self._events.append(Outcome(flight.shot.series, sample))

    def _rest(self, flow: Flow, now_ns: int) -> None:
        if len(self._resting) >= RESTING_FLOWS:
            awake = {one: until for one, until in self._resting.items() if until > now_ns}
            self._resting = awake if len(awake) < RESTING_FLOWS else {}
        self._resting[flow] = now_ns + REST_NS

    def _forget(self, now_ns: int) -> None:
        order = self._done_order
        while order and (order[0][0] < now_ns - REMEMBERED_NS or len(order) > REMEMBERED_PROBES):
            del self._done[order.popleft()[1]]

    def _count(self, series: int, word: str) -> None:
        self._events.append(Counted(series, word))


def _is_from(segment: Segment, answer: Answer, flight: _Flight) -> bool:
    return (
        answer.source_port == flight.port
        and answer.destination_port == flight.flow
        and canonical(segment.sender) == flight.address
    )


def _sample(
    flight: _Flight,
    stamps: Stamps,
    *,
    span: StampedInterval | None = None,
    failure: Failure | None = None,
    flags: tuple[str, ...] = (),
    ttl: int | None = None,
    responder: str | None = None,
) -> Sample:
    return Sample(
        seq=flight.shot.seq,
        metric=Metric.CONNECT,
        sent_unix_ns=_sent_unix_ns(flight),
        value_ns=None if span is None else span.value_ns,
        failure=failure,
        clock_source=ClockSource.USER if span is None else span.source,
        lateness_ns=lateness_of(flight.shot, flight.sent),
        ttl=ttl,
        responder=responder,
        flags=flags,
        flow=flight.flow,
        stamps=stamps,
    )


def _busy(what: str) -> Failure:
    detail = f"not sent: {what} has a SYN to this target under way (max_half_open)"
    return Failure(FailureKind.LOCAL, Stage.CONNECT, detail=detail)


def _sent_unix_ns(flight: _Flight) -> int:
    return flight.kernel_sent_unix_ns or flight.sent.unix_ns
