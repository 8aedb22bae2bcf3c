"""One shot over a connection: prime the server where need be, open, ask, and ask for a new name.

Each question has a connection of its own, so that `mode` says in which state the connection of
every question was. The one for a new name begins when the one for the name at hand has ended: two
handshakes at once would share the processor of the server. Whatever happens, a shot emits one
`setup` and one sample per question.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum

import msgspec

from pathbudget.probes.carriers import Moment, Opened, Phase
from pathbudget.probes.channels import Cancellable
from pathbudget.probes.clock import ClockWatcher, StampedInterval
from pathbudget.probes.contract import ProbeEnvironment, Shot
from pathbudget.probes.dns.answers import Answer, is_truncated, read_answer, refuse
from pathbudget.probes.dns.caches import UNSURE, Caches
from pathbudget.probes.dns.idle_links import IdleLinks
from pathbudget.probes.dns.links import Link, LinkDialer
from pathbudget.probes.dns.measured import failed, measured
from pathbudget.probes.dns.questions import Question, QuestionTemplate
from pathbudget.probes.dns.settings import DnsSettings
from pathbudget.probes.dns.udp_flights import Server
from pathbudget.probes.failures import timed_out
from pathbudget.probes.record import (
    ClockSource,
    ConnectionMode,
    Failure,
    FailureKind,
    Flag,
    Metric,
    Note,
    Sample,
    Stage,
)
from pathbudget.probes.tcp_stamps import lateness_of

MOST_STRAY = 64
"""So many messages that answer nothing are read from one connection."""
_STRAY = Failure(FailureKind.PROTOCOL, Stage.WAIT, f"{MOST_STRAY} messages that answer nothing")


@dataclass(slots=True)
class Shared:
    """What all questions over connections share."""

    environment: ProbeEnvironment
    watcher: ClockWatcher
    settings: DnsSettings
    dialer: LinkDialer
    caches: Caches
    hit: QuestionTemplate
    miss: QuestionTemplate | None
    marks: tuple[str, ...] = ()
    """Flags of every set-up, as where no certificate is checked."""
    idle: IdleLinks = field(default_factory=IdleLinks)


class Step(Enum):
    """What an asking is at."""

    PRIME = "prime"
    OPEN = "open"
    ASK = "ask"


class Asking:
    """One question of one shot, from `begin` to the call of `ended`. A `links.LinkListener`."""

    def __init__(
        self,
        shared: Shared,
        shot: Shot,
        metric: str,
        ended: "Callable[[Asking], None]",
    ) -> None:
        self._shared = shared
        self._shot = (
            shot if metric == Metric.DNS_HIT else msgspec.structs.replace(shot, due_ns=None)
        )
        self.shot = shot
        self.metric = metric
        self._ended = ended
        self._server = Server(shot.address, shot.target.port or shared.settings.port)
        self._began = shared.watcher.read()
        self._late_ns = lateness_of(self._shot, self._began)
        self._step = Step.OPEN
        self._link: Link | None = None
        self._mode: ConnectionMode | None = None
        self._question: Question | None = None
        self._asked = Moment(self._began)
        self._opened = False
        self._strays = self._dials = 0
        self._over = False
        self._alarm: Cancellable | None = None

    def begin(self) -> None:
        """Start with the first step."""
        due_ns = self._began.monotonic_ns + self._shot.timeout_ns
        self._alarm = self._shared.environment.network.call_at(due_ns, self._expire)
        hit = self.metric == Metric.DNS_HIT
        if hit and not self._shared.caches.at_hand(self._server, self._began.monotonic_ns):
            self._step = Step.PRIME
            self._dial()
        else:
            self._open()

    def abandon(self) -> None:
        """Drop everything, without a sample."""
        self._close_with(lambda link: link.abandon())

    # LinkListener

    def opened(self, opened: Opened) -> None:
        """See `carriers.OpeningListener.opened`."""
        if self._step is not Step.PRIME:
            self._opened = True
            self._mode = opened.mode
            if self.metric == Metric.DNS_HIT:
                self._emit_setup(opened)
        if self._step is Step.OPEN and self._question is not None:
            self._step = Step.ASK  # it has left with the first flight
        else:
            self._ask()

    def failed(self, metric: str, failure: Failure, done: tuple[Phase, ...]) -> None:
        """See `carriers.OpeningListener.failed`."""
        if self._step is Step.PRIME:
            self._give_up_priming()
            return
        if self.metric == Metric.DNS_HIT:
            for phase in done:
                self._emit_phase(phase, None)
            if metric != Metric.SETUP:
                self._emit(failed(self._shot, metric, Moment(self._began), failure))
        self._fail(failure)

    def broke(self, failure: Failure) -> None:
        """See `links.LinkListener.broke`."""
        if self._step is Step.PRIME:
            self._give_up_priming()
        else:
            self._fail(failure)

    def asked(self, moment: Moment) -> None:
        """See `links.LinkListener.asked`."""
        self._asked = moment

    def answered(self, wire: bytes, moment: Moment) -> None:
        """See `links.LinkListener.answered`."""
        if self._question is None or self._over:
            return
        word = refuse(self._question, wire)
        if word is not None:
            self._shared.environment.count(self._shot.series, word)
            self._strays += 1
            if self._strays >= MOST_STRAY:
                self._fail(_STRAY)
            return
        answer = read_answer(wire)
        if self._step is Step.PRIME:
            self._primed(answer, moment)
        elif isinstance(answer, Failure):
            self._fail(answer)
        elif is_truncated(wire):
            failure = Failure(FailureKind.PROTOCOL, Stage.WAIT, "truncated over a connection")
            self._fail(failure, answer, moment)
        elif answer.failure is not None:
            self._fail(answer.failure, answer, moment)
        else:
            self._measure(answer, moment)

    # Steps

    def _primed(self, answer: Answer | Failure, moment: Moment) -> None:
        if isinstance(answer, Answer) and answer.failure is None:
            self._shared.caches.primed(self._server, answer, moment.reading.monotonic_ns)
        self._let_go()
        self._open()

    def _give_up_priming(self) -> None:
        """Whatever is wrong, the measured connection and question will tell."""
        link, self._link = self._link, None
        if link is not None:
            link.abandon()
        self._open()

    def _open(self) -> None:
        self._step, self._question = Step.OPEN, None
        shared = self._shared
        warm = shared.idle.take(self._server) if shared.settings.mode == "warm" else None
        if warm is None:
            self._dial(early=shared.settings.mode == "early_data")
            return
        self._link = warm
        warm.listen(self)
        self._mode, self._opened = ConnectionMode.WARM, True
        if self.metric == Metric.DNS_HIT:
            self._emit_warm_setup()
        self._ask()

    def _dial(self, *, early: bool = False) -> None:
        dialer, early_wire = self._shared.dialer, b""
        if early:
            self._question = self._make_question()
            early_wire = self._question.wire
        self._opened = False
        self._dials += 1
        shot, this_one = self._shot, self._dials
        if self._step is Step.PRIME:
            shot = msgspec.structs.replace(shot, resolve=False)
        link = dialer.dial(shot, self, early_wire)
        if self._over or self._dials != this_one:
            link.abandon()  # it has failed at once, and been dealt with
        else:
            self._link = link

    def _make_question(self) -> Question:
        shared = self._shared
        fresh = self.metric == Metric.DNS_MISS and shared.miss is not None
        template = shared.miss if fresh and shared.miss is not None else shared.hit
        number = shared.environment.rng.randrange(1 << 16) if shared.dialer.identifiers else 0
        return template.question(number)

    def _ask(self) -> None:
        if self._step is Step.OPEN:
            self._step = Step.ASK
        self._question = self._make_question()
        assert self._link is not None
        self._link.ask(self._question.wire)

    def _let_go(self) -> None:
        """The connection has served: keep it warm, or end it in good order."""
        link, self._link = self._link, None
        if link is None:
            return
        if self._shared.settings.mode == "warm" and link.usable:
            self._shared.idle.keep(self._server, link)
        else:
            link.close()

    def _expire(self) -> None:
        failure = timed_out(Stage.WAIT, self._shot.timeout_ns)
        if self._step is Step.PRIME:
            where = f"{failure.detail}: to the question before the measured one"
            failure = Failure(failure.kind, failure.stage, where)
        elif not self._opened:
            failure = timed_out(Stage.HANDSHAKE, self._shot.timeout_ns)
        self._fail(failure)

    # Samples

    def _measure(self, answer: Answer, moment: Moment) -> None:
        shared = self._shared
        said = answer.notes(dnssec=shared.settings.dnssec)
        if self.metric == Metric.DNS_HIT:
            now_ns = moment.reading.monotonic_ns
            cache = shared.caches.hit(self._server, answer, now_ns)
        else:
            cache = shared.caches.miss(self._server, answer)
        if cache:
            said["cache"] = cache
        flags = [*shared.marks, *((Flag.LOW_CONFIDENCE,) if cache in UNSURE else ())]
        sample = measured(
            self._shot,
            self.metric,
            self._asked,
            moment,
            flags=flags,
            notes=said,
            late_ns=self._late_ns,
            mode=self._mode,
        )
        self._let_go()
        self._finish(sample)

    def _fail(
        self, failure: Failure, answer: Answer | None = None, moment: Moment | None = None
    ) -> None:
        if self._over:
            return
        if not self._opened and self.metric == Metric.DNS_HIT:
            began = Moment(self._began)
            self._emit(failed(self._shot, Metric.SETUP, began, failure, late_ns=self._late_ns))
        dnssec = self._shared.settings.dnssec
        sample = failed(
            self._shot,
            self.metric,
            self._asked,
            failure,
            answered=moment,
            notes=None if answer is None else answer.notes(dnssec=dnssec),
            late_ns=self._late_ns,
            mode=self._mode,
        )
        if answer is not None:
            self._let_go()
        self._finish(sample)

    def _emit_setup(self, opened: Opened) -> None:
        for phase in (*opened.phases, *opened.beside):
            self._emit_phase(phase, opened.mode)
        flags = dict.fromkeys(flag for phase in opened.phases for flag in phase.flags)
        self._emit(self._setup(opened.began, opened.setup, opened.mode, flags, opened.notes))

    def _emit_warm_setup(self) -> None:
        nothing = StampedInterval(0, ClockSource.USER)
        began = Moment(self._shared.watcher.read())
        self._emit(self._setup(began, nothing, ConnectionMode.WARM, (), {}))

    def _setup(
        self,
        began: Moment,
        span: StampedInterval,
        mode: ConnectionMode,
        flags: "dict[str, None] | tuple[str, ...]",
        notes: Mapping[str, Note],
    ) -> Sample:
        marks = dict.fromkeys([*flags, *self._shared.marks])
        if span.stepped:
            marks[Flag.CLOCK_STEP] = None
        return Sample(
            seq=self._shot.seq,
            metric=Metric.SETUP,
            sent_unix_ns=began.unix_ns,
            value_ns=span.value_ns,
            clock_source=span.source,
            mode=mode,
            lateness_ns=self._late_ns,
            flags=tuple(marks),
            notes=dict(notes) or None,
        )

    def _emit_phase(self, phase: Phase, mode: ConnectionMode | None) -> None:
        flags = (*phase.flags, Flag.CLOCK_STEP) if phase.span.stepped else phase.flags
        sample = Sample(
            seq=self._shot.seq,
            metric=phase.metric,
            sent_unix_ns=phase.began.unix_ns,
            value_ns=phase.span.value_ns,
            clock_source=phase.span.source,
            mode=mode,
            lateness_ns=self._late_ns,
            flags=tuple(dict.fromkeys(flags)),
        )
        self._emit(sample)

    def _emit(self, sample: Sample) -> None:
        self._shared.environment.emit(self._shot.series, sample)

    def _finish(self, sample: Sample) -> None:
        self._emit(sample)
        self._close_with(lambda link: link.abandon())
        self._ended(self)

    def _close_with(self, end: "Callable[[Link], None]") -> None:
        self._over = True
        if self._alarm is not None:
            self._alarm.cancel()
        link, self._link = self._link, None
        if link is not None:
            end(link)
