"""What the owner of a host lets its agent do, whatever a plan says (docs/plans.md).

Checked twice: when a plan comes, on its literal addresses, probes, files and rates; and before each
series sends, on the address that a name led to.
"""

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import msgspec

from pathbudget.agents.campaign.plan import SeriesPlan
from pathbudget.agents.plans.plan import AgentPlan
from pathbudget.probes.contract import Option, Options, ProbeSpec
from pathbudget.probes.table import probe_table

IpNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network
DAY_NS = 86_400_000_000_000
SECOND_NS = 1_000_000_000
NEVER = tuple(
    map(ipaddress.ip_network, ("0.0.0.0/8", "224.0.0.0/4", "240.0.0.0/4", "::/128", "ff00::/8"))
)
"""Not addresses of hosts: no policy allows them."""
ONLY_BY_NAME = tuple(
    map(ipaddress.ip_network, ("127.0.0.0/8", "169.254.0.0/16", "::1/128", "fe80::/10"))
)
"""This host itself and its link (cloud metadata is there): only where a policy lists them."""


@dataclass(frozen=True, slots=True)
class QuietHours:
    """From `begin` to `end` by the clock of a zone nothing is sent; past midnight if `end` is less.

    `days` are those on which it begins, 0 is Monday.
    """

    zone: ZoneInfo
    begin: time
    end: time
    days: frozenset[int] = frozenset(range(7))

    def holds(self, unix_ns: int) -> bool:
        """Whether it is quiet at that moment. The wall clock of the zone decides, so a night when
        the clocks change is an hour shorter or longer.
        """
        now = datetime.fromtimestamp(unix_ns / SECOND_NS, self.zone)
        clock, today = now.time(), now.weekday()
        if self.begin < self.end:
            return today in self.days and self.begin <= clock < self.end
        yesterday = (now.date() - timedelta(days=1)).weekday()
        return (today in self.days and clock >= self.begin) or (
            yesterday in self.days and clock < self.end
        )


@dataclass(frozen=True, slots=True)
class Policy:
    """The whole of it. An empty tuple is no restriction, but for what is never allowed."""

    allowed_networks: tuple[IpNetwork, ...] = ()
    do_not_probe: tuple[IpNetwork, ...] = ()
    do_not_probe_names: frozenset[str] = frozenset()
    """Host names, with everything under them."""
    probes: frozenset[str] = frozenset()
    packets_per_second: int = 500
    bytes_per_day: int = 2_000_000_000
    quiet_hours: tuple[QuietHours, ...] = ()
    files: Path | None = None
    """The one folder whose files a plan may name (keys, authorities); None: no file at all."""

    def refusals(self, plan: AgentPlan) -> list[str]:
        """Everything of a plan that this host does not do, in words; empty when it may run."""
        table = probe_table()
        found: dict[str, None] = {}
        for series in plan.series:
            found.update(dict.fromkeys(self._of_series(series, table.get(series.kind))))
        if not found:  # a plan with unknown probes has no cost
            found.update(dict.fromkeys(self._of_rates(plan, table)))
        return list(found)

    def _of_series(self, series: SeriesPlan, spec: ProbeSpec | None) -> Iterator[str]:
        if spec is None:
            yield f"probe {series.kind[:64]!r} is unknown here"
            return
        if self.probes and series.kind not in self.probes:
            yield f"probe {series.kind} is not allowed"
        if series.interval_ns <= 0 or series.train <= 0 or series.timeout_ns <= 0:
            yield f"probe {series.probe[:64]!r} has no interval, train or timeout"
        if why := self.refuses_host(series.target.host):
            yield why
        yield from self._of_options(spec, series.options)

    def _of_rates(self, plan: AgentPlan, table: Mapping[str, ProbeSpec]) -> Iterator[str]:
        packets = octets = 0.0
        for series in plan.series:
            cost, rate = table[series.kind].cost(series.options), series.expected_shots(SECOND_NS)
            packets += rate * cost.packets
            octets += rate * cost.bytes * DAY_NS / SECOND_NS
        most = min(self.packets_per_second, plan.packets_per_second)
        if packets > most:
            yield f"{packets:.0f} packets per second, at most {most} are allowed"
        if octets > self.bytes_per_day:
            allowed = f"at most {self.bytes_per_day / 1e6:.0f} are allowed"
            yield f"{octets / 1e6:.0f} MB a day, {allowed}"

    def refuses_host(self, host: str) -> str:
        """Why a host may not be probed; empty where it may, or where its addresses will tell."""
        name = host.rstrip(".").lower()
        for denied in self.do_not_probe_names:
            if name == denied or name.endswith("." + denied):
                return f"{host[:64]} is on the do-not-probe list"
        return self.refuses_address(host) if _is_address(host) else ""

    def refuses_address(self, address: str) -> str:
        """Why an address may not be probed; empty where it may."""
        one = ipaddress.ip_address(address.partition("%")[0])
        if isinstance(one, ipaddress.IPv6Address) and one.ipv4_mapped is not None:
            one = one.ipv4_mapped
        if _within(one, NEVER):
            return f"{address} is no address of a host"
        if _within(one, self.do_not_probe):
            return f"{address} is on the do-not-probe list"
        if self.allowed_networks:
            allowed = _within(one, self.allowed_networks)
            return "" if allowed else f"{address} is in no allowed network"
        if _within(one, ONLY_BY_NAME):
            return f"{address} is this host or its link, which must be allowed by name"
        return ""

    def is_quiet(self, unix_ns: int) -> bool:
        """Whether nothing is to be sent at that moment."""
        return any(hours.holds(unix_ns) for hours in self.quiet_hours)

    def localized(self, plan: AgentPlan) -> AgentPlan:
        """A plan that may run, with the names of its files as paths of this host."""
        table = probe_table()
        series = tuple(
            msgspec.structs.replace(one, options=self._with_paths(table[one.kind], one.options))
            for one in plan.series
        )
        return msgspec.structs.replace(plan, series=series)

    def _with_paths(self, spec: ProbeSpec, options: Options) -> dict[str, Option]:
        folder = self.files
        return {
            name: str((folder / str(value)).resolve())
            if folder is not None and names_file(spec, name, value)
            else value
            for name, value in options.items()
        }

    def _of_options(self, spec: ProbeSpec, options: Options) -> Iterator[str]:
        for name, value in options.items():
            if not names_file(spec, name, value):
                continue
            if self.files is None:
                yield f"option {name} names a file, and this host allows no folder of files"
            elif not _inside(Path(str(value)), self.files):
                yield f"option {name} names a file outside of {self.files}"


def names_file(spec: ProbeSpec, name: str, value: Option) -> bool:
    """Whether the value of an option is the name of a file."""
    return bool(value) and name in spec.options and spec.options[name].file


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True


def _within(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address, networks: Sequence[IpNetwork]
) -> bool:
    return any(address.version == one.version and address in one for one in networks)


def _inside(path: Path, folder: Path) -> bool:
    """Whether a path leads into a folder once links and dots are followed."""
    return (folder / path).resolve().is_relative_to(folder.resolve())
