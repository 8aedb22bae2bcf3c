"""An `HttpDialer` for tests: what comes, and when, is written down beforehand."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import cast

from pathbudget.probes.carriers import (
    AnswerListener,
    Moment,
    Opened,
    OpeningListener,
    Phase,
    Request,
)
from pathbudget.probes.clock import StampedInterval, read_both
from pathbudget.probes.contract import Options, ProbeEnvironment, Shot
from pathbudget.probes.fake_collector import Collector
from pathbudget.probes.fake_network import FakeClock, FakeNetwork
from pathbudget.probes.record import ClockSource, ConnectionMode, Failure, Metric, Note, Transport

MS = 1_000_000
CONNECT_NS = 20 * MS
Event = tuple[int, str, object]
"""(nanoseconds after the request, what, with what): head, body, complete, fail."""


@dataclass
class Scripted:
    """What every connection does. `lag_ns` is how late this host reads what came."""

    clock: FakeClock
    events: Sequence[Event] = ()
    opening: Failure | None = None
    never_opens: bool = False
    lag_ns: int = 0
    tells_left: bool = True
    stamps: bool = True
    dials: int = 0
    requests: list[Request] = field(default_factory=list[Request])
    abandoned: int = 0
    closed: int = 0

    def __call__(
        self, environment: ProbeEnvironment, options: Options, port: int | None, probe: str
    ) -> "Dialer":
        return Dialer(self)

    def moment(self, lag_ns: int = 0) -> Moment:
        reading = read_both(self.clock)
        return Moment(reading, reading.unix_ns - lag_ns if self.stamps else None)


class Dialer:
    def __init__(self, script: Scripted) -> None:
        self._script = script

    def dial(
        self,
        shot: Shot,
        listener: OpeningListener,
        early: tuple[Request, AnswerListener] | None = None,
    ) -> "Connection":
        self._script.dials += 1
        return Connection(self._script, listener)

    async def drain(self) -> None:
        return

    def close(self) -> None:
        return


class Connection:
    def __init__(self, script: Scripted, listener: OpeningListener) -> None:
        self._script = script
        self._opening: OpeningListener | None = listener
        self._answer: AnswerListener | None = None
        self._began = script.moment()
        self.usable = False
        if not script.never_opens:
            script.clock.call_in(CONNECT_NS, self._opened)

    def request(self, request: Request, listener: AnswerListener) -> None:
        script = self._script
        script.requests.append(request)
        self._answer, self.usable = listener, False
        if script.tells_left:
            left = script.moment()
            script.clock.call_in(0, lambda: listener.left(left, left))
        for after_ns, what, value in script.events:
            script.clock.call_in(after_ns + script.lag_ns, self._telling(listener, what, value))

    def close(self) -> None:
        self._script.closed += 1
        self._answer = self._opening = None

    def abandon(self) -> None:
        self._script.abandoned += 1
        self._answer = self._opening = None

    def _opened(self) -> None:
        listener = self._opening
        if listener is None:
            return
        if self._script.opening is not None:
            listener.failed(Metric.CONNECT, self._script.opening, ())
            return
        self.usable = True
        span = StampedInterval(CONNECT_NS, ClockSource.KERNEL)
        phase = Phase(Metric.CONNECT, self._began, span)
        listener.opened(
            Opened(Transport.TCP, ConnectionMode.COLD, self._began, (phase,), notes={"group": "x"})
        )

    def _telling(self, listener: AnswerListener, what: str, value: object) -> Callable[[], None]:
        def tell() -> None:
            if self._answer is not listener:
                return
            moment = self._script.moment(self._script.lag_ns)
            if what == "head":
                status, kind = cast("tuple[int, str]", value)
                listener.head(status, (("content-type", kind),), moment)
            elif what == "body":
                assert isinstance(value, bytes)
                listener.body(value, moment)
            elif what == "complete":
                self._answer, self.usable = None, True
                notes: dict[str, Note] = {"retransmits": 3}
                listener.complete(moment, notes)
            else:
                assert isinstance(value, Failure)
                self._answer = None
                listener.failed(value)

        return tell


def world(events: Sequence[Event] = (), **more: object) -> tuple[Scripted, Collector]:
    clock = FakeClock(jumps=True)
    network = FakeNetwork(clock)
    return Scripted(clock, events, **more), Collector(network, clock)  # type: ignore[arg-type]
