"""The echo session: requests out, answers in, nothing lost. Bytes and `now` in, events out; no I/O.

Every shot ends in exactly one `Outcome`: an answer, an ICMP error, or a timeout. An answer is ours
when its payload carries the run's secret token; the ICMP identifier proves nothing (others choose
the same, NATs and unprivileged sockets change it). What is no outcome is counted:

    foreign      an echo reply under an identifier of ours, but without our secret
    duplicate    another answer to a probe that has its outcome (RFC 5560)
    late         an answer after the deadline; the probe stays a timeout
    corrupt      our secret, but the rest of the packet is damaged
    forged_error an ICMP error about a request under an identifier of ours that we never sent
    identifier_rotated   a new ICMP identifier after many losses in a row: a middlebox that has
                 forgotten or pinned the old flow would drop everything for ever

An outcome is final when the batch of packets that it came with has been worked through. So
`Flag.DUPLICATED` marks a sample whose second answer was read in the same batch as the first; later
ones are counted only. Waiting for them would delay every sample by its timeout.
"""

import random
from array import array
from collections.abc import Sequence
from typing import NamedTuple

from pathbudget.probes import icmp_wire
from pathbudget.probes.channels import Arrival, IcmpBatch, QueuedError
from pathbudget.probes.clock import Reading
from pathbudget.probes.contract import Shot
from pathbudget.probes.deadlines import Deadlines
from pathbudget.probes.failures import from_icmp, timed_out
from pathbudget.probes.icmp_flight import Flight, canonical, failed, measured, measured_simply
from pathbudget.probes.icmp_flows import Flows
from pathbudget.probes.icmp_wire import REPEATED, Echo, QuotedEcho, RequestTemplate, reply_fields
from pathbudget.probes.record import AddressFamily, Failure, FailureKind, Sample, Stage

REMEMBERED_PROBES = 1 << 17
"""How many ended probes are remembered, so that another answer is known as a duplicate."""
_new = tuple.__new__  # what a NamedTuple's own constructor calls in the end
_CORRUPT = Failure(FailureKind.CORRUPT, Stage.PARSE, "damaged payload")


class Outcome(NamedTuple):
    """How a shot ended."""

    series: int
    sample: Sample


class Counted(NamedTuple):
    """Something that is no outcome; series -1 where it cannot be told."""

    series: int
    word: str


Event = Outcome | Counted


class IcmpSession:
    """All echo probes of one address family. See the module for the rules."""

    def __init__(
        self,
        family: AddressFamily,
        rng: random.Random,
        *,
        payload_bytes: int = 56,
        rotate_after: int = 10,
        flows: int = 1,
    ) -> None:
        self.flows = Flows(rng, flows)
        self._family = family
        self._v4 = family is AddressFamily.IPV4
        self._rotate_after = rotate_after
        self._token = rng.getrandbits(64)
        template = RequestTemplate(family, self._token, payload_bytes)
        self._pattern = template.pattern
        self._build = template.build
        self._reply_kind = (icmp_wire.ECHO_REPLY_V4 if self._v4 else icmp_wire.ECHO_REPLY_V6) << 8
        self._whole_bytes = icmp_wire.HEADER_BYTES + payload_bytes
        self._number = 0
        self._flights: dict[int, Flight] = {}
        self._deadlines = Deadlines()
        self._by_key: dict[int, dict[int, Flight]] = {}
        self._done = array("q")
        self._events: list[Event] = []

    @property
    def identifiers_are_ours(self) -> bool:
        """Whether requests leave with our identifiers; an unprivileged socket has its own."""
        return self.flows.identifiers_are_ours

    @identifiers_are_ours.setter
    def identifiers_are_ours(self, ours: bool) -> None:
        self.flows.identifiers_are_ours = ours

    @property
    def message_bytes(self) -> int:
        """Length of a request, with its ICMP header."""
        return self._whole_bytes

    @property
    def under_way(self) -> int:
        """Number of probes without an outcome."""
        return len(self._flights)

    def next_deadline_ns(self) -> int | None:
        """Monotonic time of the next timeout; None where nothing is under way."""
        return self._deadlines.next_ns(self._flights)

    def events(self) -> list[Event]:
        """What has happened since the last call, in order."""
        if not self._events:
            return []
        events, self._events = self._events, []
        return events

    def request(self, shot: Shot, now: Reading) -> tuple[int, bytes]:
        """Begin a probe: its number and the message to send now."""
        return self.request_all((shot,), now)[0]

    def request_all(self, shots: Sequence[Shot], now: Reading) -> list[tuple[int, bytes]]:
        """`request` for each of them, in this order. Paid for each packet, so no calls in between
        that a loop can do without.
        """
        first = number = self._number
        begun: list[tuple[int, bytes]] = []
        flow_of, build, flights = self.flows.of, self._build, self._flights
        for shot in shots:
            flow = flow_of(shot.address, shot.seq)
            message = build(flow.identifier, flow.checksum, number)
            flights[number] = Flight(number, shot, flow, message, now)
            begun.append((number, message))
            number += 1
        self._number = number
        self._deadlines.add_all(shots, first, flights)
        return begun

    def flow_index(self, number: int) -> int:
        """Which of the flows a probe that has just begun belongs to."""
        return self._flights[number].flow.index

    def sent(self, number: int, channel: int, key: int) -> None:
        """The request has been handed to the kernel, on this channel and under this key."""
        flight = self._flights.get(number)
        if flight is not None:
            flight.place = (channel, key)
            keys = self._by_key.get(channel)
            if keys is None:
                keys = self._by_key[channel] = {}
            keys[key] = flight

    def all_sent(
        self, begun: Sequence[tuple[int, bytes]], channel: int, keys: Sequence[int | Failure]
    ) -> list[tuple[int, Failure]]:
        """`sent` for a batch of requests; those that could not be sent, and why."""
        refused: list[tuple[int, Failure]] = []
        by_key = self._by_key.setdefault(channel, {})
        flights = self._flights
        for (number, _), key in zip(begun, keys, strict=True):
            if isinstance(key, int):
                flight = by_key[key] = flights[number]
                flight.place = (channel, key)
            else:
                refused.append((number, key))
        return refused

    def refused(self, number: int, failure: Failure, now: Reading) -> None:
        """The request could not be sent: that is its outcome."""
        flight = self._flights[number]
        self._close(flight, failed(flight, failure, now), timed_out_=False)

    def channel_closed(self, channel: int) -> None:
        """No more stamps come from this channel."""
        self._by_key.pop(channel, None)

    def receive(self, channel: int, batch: IcmpBatch, now: Reading) -> None:
        """Work through what was read at one wake-up of one channel."""
        keys = self._by_key.get(channel)
        if keys:
            take = keys.pop
            for key, kernel_unix_ns in batch.sent:
                flight = take(key, None)
                if flight is not None:
                    flight.kernel_sent_unix_ns = kernel_unix_ns
        answered: list[Flight] = []
        for error in batch.errors:
            self._error_queued(error, answered)
        self._all_arrived(batch.arrivals, answered)
        self._settle_all(answered, now, batch.waited_ns)

    def expire(self, now: Reading) -> None:
        """Time out what is due. Whatever has come must have been given to `receive` before."""
        for flight in self._deadlines.due(now.monotonic_ns, self._flights):
            failure = timed_out(Stage.WAIT, flight.shot.timeout_ns)
            self._time_out(flight, failed(flight, failure, now))

    def _all_arrived(self, arrivals: Sequence[Arrival], answered: list[Flight]) -> None:
        """Look at each message. An undamaged first reply under our identifier is known at once."""
        whole_bytes, kind_of_reply = self._whole_bytes, self._reply_kind
        flights, read, v6 = self._flights, reply_fields, not self._v4
        for arrival in arrivals:
            message = arrival[0]
            if len(message) == whole_bytes:
                kind, checksum, high, low = read(message)
                flight = flights.get(high << 32 | low)
                if (
                    flight is not None
                    and kind == kind_of_reply
                    and flight.answer is None
                    and message[REPEATED:] == flight.message[REPEATED:]
                    and (v6 or checksum == flight.flow.reply_checksum)
                ):
                    flight.answer = (arrival[1], arrival[2], arrival[3], None)
                    answered.append(flight)
                    continue
            self._arrived(arrival, answered)

    def _arrived(self, arrival: Arrival, answered: list[Flight]) -> None:
        """Look at one message that is no such reply."""
        reply = icmp_wire.parse_reply(self._family, arrival.message)
        if reply is not None:
            self._reply(reply, arrival, answered)
            return
        quoted = icmp_wire.parse_error(self._family, arrival.message)
        if quoted is not None:
            self._failed(quoted, arrival.sender, arrival.kernel_unix_ns, answered, checked=False)

    def _error_queued(self, error: QueuedError, answered: list[Flight]) -> None:
        echo = icmp_wire.parse_request(self._family, error.quoted)
        if echo is not None:
            checksum = int.from_bytes(error.quoted[2:4], "big")
            quoted = QuotedEcho(error.icmp_type, error.icmp_code, error.destination, echo, checksum)
            # The kernel gives a socket only errors about its own identifier.
            self._failed(quoted, error.responder, error.kernel_unix_ns, answered, checked=True)

    def _reply(self, reply: Echo, arrival: Arrival, answered: list[Flight]) -> None:
        """A reply that is not simply the one we wait for."""
        secret = icmp_wire.read_secret(reply.payload)
        if secret is None or secret.token != self._token or secret.number >= self._number:
            # A raw socket hears the answers to everybody's requests: those are no concern of ours.
            if self.flows.may_be_ours(reply.identifier):
                self._count(-1, "foreign")
            return
        number = secret.number
        flight = self._flights.get(number)
        whole = reply.payload[icmp_wire.SECRET_BYTES :] == self._pattern
        whole = whole and reply.sequence == number & 0xFFFF
        if self._v4:
            whole = whole and icmp_wire.checksum_holds(arrival.message)
        if flight is not None:
            sent = flight.message[icmp_wire.HEADER_BYTES :]
            whole = whole and icmp_wire.balance_of(reply.payload) == icmp_wire.balance_of(sent)
        if not whole:
            self._count(self._series(number), "corrupt")
        self._take(
            number, arrival.sender, arrival.ttl, arrival.kernel_unix_ns, whole or _CORRUPT, answered
        )

    def _failed(
        self,
        quoted: QuotedEcho,
        responder: str,
        kernel_unix_ns: int | None,
        answered: list[Flight],
        *,
        checked: bool,
    ) -> None:
        """An ICMP error that quotes an echo request; `checked`: under an identifier of ours."""
        meaning = from_icmp(self._family, quoted.icmp_type, quoted.icmp_code, Stage.WAIT)
        if meaning is None:
            return
        number = self._quoted_number(quoted, checked=checked)
        if number is not None:
            self._take(number, responder, None, kernel_unix_ns, meaning, answered)
        elif checked or self.flows.may_be_ours(quoted.echo.identifier):
            self._count(-1, "forged_error")

    def _quoted_number(self, quoted: QuotedEcho, *, checked: bool) -> int | None:
        """Which probe a router speaks of. Where it quotes 8 bytes only, the secret is missing, and
        destination, identifier, sequence and checksum have to be those of a probe under way. IPv6
        routers quote all that fits into 1,280 bytes (RFC 4443 section 2.4), so ours in full.
        """
        secret = icmp_wire.read_secret(quoted.echo.payload)
        if secret is not None:
            ours = secret.token == self._token and secret.number < self._number
            return secret.number if ours else None
        if not self._v4:
            return None
        there = canonical(quoted.destination)
        newest = self._number - 1
        newest -= (newest - quoted.echo.sequence) & 0xFFFF
        oldest = next(iter(self._flights), self._number)
        for number in range(newest, oldest - 1, -0x10000):
            flight = self._flights.get(number)
            if flight is None or flight.flow.address != there:
                continue
            same = flight.flow.identifier == quoted.echo.identifier
            if (checked or same) and quoted.checksum == flight.flow.checksum:
                return number
        return None

    def _take(
        self,
        number: int,
        sender: str,
        ttl: int | None,
        kernel_unix_ns: int | None,
        meaning: Failure | bool,
        answered: list[Flight],
    ) -> None:
        """Keep the first answer to a probe, count the others."""
        flight = self._flights.get(number)
        if flight is None:
            series, timed_out_before = self._ended(number)
            self._count(series, "late" if timed_out_before else "duplicate")
        elif flight.answer is not None:
            flight.duplicated = True
            self._count(flight.shot.series, "duplicate")
        else:
            failure = meaning if isinstance(meaning, Failure) else None
            flight.answer = (sender, ttl, kernel_unix_ns, failure)
            answered.append(flight)

    def _settle_all(self, answered: Sequence[Flight], now: Reading, waited_ns: int) -> None:
        """Turn the answers of probes into their outcomes."""
        if not answered:
            return
        flights, done, ended = self._flights, self._remembered(), self._events.append
        for flight in answered:
            sample = measured_simply(flight, now, waited_ns)
            if sample is None:
                self._settle_with_care(flight, now, waited_ns)
                continue
            flight.flow.losses = 0
            # `_close`, for a probe whose send stamp has come
            number, series = flight.number, flight.shot.series
            del flights[number]
            done[number & (REMEMBERED_PROBES - 1)] = series << 1
            ended(_new(Outcome, (series, sample)))

    def _settle_with_care(self, flight: Flight, now: Reading, waited_ns: int) -> None:
        shot, answer = flight.shot, flight.answer
        assert answer is not None
        sample = measured(flight, answer, now, waited_ns)
        if (sample.value_ns or 0) > shot.timeout_ns:
            self._count(shot.series, "late")
            self._time_out(flight, failed(flight, timed_out(Stage.WAIT, shot.timeout_ns), now))
            return
        sender, _, _, failure = answer
        if failure is None:
            flight.flow.losses = 0
        else:
            same = canonical(sender) == flight.flow.address
            responder = shot.address if same else sender
            sample = failed(flight, failure, now, responder=responder, waited_ns=waited_ns)
        self._close(flight, sample, timed_out_=False)

    def _time_out(self, flight: Flight, sample: Sample) -> None:
        self._close(flight, sample, timed_out_=True)
        flow = flight.flow
        flow.losses += 1
        if flow.losses >= self._rotate_after and self.flows.is_current(flow):
            self.flows.rotate(flow)
            self._count(flight.shot.series, "identifier_rotated")

    def _close(self, flight: Flight, sample: Sample, *, timed_out_: bool) -> None:
        number, series = flight.number, flight.shot.series
        del self._flights[number]
        if flight.kernel_sent_unix_ns is None and flight.place is not None:
            channel, key = flight.place
            self._by_key.get(channel, {}).pop(key, None)
        self._remembered()[number & (REMEMBERED_PROBES - 1)] = series << 1 | timed_out_
        self._events.append(_new(Outcome, (series, sample)))

    def _remembered(self) -> "array[int]":
        if not self._done:
            self._done = array("q", bytes(8 * REMEMBERED_PROBES))
        return self._done

    def _ended(self, number: int) -> tuple[int, bool]:
        """Series of a probe that has ended, and whether it timed out; -1 where forgotten."""
        if not self._done or number < self._number - REMEMBERED_PROBES:
            return -1, True
        series, timed_out_before = divmod(self._done[number & (REMEMBERED_PROBES - 1)], 2)
        return series, bool(timed_out_before)

    def _series(self, number: int) -> int:
        flight = self._flights.get(number)
        return self._ended(number)[0] if flight is None else flight.shot.series

    def _count(self, series: int, word: str) -> None:
        self._events.append(Counted(series, word))
