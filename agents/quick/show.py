"""The quick look on a terminal of 80 columns."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pathbudget.analysis.failure_findings import TRUST_IT
from pathbudget.analysis.finding_kinds import FindingKind
from pathbudget.analysis.results import (
    BudgetLine,
    Carrier,
    Direction,
    Evaluation,
    Mode,
    Quantile,
    Summary,
    TierInfo,
    Verdict,
)

ORDER = (
    "resolve",
    "rtt",
    "connect",
    "connect_refused",
    "tls_handshake",
    "quic_handshake",
    "setup",
)
NAMES = {
    "resolve": "resolve",
    "rtt": "ICMP RTT",
    "connect": "TCP connect",
    "connect_refused": "TCP refusal",
    "tls_handshake": "TLS flight",
    "quic_handshake": "QUIC flight",
    "setup": "set-up",
}
MODES = {"early_data": "0-RTT"}
"""Shorter words than those of the records."""
CONNECTIONS = (
    *((Carrier.TLS, mode) for mode in (Mode.WARM, Mode.EARLY_DATA, Mode.RESUMED, Mode.COLD)),
    *((Carrier.QUIC, mode) for mode in (Mode.WARM, Mode.EARLY_DATA, Mode.RESUMED, Mode.COLD)),
)
TRUST_IT_HERE = "give its authority by --ca-file FILE, or measure without checking by --insecure"
STYLES = {
    Verdict.PASS: "green",
    Verdict.FAIL: "red",
    Verdict.UNDECIDED: "yellow",
    Verdict.NOT_MEASURED: "dim",
}


def show(evaluation: Evaluation, hosts: Sequence[str], console: Console) -> None:
    """One block per host: what was measured, the light floor, what is left of each tier."""
    for host in hosts:
        console.print(_measured(evaluation, host))
        console.print(_floor(evaluation, host), highlight=False)
        console.print(_tiers(evaluation, host))
        console.print(_connections(evaluation, host))
        for reason in _undecided(evaluation, host):
            console.print(f"Undecided: {reason}", highlight=False)
        for finding in evaluation.findings:
            if finding.site == host and finding.kind is not FindingKind.UNKNOWN_PLACE:
                text = finding.text.replace(TRUST_IT, TRUST_IT_HERE)
                console.print(f"Note: {text}", highlight=False)
        console.print()


def _measured(evaluation: Evaluation, host: str) -> Table:
    found = [
        one
        for one in evaluation.summaries
        if one.site == host and one.metric in ORDER and not _says_nothing_more(one)
    ]
    addresses = sorted({one.address for one in found if one.address})
    title = f"{host}  {' '.join(addresses)}"
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    table.add_column("ms", no_wrap=True)
    for heading in ("n", "fail", "min", "p50", "p95", "interval of p95"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("clock", no_wrap=True)
    for summary in sorted(found, key=_order):
        table.add_row(*_row(summary))
    return table


def _says_nothing_more(summary: Summary) -> bool:
    """Flights of QUIC where none came: the row of the set-ups says so."""
    return summary.metric == "quic_handshake" and summary.losses == summary.n


def _order(summary: Summary) -> tuple[str, int, bool, str, str]:
    family = summary.family or ""
    return family, ORDER.index(summary.metric), summary.probe == "quic", summary.mode or "", ""


def _row(summary: Summary) -> tuple[str, ...]:
    """A row of numbers, or the commonest failure where there is not one number."""
    name = NAMES[summary.metric]
    if summary.metric == "setup" and summary.transport == Carrier.QUIC:
        name = f"QUIC {name}"
    if summary.mode and summary.metric in ("tls_handshake", "quic_handshake", "setup"):
        name += f" {MODES.get(summary.mode, summary.mode)}"
    if summary.metric in ("resolve", "connect", "connect_refused") and summary.probe != "tcp":
        name += f" ({summary.probe})"
    if summary.family == "ipv6":
        name += " v6"
    counts = (name, str(summary.n), str(summary.losses))
    if summary.losses == summary.n and summary.failures:
        failure = max(summary.failures, key=lambda key: summary.failures[key])
        return (*counts, "", "", "", failure.split("/")[0].replace("_", " "), "")
    p50, p95 = _quantile(summary, 50), _quantile(summary, 95)
    clock = max(summary.clock_sources, key=lambda key: summary.clock_sources[key], default="")
    return (
        *counts,
        _ms(summary.minimum_ms),
        _ms(p50.value_ms if p50 else None),
        _ms(p95.value_ms if p95 else None),
        _ends(p95.low_ms, p95.high_ms) if p95 else "",
        clock.replace("_", " "),
    )


def _floor(evaluation: Evaluation, host: str) -> Text:
    for pair in evaluation.pairs:
        if pair.site == host and pair.floor_rtt_ms is not None:
            text = f"Light floor {pair.floor_rtt_ms:.1f} ms over {pair.distance_km:.0f} km"
            if pair.inflation is not None:
                text += f"; the minimum measured is {pair.inflation:.2f} times that"
            return Text(text + ".")
    return Text("Light floor: give --from PLACE and HOST@PLACE to see it.", style="dim")


def _tiers(evaluation: Evaluation, host: str) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in ("tier", "mode"):
        table.add_column(heading, no_wrap=True)
    for heading in ("network p95", "interval", "allowance", "leaves"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for line in evaluation.lines:
        if line.site == host and line.headline:
            table.add_row(*_tier_row(line))
    return table


def _connections(evaluation: Evaluation, host: str) -> Table:
    """What each kind of connection costs a request of each tier, at the median."""
    table = Table(box=None, pad_edge=False)
    table.add_column("network p50, ms", no_wrap=True)
    for tier in evaluation.tiers:
        table.add_column(tier.name, justify="right", no_wrap=True, overflow="ellipsis")
    for carrier, mode in CONNECTIONS:
        lines = [
            next(
                (line for line in evaluation.lines if _is_at(line, host, tier, carrier, mode)), None
            )
            for tier in evaluation.tiers
        ]
        if any(line is not None and line.value_ms is not None for line in lines):
            over = "QUIC " if carrier is Carrier.QUIC else ""
            values = (_ms(line.value_ms) if line and line.n else "" for line in lines)
            table.add_row(f"{over}{MODES.get(mode, mode)}", *values)
    return table


def _is_at(line: BudgetLine, host: str, tier: TierInfo, carrier: Carrier, mode: Mode) -> bool:
    place = (line.site, line.tier, line.direction, line.transport, line.mode)
    wanted = (host, tier.name, Direction.NETWORK, carrier, mode)
    return place == wanted and line.percentile == 50 and line.prompt_bytes == tier.prompt_bytes


def _undecided(evaluation: Evaluation, host: str) -> Sequence[str]:
    """Why, each reason once."""
    lines = (line for line in evaluation.lines if line.site == host and line.headline)
    open_ones = (Verdict.UNDECIDED, Verdict.NOT_MEASURED)
    undecided = (line for line in lines if line.verdict in open_ones)
    return list(dict.fromkeys(line.reason for line in undecided if line.reason))


def _tier_row(line: BudgetLine) -> tuple[str | Text, ...]:
    leaves = ""
    if line.value_ms is not None and line.allowance_ms is not None:
        leaves = f"{line.allowance_ms - line.value_ms:.1f}"
    return (
        line.tier,
        line.mode.value,
        _ms(line.value_ms),
        _ends(line.low_ms, line.high_ms) if line.n else "",
        _ms(line.allowance_ms),
        leaves,
        Text(line.verdict.value, style=STYLES[line.verdict]),
    )


def _quantile(summary: Summary, percentile: float) -> Quantile | None:
    return next((one for one in summary.quantiles if one.percentile == percentile), None)


def _ends(low: float | None, high: float | None) -> str:
    """Of an interval; too few samples set neither."""
    if high is None and not low:
        return "no limit" if low is None else "too few"
    return f"{_ms(low)}..{'no limit' if high is None else _ms(high)}"


def _ms(value: float | None) -> str:
    """None where too many failed. No longer word: nothing of a row of 80 columns may be cut."""
    return "none" if value is None else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
