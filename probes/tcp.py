"""TCP connect: SYN to SYN-ACK, by the kernel's own estimate (TCP_INFO) or by stamps of raw SYNs.

The estimate is read the moment the connection stands. Where a SYN was sent again the time is that
of a retransmission timer (RFC 6298) and no round trip: the sample says so. A RST is an answer too:
its sample has a number and says `refused`. There is no retry of our own. The connection is closed
with FIN, not reset: a reset looks like an error to the server. `tcp_syn.py` is the half-open way.
"""

from pathbudget.probes.channels import ReservedPorts
from pathbudget.probes.clock import ClockWatcher
from pathbudget.probes.connection import Attempts, no_port
from pathbudget.probes.contract import Cost, Options, Probe, ProbeEnvironment, ProbeSpec, Shot
from pathbudget.probes.half_open import HalfOpen
from pathbudget.probes.record import AddressFamily, Failure, Metric, Sample, Stage
from pathbudget.probes.tcp_attempt import ConnectAttempt, Shared
from pathbudget.probes.tcp_refusals import Refusals
from pathbudget.probes.tcp_settings import (
    OPTIONS,
    TcpSettings,
    cannot_leave,
    option_faults,
    read_settings,
)
from pathbudget.probes.tcp_syn import SynProbe

HANDSHAKE = Cost(packets=7, bytes=2 * 80 + 5 * 72)
"""SYN, SYN-ACK, ACK, FIN, FIN-ACK and two ACKs, over IPv6 and with all TCP options."""
HALF_OPEN = Cost(packets=3, bytes=2 * 80 + 60)
SEGMENT_BYTES = 1_220
"""The smallest that IPv6 promises (RFC 8200): an upper bound for the number of segments."""


class TcpProbe:
    """See `contract.Probe`."""

    def __init__(self, environment: ProbeEnvironment, settings: TcpSettings) -> None:
        self._attempts = Attempts()
        self._ports = _reserve(environment, settings)
        self._shared = Shared(
            environment=environment,
            watcher=ClockWatcher(environment.clock),
            settings=settings,
            half_open=HalfOpen(settings.max_half_open),
            refusals=Refusals(environment.network, settings.packet),
            ended=self._attempts.remove,
        )

    def fire(self, shot: Shot) -> None:
        """See `contract.Probe.fire`."""
        port = shot.target.port
        if port is None:
            sample = Sample(
                shot.seq,
                Metric.CONNECT,
                self._shared.watcher.read().unix_ns,
                failure=no_port(Stage.CONNECT),
                lateness_ns=shot.lateness_ns,
            )
            self._shared.environment.emit(shot.series, sample)
            return
        held = self._ports.get(shot.family)
        source_port = 0 if held is None else held.ports[shot.seq % len(held.ports)]
        self._attempts.add(ConnectAttempt(self._shared, shot, port, source_port))

    async def drain(self) -> None:
        """See `contract.Probe.drain`."""
        await self._attempts.drain()

    def close(self) -> None:
        """See `contract.Probe.close`."""
        self._attempts.close()
        self._shared.refusals.close()
        for held in self._ports.values():
            held.close()


def _reserve(
    environment: ProbeEnvironment, settings: TcpSettings
) -> dict[AddressFamily, ReservedPorts]:
    """The ports of a sweep. Raises ConfigError where nothing can leave as it was asked for."""
    held: dict[AddressFamily, ReservedPorts] = {}
    if not (settings.flows or settings.packet.source or settings.packet.interface):
        return held
    refusals: list[Failure] = []
    for family in AddressFamily:
        ports = environment.network.reserve_ports(family, settings.flows or 1, settings.packet)
        if isinstance(ports, Failure):
            refusals.append(ports)
        elif settings.flows:
            held[family] = ports
        else:
            ports.close()  # it was asked only whether it can be had
    if len(refusals) == len(AddressFamily):
        raise cannot_leave(refusals[0].detail)
    return held


def _open(environment: ProbeEnvironment, options: Options) -> Probe:
    settings = read_settings(options)
    if settings.half_open:
        return SynProbe(environment, settings)
    return TcpProbe(environment, settings)


def _cost(options: Options) -> Cost:
    """One connection, and what is echoed on it, with an ACK for each segment."""
    settings = read_settings(options)
    if settings.half_open:
        return HALF_OPEN
    segments = -(-settings.echo_bytes // SEGMENT_BYTES)
    packets, bytes_ = 4 * segments, 2 * settings.echo_bytes + 4 * segments * 72
    return Cost(HANDSHAKE.packets + packets, HANDSHAKE.bytes + bytes_)


TCP = ProbeSpec(
    name="tcp",
    summary="TCP connect: SYN to SYN-ACK or RST, by TCP_INFO or by stamps of raw SYNs",
    version=2,
    open=_open,
    cost=_cost,
    options=OPTIONS,
    needs_port=True,
    primary_metric=Metric.CONNECT,
    check=option_faults,
)
