"""The quick look on a terminal of 80 columns."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pathbudget.analysis.results import (
    BudgetLine,
    Evaluation,
    Quantile,
    Summary,
    Verdict,
)

ROWS = (
    ("resolve", "resolve", None),
    ("icmp", "rtt", None),
    ("tcp", "connect", None),
    ("tls", "tls_handshake", "cold"),
    ("tls", "tls_handshake", "resumed"),
    ("tls", "setup", "cold"),
    ("tls", "setup", "resumed"),
)
"""What is shown, in order: probe (or ``resolve`` for any), metric, mode."""
NAMES = {"rtt": "ICMP RTT", "connect": "TCP connect", "tls_handshake": "TLS", "resolve": "resolve"}
STYLES = {Verdict.PASS: "green", Verdict.FAIL: "red", Verdict.UNDECIDED: "yellow"}


def show(evaluation: Evaluation, hosts: Sequence[str], console: Console) -> None:
    """One block per host: what was measured, the light floor, what is left of each tier."""
    for host in hosts:
        console.print(_measured(evaluation, host))
        console.print(_floor(evaluation, host), highlight=False)
        console.print(_tiers(evaluation, host))
        for finding in evaluation.findings:
            if finding.site == host:
                console.print(f"Note: {finding.text}", highlight=False)
        console.print()


def _measured(evaluation: Evaluation, host: str) -> Table:
    found = [one for one in evaluation.summaries if one.site == host]
    addresses = sorted({one.address for one in found if one.address})
    table = Table(
        title=f"{host}  {' '.join(addresses)}", title_justify="left", title_style="bold", box=None
    )
    table.add_column("ms", no_wrap=True)
    for heading in ("n", "lost", "min", "p50", "p95", "p95 interval"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("clock", no_wrap=True)
    for probe, metric, mode in ROWS:
        for summary in found:
            same = summary.metric == metric and (mode is None or summary.mode == mode)
            if same and probe in (summary.probe, "resolve"):
                table.add_row(*_row(summary))
    return table


def _row(summary: Summary) -> tuple[str, ...]:
    name = NAMES.get(summary.metric, "set-up")
    mode = f" {summary.mode}" if summary.mode and summary.metric != "rtt" else ""
    family = " v6" if summary.family == "ipv6" else ""
    if summary.losses == summary.n and summary.failures:
        worst = max(summary.failures, key=lambda key: summary.failures[key])
        return (name + mode + family, str(summary.n), str(summary.losses), worst)
    p50, p95 = _quantile(summary, 50), _quantile(summary, 95)
    interval = "" if p95 is None else f"{_ms(p95.low_ms)}..{_ms(p95.high_ms, 'no limit')}"
    clock = max(summary.clock_sources, key=lambda key: summary.clock_sources[key], default="")
    return (
        name + mode + family,
        str(summary.n),
        str(summary.losses),
        _ms(summary.minimum_ms),
        _ms(p50.value_ms if p50 else None),
        _ms(p95.value_ms if p95 else None),
        interval,
        clock,
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


def _tier_row(line: BudgetLine) -> tuple[str | Text, ...]:
    leaves = ""
    if line.value_ms is not None and line.allowance_ms is not None:
        leaves = f"{line.allowance_ms - line.value_ms:.1f}"
    return (
        line.tier,
        line.mode.value,
        _ms(line.value_ms),
        f"{_ms(line.low_ms)}..{_ms(line.high_ms, 'no limit')}",
        _ms(line.allowance_ms),
        leaves,
        Text(line.verdict.value, style=STYLES[line.verdict]),
    )


def _quantile(summary: Summary, percentile: float) -> Quantile | None:
    return next((one for one in summary.quantiles if one.percentile == percentile), None)


def _ms(value: float | None, absent: str = "lost") -> str:
    return absent if value is None else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
