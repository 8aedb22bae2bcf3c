"""The dns probe, opened: questions over UDP, or over connections of one kind."""

import asyncio

from pathbudget.probes.channels import PacketOptions
from pathbudget.probes.clock import ClockWatcher
from pathbudget.probes.contract import Options, Probe, ProbeEnvironment, Shot
from pathbudget.probes.dns.asking import Asking, Shared
from pathbudget.probes.dns.caches import Caches
from pathbudget.probes.dns.dialers import dialer_for, over_tcp
from pathbudget.probes.dns.questions import QuestionTemplate
from pathbudget.probes.dns.settings import DnsSettings, read_settings
from pathbudget.probes.dns.udp_family import UdpFamily
from pathbudget.probes.dns.udp_session import UdpSession
from pathbudget.probes.families import Families
from pathbudget.probes.record import AddressFamily, Flag, Metric


class DatagramDns(Families[UdpFamily]):
    """See `contract.Probe`: questions over UDP."""

    def __init__(
        self, environment: ProbeEnvironment, options: Options, settings: DnsSettings
    ) -> None:
        super().__init__()
        watcher = ClockWatcher(environment.clock)
        self._tcp = over_tcp(environment, watcher)
        try:
            for family in AddressFamily:
                session = UdpSession(family, settings, environment.rng, Caches())
                opened = UdpFamily(environment, watcher, family, session, self._tcp)
                self._families[family] = opened
                opened.open(_packet_options(options, family))
        except BaseException:
            self.close()
            raise

    def fire(self, shot: Shot) -> None:
        """See `contract.Probe.fire`."""
        self._families[shot.family].fire(shot)

    def close(self) -> None:
        """See `contract.Probe.close`."""
        super().close()
        self._tcp.close()


class ConnectedDns:
    """See `contract.Probe`: questions over connections."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._running: set[Asking] = set()
        self._idle = asyncio.Event()
        self._idle.set()

    def fire(self, shot: Shot) -> None:
        """See `contract.Probe.fire`."""
        self._begin(shot, Metric.DNS_HIT)

    async def drain(self) -> None:
        """See `contract.Probe.drain`. Waits for tickets too: the next shot wants them."""
        await self._idle.wait()
        await self._shared.dialer.drain()

    def close(self) -> None:
        """See `contract.Probe.close`."""
        for asking in tuple(self._running):
            asking.abandon()
        self._running.clear()
        self._idle.set()
        self._shared.idle.close()
        self._shared.dialer.close()

    def _begin(self, shot: Shot, metric: str) -> None:
        asking = Asking(self._shared, shot, metric, self._ended)
        self._running.add(asking)
        self._idle.clear()
        asking.begin()

    def _ended(self, asking: Asking) -> None:
        self._running.discard(asking)
        if asking.metric == Metric.DNS_HIT and self._shared.miss is not None:
            self._begin(asking.shot, Metric.DNS_MISS)
        if not self._running:
            self._idle.set()


def open_probe(environment: ProbeEnvironment, options: Options) -> Probe:
    """Raises ConfigError, PrivilegeError."""
    settings = read_settings(options)
    if settings.transport == "udp":
        return DatagramDns(environment, options, settings)
    watcher = ClockWatcher(environment.clock)
    dialer = dialer_for(environment, watcher, options, settings)
    rng = environment.rng
    encrypted = settings.transport != "tcp"
    unverified = encrypted and not options.get("verify", True)
    shared = Shared(
        environment,
        watcher,
        settings,
        dialer,
        Caches(),
        QuestionTemplate(settings, rng, fresh=False),
        QuestionTemplate(settings, rng, fresh=True) if settings.zone else None,
        marks=(Flag.UNVERIFIED,) if unverified else (),
    )
    return ConnectedDns(shared)


def _packet_options(options: Options, family: AddressFamily) -> PacketOptions:
    source = str(options.get("source") or "")
    if (":" in source) != (family is AddressFamily.IPV6):
        source = ""
    return PacketOptions(
        source=source,
        interface=str(options.get("interface") or ""),
        dscp=int(str(options.get("dscp") or 0)),
    )
