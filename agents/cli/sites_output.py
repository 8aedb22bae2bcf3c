"""How `pathbudget sites` prints: tables of 80 columns, JSON, CSV."""

import csv
import os
import sys
from collections.abc import Sequence

import msgspec
from rich.console import Console
from rich.table import Table

from pathbudget.agents.cli.wording import harmless
from pathbudget.analysis.report.words import listed, share
from pathbudget.analysis.siting.decision import Decision, FrontierPoint, LossOf, Served
from pathbudget.analysis.siting.decision_results import Robustness
from pathbudget.analysis.siting.sweep import Sweep

GUESS = "~"
"""Stands before every number that a model filled in."""

MOST_ROWS = 40
UNKNOWN = "-"


def print_sweep(answer: Sweep, kind: str, *, notes: Sequence[str]) -> None:
    """Decisions by number of sites, the shown one in full."""
    if kind == "json":
        _json({**msgspec.to_builtins(answer), "source_notes": list(notes)})
    elif kind == "csv":
        _csv(
            [
                "region",
                "tier",
                "weight",
                "site",
                "share",
                "value_ms",
                "low_ms",
                "high_ms",
                "filled",
            ],
            [
                [
                    a.region,
                    a.tier,
                    a.weight,
                    a.site,
                    a.share,
                    a.value_ms,
                    a.low_ms,
                    a.high_ms,
                    a.filled,
                ]
                for a in answer.shown.assignments
            ],
        )
    else:
        _print_decision(answer, notes)


def print_frontier(
    points: Sequence[FrontierPoint], objective: str, kind: str, *, notes: Sequence[str]
) -> None:
    """Points from few sites to many, dear to cheap; efficient ones are starred."""
    if kind == "json":
        _json(
            {
                "objective": str(objective),
                "points": msgspec.to_builtins(tuple(points)),
                "notes": list(notes),
            }
        )
        return
    if kind == "csv":
        columns = FrontierPoint.__struct_fields__
        rows = [[_cell(getattr(point, name)) for name in columns] for point in points]
        _csv(list(columns), rows)
        return
    table = _table(
        ("", "sites", "value", "price", "served", "proof"), right=("value", "price", "served")
    )
    for point in points:
        table.add_row(
            "*" if point.efficient else "",
            listed(point.sites),
            _value(point.value, "share" if objective == "covering" else "ms"),
            _amount(point.price_per_month),
            share(point.served_share),
            _proof(point.proved, point.gap),
        )
    _show(table)
    _show("* no other point is as good and cheaper, or as cheap and better.")
    _notes(notes)


def print_failover(decision: Decision, kind: str, *, notes: Sequence[str]) -> None:
    """Where the regions of each lost site go."""
    if kind == "json":
        _json({**msgspec.to_builtins(decision), "source_notes": list(notes)})
        return
    if kind == "csv":
        _csv(
            ["lost_site", "region", "tier", "weight", "site", "share", "before_ms", "after_ms"],
            [
                [
                    lost.lost_site,
                    m.region,
                    m.tier,
                    m.weight,
                    m.site,
                    m.share,
                    m.before_ms,
                    m.after_ms,
                ]
                for lost in decision.failover
                for m in lost.moved
            ],
        )
        return
    if _impossible(decision):
        return
    _show(f"{listed(decision.sites)}: {_value(decision.value, decision.unit)} with all sites up")
    for lost in decision.failover:
        _print_loss(decision, lost)
    _notes([*decision.notes, *notes])


def print_measure_next(decision: Decision, kind: str, *, notes: Sequence[str]) -> None:
    """Pairs by what their measurement is worth."""
    robust = decision.robustness
    found = () if robust is None else robust.measure_next
    if kind == "json":
        _json({**msgspec.to_builtins(decision), "source_notes": list(notes)})
    elif kind == "csv":
        columns = ["region", "site", "measured", "samples", "reduction", "per_sample"]
        _csv(columns, [[getattr(one, name) for name in columns] for one in found])
    elif not _impossible(decision) and robust is not None:
        _show(f"{listed(decision.sites)}: expected regret {_regret(robust, decision.unit)}")
        _print_next(robust, decision.unit)
        _notes([*decision.notes, *notes])


def _print_decision(answer: Sweep, notes: Sequence[str]) -> None:
    decision = answer.shown
    _show("Asked: " + "; ".join(decision.asked) + ".")
    if _impossible(decision):
        return
    _show(f"Take {listed(decision.sites)}: {_value(decision.value, decision.unit)}{_of(decision)}.")
    _show(_proof_sentence(decision))
    _print_costs(decision)
    if decision.next_best_sites:
        margin = (
            "" if decision.margin is None else f", {_value(decision.margin, decision.unit)} behind"
        )
        _show(f"Next best: {listed(decision.next_best_sites)}{margin}.")
    if len(answer.choices) > 1:
        _print_sizes(answer)
    _print_facts(decision)
    _print_assignments(decision.assignments)
    for lost in decision.failover if len(decision.sites) > 1 else ():
        _show(_loss_sentence(decision, lost))
    _print_robustness(decision)
    _notes([*decision.notes, *notes])


def _of(decision: Decision) -> str:
    words = {"p-median": "mean over the traffic", "p-center": "the region that is worst off"}
    what = words.get(decision.objective, "of the traffic within the allowance")
    if decision.unit == "share" or decision.served_share > 1 - 1e-9:
        return f" {what}" if decision.unit == "share" else f", {what}"
    return f", {what} served ({share(decision.served_share)})"


def _proof_sentence(decision: Decision) -> str:
    if decision.proved:
        return "Proved: no choice that keeps the constraints does better."
    if decision.gap is None:
        return "Not proved within the time, and no bound is known (--seconds)."
    return f"Not proved within the time: no choice is better by more than {decision.gap:.2%}."


def _proof(proved: bool, gap: float | None) -> str:
    return "proved" if proved else "no bound" if gap is None else f"gap {gap:.1%}"


def _print_costs(decision: Decision) -> None:
    parts: list[str] = []
    if decision.price_per_month is not None:
        parts.append(f"{_amount(decision.price_per_month)} per month")
    if decision.power_kw is not None:
        parts.append(f"{decision.power_kw:,.6g} kW")
    if parts:
        _show("Together: " + ", ".join(parts) + ".")
    for load in decision.loads:
        if load.full:
            _show(f"{load.site} is full: it carries {share(load.share)} of the traffic.")
        elif load.over:
            _show(
                f"{load.site} gets {load.load:g}, more than its capacity of "
                f"{load.capacity:g} (--capacity keeps it)."
            )
    if decision.steering is not None:
        steering = decision.steering
        _show(
            f"As routed {_ms(steering.value_ms)}, under full control "
            f"{_ms(steering.controlled_ms)}; {share(steering.misrouted_share)} of the traffic "
            "is not answered by its cheapest site."
        )
        if steering.unseen:
            _show(f"Nothing is told of {listed(steering.unseen)}: put to the cheapest site.")


def _print_sizes(answer: Sweep) -> None:
    table = _table(
        ("k", "sites", "value", "price", "served"), right=("k", "value", "price", "served")
    )
    for one in answer.choices:
        table.add_row(
            "any" if one.k is None else str(one.k),
            listed(one.sites) if one.sites else "no choice keeps the constraints",
            _value(one.value, one.unit) if one.sites else UNKNOWN,
            _amount(one.price_per_month),
            share(one.served_share) if one.sites else UNKNOWN,
        )
    _show(table)


def _print_facts(decision: Decision) -> None:
    table = _table(
        ("site", "traffic", "mean km", "farthest", "exchanges", "networks"),
        right=("traffic", "mean km", "farthest"),
    )
    if all(one.mean_distance_km is None and not one.exchanges for one in decision.facts):
        return
    for one in decision.facts:
        table.add_row(
            harmless(one.site),
            share(one.share),
            _whole(one.mean_distance_km),
            _whole(one.farthest_km),
            harmless(", ".join(one.exchanges)) or UNKNOWN,
            " ".join(f"AS{number}" for number in one.networks) or UNKNOWN,
        )
    _show(table)


def _print_assignments(rows: Sequence[Served]) -> None:
    tiers = len({row.tier for row in rows}) > 1
    table = _table(
        ("region", "traffic", "site", "ms", "95 % interval", "ok", "backup"),
        right=("traffic", "ms", "95 % interval"),
    )
    for row in sorted(rows, key=lambda one: -one.weight)[:MOST_ROWS]:
        mark = GUESS if row.filled else ""
        name = f"{row.region} ({row.tier})" if tiers else row.region
        backup = ""
        if row.backup:
            backup = f"{row.backup} {GUESS if row.backup_filled else ''}{_number(row.backup_ms)}"
        table.add_row(
            harmless(name),
            share(row.weight * (row.share or 1.0)),
            harmless(row.site) or "none",
            mark + _number(row.value_ms),
            _interval(row, mark),
            "" if row.within is None else row.within,
            harmless(backup),
        )
    _show(table)
    if len(rows) > MOST_ROWS:
        _show(f"and {len(rows) - MOST_ROWS} more (--format csv has all).")


def _ends(row: Served) -> tuple[float | None, ...]:
    return row.value_ms, row.low_ms, row.high_ms


def _interval(row: Served, mark: str) -> str:
    if row.low_ms is None and row.high_ms is None:
        return UNKNOWN
    if row.low_ms == row.high_ms:
        return "exact"
    high = "no limit" if row.high_ms is None else _number(row.high_ms)
    return f"{mark}{_number(row.low_ms)} to {high}"


def _print_robustness(decision: Decision) -> None:
    robust = decision.robustness
    if robust is None:
        return
    where = "" if robust.method == "all choices" else f" among {robust.looked_at} choices"
    _show(
        f"Resampled {robust.resamples} times: best in {share(robust.share_of_best)}{where}; "
        f"expected regret {_regret(robust, decision.unit)}."
    )
    for one in robust.choices:
        if one.sites != decision.sites and one.share > 0:
            _show(f"  {share(one.share)}: {listed(one.sites)}")
    _print_next(robust, decision.unit)


def _regret(robust: Robustness, unit: str) -> str:
    return f"{_value(robust.regret_mean, unit)} (95 %: {_value(robust.regret_p95, unit)})"


def _print_next(robust: Robustness, unit: str) -> None:
    if not robust.measure_next:
        _show("Measure next: no single pair would change this choice for the better.")
    else:
        batch = robust.measure_next[0].samples
        _show(f"Measure next ({batch:,} samples more each):")
        table = _table(
            ("region", "site", "samples now", "less regret"), right=("samples now", "less regret")
        )
        for one in robust.measure_next:
            table.add_row(
                harmless(one.region),
                harmless(one.site),
                f"{one.measured:,}" if one.measured else "none",
                _fine(one.reduction, unit),
            )
        _show(table)
    if robust.prior:
        _show(f"Unmeasured pairs are taken here as {robust.prior}.")
    if robust.not_ranked:
        _show(f"Of {robust.not_ranked} unmeasured pairs nothing can be said beforehand.")


def _print_loss(decision: Decision, lost: LossOf) -> None:
    _show("")
    _show(_loss_sentence(decision, lost))
    if not lost.moved:
        return
    table = _table(
        ("region", "traffic", "goes to", "ms before", "ms after"),
        right=("traffic", "ms before", "ms after"),
    )
    for one in sorted(lost.moved, key=lambda move: -move.weight)[:MOST_ROWS]:
        table.add_row(
            harmless(one.region if len(decision.tiers) < 2 else f"{one.region} ({one.tier})"),
            share(one.weight * one.share),
            harmless(one.site),
            _number(one.before_ms),
            (GUESS if one.filled else "") + _number(one.after_ms),
        )
    _show(table)


def _loss_sentence(decision: Decision, lost: LossOf) -> str:
    if lost.value is None:
        return f"Without {lost.lost_site}: nobody is served."
    text = f"Without {lost.lost_site}: {_value(lost.value, decision.unit)}"
    if lost.unserved_share > 1e-9:
        text += (
            f", {share(lost.unserved_share)} of the traffic not served ({listed(lost.unserved)})"
        )
    return text + "."


def _impossible(decision: Decision) -> bool:
    if decision.sites:
        return False
    for text in decision.clashes or ("There is no choice.",):
        _show(text)
    _notes(decision.notes)
    return True


def _value(value: float | None, unit: str) -> str:
    if value is None:
        return UNKNOWN
    return share(value) if unit == "share" else f"{value:,.2f} ms"


def _fine(value: float, unit: str) -> str:
    return f"{100 * value:.2g} %" if unit == "share" else f"{value:.2g} ms"


def _ms(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:,.2f} ms"


def _number(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:,.1f}"


def _whole(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:,.0f}"


def _amount(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:,.10g}"


def _notes(notes: Sequence[str]) -> None:
    for text in notes:
        _show(f"Note: {text}")


def _table(columns: Sequence[str], right: Sequence[str] = ()) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(
            column,
            justify="right" if column in right else "left",
            overflow="fold",
            no_wrap=column in right,
        )
    return table


def _show(what: str | Table) -> None:
    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else 80
    console = Console(width=width, highlight=False, markup=False, emoji=False)
    console.print(harmless(what) if isinstance(what, str) else what)


def _json(answer: object) -> None:
    text = msgspec.json.format(msgspec.json.encode(answer), indent=2)
    sys.stdout.write(text.decode() + "\n")


def _csv(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([["" if cell is None else cell for cell in row] for row in rows])


def _cell(value: object) -> object:
    return " ".join(value) if isinstance(value, tuple) else value
