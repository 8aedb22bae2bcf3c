"""The half-open way of the tcp probe: raw SYNs, stamped by the kernel as they leave and return.

One raw socket per address family serves all targets; no task waits for a packet. Read
`syn_session.py` for what counts as an answer.
"""

import asyncio
from collections.abc import Sequence

from pathbudget.probes.alarm import Alarm
from pathbudget.probes.channels import ReservedPorts, SegmentBatch, SegmentChannel
from pathbudget.probes.clock import ClockWatcher, Reading
from pathbudget.probes.connection import no_port
from pathbudget.probes.contract import ProbeEnvironment, Shot
from pathbudget.probes.failures import no_family
from pathbudget.probes.families import FamiliesProbe
from pathbudget.probes.half_open import HalfOpen
from pathbudget.probes.icmp_session import Outcome
from pathbudget.probes.record import AddressFamily, Failure, Metric, Sample, Stage
from pathbudget.probes.syn_session import SynSession
from pathbudget.probes.tcp_settings import TcpSettings, cannot_leave
from pathbudget.probes.tcp_stamps import lateness_of, stamps_of


class _Family:
    """The session of one address family, its socket, its ports."""

    def __init__(
        self, environment: ProbeEnvironment, family: AddressFamily, settings: TcpSettings
    ) -> None:
        self._environment = environment
        self._settings = settings
        self._watcher = ClockWatcher(environment.clock)
        self._alarm = Alarm(environment.network, self._expire)
        self._channel: SegmentChannel | None = None
        self._held: ReservedPorts | None = None
        self.why_not: Failure | None = None
        """Why nothing can leave in this family."""
        network = environment.network
        ports: tuple[int, ...] = ()
        held = network.reserve_ports(
            family, settings.flows or settings.max_half_open, settings.packet
        )
        if isinstance(held, Failure):
            self.why_not = held
        else:
            self._held, ports = held, tuple(held.ports)
            try:
                self._channel = network.open_segments(family, self._listen, ports, settings.packet)
            except BaseException:
                held.close()
                raise
            if self._channel is None:
                self.why_not = no_family(family, Stage.CONNECT)
        half_open = HalfOpen(settings.max_half_open)
        self._session = SynSession(family, environment.rng, ports, half_open)
        self.idle = asyncio.Event()
        self.idle.set()

    def fire_all(self, shots: Sequence[Shot]) -> None:
        self.idle.clear()
        segments: list[tuple[bytes, str, str]] = []
        begun: list[tuple[int, int]] = []
        for shot in shots:
            now = self._watcher.read()
            outcome = self._begin(shot, now)
            if isinstance(outcome, Failure):
                self._emit_refusal(shot, outcome, now)
                continue
            sequence, segment, source = outcome
            segments.append((segment, shot.address, source))
            begun.append((sequence, now.monotonic_ns + shot.timeout_ns))
        if segments:
            self._send(segments, begun)
        self._rest()

    def close(self) -> None:
        self._alarm.cancel()
        if self._channel is not None:
            self._channel.close()
        if self._held is not None:
            self._held.close()

    def _begin(self, shot: Shot, now: Reading) -> tuple[int, bytes, str] | Failure:
        """The SYN to send, with its sequence number and source."""
        port, address = shot.target.port, shot.address
        if port is None:
            return no_port(Stage.CONNECT)
        if self.why_not is not None or self._channel is None:
            return self.why_not or no_family(shot.family, Stage.CONNECT)
        source = self._channel.source_for(address)
        if isinstance(source, Failure):
            return source
        flow = self._session.admit(shot, port, now, sweep=self._settings.flows > 0)
        if isinstance(flow, Failure):
            self._environment.count(shot.series, "half_open_limit")
            return flow
        return *self._session.request(shot, port, flow, source, now), source

    def _send(
        self, segments: Sequence[tuple[bytes, str, str]], begun: Sequence[tuple[int, int]]
    ) -> None:
        assert self._channel is not None
        keys = self._channel.send_all(segments)
        for (sequence, deadline_ns), key in zip(begun, keys, strict=True):
            if isinstance(key, Failure):
                self._session.refused(sequence, key, self._watcher.read())
            else:
                self._session.sent(sequence, key)
                self._alarm.set(deadline_ns)
        self._report()

    def _emit_refusal(self, shot: Shot, failure: Failure, now: Reading) -> None:
        sample = Sample(
            seq=shot.seq,
            metric=Metric.CONNECT,
            sent_unix_ns=now.unix_ns,
            failure=failure,
            lateness_ns=lateness_of(shot, now),
            stamps=stamps_of(shot, now.unix_ns, now),
        )
        self._environment.emit(shot.series, sample)

    def _listen(self, batch: SegmentBatch) -> None:
        self._session.receive(batch, self._watcher.read())
        self._report()

    def _report(self) -> None:
        """Hand on what has happened, and be woken for the next timeout."""
        for event in self._session.events():
            if isinstance(event, Outcome):
                self._environment.emit(event.series, event.sample)
            else:
                self._environment.count(event.series, event.word)
        self._alarm.set(self._session.next_deadline_ns())
        self._rest()

    def _rest(self) -> None:
        if not self._session.under_way:
            self.idle.set()

    def _expire(self) -> None:
        if self._channel is not None:
            self._channel.poll()  # what has come meanwhile is not lost, however late this loop is
        self._session.expire(self._watcher.read())
        self._report()


class SynProbe(FamiliesProbe[_Family]):
    """See `contract.BatchProbe`.

    Raises PrivilegeError without CAP_NET_RAW, ConfigError where no packet can leave as asked for.
    """

    def __init__(self, environment: ProbeEnvironment, settings: TcpSettings) -> None:
        super().__init__()
        try:
            for family in AddressFamily:
                self._families[family] = _Family(environment, family, settings)
            self._check()
        except BaseException:
            self.close()
            raise

    def _check(self) -> None:
        refusals = [one.why_not for one in self._families.values() if one.why_not is not None]
        if len(refusals) == len(self._families):
            raise cannot_leave(refusals[0].detail)
