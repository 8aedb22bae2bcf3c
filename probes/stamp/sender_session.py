"""The Session-Sender: requests out, answers in, nothing lost. Bytes and `now` in, events out.

Every shot ends in exactly one RTT sample or failure. A reply is ours when it carries back the T1 of
one of our requests, 64 bits of which the lowest 16 are dice, with its sequence number and SSID (16
more bits of dice); in authenticated mode it is signed besides. What is no outcome is counted:

    foreign      from an address and port that we do not probe, or nothing that could be a reply
    forged       from one that we probe, but not ours, or with a wrong signature
    corrupt      our T1, but another number or SSID than we sent with it
    duplicate    another reply to a packet that has its outcome (RFC 5560)
    late         a reply after the deadline; the packet stays a timeout
    forged_error        an ICMP error that quotes a packet we have not sent
    unverifiable_error  one that quotes too little to tell
    lost_forward, lost_reverse, lost_direction_unknown   packets that timed out, by direction
    stateless_reflector   a reflector that does not number its replies: directions stay unknown
    dscp_changed_forward, dscp_changed_reverse, dscp_refused   where a DSCP was asked for

T3 cannot be stamped by the kernel into its own packet: the Follow-Up extension of the next reply
brings it (RFC 8972 section 4.7). An answer waits for the next reply of its session, at most until
its own deadline, and counts with the T3 of the packet where none came (docs/adr/0082). Where a
reflector has nothing to tell, nothing waits (`follow_ups.py`).
"""

import random
import struct

from pathbudget.probes.channels import Datagram, DatagramBatch, QueuedError
from pathbudget.probes.clock import Reading, measure_interval
from pathbudget.probes.contract import Shot
from pathbudget.probes.failures import from_icmp, timed_out
from pathbudget.probes.icmp_flight import canonical
from pathbudget.probes.record import (
    AddressFamily,
    Direction,
    Failure,
    FailureKind,
    Metric,
    Sample,
    Stage,
)
from pathbudget.probes.stamp.authentication import Key
from pathbudget.probes.stamp.events import Counted, Event, Outcome
from pathbudget.probes.stamp.flight_table import FlightTable
from pathbudget.probes.stamp.flights import Answer, Flight
from pathbudget.probes.stamp.measured import lateness_ns, measured, sent_unix_ns, stamps_of
from pathbudget.probes.stamp.sender_states import SenderStates
from pathbudget.probes.stamp.timestamps import encode_error, to_ntp
from pathbudget.probes.stamp.tlvs import ClassOfService
from pathbudget.probes.stamp.trailer import Extensions, read_extensions
from pathbudget.probes.stamp.wire import (
    AUTHENTICATED_OCTETS,
    BASE_OCTETS,
    OPEN_REPLY,
    OPEN_REQUEST,
    SEQUENCES,
    SIGNED_REPLY,
    SIGNED_REQUEST,
    TWAMP_REPLY_OCTETS,
)

DICE_BITS = 16
DICE_NS = 15_259
"""By how much the dice move T1: 2 ** 16 units of NTP time. Part of the error that we state."""
_MASK = SEQUENCES - 1
_new = tuple.__new__  # what a NamedTuple's own constructor calls in the end
_OPEN_QUOTE = struct.Struct("!IQ")
_SIGNED_QUOTE = struct.Struct("!I12xQ")
_LOST = {
    Direction.FORWARD: "lost_forward",
    Direction.REVERSE: "lost_reverse",
    None: "lost_direction_unknown",
}


class SenderSession:
    """All STAMP sessions of one address family. See the module for the rules.

    `flows` gives the local port of each channel, by the number that `request` and `receive` get.
    """

    def __init__(
        self,
        family: AddressFamily,
        rng: random.Random,
        extensions: Extensions,
        *,
        default_port: int,
        follow_up: bool = True,
        dscp: int = 0,
    ) -> None:
        self.flows: dict[int, int] = {}
        self._family = family
        self._rng = rng
        self._extensions = extensions
        self._fixed = extensions.build(b"") if extensions.key is None else None
        self._key: Key | None = extensions.key
        self._dscp = dscp
        self._default_port = default_port
        self._own_error_ns: int | None = None
        self._error = encode_error(None)
        self._states = SenderStates(rng, self._count_lost, follow_up=follow_up)
        self._table = FlightTable()
        self._flights = self._table.by_t1
        self._events: list[Event] = []

    @property
    def under_way(self) -> int:
        """Number of packets without an outcome."""
        return self._table.under_way

    def claim_clock(self, error_ns: int | None) -> None:
        """Our clock is within `error_ns` of UTC from now on; None: nobody vouches for it."""
        self._own_error_ns = error_ns
        self._error = encode_error(None if error_ns is None else error_ns + DICE_NS)

    def clock_stepped(self) -> None:
        """Our wall clock was set. A reflector that knows our signed packets would take those of a
        clock set back for replayed ones: begin new sessions.
        """
        self._states.begin_again()

    def next_deadline_ns(self) -> int | None:
        """Monotonic time of the next timeout; None where nothing is under way."""
        return self._table.next_deadline_ns()

    def events(self) -> list[Event]:
        """What has happened since the last call, in order."""
        events, self._events = self._events, []
        return events

    def request(self, shot: Shot, now: Reading, channel: int = 0) -> tuple[int, bytes]:
        """Begin a packet: its number for `sent` and `refused`, and the octets to send now."""
        state = self._states.of(shot.address, shot.target.port or self._default_port, channel)
        number = state.next_number
        state.next_number = number + 1
        t1 = to_ntp(now.unix_ns) >> DICE_BITS << DICE_BITS | self._rng.getrandbits(DICE_BITS)
        while t1 in self._flights:
            t1 = t1 + (1 << DICE_BITS) & 0xFFFF_FFFF_FFFF_FFFF
        deadline_ns = now.monotonic_ns + shot.timeout_ns
        self._table.add(Flight(shot, state, number, t1, now, deadline_ns))
        if self._fixed is not None:
            base = OPEN_REQUEST.pack(number & _MASK, t1, self._error, state.ssid)
            return t1, base + self._fixed
        return t1, self._signed(SIGNED_REQUEST.pack(number & _MASK, t1, self._error, state.ssid))

    def sent(self, number: int, channel: int, key: int) -> None:
        """The packet has been handed to the kernel, on this channel and under this key."""
        flight = self._flights.get(number)
        if flight is not None and not flight.done:
            self._table.sent(flight, channel, key)

    def refused(self, number: int, failure: Failure) -> None:
        """The packet could not be sent: that is its outcome."""
        flight = self._flights[number]
        flight.session.losses.never_arrived(flight.number)
        self._fail(flight, failure)

    def receive(self, channel: int, batch: DatagramBatch, now: Reading) -> None:
        """Work through what was read at one wake-up of one channel."""
        for key, kernel_unix_ns in batch.sent:
            self._table.stamped(channel, key, kernel_unix_ns)
        for error in batch.errors:
            self._error_queued(error)
        answered: list[Flight] = []
        for datagram in batch.arrivals:
            flight = self._arrived(datagram, now)
            if flight is not None:
                answered.append(flight)
        for flight in answered:
            if not flight.done and flight.session.follow_ups.held is not flight:
                self._settle(flight)

    def expire(self, now: Reading) -> None:
        """Time out what is due, and wait no longer for a Follow-Up. Whatever has come must have
        been given to `receive` before.
        """
        while (flight := self._table.take_due(now.monotonic_ns)) is not None:
            if flight.answer is not None:
                flight.session.follow_ups.wait_no_longer(flight)
                self._settle(flight)
            else:
                self._time_out(flight)

    def finish(self) -> None:
        """Nothing more will come: losses that wait for a later answer have no direction."""
        self._states.finish()

    def _signed(self, base: bytes) -> bytes:
        assert self._key is not None
        return base + self._key.sign(base) + self._extensions.build(base[:4])

    def _arrived(self, datagram: Datagram, now: Reading) -> Flight | None:
        """Look at one datagram; the packet that it answers first."""
        payload = datagram[0]
        key = self._key
        if key is not None:
            if len(payload) < AUTHENTICATED_OCTETS or not key.signed_base(payload):
                self._stranger(datagram)
                return None
            fields = SIGNED_REPLY.unpack_from(payload)
        elif len(payload) >= BASE_OCTETS:
            fields = OPEN_REPLY.unpack_from(payload)
        elif len(payload) >= TWAMP_REPLY_OCTETS:
            fields = OPEN_REPLY.unpack_from(payload.ljust(BASE_OCTETS, b"\0"))
        else:
            self._stranger(datagram)
            return None
        own, left, error, ssid, arrived, number, t1, _, _ = fields
        flight = self._flights.get(t1)
        if flight is None:
            self._stranger(datagram)
            return None
        state = flight.session
        if number != flight.number & _MASK or (ssid != state.ssid and ssid):
            self._count(flight.shot.series, "corrupt")
            return None
        if flight.done or flight.answer is not None:
            self._again(flight, own, now)
            return None
        flight.answer = _new(
            Answer,
            (now, datagram[6], datagram[1], datagram[4], own, arrived, left, error),
        )
        losses = state.losses
        losses.answered(flight.number, own, now.monotonic_ns, 2 * flight.shot.timeout_ns)
        if not losses.stateful and not state.stateless_told:
            state.stateless_told = True
            self._count(flight.shot.series, "stateless_reflector")
        if state.follow_ups.known or self._dscp:
            self._extended(flight, datagram)
        return flight

    def _extended(self, flight: Flight, datagram: Datagram) -> None:
        """Read the extensions of a reply: when did the one before really leave?"""
        follow_up, service = read_extensions(datagram[0], self._key)
        follow_ups = flight.session.follow_ups
        if follow_ups.known:
            waited = follow_ups.answered(flight, follow_up)
            if waited is not None:
                self._settle(waited)
        if self._dscp:
            self._marked(flight.shot.series, service, datagram.traffic_class)

    def _marked(
        self, series: int, service: ClassOfService | None, traffic_class: int | None
    ) -> None:
        """Count what the way did to our DSCP."""
        if service is not None and service.seen_dscp != self._dscp:
            self._count(series, "dscp_changed_forward")
        if service is not None and service.refused:
            self._count(series, "dscp_refused")
        elif traffic_class is not None and traffic_class >> 2 != self._dscp:
            self._count(series, "dscp_changed_reverse")

    def _stranger(self, datagram: Datagram) -> None:
        probed = self._states.probes(datagram.sender, datagram.sender_port)
        self._count(-1, "forged" if probed else "foreign")

    def _again(self, flight: Flight, own: int, now: Reading) -> None:
        """One more reply to a packet. Its number may be news: then the request came twice."""
        self._count(flight.shot.series, "late" if flight.timed_out else "duplicate")
        flight.duplicated = True
        flight.session.losses.answered(
            flight.number, own, now.monotonic_ns, 2 * flight.shot.timeout_ns
        )

    def _error_queued(self, error: QueuedError) -> None:
        """An ICMP error is the end of a packet only where it quotes that packet."""
        quote = _OPEN_QUOTE if self._key is None else _SIGNED_QUOTE
        failure = from_icmp(self._family, error.icmp_type, error.icmp_code, Stage.WAIT)
        if len(error.quoted) < quote.size or failure is None:
            self._count(-1, "unverifiable_error")
            return
        number, t1 = quote.unpack_from(error.quoted)
        flight = self._flights.get(t1)
        if (
            flight is None
            or number != flight.number & _MASK
            or canonical(error.destination) != flight.session.address
        ):
            self._count(-1, "forged_error")
        elif flight.done or flight.answer is not None:
            self._count(flight.shot.series, "late" if flight.timed_out else "duplicate")
        else:
            flight.session.losses.never_arrived(flight.number)
            self._fail(flight, failure, error.responder)

    def _settle(self, flight: Flight) -> None:
        """Turn the answer of a packet into its samples."""
        answer = flight.answer
        assert answer is not None
        sent = flight.sent
        span = measure_interval(
            sent, answer.read, flight.kernel_sent_unix_ns, answer.kernel_unix_ns
        )
        shot = flight.shot
        if span.value_ns > shot.timeout_ns:
            self._count(shot.series, "late")
            self._fail(flight, timed_out(Stage.WAIT, shot.timeout_ns))
            return
        flow = self.flows.get(flight.session.flow)
        self._table.close(flight)
        samples = measured(flight, answer, span, flow, self._own_error_ns)
        self._events.append(_new(Outcome, (shot.series, samples)))

    def _time_out(self, flight: Flight) -> None:
        shot = flight.shot
        failure = timed_out(Stage.WAIT, shot.timeout_ns)
        direction = flight.session.losses.lost(flight.number, shot.series)
        if direction is not None:
            failure = Failure(failure.kind, failure.stage, failure.detail, direction=direction)
        self._fail(flight, failure)

    def _fail(self, flight: Flight, failure: Failure, responder: str | None = None) -> None:
        """End a packet without a number."""
        shot = flight.shot
        sample = Sample(
            seq=shot.seq,
            metric=Metric.RTT,
            sent_unix_ns=sent_unix_ns(flight),
            failure=failure,
            lateness_ns=lateness_ns(flight),
            responder=responder,
            flow=self.flows.get(flight.session.flow),
            stamps=stamps_of(flight),
        )
        flight.timed_out = failure.kind is FailureKind.TIMEOUT
        self._table.close(flight)
        self._events.append(Outcome(shot.series, (sample,)))

    def _count_lost(self, series: int, direction: Direction | None) -> None:
        self._count(series, _LOST[direction])

    def _count(self, series: int, word: str) -> None:
        self._events.append(Counted(series, word))
