"""TCP connect: SYN to SYN-ACK, from the kernel's own estimate of the handshake (TCP_INFO).

The estimate is read the moment the connection stands. Where a SYN was sent again the time is that
of a retransmission timer (RFC 6298) and no round trip: the sample says so. There is no retry of our
own. The connection is closed with FIN, not reset: a reset looks like an error to the server.
"""

from pathbudget.probes.clock import ClockWatcher
from pathbudget.probes.connection import Attempt, Attempts, no_port
from pathbudget.probes.contract import Cost, Options, Probe, ProbeEnvironment, ProbeSpec, Shot
from pathbudget.probes.record import Failure, Metric, Sample, Stage


class _ConnectAttempt(Attempt):
    def after_resolve_failure(self, failure: Failure) -> None:
        del failure  # has its own sample
        # The address is known from the plan, so the connect time can be had all the same.
        self._connect()

    def after_connect(self, sample: Sample) -> None:
        del sample
        self._end()

    def after_failure(self, failure: Failure) -> None:
        # The deadline struck while the resolver was busy: no connect was tried, and that is told.
        if self._stage is Stage.RESOLVE:
            self._emit_failure(Metric.CONNECT, failure)


class TcpProbe:
    """See `contract.Probe`."""

    def __init__(self, environment: ProbeEnvironment) -> None:
        self._environment = environment
        self._watcher = ClockWatcher(environment.clock)
        self._attempts = Attempts()

    def fire(self, shot: Shot) -> None:
        """See `contract.Probe.fire`."""
        port = shot.target.port
        if port is None:
            sample = Sample(
                shot.seq,
                Metric.CONNECT,
                self._watcher.read().unix_ns,
                failure=no_port(Stage.CONNECT),
                lateness_ns=shot.lateness_ns,
            )
            self._environment.emit(shot.series, sample)
            return
        self._attempts.add(
            _ConnectAttempt(self._environment, self._watcher, shot, port, self._attempts.remove)
        )

    async def drain(self) -> None:
        """See `contract.Probe.drain`."""
        await self._attempts.drain()

    def close(self) -> None:
        """See `contract.Probe.close`."""
        self._attempts.close()


def _open(environment: ProbeEnvironment, options: Options) -> Probe:
    del options  # it has none
    return TcpProbe(environment)


def _cost(options: Options) -> Cost:
    """SYN, SYN-ACK, ACK, FIN, FIN-ACK and two ACKs, over IPv6 and with all TCP options."""
    del options
    return Cost(packets=7, bytes=2 * 80 + 5 * 72)


TCP = ProbeSpec(
    name="tcp",
    summary="TCP connect: SYN to SYN-ACK, by the kernel's own estimate",
    version=1,
    open=_open,
    cost=_cost,
    needs_port=True,
    primary_metric=Metric.CONNECT,
)
