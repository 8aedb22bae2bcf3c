"""How `pathbudget sites` prints: tables of 80 columns, JSON, CSV."""

from collections.abc import Sequence

import msgspec

from pathbudget.agents.cli import sites_cells as cells
from pathbudget.agents.cli import sites_sentences as sentences
from pathbudget.agents.cli.exits import tell
from pathbudget.agents.cli.wording import harmless
from pathbudget.analysis.report.words import listed, share
from pathbudget.analysis.siting.decision import Decision, FrontierPoint, LossOf, Served
from pathbudget.analysis.siting.decision_results import Robustness
from pathbudget.analysis.siting.sweep import Sweep

MOST_ROWS = 40


def print_sweep(answer: Sweep, kind: str, *, notes: Sequence[str]) -> None:
    """Decisions by number of sites, the shown one in full."""
    if kind == "json":
        cells.print_json({**msgspec.to_builtins(answer), "source_notes": list(notes)})
    elif kind == "csv":
        _tell_clashes(answer.shown)
        cells.print_csv(
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
        cells.print_json(
            {
                "objective": str(objective),
                "points": msgspec.to_builtins(tuple(points)),
                "notes": list(notes),
            }
        )
        return
    if kind == "csv":
        columns = FrontierPoint.__struct_fields__
        rows = [[cells.cell(getattr(point, name)) for name in columns] for point in points]
        cells.print_csv(list(columns), rows)
        return
    table = cells.new_table(
        ("", "sites", "value", "price", "served", "proof"), right=("value", "price", "served")
    )
    for point in points:
        table.add_row(
            "*" if point.efficient else "",
            listed(point.sites),
            sentences.marked(point, "share" if objective == "covering" else "ms"),
            cells.amount(point.price_per_month),
            share(point.served_share),
            sentences.proof(point.proved, point.gap),
        )
    cells.show(table)
    cells.show("* no other point is as good and cheaper, or as cheap and better.")
    cells.print_notes(notes)


def print_failover(decision: Decision, kind: str, *, notes: Sequence[str]) -> None:
    """Where the regions of each lost site go."""
    if kind == "json":
        cells.print_json({**msgspec.to_builtins(decision), "source_notes": list(notes)})
        return
    if kind == "csv":
        _tell_clashes(decision)
        cells.print_csv(
            [
                "lost_site",
                "region",
                "tier",
                "weight",
                "site",
                "share",
                "before_ms",
                "after_ms",
                "before_filled",
                "filled",
            ],
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
                    m.before_filled,
                    m.filled,
                ]
                for lost in decision.failover
                for m in lost.moved
            ],
        )
        return
    if _impossible(decision):
        return
    cells.show(
        f"{listed(decision.sites)}: {sentences.marked(decision, decision.unit)} with all sites up"
    )
    for lost in decision.failover:
        _print_loss(decision, lost)
    cells.print_notes([*decision.notes, *notes])


def print_measure_next(decision: Decision, kind: str, *, notes: Sequence[str]) -> None:
    """Pairs by what their measurement is worth."""
    robust = decision.robustness
    found = () if robust is None else robust.measure_next
    if kind == "json":
        cells.print_json({**msgspec.to_builtins(decision), "source_notes": list(notes)})
    elif kind == "csv":
        columns = ["region", "site", "measured", "samples", "reduction", "per_sample"]
        _tell_clashes(decision)
        cells.print_csv(columns, [[getattr(one, name) for name in columns] for one in found])
    elif not _impossible(decision) and robust is not None:
        cells.show(f"{listed(decision.sites)}: expected regret {_regret(robust, decision.unit)}")
        _print_next(robust, decision.unit)
        cells.print_notes([*decision.notes, *notes])


def _print_decision(answer: Sweep, notes: Sequence[str]) -> None:
    decision = answer.shown
    cells.show("Asked: " + "; ".join(decision.asked) + ".")
    if _impossible(decision):
        return
    value = sentences.marked(decision, decision.unit) + sentences.of_what(decision)
    cells.show(f"Take {listed(decision.sites)}: {value}.{sentences.guessed(decision)}")
    cells.show(sentences.proof_sentence(decision))
    _print_costs(decision)
    if decision.next_best_sites:
        margin = (
            ""
            if decision.margin is None
            else f", {cells.figure(decision.margin, decision.unit)} behind"
        )
        cells.show(f"Next best: {listed(decision.next_best_sites)}{margin}.")
    cells.print_rivals(decision)
    if len(answer.choices) > 1:
        _print_sizes(answer)
    _print_facts(decision)
    _print_assignments(decision.assignments)
    for lost in decision.failover if len(decision.sites) > 1 else ():
        cells.show(sentences.loss_sentence(decision, lost))
    _print_robustness(decision)
    cells.print_notes([*decision.notes, *notes])


def _print_costs(decision: Decision) -> None:
    parts: list[str] = []
    if decision.price_per_month is not None:
        parts.append(f"{cells.amount(decision.price_per_month)} per month")
    if decision.power_kw is not None:
        parts.append(f"{decision.power_kw:,.6g} kW")
    if parts:
        cells.show("Together: " + ", ".join(parts) + ".")
    for load in decision.loads:
        if load.full:
            cells.show(f"{load.site} is full: it carries {share(load.share)} of the traffic.")
        elif load.over:
            cells.show(
                f"{load.site} gets {load.load:g}, more than its capacity of "
                f"{load.capacity:g} (--capacity keeps it)."
            )
    if decision.steering is not None:
        steering = decision.steering
        cells.show(
            f"As routed {cells.ms(steering.value_ms)}, under full control "
            f"{cells.ms(steering.controlled_ms)}; {share(steering.misrouted_share)} of the traffic "
            "is not answered by its cheapest site."
        )
        if steering.unseen:
            cells.show(f"Nothing is told of {listed(steering.unseen)}: put to the cheapest site.")


def _print_sizes(answer: Sweep) -> None:
    table = cells.new_table(
        ("k", "sites", "value", "price", "served"), right=("k", "value", "price", "served")
    )
    for one in answer.choices:
        table.add_row(
            "any" if one.k is None else str(one.k),
            listed(one.sites) if one.sites else "no choice keeps the constraints",
            sentences.marked(one, one.unit) if one.sites else cells.UNKNOWN,
            cells.amount(one.price_per_month),
            share(one.served_share) if one.sites else cells.UNKNOWN,
        )
    cells.show(table)


def _print_facts(decision: Decision) -> None:
    table = cells.new_table(
        ("site", "traffic", "mean km", "farthest", "exchanges", "networks"),
        right=("traffic", "mean km", "farthest"),
    )
    if all(one.mean_distance_km is None and not one.exchanges for one in decision.facts):
        return
    for one in decision.facts:
        table.add_row(
            harmless(one.site),
            share(one.share),
            cells.whole(one.mean_distance_km),
            cells.whole(one.farthest_km),
            harmless(", ".join(one.exchanges)) or cells.UNKNOWN,
            " ".join(f"AS{number}" for number in one.networks) or cells.UNKNOWN,
        )
    cells.show(table)


def _print_assignments(rows: Sequence[Served]) -> None:
    tiers = len({row.tier for row in rows}) > 1
    table = cells.new_table(
        ("region", "traffic", "site", "ms", "95 % interval", "ok", "backup"),
        right=("traffic", "ms", "95 % interval"),
    )
    for row in sorted(rows, key=lambda one: -one.weight)[:MOST_ROWS]:
        mark = sentences.GUESS if row.filled else ""
        name = f"{row.region} ({row.tier})" if tiers else row.region
        backup = ""
        if row.backup:
            guess = sentences.GUESS if row.backup_filled else ""
            backup = f"{row.backup} {guess}{cells.number(row.backup_ms)}"
        table.add_row(
            harmless(name),
            share(row.weight * (row.share or 1.0)),
            harmless(row.site) or "none",
            mark + cells.number(row.value_ms),
            _interval(row, mark),
            "" if row.within is None else row.within,
            harmless(backup),
        )
    cells.show(table)
    if len(rows) > MOST_ROWS:
        cells.show(f"and {len(rows) - MOST_ROWS} more (--format csv has all).")


def _interval(row: Served, mark: str) -> str:
    if row.low_ms is None and row.high_ms is None:
        return cells.UNKNOWN
    if row.low_ms == row.high_ms:
        return "exact"
    high = "no limit" if row.high_ms is None else cells.number(row.high_ms)
    return f"{mark}{cells.number(row.low_ms)} to {high}"


def _print_robustness(decision: Decision) -> None:
    robust = decision.robustness
    if robust is None:
        return
    where = "" if robust.method == "all choices" else f" among {robust.looked_at} choices"
    cells.show(
        f"Resampled {robust.resamples} times: best in {share(robust.share_of_best)}{where}; "
        f"expected regret {_regret(robust, decision.unit)}."
    )
    for one in robust.choices:
        if one.sites != decision.sites and one.share > 0:
            cells.show(f"  {share(one.share)}: {listed(one.sites)}")
    _print_next(robust, decision.unit)


def _regret(robust: Robustness, unit: str) -> str:
    return (
        f"{cells.figure(robust.regret_mean, unit)} (95 %: {cells.figure(robust.regret_p95, unit)})"
    )


def _print_next(robust: Robustness, unit: str) -> None:
    if not robust.measure_next:
        cells.show("Measure next: no single pair would change this choice for the better.")
    else:
        batch = robust.measure_next[0].samples
        cells.show(f"Measure next ({batch:,} samples more each):")
        table = cells.new_table(
            ("region", "site", "samples now", "less regret"), right=("samples now", "less regret")
        )
        for one in robust.measure_next:
            table.add_row(
                harmless(one.region),
                harmless(one.site),
                f"{one.measured:,}" if one.measured else "none",
                cells.fine(one.reduction, unit),
            )
        cells.show(table)
    if robust.prior:
        cells.show(f"Unmeasured pairs are taken here as {robust.prior}.")
    if robust.not_ranked:
        cells.show(f"Of {robust.not_ranked} unmeasured pairs nothing can be said beforehand.")


def _print_loss(decision: Decision, lost: LossOf) -> None:
    cells.show("")
    cells.show(sentences.loss_sentence(decision, lost))
    if not lost.moved:
        return
    table = cells.new_table(
        ("region", "traffic", "goes to", "ms before", "ms after"),
        right=("traffic", "ms before", "ms after"),
    )
    for one in sorted(lost.moved, key=lambda move: -move.weight)[:MOST_ROWS]:
        table.add_row(
            harmless(one.region if len(decision.tiers) < 2 else f"{one.region} ({one.tier})"),
            share(one.weight * one.share),
            harmless(one.site),
            (sentences.GUESS if one.before_filled else "") + cells.number(one.before_ms),
            (sentences.GUESS if one.filled else "") + cells.number(one.after_ms),
        )
    cells.show(table)


def _tell_clashes(decision: Decision) -> None:
    """Why a table is empty, beside it."""
    for text in () if decision.sites else decision.clashes or ("There is no choice.",):
        tell(text)


def _impossible(decision: Decision) -> bool:
    if decision.sites:
        return False
    for text in decision.clashes or ("There is no choice.",):
        cells.show(text)
    cells.print_notes(decision.notes)
    return True
