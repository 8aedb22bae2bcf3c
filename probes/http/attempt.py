"""One shot of the `http` probe: a connection that is dialled or at hand, a request, its answer.

Everything is said at the end, once, whatever happens and whenever the deadline strikes
(`telling.py`). A shot ends with its answer, and with the request without credentials where that is
compared.
"""

import asyncio
from dataclasses import dataclass, field

from pathbudget.probes.carriers import Moment, Opened, Phase, Request
from pathbudget.probes.channels import Cancellable
from pathbudget.probes.clock import ClockWatcher
from pathbudget.probes.contract import ProbeEnvironment, Shot
from pathbudget.probes.failures import timed_out
from pathbudget.probes.http.hops import MOST_REDIRECTS, Hop, Told, next_request
from pathbudget.probes.http.links import Link, Links
from pathbudget.probes.http.plan import Plan
from pathbudget.probes.http.requests import authority_of
from pathbudget.probes.http.telling import tell
from pathbudget.probes.record import ConnectionMode, Failure, Metric, Stage

OPENING_GRACE_NS = 20_000_000
"""A dialer has the same deadline, and knows better which step it was in: it speaks first."""


@dataclass(slots=True)
class Shared:
    """What all shots of one probe share."""

    environment: ProbeEnvironment
    watcher: ClockWatcher
    plan: Plan
    links: Links
    running: "set[HttpAttempt]" = field(default_factory=set["HttpAttempt"])
    idle: asyncio.Event = field(default_factory=asyncio.Event)

    def begin(self, attempt: "HttpAttempt") -> None:
        """Begin a shot, and keep it until it ends."""
        self.running.add(attempt)
        self.idle.clear()
        attempt.begin()

    def leave(self, attempt: "HttpAttempt") -> None:
        """It has ended."""
        self.running.discard(attempt)
        if not self.running:
            self.idle.set()


class HttpAttempt:
    """One shot, from `begin` on. A `LinkUser` and a `HopUser`."""

    def __init__(self, shared: Shared, shot: Shot) -> None:
        self._shared = shared
        self._plan = shared.plan
        self._shot = shot
        self._told = Told(shot, Moment(shared.watcher.read()))
        self._begin_ns = self._told.began.reading.monotonic_ns
        self._link: Link | None = None
        self._hop: Hop | None = None
        self._over = False
        self._alarm = self._alarm_after(shot.timeout_ns + OPENING_GRACE_NS)

    def begin(self) -> None:
        """Take a connection that stands, or dial."""
        request = self._plan.request(self._authority())
        plan, now_ns = self._plan, self._begin_ns
        if plan.keeps:
            idle_ns = plan.idle_ns if plan.mode is ConnectionMode.IDLE else 0
            link = self._shared.links.take(self._shot, now_ns, idle_ns)
            if link is not None:
                self._reuse(link, now_ns, request)
                return
        self._dial(request)

    def abandon(self) -> None:
        """Drop it without a sample."""
        self._over = True
        self._alarm.cancel()
        if self._link is not None:
            self._link.abandon()

    # LinkUser

    def link_opened(self, opened: Opened) -> None:
        """See `carriers.OpeningListener.opened`."""
        hop = self._hop
        if self._over or hop is None:
            return
        hop.opened, hop.mode = opened, opened.mode
        self._set_deadline()
        if self._link is not None:
            self._go_on()

    def link_failed(self, metric: str, failure: Failure, done: tuple[Phase, ...]) -> None:
        """See `carriers.OpeningListener.failed`."""
        hop = self._hop
        if self._over or hop is None:
            return
        tried = None if self._link is None else self._link.tried_as
        if hop.opened is None and not hop.reused:
            hop.mode = tried or hop.mode
            hop.opening_failure = (metric, failure, done)
        hop.failure = hop.failure or failure
        self._finish(keep=False)

    # HopUser

    def hop_came(self) -> None:
        """See `HopUser.hop_came`. Reading a flood of tiny pieces keeps the event loop: its alarms
        come too late.
        """
        waited_ns = self._shared.environment.clock.monotonic_ns() - self._begin_ns
        if waited_ns > self._shot.timeout_ns:
            self._expire()

    def hop_over(self, hop: Hop) -> None:
        """See `HopUser.hop_over`."""
        if self._over or hop is not self._hop:
            return
        if hop.failure is not None and hop.opened is None and not hop.reused:
            return  # of the opening: whoever knows more about it speaks next, or the alarm
        if hop.opened is None and not hop.reused:
            return  # of early data, before its proof
        self._answered(hop)

    # Steps

    def _go_on(self) -> None:
        """The connection stands, and is at hand."""
        hop, link = self._hop, self._link
        assert hop is not None
        assert link is not None
        if hop.over:
            self._answered(hop)
        elif not self._leaves_by_itself(hop):
            hop.began = Moment(self._shared.watcher.read())
            assert link.connection is not None
            link.connection.request(hop.request, hop)

    def _leaves_by_itself(self, hop: Hop) -> bool:
        """Whether the dialer sends it."""
        return self._plan.mode is ConnectionMode.EARLY_DATA and not hop.reused

    def _reuse(self, link: Link, now_ns: int, request: Request) -> None:
        told, mode = self._told, self._plan.mode
        told.idle_ns = now_ns - link.idle_since_ns
        if link.opened_as is not None:
            told.age_ns = now_ns - link.opened_as.began.reading.monotonic_ns
        link.user, self._link = self, link
        self._set_deadline()
        self._add_hop(Hop(self, request, True, mode, told.began))
        self._go_on()

    def _dial(self, request: Request) -> None:
        began = Moment(self._shared.watcher.read())
        mode = self._plan.mode
        wished = ConnectionMode.COLD if self._plan.keeps else mode
        hop = Hop(self, request, False, wished, began)
        self._add_hop(hop)
        link = Link(self)
        early = (request, hop) if self._leaves_by_itself(hop) else None
        link.connection = self._shared.links.dialer.dial(self._shot, link, early)
        if self._over:
            link.abandon()
            return
        self._link = link
        if hop.opened is not None:
            self._go_on()  # it stood at once

    def _add_hop(self, hop: Hop) -> None:
        self._told.hops.append(hop)
        self._hop = hop

    def _answered(self, hop: Hop) -> None:
        """One answer is whole, or will never be: what comes next?"""
        told, plan = self._told, self._plan
        if hop.failure is not None or hop is told.anonymous:
            self._finish(keep=hop.failure is None)
            return
        if plan.follow:
            most = MOST_REDIRECTS + 1 - len(told.hops)
            following = next_request(hop, plan.settings.scheme, most)
            if isinstance(following, Failure):
                told.failure = following
            elif following is not None:
                self._follow(following)
                return
        link = self._link
        warm = told.hops[0].reused and link is not None and link.usable
        if plan.compare and warm and told.failure is None and plan.accepts(hop.status):
            self._ask_anonymously()
            return
        self._finish(keep=True)

    def _follow(self, request: Request) -> None:
        """On the same connection where it stands."""
        link = self._link
        if link is None or not link.usable:
            if link is not None:
                link.close()
            self._link = None
            self._dial(request)
            return
        now = Moment(self._shared.watcher.read())
        self._add_hop(Hop(self, request, True, ConnectionMode.WARM, now))
        self._go_on()

    def _ask_anonymously(self) -> None:
        now = Moment(self._shared.watcher.read())
        request = self._plan.request(self._authority(), anonymous=True)
        self._hop = self._told.anonymous = Hop(self, request, True, ConnectionMode.WARM, now)
        self._go_on()

    def _authority(self) -> str:
        settings, target = self._plan.settings, self._shot.target
        port = settings.tls.default_port if target.port is None else target.port
        return authority_of(target, port, settings.scheme)

    def _set_deadline(self) -> None:
        self._alarm.cancel()
        self._alarm = self._alarm_after(self._shot.timeout_ns)

    def _alarm_after(self, span_ns: int) -> Cancellable:
        return self._shared.environment.network.call_at(self._begin_ns + span_ns, self._expire)

    def _expire(self) -> None:
        hop = self._hop
        if self._over or hop is None:
            return
        opening = hop.opened is None and not hop.reused
        stage = Stage.CONNECT if opening else Stage.WAIT
        failure = hop.failure or timed_out(stage, self._shot.timeout_ns)
        if opening and hop.opening_failure is None:
            hop.opening_failure = (Metric.SETUP, failure, ())
        hop.failure = failure
        self._finish(keep=False)

    def _finish(self, *, keep: bool) -> None:
        """Say what is known, once."""
        if self._over:
            return
        self._over = True
        self._alarm.cancel()
        for sample in tell(self._told, self._plan):
            self._shared.environment.emit(self._shot.series, sample)
        self._part(keep=keep)
        self._shared.leave(self)

    def _part(self, *, keep: bool) -> None:
        """Leave the connection."""
        link, self._link = self._link, None
        if link is None:
            return
        if not keep:
            link.abandon()
        elif self._plan.keeps and link.usable:
            now_ns = self._shared.watcher.read().monotonic_ns
            self._shared.links.keep(self._shot, link, now_ns)
        else:
            link.close()
