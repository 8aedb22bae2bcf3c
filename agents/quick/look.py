"""Measures a few hosts for a few seconds, in this process, into memory."""

import asyncio
import secrets
from collections.abc import Sequence

from pathbudget.agents.campaign.plan import SeriesPlan, VantagePlan
from pathbudget.agents.campaign.schedule import ScheduleKind
from pathbudget.agents.campaign.sink import MemorySink
from pathbudget.agents.campaign.vantage_run import VantageRun
from pathbudget.agents.quick.hosts import CheckedHost, Place
from pathbudget.probes.clock import SystemClock
from pathbudget.probes.contract import Option
from pathbudget.probes.network import SystemNetwork
from pathbudget.probes.record import AddressFamily, Measurement, Target, Vantage
from pathbudget.probes.table import probe_table
from pathbudget.sites.catalogue import Catalogue, Region, Site
from pathbudget.sites.shipped import shipped_catalogue

HERE = "here"
DURATION_NS = 4_500_000_000
TIMEOUT_NS = 1_000_000_000
ECHOES = 130
"""A two-sided 95 % interval of a p95 takes 72; the rest is for loss and autocorrelation."""
HANDSHAKES = 15


def series_of(host: CheckedHost, family: AddressFamily | None, *, verify: bool) -> list[SeriesPlan]:
    """ICMP, TCP, TLS full and resumed towards one host."""
    plans: list[tuple[str, str, int, dict[str, Option]]] = [
        ("icmp", "icmp", ECHOES, {}),
        ("tcp", "tcp", HANDSHAKES, {}),
        ("tls-cold", "tls", HANDSHAKES, {"mode": "cold", "verify": verify}),
        ("tls-resumed", "tls", HANDSHAKES, {"mode": "resumed", "verify": verify}),
    ]
    target = Target(name=host.text, host=host.host, site=host.text, port=host.port)
    return [
        SeriesPlan(
            target=target,
            probe=label,
            kind=kind,
            interval_ns=DURATION_NS // count,
            timeout_ns=TIMEOUT_NS,
            schedule=ScheduleKind.PERIODIC,
            family=family,
            options=options,
        )
        for label, kind, count, options in plans
    ]


def look(
    hosts: Sequence[CheckedHost], *, family: AddressFamily | None, verify: bool
) -> tuple[Sequence[Measurement], list[str]]:
    """Measure; return the measurements and what could not be measured.

    Raises PrivilegeError when no probe may be opened at all.
    """
    series = [one for host in hosts for one in series_of(host, family, verify=verify)]
    plan = VantagePlan(
        vantage=Vantage(name=HERE, region=HERE),
        series=tuple(series),
        campaign="check",
        run_id=f"check-{secrets.token_hex(4)}",
        seed=secrets.randbits(32),
        duration_ns=DURATION_NS,
    )
    return asyncio.run(_run(plan))


async def _run(plan: VantagePlan) -> tuple[Sequence[Measurement], list[str]]:
    sink, clock, network = MemorySink(), SystemClock(), SystemNetwork()
    run = VantageRun(plan, table=probe_table(), network=network, clock=clock, sink=sink)
    try:
        await run.prepare()
        await run.run(clock.monotonic_ns())
    finally:
        run.finish()
        network.close()
    return sink.measurements(), run.progress.problems


def places_as_catalogue(hosts: Sequence[CheckedHost], here: Place | None) -> Catalogue:
    """Regions and sites for the analysis: this machine, and the hosts whose place is known."""
    regions = {HERE: Region(HERE, here.latitude, here.longitude)} if here else {}
    sites = {
        host.text: Site(host.text, host.place.latitude, host.place.longitude)
        for host in hosts
        if host.place is not None
    }
    return Catalogue(regions, sites, dict(shipped_catalogue().tiers))
