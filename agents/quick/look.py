"""Measures a few hosts for a few seconds, in this process, into memory."""

import asyncio
import importlib.util
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import msgspec

from pathbudget.agents.campaign.addresses import Names, addresses_of
from pathbudget.agents.campaign.plan import SeriesPlan, VantagePlan
from pathbudget.agents.campaign.schedule import ScheduleKind
from pathbudget.agents.campaign.sink import MemorySink
from pathbudget.agents.campaign.unresolved import nothing_sent
from pathbudget.agents.campaign.vantage_run import VantageRun
from pathbudget.agents.quick.hosts import CheckedHost, Place
from pathbudget.probes.clock import SystemClock
from pathbudget.probes.contract import Option
from pathbudget.probes.errors import ConfigError, PrivilegeError
from pathbudget.probes.network import SystemNetwork
from pathbudget.probes.record import (
    AddressFamily,
    ConnectionMode,
    Measurement,
    Target,
    Vantage,
)
from pathbudget.probes.table import check_options, probe_table
from pathbudget.sites.catalogue import Catalogue, Region, Site
from pathbudget.sites.shipped import shipped_catalogue

HERE = "here"
DURATION_NS = 4_500_000_000
MORE_NS = 3_000_000_000
"""Of what is added while a verdict is open."""
LONGEST_NS = 15_000_000_000
"""Where the user names no duration, verdict or not."""
TIMEOUT_NS = 1_000_000_000
TRIED_NS = 1_050_000_000
QUIC_PARTS = "pathbudget.probes.quic.telling"
TRIALS = 3
"""Of what few servers offer, before it is measured: early data needs a ticket of before."""
ECHOES = 200
"""An interval of a p95 that holds at every look takes 162; the rest is for loss and
autocorrelation."""
HANDSHAKES = 15
MOST_ECHOES, MOST_HANDSHAKES = 1_000, 100
"""However long it lasts: samples that are far apart are worth more than many."""


@dataclass(slots=True)
class Looked:
    """What was measured. `problems`: what could not be, `unsent`: names that led nowhere."""

    measurements: list[Measurement] = field(default_factory=list[Measurement])
    problems: list[str] = field(default_factory=list[str])
    unsent: dict[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Trust:
    """Which certificates are believed."""

    verify: bool = True
    ca_file: str = ""

    def options(self, mode: ConnectionMode) -> dict[str, Option]:
        """Options of a probe that shakes hands."""
        return {"mode": mode.value, "verify": self.verify, "ca_file": self.ca_file}


Decided = Callable[[Sequence[Measurement]], bool]


def series_of(
    host: CheckedHost,
    family: AddressFamily | None,
    *,
    trust: Trust,
    duration_ns: int = DURATION_NS,
    icmp: bool = True,
) -> list[SeriesPlan]:
    """ICMP, TCP, and every mode of TLS and QUIC that this installation can do, towards one host;
    without ICMP, TCP as often as that.
    """
    echo = max(DURATION_NS // ECHOES, duration_ns // MOST_ECHOES)
    handshake = max(DURATION_NS // HANDSHAKES, duration_ns // MOST_HANDSHAKES)
    plans: list[tuple[str, str, int, dict[str, Option]]] = [
        ("icmp", "icmp", echo, {}),
        ("tcp", "tcp", handshake if icmp else echo, {}),
        *(
            (f"{probe}-{mode}", probe, handshake, trust.options(mode))
            for probe, mode in handshakes_at_hand()
        ),
    ]
    target = Target(name=host.text, host=host.host, site=host.text, port=host.port)
    return [
        SeriesPlan(
            target=target,
            probe=label,
            kind=kind,
            interval_ns=interval_ns,
            timeout_ns=TIMEOUT_NS,
            schedule=ScheduleKind.PERIODIC,
            family=family,
            options=_whole(kind, options),
        )
        for label, kind, interval_ns, options in plans
    ]


def _whole(kind: str, options: dict[str, Option]) -> dict[str, Option]:
    """The options with the defaults of the probe filled in. Raises ConfigError: a file of the
    command line cannot be used.
    """
    whole, faults = check_options(probe_table()[kind], options, "command line", "")
    if faults:
        raise ConfigError(
            [replace(fault, where=f"--{fault.where.replace('_', '-')}") for fault in faults]
        )
    return dict(whole)


def handshakes_at_hand() -> list[tuple[str, ConnectionMode]]:
    """Probe and mode of every handshake that the libraries which are installed can do."""
    plain = [ConnectionMode.COLD, ConnectionMode.RESUMED]
    early = [ConnectionMode.EARLY_DATA]
    tls = plain + (early if importlib.util.find_spec("OpenSSL") else [])
    quic = plain + early if importlib.util.find_spec("aioquic") else []
    return [("tls", mode) for mode in tls] + [("quic", mode) for mode in quic]


def look(
    hosts: Sequence[CheckedHost],
    *,
    family: AddressFamily | None,
    trust: Trust,
    duration_ns: int | None = None,
    decided: Decided = lambda _: True,
) -> Looked:
    """Measure for `duration_ns`; where that is None for some seconds, and for more of them until
    `decided`, which is asked with all that was measured, or `LONGEST_NS` are over.

    Raises PrivilegeError when no probe may be opened at all.
    """
    began_ns = time.monotonic_ns()
    looked = Looked()
    asked = duration_ns or DURATION_NS
    found = asyncio.run(_that_resolve(hosts, family, looked))
    if not found:
        return looked
    icmp = _may_echo()
    series = [
        one
        for host in found
        for one in series_of(host, family, trust=trust, duration_ns=asked, icmp=icmp)
    ]
    run_id = f"check-{secrets.token_hex(4)}"
    asyncio.run(_together(series, asked, run_id, looked))
    while duration_ns is None and not decided(looked.measurements):
        left_ns = LONGEST_NS - (time.monotonic_ns() - began_ns)
        if left_ns < MORE_NS // 2:
            break
        more = [_often(one) for one in series if one.kind == _decisive(one, looked.measurements)]
        asyncio.run(_run(_plan(more, min(MORE_NS, left_ns), run_id), looked, tell=False))
    return looked


async def _together(
    series: Sequence[SeriesPlan], duration_ns: int, run_id: str, looked: Looked
) -> None:
    """All of it at once; what few servers offer is tried before it is measured, beside the rest."""
    rare = [one for one in series if _is_rare(one)]
    if any(one.kind == "quic" for one in rare):
        importlib.import_module(QUIC_PARTS)  # now: while probes are due it would make them late
    usual = [one for one in series if not _is_rare(one)]
    await asyncio.gather(
        _run(_plan(usual, duration_ns, run_id), looked),
        _where_offered(rare, duration_ns, run_id, looked),
    )


def _is_rare(series: SeriesPlan) -> bool:
    return series.kind == "quic" or series.options.get("mode") == ConnectionMode.EARLY_DATA


async def _where_offered(
    series: Sequence[SeriesPlan], duration_ns: int, run_id: str, looked: Looked
) -> None:
    """A few handshakes over QUIC, and with early data over TLS; every mode for the rest of the time
    where they went well.
    """
    trials = [
        msgspec.structs.replace(one, interval_ns=TRIED_NS // TRIALS)
        for one in series
        if one.kind != "quic" or one.options.get("mode") == ConnectionMode.COLD
    ]
    if not trials:
        return
    began_ns, known = time.monotonic_ns(), len(looked.measurements)
    await _run(_plan(trials, TRIED_NS, run_id), looked)
    offered = {
        (one.target.name, one.probe) for one in looked.measurements[known:] if _went_well(one)
    }
    left_ns = duration_ns - (time.monotonic_ns() - began_ns)
    wanted = [one for one in series if (one.target.name, one.kind) in offered]
    if wanted and left_ns > TRIED_NS:
        await _run(_plan(wanted, left_ns, run_id), looked, tell=False)


def _went_well(measurement: Measurement) -> bool:
    """Whether a handshake over QUIC was answered, or early data over TLS accepted."""
    mode = ConnectionMode.COLD if measurement.probe == "quic" else ConnectionMode.EARLY_DATA
    return measurement.probe in ("quic", "tls") and any(
        sample.failure is None and sample.mode == mode for sample in measurement.samples
    )


def _plan(series: Sequence[SeriesPlan], duration_ns: int, run_id: str) -> VantagePlan:
    return VantagePlan(
        vantage=Vantage(name=HERE, region=HERE),
        series=tuple(series),
        campaign="check",
        run_id=run_id,
        seed=secrets.randbits(32),
        duration_ns=duration_ns,
    )


def _decisive(series: SeriesPlan, measurements: Sequence[Measurement]) -> str:
    """Which probe gives the round trips of this host: ICMP where it answers, else TCP."""
    host = series.target.name
    echoes = (one for one in measurements if one.probe == "icmp" and one.target.name == host)
    answered = any(sample.failure is None for one in echoes for sample in one.samples)
    return "icmp" if answered else "tcp"


def _often(series: SeriesPlan) -> SeriesPlan:
    return msgspec.structs.replace(series, interval_ns=DURATION_NS // ECHOES)


async def _that_resolve(
    hosts: Sequence[CheckedHost], family: AddressFamily | None, looked: Looked
) -> list[CheckedHost]:
    """The hosts that have an address; of the others it is noted why they have none."""
    network = SystemNetwork()
    try:
        names = Names(network)
        plans = [series_of(host, family, trust=Trust())[0] for host in hosts]
        found = await asyncio.gather(*(addresses_of(plan, names) for plan in plans))
    finally:
        network.close()
    for host, (_, _, failure) in zip(hosts, found, strict=True):
        if failure is not None:
            looked.unsent[host.text] = nothing_sent(host.text, failure.kind)
    return [host for host in hosts if host.text not in looked.unsent]


def _may_echo() -> bool:
    """Whether this user may send ICMP in some family."""
    return asyncio.run(_opens_icmp())


async def _opens_icmp() -> bool:
    network = SystemNetwork()
    try:
        for family in AddressFamily:
            channel = network.open_icmp(family, lambda _: None)
            if channel is not None:
                channel.close()
                return True
    except PrivilegeError:
        return False
    finally:
        network.close()
    return False


async def _run(plan: VantagePlan, looked: Looked, *, tell: bool = True) -> None:
    sink, clock, network = MemorySink(), SystemClock(), SystemNetwork()
    run = VantageRun(plan, table=probe_table(), network=network, clock=clock, sink=sink)
    try:
        await run.prepare()
        await run.run(clock.monotonic_ns())
    finally:
        run.finish()
        network.close()
    looked.measurements += sink.measurements()
    if tell:
        looked.problems += run.progress.problems


def places_as_catalogue(hosts: Sequence[CheckedHost], here: Place | None) -> Catalogue:
    """Regions and sites for the analysis: this machine, and the hosts whose place is known."""
    regions = {HERE: Region(HERE, here.latitude, here.longitude)} if here else {}
    sites = {
        host.text: Site(host.text, host.place.latitude, host.place.longitude)
        for host in hosts
        if host.place is not None
    }
    return Catalogue(regions, sites, dict(shipped_catalogue().tiers))
