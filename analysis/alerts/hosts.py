"""Agents that are silent, and clocks that are bad: from what agents say of themselves."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pathbudget.analysis.alerts.model import AlertKind, Signal
from pathbudget.analysis.alerts.rules import ClockRule, SilentRule
from pathbudget.analysis.report.route_words import lasting
from pathbudget.analysis.report.words import utc
from pathbudget.probes.record import ClockQuality, SyncState


@dataclass(frozen=True, slots=True)
class Host:
    """What is known of one agent or vantage. Times by the clock of whoever heard it, if known."""

    name: str
    heard_unix_ns: int | None
    """When it was last heard; None: never yet."""
    clock: ClockQuality | None = None
    clock_unix_ns: int = 0
    """When it said so of its clock."""
    is_agent: bool = True
    """Whether it is expected to be heard; else it only lent its samples (a campaign's vantage)."""
    is_known: bool = True
    """Whether its heartbeats could be read now; where not, its silence means nothing."""


Hosts = Mapping[str, Host]


def silent_signals(
    rule: SilentRule, hosts: Hosts, now_unix_ns: int, since_unix_ns: int
) -> Iterator[Signal]:
    """One signal for each agent. `since_unix_ns`: since when we listen."""
    expected = {name for name, host in hosts.items() if host.is_agent} | {*rule.agents}
    for name in sorted(expected):
        host = hosts.get(name) or Host(name, None)
        heard = since_unix_ns if host.heard_unix_ns is None else host.heard_unix_ns
        silent_ns = max(0, now_unix_ns - heard)
        bad = silent_ns > rule.after_ns if host.is_known else None
        yield Signal(
            key=f"{rule.name}/{name}",
            rule=rule.name,
            kind=AlertKind.AGENT_SILENT,
            severity=rule.severity,
            bad=bad,
            summary=_silence(host, silent_ns, bad=bad),
            labels={"agent": name},
            numbers={"silent_s": round(silent_ns / 1e9, 3)},
            began_unix_ns=heard if bad else None,
        )


def _silence(host: Host, silent_ns: int, *, bad: bool | None) -> str:
    if host.heard_unix_ns is None:
        return f"agent {host.name} was never heard in {lasting(silent_ns)}."
    if not host.is_known:
        return f"agent {host.name}: what it says cannot be read."
    last = f"last heard {utc(host.heard_unix_ns)}"
    if bad:
        return f"agent {host.name} has been silent for {lasting(silent_ns)}, {last}."
    return f"agent {host.name} is heard, {last}."


def clock_signals(rule: ClockRule, hosts: Hosts, now_unix_ns: int) -> Iterator[Signal]:
    """One signal for each host that says something of its clock."""
    for name, host in sorted(hosts.items()):
        if host.clock is None:
            continue
        faults = clock_faults(rule, host.clock)
        current = now_unix_ns - host.clock_unix_ns <= rule.current_ns
        unknown = not faults and host.clock.sync_state is SyncState.UNKNOWN
        why = "; ".join(faults) if faults else _fine(host.clock)
        yield Signal(
            key=f"{rule.name}/{name}",
            rule=rule.name,
            kind=AlertKind.CLOCK_BAD,
            severity=rule.severity,
            bad=None if unknown or not current else bool(faults),
            summary=f"clock of {name}: {why}.",
            labels={"agent": name},
            numbers={
                "offset_bound_ms": _ms(host.clock.offset_bound_ns),
                "steps": float(host.clock.steps),
                "largest_step_ms": _ms(host.clock.largest_step_ns),
            },
        )


def clock_faults(rule: ClockRule, clock: ClockQuality) -> list[str]:
    """What is wrong with a clock, in words."""
    faults: list[str] = []
    if clock.sync_state is SyncState.UNSYNCHRONISED:
        faults.append("it is not synchronised")
    bound = clock.offset_bound_ns
    if bound is not None and bound > rule.most_offset_ns:
        faults.append(f"it may be wrong by {bound / 1e6:.1f} ms")
    if clock.steps and abs(clock.largest_step_ns) > rule.most_step_ns:
        times = "once" if clock.steps == 1 else f"{clock.steps} times"
        faults.append(f"it was stepped {times}, by up to {clock.largest_step_ns / 1e6:.1f} ms")
    return faults


def _fine(clock: ClockQuality) -> str:
    if clock.sync_state is SyncState.UNKNOWN:
        return "nobody says whether it is right"
    bound = clock.offset_bound_ns
    return "synchronised" if bound is None else f"right to {bound / 1e6:.1f} ms"


def _ms(value_ns: int | None) -> float | None:
    return None if value_ns is None else round(value_ns / 1e6, 6)
