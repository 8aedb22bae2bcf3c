"""All traces of one address family. Bytes and `now` in, packets and events out; no I/O.

    begin           a trace is due
    packets         what may leave now; then `all_sent` with what the door says
    receive         what was read at one wake-up
    expire          time has passed
    next_ns         when to call `expire` and `packets` again
    events          outcomes and counts since the last call

A packet that nobody answers is given up in two steps: after a while that fits the path the trace
goes on (asks again, or takes the hop for silent); its sample is a timeout only when the whole time
of the shot is over. An answer is ours when it quotes or answers a packet that is under way, and
`matching` agrees. What is no outcome is counted:

    foreign      says it is about a packet of ours, and is not
    duplicate    another answer to a packet that has its outcome
    late         an answer after the deadline; the packet stays a timeout
    busy         a trace was due while too many of the same series were under way: it fails
"""

import heapq
import itertools
import random
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pathbudget.probes.clock import Reading
from pathbudget.probes.contract import Shot
from pathbudget.probes.icmp_session import Counted, Event, Outcome
from pathbudget.probes.record import AddressFamily, Failure, FailureKind, Note, Stage
from pathbudget.probes.trace import wire
from pathbudget.probes.trace.contract import (
    Answer,
    Flow,
    FlowPacket,
    PathArrival,
    PathBatch,
    TraceProtocol,
)
from pathbudget.probes.trace.flow_keys import FlowKeys
from pathbudget.probes.trace.hop_samples import Sent, no_target_sample, silent_sample
from pathbudget.probes.trace.matching import Match, match
from pathbudget.probes.trace.one_trace import ALL_THE_WAY, Builder, OneTrace
from pathbudget.probes.trace.pace import SECOND_NS, Pace
from pathbudget.probes.trace.rules import Rules, Want

AT_ONCE = 128
"""Packets that leave on one reading of the clocks."""
SAME_SERIES = 2
"""Traces of one series at once: who fires faster than traces end would pile them up."""
MOST_UNDER_WAY = 60_000
"""Packets: fewer than there are tokens."""
LOOKED_AT = 64
"""Packets that an answer may be about which does not say which one."""


@dataclass(frozen=True, slots=True)
class TraceSettings:
    """What one trace probe was told. `source_port` is the key of the first flow, 0: our choice."""

    protocol: TraceProtocol = TraceProtocol.ICMP
    rules: Rules = field(default_factory=Rules)
    port: int = 0
    rate: int = 1_000
    deadline_ns: int = 60 * SECOND_NS
    size: int = 0
    dscp: int = 0
    mtu: bool = False
    source_port: int = 0


class _Queued(NamedTuple):
    trace: OneTrace
    want: Want
    epoch: int
    mtu_size: int = 0


class TraceSessions:
    """See the module. `pace` is shared by both families."""

    def __init__(
        self, family: AddressFamily, rng: random.Random, settings: TraceSettings, pace: Pace
    ) -> None:
        self._family = family
        self._settings = settings
        self._pace = pace
        self._secret = rng.randbytes(8)
        self._token = rng.randrange(wire.FIRST_TOKEN, wire.LAST_TOKEN + 1)
        self._traces: dict[OneTrace, None] = {}
        self._numbers: dict[int, OneTrace] = {}
        """By number, so that a deadline keeps nothing alive."""
        self._of_series: Counter[int] = Counter()
        self._touched: dict[OneTrace, None] = {}
        self._queue: deque[_Queued] = deque()
        self._delayed: list[tuple[int, int, _Queued]] = []
        self._timers: list[tuple[int, int, Callable[[Reading], None]]] = []
        self._order = itertools.count()
        self._flights: dict[int, tuple[OneTrace, Sent]] = {}
        self._by_place: dict[int, Sent] = {}
        self._done: dict[int, tuple[int, int, bool]] = {}
        self._events: list[Event] = []

    @property
    def under_way(self) -> int:
        """Number of traces that have not ended."""
        return len(self._traces)

    def events(self) -> list[Event]:
        """What has happened since the last call, in order."""
        events, self._events = self._events, []
        return events

    def begin(
        self,
        shot: Shot,
        source: str,
        now: Reading,
        *,
        port: int = 0,
        build: Builder | None = None,
        first_key: int = 0,
        notes: dict[str, Note] | None = None,
        on_end: Callable[[], None] = lambda: None,
    ) -> None:
        """A trace is due. `build` is other than `wire.build` inside a connection."""
        settings = self._settings
        if self._of_series[shot.series] >= SAME_SERIES:
            self._events.append(Counted(shot.series, "busy"))
            self.refuse(shot, _busy(), now)
            on_end()
            return
        keys = FlowKeys(
            settings.protocol, self._family, source, shot.address, port,
            first_key or settings.source_port,
        )  # fmt: skip
        trace = OneTrace(
            shot=shot,
            family=self._family,
            protocol=settings.protocol,
            port=port,
            keys=keys,
            build=build or self._build,
            deadline_ns=now.monotonic_ns + settings.deadline_ns,
            rules=settings.rules,
            mtu=settings.mtu,
            notes=notes or {},
            on_end=on_end,
        )
        number = next(self._order)
        self._traces[trace] = None
        self._numbers[number] = trace
        trace.number = number
        self._of_series[shot.series] += 1
        self._touched[trace] = None
        self._set_timer(trace.deadline_ns, lambda _: self._out_of_time(number))
        self._look(now)

    def refuse(self, shot: Shot, failure: Failure, now: Reading) -> None:
        """A trace that cannot begin."""
        self._events.append(Outcome(shot.series, no_target_sample(shot, now, failure)))

    def packets(self, now: Reading) -> list[Sent]:
        """What may leave now. `all_sent` has to be called with them."""
        self._wake_delayed(now.monotonic_ns)
        chosen: list[Sent] = []
        room = min(AT_ONCE, MOST_UNDER_WAY - len(self._flights))
        allowed = self._pace.take(now.monotonic_ns, min(room, len(self._queue)))
        while self._queue and len(chosen) < allowed:
            one = self._queue.popleft()
            one.trace.queued -= 1
            if one.epoch == one.trace.epoch and not one.trace.enumeration.spent:
                chosen.append(self._begin_packet(one, now))
        return chosen

    def all_sent(self, sent: Sequence[Sent], keys: Sequence[int | Failure], now: Reading) -> None:
        """What the door says of them: the keys of their stamps, or why they could not leave."""
        for one, key in zip(sent, keys, strict=True):
            if isinstance(key, int):
                one.place = key
                self._by_place[key] = one
                continue
            found = self._flights.get(one.packet.token)
            if found is not None and found[1] is one:
                trace = found[0]
                sample = trace.unsent(one, key)
                self._end_packet(trace, one, lost=True)
                if not one.mtu_size:
                    self._events.append(Outcome(one.series, sample))
        self._look(now)

    def receive(self, batch: PathBatch, now: Reading) -> None:
        """Work through what was read at one wake-up."""
        for place, kernel_unix_ns in batch.sent:
            sent = self._by_place.pop(place, None)
            if sent is not None:
                sent.kernel_sent_unix_ns = kernel_unix_ns
        for arrival in batch.arrivals:
            self._arrived(arrival, now)
        self._look(now)

    def expire(self, now: Reading) -> None:
        """Time has passed. What has come must have been given to `receive` before."""
        timers = self._timers
        while timers and timers[0][0] <= now.monotonic_ns:
            heapq.heappop(timers)[2](now)
        self._look(now)

    def next_ns(self) -> int | None:
        """Monotonic time at which something is due; None where nothing is under way."""
        due = [self._timers[0][0]] if self._timers else []
        if self._queue and len(self._flights) < MOST_UNDER_WAY:
            due.append(self._pace.next_ns())
        if self._delayed:
            due.append(self._delayed[0][0])
        return min(due) if due and self._traces else None

    def _build(self, flow: Flow, limit: int, token: int, size: int) -> FlowPacket:
        settings = self._settings
        return wire.build(
            flow,
            limit,
            token,
            size=size or settings.size,
            dscp=settings.dscp,
            secret=self._secret,
        )

    def _begin_packet(self, one: _Queued, now: Reading) -> Sent:
        trace, (flow_index, limit, asked) = one.trace, one.want
        token = self._next_token()
        flow = trace.keys.flow(flow_index)
        packet = trace.build(flow, limit, token, one.mtu_size)
        shot = trace.shot
        sent = Sent(
            shot.series, shot.seq, flow_index, flow.key, limit, asked, one.epoch, packet, now,
            shot.timeout_ns, mtu_size=one.mtu_size,
        )  # fmt: skip
        self._flights[token] = (trace, sent)
        trace.in_flight += 1
        trace.packets += 1
        if trace.first_sent is None:
            trace.first_sent = now
        patience = trace.patience_ns()
        self._set_timer(now.monotonic_ns + patience, lambda when: self._patience(trace, sent, when))
        return sent

    def _next_token(self) -> int:
        token = self._token
        while token in self._flights:
            token = token + 1 if token < wire.LAST_TOKEN else wire.FIRST_TOKEN
        self._token = token + 1 if token < wire.LAST_TOKEN else wire.FIRST_TOKEN
        self._done.pop(token, None)
        return token

    def _arrived(self, arrival: PathArrival, now: Reading) -> None:
        answer = wire.read(arrival, self._family)
        if answer is None:
            return
        found = self._find(answer)
        if found is None:
            self._count_stray(answer)
            return
        trace, sent, matched = found
        sample = trace.heard(
            sent,
            answer,
            now,
            translated=matched is Match.TRANSLATED,
            ambiguous=not answer.token,
        )
        assert sample.value_ns is not None
        if sample.value_ns > sent.timeout_ns:
            self._events.append(Counted(sent.series, "late"))
            sample = silent_sample(sent)
        self._end_packet(trace, sent, lost=False)
        if not sent.mtu_size:
            self._events.append(Outcome(sent.series, sample))

    def _find(self, answer: Answer) -> tuple[OneTrace, Sent, Match] | None:
        """Which packet under way it is about."""
        for token in (answer.token, answer.other):
            found = self._flights.get(token) if token else None
            if found is not None:
                matched = match(found[1].packet, answer)
                if matched is not Match.FOREIGN:
                    return (*found, matched)
        if not answer.token and self._settings.protocol in (
            TraceProtocol.TCP, TraceProtocol.SESSION,
        ):  # fmt: skip
            for trace, sent in itertools.islice(self._flights.values(), LOOKED_AT):
                if sent.key == answer.flow_key:
                    matched = match(sent.packet, answer)
                    if matched is not Match.FOREIGN:
                        return trace, sent, matched
        return None

    def _count_stray(self, answer: Answer) -> None:
        series, key, lost = self._done.get(answer.token, (-1, -1, False))
        if key == answer.flow_key:
            self._events.append(Counted(series, "late" if lost else "duplicate"))
        elif answer.token in self._flights:
            self._events.append(Counted(-1, "foreign"))

    def _patience(self, trace: OneTrace, sent: Sent, now: Reading) -> None:
        """Time to go on without it."""
        if sent.ended:
            return
        sent.given_up = True
        trace.given_up(sent)
        self._touched[trace] = None
        over_ns = sent.sent.monotonic_ns + sent.timeout_ns
        if over_ns <= now.monotonic_ns or sent.mtu_size:
            self._time_out(trace, sent)
        else:
            self._set_timer(over_ns, lambda _: self._time_out(trace, sent))

    def _time_out(self, trace: OneTrace, sent: Sent) -> None:
        if sent.ended:
            return
        self._end_packet(trace, sent, lost=True)
        if not sent.mtu_size:
            self._events.append(Outcome(sent.series, silent_sample(sent)))

    def _end_packet(self, trace: OneTrace, sent: Sent, *, lost: bool) -> None:
        sent.ended = True
        trace.in_flight -= 1
        del self._flights[sent.packet.token]
        self._done[sent.packet.token] = (sent.series, sent.key, lost)
        if sent.place is not None:
            self._by_place.pop(sent.place, None)
        self._touched[trace] = None

    def _out_of_time(self, number: int) -> None:
        trace = self._numbers.get(number)
        if trace is not None:
            trace.enumeration.stop()
            self._touched[trace] = None

    def _look(self, now: Reading) -> None:
        """Ask every trace that has news what it wants next; end those that want nothing more."""
        touched, self._touched = self._touched, {}
        for trace in touched:
            if trace in self._traces:
                self._queue_wants(trace, now)

    def _queue_wants(self, trace: OneTrace, now: Reading) -> None:
        epoch = trace.epoch
        wants = trace.wants()
        if trace.epoch != epoch:
            trace.note_change(now)
        for want in wants:
            self._enqueue(_Queued(trace, want, trace.epoch), now.monotonic_ns)
        if wants or trace.queued or trace.in_flight:
            if not trace.enumeration.spent or trace.in_flight:
                return
        elif not trace.enumeration.spent:
            probe = trace.next_mtu_probe()
            if probe is not None:
                limit = probe.hop_limit or ALL_THE_WAY
                want = Want(0, limit, 0)
                queued = _Queued(trace, want, trace.epoch, probe.size)
                self._enqueue(queued, now.monotonic_ns)
                return
        self._end_trace(trace, now)

    def _enqueue(self, queued: _Queued, now_ns: int) -> None:
        queued.trace.queued += 1
        due_ns = queued.trace.pace.due_ns(queued.want.limit, now_ns)
        if due_ns <= now_ns:
            self._queue.append(queued)
        else:
            heapq.heappush(self._delayed, (due_ns, next(self._order), queued))

    def _wake_delayed(self, now_ns: int) -> None:
        while self._delayed and self._delayed[0][0] <= now_ns:
            self._queue.append(heapq.heappop(self._delayed)[2])

    def _end_trace(self, trace: OneTrace, now: Reading) -> None:
        del self._traces[trace]
        del self._numbers[trace.number]
        self._of_series[trace.shot.series] -= 1
        if not self._of_series[trace.shot.series]:
            del self._of_series[trace.shot.series]
        self._events.append(Outcome(trace.shot.series, trace.target_sample(now)))
        trace.on_end()

    def _set_timer(self, due_ns: int, ring: Callable[[Reading], None]) -> None:
        heapq.heappush(self._timers, (due_ns, next(self._order), ring))


def _busy() -> Failure:
    detail = f"not sent: {SAME_SERIES} traces of this series are still under way"
    return Failure(FailureKind.LOCAL, Stage.SEND, detail)
