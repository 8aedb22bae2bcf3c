"""One shot that asks for a streamed answer: connection, request, chunks, end; one deadline.

Every shot emits its set-up phases as they stand, and at its end the rest: exactly one sample of the
primary metric `ttft`, whatever happens and whenever the deadline strikes.
"""

from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import NamedTuple

import msgspec

from pathbudget.probes.carriers import Moment, Opened, Phase, Request
from pathbudget.probes.channels import Cancellable
from pathbudget.probes.clock import StampedInterval
from pathbudget.probes.contract import Shot
from pathbudget.probes.failures import timed_out
from pathbudget.probes.record import (
    ClockSource,
    ConnectionMode,
    Failure,
    FailureKind,
    Metric,
    Note,
    Sample,
    Stage,
)
from pathbudget.probes.stream.connections import HeldConnection
from pathbudget.probes.stream.lines import StreamFormatError
from pathbudget.probes.stream.samples import missing, timed, valued
from pathbudget.probes.stream.shots import Shared

OK = 200
OPENING_GRACE_NS = 20_000_000
"""A dialer has the same deadline, and knows better which step it was in: it speaks first."""
ANSWER_BYTES = 2_048
"""How much of an answer that is no stream is read, to say what it said."""


class Arrived(NamedTuple):
    """One chunk: the moment of the packet that completed it. `joined` says that the chunk before it
    came in the same read: when it really came cannot be told.
    """

    moment: Moment
    joined: bool


class Ending(Enum):
    """What becomes of the connection of a shot that ends."""

    ABANDON = auto()
    GIVE_BACK = auto()


class StreamAttempt:
    """One shot, from `begin` on. An `AnswerListener`, and the user of one connection.

    A probe says what it asks for (`request`), reads the body (`read`, `check_whole`) and adds its
    samples at the end (`emit_chunks`, `summary`).
    """

    extra_ns = 0
    """How much longer than the timeout of its shot it may take: the length of what is asked for."""

    def __init__(self, shared: Shared, shot: Shot) -> None:
        self._shared = shared
        self._shot = shot
        self._mode: ConnectionMode | None = None
        self._held: HeldConnection | None = None
        self._began = Moment(shared.watcher.read())
        self._asked = self._began
        self._left: tuple[Moment, Moment] | None = None
        self._head: Moment | None = None
        self._status = 0
        self._refusal = bytearray()
        self._whole: Moment | None = None
        self._notes: dict[str, Note] = {}
        self.arrived: list[Arrived] = []
        self._last_read: Moment | None = None
        self._over = False
        self.concurrency = len(shared.running) + 1
        self._second_alarm: Cancellable | None = None
        self._alarm = self._alarm_after(shot.timeout_ns + OPENING_GRACE_NS)

    def begin(self) -> None:
        """Take a connection, or dial."""
        port = self._shared.port_of(self._shot)
        held = self._shared.connections.idle(self._shot, port, self)
        if held is not None:
            self._mode = ConnectionMode.WARM
            self._use(held)
            self._add_setup(StampedInterval(0, ClockSource.KERNEL), ())
            self._send()
            return
        early = (self.request(), self) if self._shared.early else None
        held = self._shared.connections.dial(self._shot, port, self, early)
        if self._over:
            held.abandon()
            return
        self._use(held)
        if self._mode is not None:
            self._send()  # it stood at once

    def abandon(self) -> None:
        """Drop it without a sample."""
        self._over = True
        self._close(Ending.ABANDON)

    # for a probe

    @property
    def over(self) -> bool:
        """It has ended."""
        return self._over

    @property
    def authority(self) -> str:
        """Host and port, as a request names them."""
        target = self._shot.target
        host = target.server_name or target.host
        port = self._shared.port_of(self._shot)
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    def request(self) -> Request:
        """What is asked for."""
        raise NotImplementedError

    def accepts(self, headers: tuple[tuple[str, str], ...]) -> Failure | None:
        """What is wrong with the headers of an answer with status 200."""
        del headers
        return None

    def read(self, data: bytes, moment: Moment) -> None:
        """Take a piece of the body; `chunk_came` for each chunk. May raise StreamFormatError."""
        raise NotImplementedError

    def check_whole(self) -> Failure | None:
        """What is wrong with an answer that has ended in good order."""
        return None

    def summary(self) -> Mapping[str, Note]:
        """Notes of the primary sample."""
        return {}

    def emit_chunks(self, failure: Failure | None) -> None:
        """Emit the samples of the chunks; `failure` says why those after them are missing."""

    def chunk_came(self, moment: Moment) -> None:
        """A chunk is complete."""
        joined = self._last_read is moment
        self._last_read = moment
        if self.arrived and not joined:
            before = self.arrived[-1].moment.kernel_unix_ns
            joined = before is not None and before == moment.kernel_unix_ns
        self.arrived.append(Arrived(moment, joined))

    def refusal_text(self, said: bytes) -> str:
        """What an answer that is no stream says, for a person."""
        return " ".join(said.decode("utf-8", "replace").split())[:200]

    def give_up(self, failure: Failure) -> None:
        """End it now, with a failure."""
        self._finish(failure)

    def set_deadline(self, since: Moment, span_ns: int, late: Callable[[], None]) -> None:
        """Call `late` where `clear_deadline` was not called until then."""
        self.clear_deadline()
        left_later_ns = max(0, since.unix_ns - since.reading.unix_ns)
        due = since.reading.monotonic_ns + min(left_later_ns, span_ns) + span_ns
        self._second_alarm = self._shared.environment.network.call_at(due, late)

    def clear_deadline(self) -> None:
        """What was waited for has come."""
        if self._second_alarm is not None:
            self._second_alarm.cancel()
            self._second_alarm = None

    # ConnectionUser

    def opened(self, opened: Opened) -> None:
        """See `carriers.OpeningListener.opened`."""
        if self._over:
            return
        self._mode = opened.mode
        self._notes |= opened.notes
        self._emit_phases(opened.phases)
        self._emit_phases(opened.beside)
        flags = tuple(dict.fromkeys(flag for phase in opened.phases for flag in phase.flags))
        self._add_setup(opened.setup, flags)
        if self._held is not None:
            self._send()

    def not_opened(self, metric: str, failure: Failure, done: tuple[Phase, ...]) -> None:
        """See `carriers.OpeningListener.failed`."""
        if self._over:
            return
        if self._mode is None:
            self._emit_phases(done)
            self._emit_missing(metric, failure)
            if metric != Metric.SETUP:
                self._emit_missing(Metric.SETUP, failure)
        self._finish(failure)

    # AnswerListener

    def left(self, first: Moment, last: Moment) -> None:
        """See `carriers.AnswerListener.left`."""
        self._left = (first, last)

    def acknowledged(self, moment: Moment) -> None:
        """See `carriers.AnswerListener.acknowledged`."""

    def head(self, status: int, headers: tuple[tuple[str, str], ...], moment: Moment) -> None:
        """See `carriers.AnswerListener.head`."""
        if self._over:
            return
        self._head, self._status = moment, status
        if status == OK and (failure := self.accepts(headers)) is not None:
            self._finish(failure)

    def body(self, data: bytes, moment: Moment) -> None:
        """See `carriers.AnswerListener.body`."""
        if self._over:
            return
        if self._status != OK:
            self._refusal += data[: ANSWER_BYTES - len(self._refusal)]
            return
        try:
            self.read(data, moment)
        except StreamFormatError as error:
            self._finish(Failure(FailureKind.PROTOCOL, Stage.PARSE, detail=str(error)))

    def complete(self, moment: Moment, notes: Mapping[str, Note]) -> None:
        """See `carriers.AnswerListener.complete`."""
        if self._over:
            return
        self._whole = moment
        self._notes |= notes
        if self._status != OK:
            self._finish(self._refused(), Ending.GIVE_BACK)
            return
        self._finish(self.check_whole(), Ending.GIVE_BACK)

    def failed(self, failure: Failure) -> None:
        """See `carriers.AnswerListener.failed`."""
        self._finish(failure)

    # Steps

    def _use(self, held: HeldConnection) -> None:
        self._held = held
        opened = held.opened_as
        if opened is not None:
            self._know(opened)

    def _know(self, opened: Opened) -> None:
        """What is known of the connection, whoever opened it."""
        phases = {phase.metric: phase for phase in opened.phases}
        connect = phases.get(Metric.CONNECT) or phases.get(Metric.QUIC_HANDSHAKE)
        if connect is not None and not connect.flags:
            self._notes[f"{connect.metric}_us"] = connect.span.value_ns // 1_000
        age_ns = self._began.reading.monotonic_ns - opened.began.reading.monotonic_ns
        if self._mode is ConnectionMode.WARM:
            self._notes["connection_age_ms"] = age_ns // 1_000_000

    def _send(self) -> None:
        assert self._held is not None
        assert self._held.connection is not None
        if self._held.opened_as is not None:
            self._know(self._held.opened_as)
        self._alarm.cancel()
        self._alarm = self._alarm_after(self._shot.timeout_ns + self.extra_ns)
        if self._shared.early and self._mode is not ConnectionMode.WARM:
            return  # it leaves, or has left, by itself
        request = self.request()
        self._asked = Moment(self._shared.watcher.read())
        self._held.connection.request(request, self)

    def _alarm_after(self, span_ns: int) -> Cancellable:
        due = self._began.reading.monotonic_ns + span_ns
        return self._shared.environment.network.call_at(due, self._expire)

    def _expire(self) -> None:
        stage = Stage.CONNECT if self._mode is None else Stage.WAIT
        failure = timed_out(stage, self._shot.timeout_ns + self.extra_ns)
        if self._mode is None:
            self._emit_missing(Metric.SETUP, failure)
        self._finish(failure)

    def _refused(self) -> Failure:
        said = self.refusal_text(bytes(self._refusal))
        detail = f"status {self._status}" + (f": {said}" if said else "")
        return Failure(FailureKind.STATUS, Stage.WAIT, detail=detail)

    def _finish(self, failure: Failure | None, ending: Ending = Ending.ABANDON) -> None:
        """Emit what is known, once."""
        if self._over:
            return
        self._over = True
        asked = (self._asked, self._asked) if self._left is None else self._left
        if self._left is not None:
            self._emit(timed(self._shot, Metric.SEND, *asked, mode=self._mode))
        if self._head is not None:
            self._emit_timed(Metric.TTFB, asked[0], self._head)
        self._emit_primary(asked[1], failure)
        self.emit_chunks(failure)
        if self._whole is not None and self._head is not None:
            self._emit_timed(Metric.RECEIVE, self._head, self._whole)
        self._close(ending)

    def _emit_primary(self, asked: Moment, failure: Failure | None) -> None:
        notes = {**self._notes, **self.summary(), "concurrency": self.concurrency}
        if failure is not None and self.arrived:
            notes["ended"] = f"{failure.kind}: {failure.detail}"
        if self.arrived:
            first = self.arrived[0].moment
            self._emit_timed(Metric.TTFT, asked, first, notes)
            return
        failure = failure or Failure(
            FailureKind.PROTOCOL, Stage.PARSE, detail="the answer holds nothing that was asked for"
        )
        self._emit_missing(Metric.TTFT, failure, notes)

    def _emit_timed(
        self, metric: str, first: Moment, last: Moment, notes: Mapping[str, Note] | None = None
    ) -> None:
        self._emit(timed(self._shot, metric, first, last, mode=self._mode, notes=notes))

    def _add_setup(self, span: StampedInterval, flags: tuple[str, ...]) -> None:
        began = self._began.unix_ns
        self._emit(valued(self._shot, Metric.SETUP, began, span, mode=self._mode, flags=flags))

    def _emit_phases(self, phases: tuple[Phase, ...]) -> None:
        for phase in phases:
            self._emit(
                valued(
                    self._shot,
                    phase.metric,
                    phase.began.unix_ns,
                    phase.span,
                    mode=self._mode,
                    flags=phase.flags,
                )
            )

    def _emit_missing(
        self, metric: str, failure: Failure, notes: Mapping[str, Note] | None = None
    ) -> None:
        began = self._asked.unix_ns
        self._emit(missing(self._shot, metric, began, failure, mode=self._mode, notes=notes))

    def _emit(self, sample: Sample) -> None:
        marks = self._shared.marks
        if marks:
            flags = tuple(dict.fromkeys((*marks, *sample.flags)))
            sample = msgspec.structs.replace(sample, flags=flags)
        self._shared.environment.emit(self._shot.series, sample)

    def _close(self, ending: Ending) -> None:
        self._alarm.cancel()
        self.clear_deadline()
        held, self._held = self._held, None
        if held is not None:
            if ending is Ending.GIVE_BACK:
                self._shared.connections.give_back(held)
            else:
                held.abandon()
        self._shared.leave(self)
