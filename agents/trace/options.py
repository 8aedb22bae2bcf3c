"""What `pathbudget trace` was asked to do, checked as a whole, and the plan that comes of it."""

import math
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pathbudget.agents.campaign.epochs import literal_family
from pathbudget.agents.campaign.plan import SeriesPlan, VantagePlan
from pathbudget.agents.campaign.schedule import ScheduleKind
from pathbudget.agents.ping.hosts import PingHost
from pathbudget.agents.ping.options import HERE, SECOND_NS
from pathbudget.agents.units import format_duration
from pathbudget.probes.contract import Option, ProbeSpec
from pathbudget.probes.errors import ConfigError, Fault
from pathbudget.probes.record import AddressFamily, Target, Vantage
from pathbudget.probes.table import check_options

PROBE = "trace"
INTERVAL_NS = 10 * SECOND_NS
"""Between rounds. Routers answer few probes a second (RFC 1812, 4.3.2.8): shorter rounds ask them
for what they will not give."""
SHORTEST_NS = SECOND_NS
ONCE_NS = 50_000_000
TIMEOUT_NS = SECOND_NS
MOST_HOSTS = 16


@dataclass(frozen=True, slots=True)
class TraceOptions:
    """Durations in nanoseconds. None where the probe's own default holds."""

    hosts: Sequence[PingHost]
    protocol: str | None = None
    port: int | None = None
    flows: int | None = None
    confidence: float | None = None
    max_hops: int | None = None
    mtu: bool = False
    family: AddressFamily | None = None
    interval_ns: int = INTERVAL_NS
    timeout_ns: int = TIMEOUT_NS
    count: int | None = None
    source: str | None = None

    @property
    def once(self) -> bool:
        """One round, at once."""
        return self.count == 1

    @property
    def between_ns(self) -> int:
        """From one round to the next; a single one need not wait for its turn."""
        return ONCE_NS if self.once else self.interval_ns


def check(options: TraceOptions) -> None:
    """Refuse what goes beyond the bounds, or makes no sense. Raises ConfigError."""
    faults: list[Fault] = []
    if options.interval_ns < SHORTEST_NS:
        faults.append(_fault("--interval", format_duration(options.interval_ns), "1s or more"))
    if len(options.hosts) > MOST_HOSTS:
        many = f"{len(options.hosts)} hosts"
        faults.append(_fault("HOST", many, f"at most {MOST_HOSTS}; a campaign takes more"))
    for one in options.hosts:
        family = literal_family(one.host)
        if options.family is not None and family not in (None, options.family):
            faults.append(_fault("HOST", one.text, f"an {options.family} address, as asked for"))
        if one.port is not None and options.protocol == "icmp":
            faults.append(_fault("HOST", one.text, "no port: ICMP has none"))
    if options.port is not None and options.protocol == "icmp":
        faults.append(_fault("--port", str(options.port), "udp, tcp or session: ICMP has none"))
    if faults:
        raise ConfigError(faults)


def vantage_plan(options: TraceOptions, table: Mapping[str, ProbeSpec]) -> VantagePlan:
    """One series per host. Raises ConfigError for what the probe does not take."""
    spec = table[PROBE]
    series = [
        SeriesPlan(
            target=Target(
                name=one.text,
                host=one.host,
                site=one.text,
                port=one.port or options.port or spec.default_port,
            ),
            probe=PROBE,
            kind=PROBE,
            interval_ns=options.between_ns,
            timeout_ns=options.timeout_ns,
            schedule=ScheduleKind.PERIODIC,
            family=options.family,
            options=_probe_options(options, one, spec),
        )
        for one in options.hosts
    ]
    packets = max(spec.cost(one.options).packets for one in series)
    return VantagePlan(
        vantage=Vantage(name=HERE, region=HERE, source_address=options.source or ""),
        series=tuple(series),
        campaign=PROBE,
        run_id=f"trace-{secrets.token_hex(4)}",
        seed=secrets.randbits(32),
        duration_ns=None if options.count is None else options.count * options.between_ns,
        packets_per_second=max(500, math.ceil(2 * packets * len(series))),
    )


def _probe_options(options: TraceOptions, host: PingHost, spec: ProbeSpec) -> dict[str, Option]:
    asked = {
        "protocol": options.protocol,
        "port": host.port or options.port,
        "flows": options.flows,
        "confidence": options.confidence,
        "max_hops": options.max_hops,
        "mtu": options.mtu or None,
    }
    raw: dict[str, object] = {
        name: value
        for name, value in asked.items()
        if value is not None and (name in spec.options or name != "port")
    }
    found, faults = check_options(spec, raw, "command line", "trace")
    if faults:
        raise ConfigError(faults)
    return dict(found)


def _fault(where: str, problem: str, expected: str) -> Fault:
    return Fault("command line", where, problem, expected)
