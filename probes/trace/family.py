"""The traces of one address family, their channel and their alarm."""

import asyncio
from collections.abc import Callable, Sequence

from pathbudget.probes.alarm import Alarm
from pathbudget.probes.channels import Cancellable, PacketOptions
from pathbudget.probes.clock import ClockWatcher
from pathbudget.probes.contract import ProbeEnvironment, Shot
from pathbudget.probes.failures import no_family, timed_out
from pathbudget.probes.flow_book import FlowBook
from pathbudget.probes.icmp_session import Outcome
from pathbudget.probes.record import AddressFamily, Failure, Stage
from pathbudget.probes.trace.contract import (
    Flow,
    FlowPacket,
    HopNote,
    PathBatch,
    PathChannel,
    TraceProtocol,
)
from pathbudget.probes.trace.session import TraceSessions, TraceSettings
from pathbudget.probes.trace.session_opening import TraceSession

DEFAULT_PORTS = {
    TraceProtocol.UDP: 33_434,
    TraceProtocol.TCP: 443,
    TraceProtocol.SESSION: 443,
}
"""Where neither option nor target names one: nobody listens on the first, most do on the others."""


class TraceFamily:
    """See the module. Without `privileged` only UDP is sent."""

    def __init__(
        self,
        environment: ProbeEnvironment,
        family: AddressFamily,
        settings: TraceSettings,
        sessions: TraceSessions,
        packet: PacketOptions,
        *,
        privileged: bool = True,
    ) -> None:
        self._environment = environment
        self._family = family
        self._settings = settings
        self._sessions = sessions
        self._packet = packet
        self._privileged = privileged
        self._watcher = ClockWatcher(environment.clock)
        self._book = FlowBook.of(environment.network)
        self._alarm = Alarm(environment.network, self._wake)
        self._channel: PathChannel | None = None
        self._openings: dict[TraceSession, Cancellable] = {}
        self._inside: dict[TraceSession, None] = {}
        self._closed = False
        self.idle = asyncio.Event()
        self.idle.set()

    def open(self) -> bool:
        """Open the channel; whether the family exists here. Raises PrivilegeError."""
        self._channel = self._environment.network.open_paths(
            self._family, self._listen, self._packet, privileged=self._privileged
        )
        return self._channel is not None

    def fire_all(self, shots: Sequence[Shot]) -> None:
        """Begin these traces."""
        for shot in shots:
            self._fire(shot)
        self._pump()

    def close(self) -> None:
        """Give the sockets back."""
        self._closed = True
        self._alarm.cancel()
        for opening, alarm in self._openings.items():
            alarm.cancel()
            opening.close()
        for opening in self._inside:
            opening.close()
        if self._channel is not None:
            self._channel.close()

    def _fire(self, shot: Shot) -> None:
        self.idle.clear()
        now = self._watcher.read()
        if self._channel is None:
            self._sessions.refuse(shot, no_family(self._family, Stage.SEND), now)
            return
        source = self._channel.source_for(shot.address)
        if isinstance(source, Failure):
            self._sessions.refuse(shot, source, now)
            return
        protocol = self._settings.protocol
        port = self._port_to(shot)
        if protocol is TraceProtocol.SESSION:
            self._open_session(shot, source, port)
            return
        known = self._book.flow(protocol, self._family, source, shot.address, port)
        self._sessions.begin(
            shot,
            source,
            now,
            port=port,
            first_key=0 if known is None or self._settings.source_port else known.key,
            notes={} if self._privileged else {HopNote.UNPRIVILEGED: True},
        )

    def _port_to(self, shot: Shot) -> int:
        protocol = self._settings.protocol
        if protocol is TraceProtocol.ICMP:
            return 0
        return self._settings.port or shot.target.port or DEFAULT_PORTS[protocol]

    def _open_session(self, shot: Shot, source: str, port: int) -> None:
        """The trace begins when its connection is open."""
        assert self._channel is not None
        network, clock = self._environment.network, self._environment.clock
        held: list[TraceSession] = []

        def ready(failure: Failure | None) -> None:
            self._opened(shot, source, port, held[0], failure)

        opening = TraceSession(
            network,
            self._channel,
            clock,
            (shot.address, port),
            self._family,
            ready,
            self._packet,
            source_port=self._settings.source_port,
        )
        held.append(opening)
        due_ns = clock.monotonic_ns() + shot.timeout_ns
        late = timed_out(Stage.CONNECT, shot.timeout_ns)
        self._openings[opening] = network.call_at(due_ns, lambda: ready(late))

    def _opened(
        self, shot: Shot, source: str, port: int, opening: TraceSession, failure: Failure | None
    ) -> None:
        alarm = self._openings.pop(opening, None)
        if alarm is None or self._closed:
            return
        alarm.cancel()
        now = self._watcher.read()
        if failure is not None or opening.segments is None:
            opening.close()
            self._sessions.refuse(shot, failure or no_family(self._family, Stage.CONNECT), now)
        else:
            self._inside[opening] = None
            self._sessions.begin(
                shot,
                source,
                now,
                port=port,
                build=_inside(opening),
                first_key=opening.segments.flow.key,
                on_end=lambda: self._end_session(opening),
            )
        self._pump()

    def _end_session(self, opening: TraceSession) -> None:
        self._inside.pop(opening, None)
        opening.close()

    def _listen(self, batch: PathBatch) -> None:
        if self._openings or self._inside:
            for opening in (*self._openings, *self._inside):
                for arrival in batch.arrivals:
                    opening.see(arrival)
        self._sessions.receive(batch, self._watcher.read())
        self._pump()

    def _pump(self) -> None:
        """Send what may leave, hand on what has happened, be woken for what comes next."""
        if self._closed or self._channel is None:
            self._report()
            return
        while sent := self._sessions.packets(self._watcher.read()):
            keys = self._channel.send_all([one.packet for one in sent])
            self._sessions.all_sent(sent, keys, self._watcher.read())
        self._report()
        self._alarm.set(self._sessions.next_ns())

    def _report(self) -> None:
        for event in self._sessions.events():
            if isinstance(event, Outcome):
                self._environment.emit(event.series, event.sample)
            else:
                self._environment.count(event.series, event.word)
        if not self._sessions.under_way and not self._openings:
            self.idle.set()

    def _wake(self) -> None:
        if self._channel is not None:
            self._channel.poll()  # what has come meanwhile is not lost, however late this loop is
        self._sessions.expire(self._watcher.read())
        self._pump()


def _inside(opening: TraceSession) -> Callable[[Flow, int, int, int], FlowPacket]:
    def build(flow: Flow, limit: int, token: int, size: int) -> FlowPacket:
        del flow, size  # the connection has them
        return opening.build(limit, token)

    return build
