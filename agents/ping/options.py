"""What the command was asked to do, checked as a whole, and the plan that comes of it."""

import math
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pathbudget.agents.campaign.epochs import literal_family
from pathbudget.agents.campaign.plan import SeriesPlan, VantagePlan
from pathbudget.agents.campaign.schedule import ScheduleKind
from pathbudget.agents.ping.hosts import PingHost
from pathbudget.agents.ping.load import Load
from pathbudget.agents.units import format_duration
from pathbudget.probes.contract import Option, ProbeSpec
from pathbudget.probes.errors import ConfigError, Fault
from pathbudget.probes.record import AddressFamily, Target, Vantage
from pathbudget.probes.table import check_options

HERE = "here"
SECOND_NS = 1_000_000_000
SHORTEST_NS = 10_000_000
MOST_PER_SECOND = 2_000
"""Packets sent per second, all hosts together, unless the user allows more."""
FAST_NS = 100_000_000
TIMEOUT_NS = 1_000_000_000
FAST_TIMEOUT_NS = 500_000_000
"""With intervals of 100 ms and less, so that an outage is told within a second."""
PORTS = {"tcp": 443, "stamp": 8620}
"""Where none is given. 862, that of RFC 8762, is root's alone."""
NAMES: Mapping[str, tuple[str, ...]] = {
    "size": ("payload_bytes", "packet_bytes", "size"),
    "dscp": ("dscp",),
    "interface": ("interface",),
    "source": ("source",),
    "flows": ("flows",),
    "key_file": ("key_file",),
    "key_id": ("key_id",),
}
OF_STAMP = frozenset({"key_file", "key_id"})
"""Not meant for the probe beside it."""
"""Our options, and what probes call them."""


@dataclass(frozen=True, slots=True)
class PingOptions:
    """Durations in nanoseconds. `probe` is empty where the command chooses; `stamp` is a port."""

    hosts: Sequence[PingHost]
    probe: str = ""
    stamp: int | None = None
    family: AddressFamily | None = None
    interval_ns: int = SECOND_NS
    schedule: ScheduleKind = ScheduleKind.PERIODIC
    timeout_ns: int | None = None
    count: int | None = None
    duration_ns: int | None = None
    size: int | None = None
    dscp: int | None = None
    interface: str | None = None
    source: str | None = None
    flows: int | None = None
    key_file: str | None = None
    key_id: str | None = None
    train: int = 1
    most_per_second: int = MOST_PER_SECOND
    load: Load | None = None

    @property
    def waits_ns(self) -> int:
        """How long an answer is waited for."""
        if self.timeout_ns is not None:
            return self.timeout_ns
        return FAST_TIMEOUT_NS if self.interval_ns <= FAST_NS else TIMEOUT_NS

    @property
    def lasts_ns(self) -> int | None:
        """How long it sends; None: until somebody ends it."""
        by_count = None if self.count is None else self.count * self.interval_ns
        known = [one for one in (by_count, self.duration_ns) if one is not None]
        return min(known, default=None)

    @property
    def column_ns(self) -> int:
        """Ten packets a column of smoke, and a second at least."""
        return max(SECOND_NS, 10 * self.interval_ns // self.train)


def check(options: PingOptions) -> None:
    """Refuse what goes beyond the bounds, or makes no sense. Raises ConfigError."""
    faults: list[Fault] = []
    if options.interval_ns < SHORTEST_NS:
        given = format_duration(options.interval_ns)
        faults.append(_fault("--interval", given, "10ms or more"))
    rate = packets_per_second(options)
    if rate > options.most_per_second:
        most = options.most_per_second
        expected = f"at most {most}: fewer hosts, longer intervals, or a higher --max-rate"
        faults.append(_fault("--interval", f"{math.ceil(rate)} packets per second", expected))
    if options.load is not None and "stamp" not in probes_of(options, options.probe or "icmp"):
        faults.append(_fault("--load", "no reflector", "--stamp PORT of a reflector beside it"))
    for one in options.hosts:
        family = literal_family(one.host)
        if options.family is not None and family not in (None, options.family):
            faults.append(_fault("HOST", one.text, f"an {options.family} address, as asked for"))
    if options.load is not None and len(options.hosts) > 1:
        faults.append(_fault("--load", f"{len(options.hosts)} hosts", "one host at a time"))
    if faults:
        raise ConfigError(faults)


def packets_per_second(options: PingOptions) -> float:
    """Sent to all hosts together, load aside."""
    series = len(options.hosts) * len(probes_of(options, options.probe or "icmp"))
    return series * options.train * SECOND_NS / options.interval_ns


def probes_of(options: PingOptions, main: str) -> tuple[str, ...]:
    """The probes of each host."""
    if options.stamp is None or main == "stamp":
        return (main,)
    return (main, "stamp")


def vantage_plan(options: PingOptions, main: str, table: Mapping[str, ProbeSpec]) -> VantagePlan:
    """One series per host and probe. Raises ConfigError for an option that a probe lacks."""
    kinds = probes_of(options, main)
    given = {kind: _probe_options(options, kind, table) for kind in kinds}
    series = [
        SeriesPlan(
            target=_target(options, one, kind),
            probe=kind,
            kind=kind,
            interval_ns=options.interval_ns,
            timeout_ns=options.waits_ns,
            schedule=options.schedule,
            family=options.family,
            options=given[kind],
            train=options.train,
        )
        for one in options.hosts
        for kind in kinds
    ]
    both_ways = sum(
        table[one.kind].cost(one.options).packets * one.train * SECOND_NS / one.interval_ns
        for one in series
    )
    return VantagePlan(
        vantage=Vantage(name=HERE, region=HERE, source_address=options.source or ""),
        series=tuple(series),
        campaign="ping",
        run_id=f"ping-{secrets.token_hex(4)}",
        seed=secrets.randbits(32),
        duration_ns=options.lasts_ns,
        packets_per_second=max(500, math.ceil(2 * both_ways)),
    )


def _target(options: PingOptions, one: PingHost, kind: str) -> Target:
    port = one.port
    if kind == "stamp" and options.stamp is not None:
        port = options.stamp
    return Target(name=one.text, host=one.host, site=one.text, port=port or PORTS.get(kind))


def _probe_options(
    options: PingOptions, kind: str, table: Mapping[str, ProbeSpec]
) -> dict[str, Option]:
    spec = table[kind]
    raw: dict[str, object] = {}
    for ours, theirs in NAMES.items():
        value = getattr(options, ours)
        if value is None or (ours in OF_STAMP and kind != "stamp" and options.stamp is not None):
            continue
        name = next((one for one in theirs if one in spec.options), None)
        if name is not None:
            raw[name] = value
        elif ours != "source":  # the network itself binds that
            expected = f"a probe that has it; {kind} does not"
            raise ConfigError([_fault(f"--{ours.replace('_', '-')}", str(value), expected)])
    found, faults = check_options(spec, raw, "command line", f"--probe {kind}")
    if faults:
        raise ConfigError(faults)
    return dict(found)


def _fault(where: str, problem: str, expected: str) -> Fault:
    return Fault("command line", where, problem, expected)
