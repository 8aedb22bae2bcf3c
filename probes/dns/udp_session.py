"""Questions over UDP: datagrams out, answers in, nothing lost. Bytes and `now` in, events out.

Every question ends in exactly one sample. An answer comes from who was asked, under our number, and
carries our question back (`answers.refuse`). What is no outcome is counted:

    foreign       from an address and port that was not asked
    forged        from one that was, but under another number or with another question
    case_changed  our question, but not with our mixture of letters (option mixed_case)
    corrupt       nothing that could be an answer
    duplicate     another answer to a question that has its outcome
    late          an answer after the deadline; the question stays a timeout
    forged_error, unverifiable_error   ICMP errors that do not quote our question, or too little

Nothing is repeated unless the user says so, and then the number says so (`Flag.RETRIED`).
"""

import random

from pathbudget.probes.carriers import Moment
from pathbudget.probes.channels import Datagram, DatagramBatch, QueuedError
from pathbudget.probes.clock import Reading, step_between
from pathbudget.probes.contract import Shot
from pathbudget.probes.dns.answers import Answer, is_truncated, read_answer, refuse
from pathbudget.probes.dns.caches import UNSURE, Caches
from pathbudget.probes.dns.events import Counted, Event, Outcome
from pathbudget.probes.dns.measured import failed, measured, question_span
from pathbudget.probes.dns.questions import HEADER_BYTES, Question, QuestionTemplate
from pathbudget.probes.dns.settings import DnsSettings
from pathbudget.probes.dns.udp_flights import Flight, FlightTable, Sending, Server, Step
from pathbudget.probes.failures import from_icmp, timed_out
from pathbudget.probes.icmp_flight import canonical
from pathbudget.probes.record import (
    AddressFamily,
    Failure,
    FailureKind,
    Flag,
    Metric,
    Note,
    Sample,
    Stage,
)

_TOO_MANY = Failure(FailureKind.LOCAL, Stage.SEND, "too many questions under way to one server")
_CUT_AGAIN = Failure(FailureKind.PROTOCOL, Stage.WAIT, "the answer over TCP is truncated too")
_CASE_HINT = "an answer had other capitals than our question: mixed_case = false takes it"


class UdpSession:
    """All questions of one address family. See the module for the rules."""

    def __init__(
        self,
        family: AddressFamily,
        settings: DnsSettings,
        rng: random.Random,
        caches: Caches,
        local_port: int | None = None,
    ) -> None:
        self.local_port = local_port
        self._family = family
        self._settings = settings
        self._hit = QuestionTemplate(settings, rng, fresh=False)
        self._miss = QuestionTemplate(settings, rng, fresh=True) if settings.zone else None
        self._caches = caches
        self._table = FlightTable(rng)
        self._events: list[Event] = []
        self._outgoing: list[Flight] = []
        self._cut_short: list[Flight] = []
        self._addresses: dict[str, str] = {}

    @property
    def under_way(self) -> int:
        """Number of questions without an outcome."""
        return self._table.under_way

    def next_alarm_ns(self) -> int | None:
        """Monotonic time at which `expire` has something to do; None where nothing is under way."""
        return self._table.next_alarm_ns()

    def events(self) -> list[Event]:
        """What has happened since the last call, in order."""
        events, self._events = self._events, []
        return events

    def outgoing(self) -> list[Flight]:
        """Whose question is to be sent now; `send` each of them."""
        flights, self._outgoing = self._outgoing, []
        return [one for one in flights if not one.done]

    def cut_short(self) -> list[Flight]:
        """Who is to be asked again over TCP; tell `whole` or `broke` what came of it."""
        flights, self._cut_short = self._cut_short, []
        return [one for one in flights if not one.done]

    def begin(self, shot: Shot, now: Reading) -> None:
        """The question of a shot for the name at hand, and the one for a new name."""
        server = Server(self._canonical(shot.address), shot.target.port or self._settings.port)
        ready = self._caches.at_hand(server, now.monotonic_ns)
        self._begin(Flight(shot, Metric.DNS_HIT, server, Step.ASK if ready else Step.PRIME, now))
        if self._miss is not None:
            self._begin(Flight(shot, Metric.DNS_MISS, server, Step.ASK, now))

    def send(self, flight: Flight, now: Reading) -> Sending | None:
        """The datagram to send now; tell `sent` or `refused`. None where there is none to send."""
        number = self._table.free_identifier(flight.server)
        if number is None:
            self._fail(flight, _TOO_MANY, now)
            return None
        sending = Sending(flight, flight.step, self.question(flight, number), now)
        self._table.add(sending)
        if len(flight.of_step()) <= self._settings.retries:
            due_ns = now.monotonic_ns + self._settings.retry_ns
            self._table.alarm(due_ns, flight, len(flight.sendings))
        return sending

    def question(self, flight: Flight, identifier: int) -> Question:
        """The question of a flight; a repeated one is for the same name."""
        if flight.metric == Metric.DNS_HIT or self._miss is None:
            return self._hit.question(identifier)
        before = flight.sendings[0].question if flight.sendings else None
        return self._miss.question(identifier, before)

    def sent(self, sending: Sending, key: int) -> None:
        """It has been handed to the kernel under this key."""
        self._table.keyed(sending, key)

    def refused(self, flight: Flight, failure: Failure, now: Reading) -> None:
        """It could not be sent: that is the outcome."""
        if not flight.done:
            self._fail(flight, failure, now)

    def receive(self, batch: DatagramBatch, now: Reading) -> None:
        """Work through what was read at one wake-up."""
        for key, kernel_unix_ns in batch.sent:
            self._table.stamped(key, kernel_unix_ns)
        for error in batch.errors:
            self._error_queued(error, now)
        answered: dict[int, tuple[Sending, Datagram]] = {}
        for datagram in batch.arrivals:
            sending = self._arrived(datagram)
            if sending is None:
                continue
            flight = sending.flight
            if id(flight) in answered:
                flight.duplicated = True
                self._count(flight.shot.series, "duplicate")
            else:
                answered[id(flight)] = (sending, datagram)
        for sending, datagram in answered.values():
            self._settle(sending, datagram, now)

    def whole(self, flight: Flight, wire: bytes, answered: Moment, question: Question) -> None:
        """The answer over TCP to what was cut short over UDP is there."""
        if flight.done:
            return
        word = refuse(question, wire)
        if word is None and is_truncated(wire):
            self._fail(flight, _CUT_AGAIN, answered.reading)
            return
        if word is not None:
            self._count(flight.shot.series, word)
            failure = Failure(FailureKind.CORRUPT, Stage.PARSE, f"{word} answer over TCP")
            self._fail(flight, failure, answered.reading)
            return
        assert flight.truncated is not None
        cut_ns = question_span(flight.asked, flight.truncated).value_ns
        # What is left of the whole, so that both parts are by the stamps of the value.
        again_ns = max(0, question_span(flight.asked, answered).value_ns - cut_ns)
        notes: dict[str, Note] = {"udp_us": cut_ns // 1_000, "tcp_us": again_ns // 1_000}
        self._outcome(flight, wire, answered, None, notes)

    def broke(self, flight: Flight, failure: Failure, now: Reading) -> None:
        """The whole answer is not to be had over TCP."""
        if not flight.done:
            self._fail(flight, failure, now)

    def expire(self, now: Reading) -> None:
        """Give up or repeat what is due. Whatever has come must have been given to `receive`."""
        while (due := self._table.take_due(now.monotonic_ns)) is not None:
            flight, sent = due
            if sent == 0:
                self._time_out(flight, now)
            elif flight.truncated is None and len(flight.sendings) == sent:
                self._outgoing.append(flight)

    def _begin(self, flight: Flight) -> None:
        self._table.begin(flight)
        self._outgoing.append(flight)

    def _canonical(self, address: str) -> str:
        known = self._addresses.get(address)
        if known is None:
            known = self._addresses[address] = canonical(address)
        return known

    def _arrived(self, datagram: Datagram) -> Sending | None:
        """The question that a datagram answers; what is no answer is counted."""
        wire, port = datagram.payload, datagram.sender_port
        sender = datagram.sender.partition("%")[0]
        if port not in self._table.ports.get(sender, ()):
            self._count(-1, "foreign")
            return None
        if len(wire) < HEADER_BYTES:
            self._count(-1, "corrupt")
            return None
        sending = self._table.find(sender, port, int.from_bytes(wire[:2], "big"))
        if sending is None:
            self._count(-1, "forged")
            return None
        flight = sending.flight
        word = refuse(sending.question, wire)
        if word is None and flight.done:
            word = "late" if flight.timed_out else "duplicate"
        elif word is None and (flight.truncated is not None or sending.step is not flight.step):
            word = "duplicate"
        if word is not None:
            flight.case_changed = flight.case_changed or word == "case_changed"
            self._count(flight.shot.series, word)
            return None
        return sending

    def _settle(self, sending: Sending, datagram: Datagram, now: Reading) -> None:
        flight, answered = sending.flight, Moment(now, datagram.kernel_unix_ns)
        if flight.done:
            return
        if not is_truncated(datagram.payload):
            copies = flight.of_step()
            notes: dict[str, Note] = {}
            if len(copies) > 1:
                notes = {"asked": len(copies), "answered": copies.index(sending) + 1}
            self._outcome(flight, datagram.payload, answered, datagram.ttl, notes)
        elif flight.step is Step.PRIME:
            self._ask(flight)
        else:
            flight.truncated = answered
            self._cut_short.append(flight)

    def _outcome(
        self,
        flight: Flight,
        wire: bytes,
        answered: Moment,
        ttl: int | None,
        notes: dict[str, Note],
    ) -> None:
        answer = read_answer(wire)
        now_ns = answered.reading.monotonic_ns
        if isinstance(answer, Failure):
            self._count(flight.shot.series, "corrupt")
            self._fail(flight, answer, answered.reading, answered)
        elif answer.failure is not None:
            said = answer.notes(dnssec=self._settings.dnssec) | notes
            self._fail(flight, answer.failure, answered.reading, answered, said)
        elif flight.step is Step.PRIME:
            self._caches.primed(flight.server, answer, now_ns)
            self._ask(flight)
        elif question_span(flight.asked, answered).value_ns > flight.shot.timeout_ns:
            self._count(flight.shot.series, "late")
            self._time_out(flight, answered.reading)
        else:
            self._measure(flight, answer, answered, ttl, notes)

    def _ask(self, flight: Flight) -> None:
        """The server has the name at hand now."""
        flight.step = Step.ASK
        self._outgoing.append(flight)

    def _measure(
        self,
        flight: Flight,
        answer: Answer,
        answered: Moment,
        ttl: int | None,
        notes: dict[str, Note],
    ) -> None:
        said = answer.notes(dnssec=self._settings.dnssec) | notes
        if flight.metric == Metric.DNS_HIT:
            cache = self._caches.hit(flight.server, answer, answered.reading.monotonic_ns)
        else:
            cache = self._caches.miss(flight.server, answer)
        if cache:
            said["cache"] = cache
        marks = (
            (Flag.DUPLICATED, flight.duplicated),
            (Flag.TRUNCATED, flight.truncated is not None),
            (Flag.RETRIED, len(flight.of_step()) > 1),
            (Flag.LOW_CONFIDENCE, cache in UNSURE),
        )
        sample = measured(
            flight.shot,
            flight.metric,
            flight.asked,
            answered,
            flags=[flag for flag, holds in marks if holds],
            notes=said,
            late_ns=self._late_ns(flight),
            flow=self.local_port,
            ttl=ttl,
        )
        self._end(flight, sample, answered.reading)

    def _late_ns(self, flight: Flight) -> int | None:
        """How late the first datagram of a shot left: what came before is no lateness of ours."""
        due_ns, sent = flight.shot.due_ns, flight.sendings
        return None if due_ns is None or not sent else sent[0].read.monotonic_ns - due_ns

    def _time_out(self, flight: Flight, now: Reading) -> None:
        flight.timed_out = True
        failure = timed_out(Stage.WAIT, flight.shot.timeout_ns)
        where = ""
        if flight.truncated is not None:
            where = "over TCP, after a truncated answer"
        elif flight.case_changed:
            where = _CASE_HINT
        elif flight.step is Step.PRIME:
            where = "to the question before the measured one"
        if where:
            failure = Failure(failure.kind, failure.stage, f"{failure.detail}: {where}")
        self._fail(flight, failure, now)

    def _fail(
        self,
        flight: Flight,
        failure: Failure,
        now: Reading,
        answered: Moment | None = None,
        notes: dict[str, Note] | None = None,
        responder: str | None = None,
    ) -> None:
        if answered is not None and step_between(flight.asked.reading, answered.reading):
            answered = None
        sample = failed(
            flight.shot,
            flight.metric,
            flight.asked,
            failure,
            answered=answered,
            notes=notes,
            late_ns=self._late_ns(flight),
            flow=self.local_port,
            responder=responder,
        )
        self._end(flight, sample, now)

    def _end(self, flight: Flight, sample: Sample, now: Reading) -> None:
        self._events.append(Outcome(flight.shot.series, sample))
        self._table.end(flight, now.monotonic_ns)

    def _error_queued(self, error: QueuedError, now: Reading) -> None:
        failure = from_icmp(self._family, error.icmp_type, error.icmp_code, Stage.WAIT)
        if failure is None:
            return
        if len(error.quoted) < HEADER_BYTES:
            self._count(-1, "unverifiable_error")
            return
        sending = self._quoted(error)
        if sending is None:
            self._count(-1, "forged_error")
        elif not sending.flight.done and sending.step is sending.flight.step:
            there = error.responder or None
            responder = None if there == sending.flight.server.address else there
            self._fail(sending.flight, failure, now, responder=responder)

    def _quoted(self, error: QueuedError) -> Sending | None:
        """The datagram of ours that a router quotes."""
        address, number = canonical(error.destination), int.from_bytes(error.quoted[:2], "big")
        for port in self._table.ports.get(address, ()):
            sending = self._table.find(address, port, number)
            if sending is not None:
                wire = sending.question.wire
                length = min(len(wire), len(error.quoted))
                if wire[:length] == error.quoted[:length]:
                    return sending
        return None

    def _count(self, series: int, word: str) -> None:
        self._events.append(Counted(series, word))
